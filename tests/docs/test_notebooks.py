"""The notebooks run from top to bottom, and hold no output of anybody's machine."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def cells_of(notebook: Path, kind: str) -> list[dict[str, Any]]:
    return [c for c in json.loads(notebook.read_text("utf-8"))["cells"] if c["cell_type"] == kind]


def run_notebook(notebook: Path) -> tuple[str, list[Any]]:
    """Run the code cells in one namespace; what they print, and what they would show."""
    module = types.ModuleType(f"notebook_{notebook.stem}")
    sys.modules[module.__name__] = module  # classes look their module up
    shown = []
    with io.StringIO() as out, contextlib.redirect_stdout(out):
        for number, cell in enumerate(cells_of(notebook, "code")):
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            where = f"{notebook.name}, cell {number}"
            exec(compile(tree, where, "exec"), vars(module))
            if last is not None:
                value = eval(compile(ast.Expression(last.value), where, "eval"), vars(module))
                shown += [] if value is None else [value]
        return out.getvalue(), shown


def test_there_are_notebooks_and_the_page_names_them():
    assert len(NOTEBOOKS) == 3
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text("utf-8")
    assert all(notebook.name in page for notebook in NOTEBOOKS)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_no_outputs(notebook):
    for cell in cells_of(notebook, "code"):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    said, shown = run_notebook(notebook)
    assert shown
    told = {
        "first_steps": "is left",
        "paper_figure": "consistent",
        "own_mechanism": "its privacy loss is 2 times its epsilon",
    }
    assert told[notebook.stem] in said
    assert list(tmp_path.iterdir()) == [], "a notebook leaves nothing behind"
