"""An installation without any extra: the demo works, and what needs more says what."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"

# The demo with a smaller network, where nothing can be imported that edgeveil does not bring.
SCRIPT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from functools import partial
import edgeveil.graph.datasets
edgeveil.graph.datasets.social_network = partial(
    edgeveil.graph.datasets.social_network, 800, average_degree=30
)
from edgeveil.cli.app import main
sys.exit(main(sys.argv[1:]))
"""
MODULES = {"scikit-learn": "sklearn", "prometheus-client": "prometheus_client", "pyjwt": "jwt"}


def without_extras(*words: str) -> subprocess.CompletedProcess[str]:
    project = tomllib.loads(PROJECT.read_text("utf-8"))
    named = [
        "".join(letter if letter.isalnum() or letter == "-" else " " for letter in line).split()[0]
        for lines in (project["project"]["optional-dependencies"], project["dependency-groups"])
        for group in lines.values()
        for line in group
        if isinstance(line, str)
    ]
    blocked = {MODULES.get(name, name.replace("-", "_")) for name in named}
    assert {"sklearn", "starlette", "ray", "psycopg", "networkx"} <= blocked
    script = SCRIPT.format(blocked=sorted(blocked))
    command = [sys.executable, "-c", script, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def test_the_demo_needs_no_extra(tmp_path):
    said = without_extras("demo", "--members", "2", "--out", str(tmp_path / "page.html"))
    assert said.returncode == 0, said.stderr
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_the_report_needs_no_extra(folder):
    said = without_extras("report", "follows.csv", "--member", "bob", "--epsilon", "1")
    assert said.returncode == 0, said.stderr
    assert (folder / "edgeveil-report.html").stat().st_size > 10_000


def test_the_service_says_which_extra_it_needs(folder):
    without_extras("ledger", "create", "f.ledger", "--epsilon", "1")
    said = without_extras("serve", "follows.csv", "--ledger", "f.ledger")
    assert said.returncode == 1
    assert "pip install 'edgeveil[serve]'" in said.stderr
