"""What the pages tell people to type works, in that order, in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import blocks_of, run_page

DOCS = Path(__file__).parents[2] / "docs"
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


def test_a_page_that_does_not_hold_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match=r"page.md:6 promises"):
        run_page(page)
    page.write_text("```shell\nedgeveil ledger show nowhere.ledger\n```\n")
    with pytest.raises(AssertionError, match=r"page.md:2"):
        run_page(page)
