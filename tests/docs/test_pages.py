"""What the pages tell people to type works, in that order, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks_of, run_page, run_python, run_shell

DOCS = Path(__file__).parents[2] / "docs"
README = DOCS.parent / "README.md"
PAGES = ["index", "tutorial", "choosing", "how-it-works", "howto", "migration", "faq"]


@pytest.mark.parametrize("name", PAGES)
def test_every_block_of_the_page_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    assert run_page(DOCS / f"{name}.md") > 0


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_no_block_that_nobody_runs(name):
    assert {b.kind for b in blocks_of(DOCS / f"{name}.md")} <= {"python", "shell", "text"}
    fences = (DOCS / f"{name}.md").read_text("utf-8").count("\n```")
    assert fences == 2 * len(blocks_of(DOCS / f"{name}.md"))


@pytest.fixture
def two_files(tmp_path, monkeypatch):
    """A folder with the two files of which the README speaks."""
    monkeypatch.chdir(tmp_path)
    names = ["alice", *(f"member{i}" for i in range(30))]
    Path("members.txt").write_text("\n".join(names) + "\n")
    Path("follows.csv").write_text("".join(f"alice,{name}\n" for name in names[1:20]))


def test_the_ten_lines_of_the_readme_run(two_files):
    [block] = blocks_of(README)
    said = run_python(block, README, {})
    assert said.startswith("[('alice', ")
    assert "Each row is for the owner of its source alone." in said
    assert Path("alice.parquet").exists()


def test_the_commands_of_the_readme_run(two_files):
    lines = re.findall(r"^    (edgeveil .*\n)", README.read_text("utf-8"), re.MULTILINE)
    assert len(lines) == 2
    said = run_shell(Block("shell", "".join(lines), 1), "README.md")
    assert "follows.ledger: charged epsilon = 1; 3 left for alice." in said


def test_a_page_that_does_not_hold_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match=r"page.md:6 promises"):
        run_page(page)
    page.write_text("```shell\nedgeveil ledger show nowhere.ledger\n```\n")
    with pytest.raises(AssertionError, match=r"page.md:2"):
        run_page(page)
