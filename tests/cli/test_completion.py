"""The completion script, sourced by a real shell."""

from __future__ import annotations

import shutil
import subprocess

import pytest


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["edgeveil", "ra"], {"rank"}),
        (["edgeveil", "ledger", "c"], {"create"}),
        (["edgeveil", "rank", "f.csv", "--ep"], {"--epsilon"}),
        (["edgeveil", "rank", "f.csv", "--mechanism", "two"], {"two-hop"}),
        (["edgeveil", "audit", "push"], {"push-flow", "push-flow-cap"}),
        (["edgeveil", "mechanisms", "--format", ""], {"table", "json", "csv"}),
        (["edgeveil", "rank", "fol"], {"follows.csv"}),
    ],
)
def test_bash_completes(folder, run, typed, expected):
    script = run("completion bash")
    assert script.returncode == 0
    (folder / "edgeveil.bash").write_text(script.stdout)
    words = " ".join(f"'{word}'" for word in typed)
    shell = (
        "source edgeveil.bash; "
        f"COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; COMP_LINE='{' '.join(typed)}'; "
        "COMP_POINT=${#COMP_LINE}; _edgeveil; printf '%s\\n' \"${COMPREPLY[@]}\"; complete -p"
    )
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    *found, registered = done.stdout.splitlines()
    assert set(found) == expected
    assert registered == "complete -F _edgeveil edgeveil"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_with_all_commands(run, shell):
    script = run(f"completion {shell}").stdout
    assert "--promised-min-degree" in script or "promised-min-degree" in script
    assert "verify" in script
