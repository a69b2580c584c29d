"""What the project says of itself: workflows, packages, citation, proofs."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from edgeveil.cli.theory import theory
from edgeveil.errors import ParameterError
from edgeveil.mechanisms import MECHANISMS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
in_a_checkout = pytest.mark.skipif(not WORKFLOWS, reason="an sdist has no workflows")


def steps(workflow: Path) -> list[dict]:
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@in_a_checkout
def test_workflows_only_call_commands_that_exist():
    said = runpy.run_path(str(ROOT / "run"))["__doc__"]
    called = [step["run"] for workflow in WORKFLOWS for step in steps(workflow) if "run" in step]
    assert len(called) >= 5
    for command in called:
        words = command.split()
        if words[:2] == ["python", "run"]:
            assert f"./run {words[2]}" in said
        else:
            assert (ROOT / command).stat().st_mode & 0o100


@in_a_checkout
def test_ci_runs_on_the_versions_that_the_package_names():
    tested = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]["test"]
    named = [re.search(r"3\.\d+$", line) for line in PROJECT["classifiers"]]
    assert tested["strategy"]["matrix"]["python"] == [match[0] for match in named if match]
    assert PROJECT["requires-python"] == f">={tested['strategy']['matrix']['python'][0]}"


@in_a_checkout
def test_hooks_before_a_commit_are_those_of_run_check():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    hooks = [hook["entry"] for repo in config["repos"] for hook in repo["hooks"]]
    assert hooks == [f"python run check {n}" for n in ("lint", "format", "types", "imports")]


def test_the_citation_is_of_this_version():
    assert (
        yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"] == PROJECT["version"]
    )


def test_the_changelog_begins_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    headings = re.findall(r"^## \[([\w.]+)\] - ", text, re.M)
    assert headings[0] == PROJECT["version"]
    assert len(set(headings)) == len(headings)
    kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
    for version in re.split(r"^## ", text, flags=re.M)[1:]:
        in_version = re.findall(r"^### (.+)$", version, re.M)
        assert in_version == [
            kind for kind in kinds if kind in in_version
        ]  # each once, in this order


def test_every_guarantee_names_a_page_that_the_command_prints(capsys):
    kinds = [kind for kind in MECHANISMS if kind.name != "non-private"]
    assert len(kinds) > 8
    for kind in kinds:
        needed = {"epsilon": 1.0, "promised_min_degree": 50}
        fields = kind.__dataclass_fields__
        claim = kind(**{name: value for name, value in needed.items() if name in fields})
        said = str(claim.guarantee(1))
        page = re.search(r"Proof: docs/theory/([\w-]+)\.md \(edgeveil theory \1\)\.$", said)
        assert page, said
        theory(page[1])
        assert capsys.readouterr().out.startswith("# ")


def test_theory_lists_pages_and_corrects_a_wrong_name(capsys):
    theory()
    assert "lazy-noise" in capsys.readouterr().out
    with pytest.raises(ParameterError, match="did you mean suggestions"):
        theory("sugestions")


@in_a_checkout
def test_wheel_and_sdist_have_what_belongs_into_them(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    theory_pages = {f"edgeveil/theory/{p.name}" for p in (ROOT / "docs/theory").glob("*.md")}
    assert theory_pages | {"edgeveil/py.typed", "edgeveil/output.schema.json"} <= names
    assert not [name for name in names if name.startswith(("tests", "docs", "benchmarks"))]
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"tests/conftest.py", "docs/theory/index.md", "CHANGELOG.md", "LICENSE"} <= names


def test_file_names_of_the_package_occur_once():
    names = [path.name for path in (ROOT / "src").rglob("*.py") if path.name != "__init__.py"]
    assert sorted(names) == sorted(set(names))
