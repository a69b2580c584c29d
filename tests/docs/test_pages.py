"""What the pages tell people to type works, in that order, in an empty folder."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

import edgeveil as ev
from tests.docs.blocks import Block, blocks_of, run_page, run_python, run_shell

DOCS = Path(__file__).parents[2] / "docs"
README = DOCS.parent / "README.md"
PAGES = [
    *("index", "paper", "tutorial", "suggest", "classify", "rank", "embed", "over-time", "guide"),
    *("how-it-works", "own-mechanism", "migration", "report"),
]


@pytest.mark.parametrize("name", PAGES)
def test_every_block_of_the_page_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    assert run_page(DOCS / f"{name}.md") > 0


@pytest.mark.parametrize("name", PAGES)
def test_every_code_block_is_covered_by_a_test(name):
    assert {b.kind for b in blocks_of(DOCS / f"{name}.md")} <= {"python", "shell", "text"}
    fences = (DOCS / f"{name}.md").read_text("utf-8").count("\n```")
    assert fences == 2 * len(blocks_of(DOCS / f"{name}.md"))


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with the files of which the README speaks: circles of ten around two members."""
    monkeypatch.chdir(tmp_path)
    names = ["alice", "bob", *(f"member{i}" for i in range(40))]
    Path("members.txt").write_text("\n".join(names) + "\n")
    circles = [names[i : i + 10] for i in range(0, 40, 5)]
    edges = {pair for circle in circles for pair in combinations(circle, 2)}
    Path("friends.csv").write_text("".join(f"{u},{v}\n" for u, v in sorted(edges)))
    Path("classes.csv").write_text("".join(f"{name},{i // 21}\n" for i, name in enumerate(names)))


def test_readme_code_from_the_paper_runs(files):
    names = {}
    run_python(blocks_of(README)[0], README, names)
    assert names["private"].guarantee.brief == "joint, epsilon = 1"
    assert names["exact"].shape == names["capped"].shape


def test_readme_code_from_a_problem_runs(files):
    lines = Path("classes.csv").read_text("utf-8").splitlines(keepends=True)
    Path("classes.csv").write_text("".join(lines[::2]), "utf-8")
    said = run_python(blocks_of(README)[1], README, {})
    assert "'alice'" in said
    assert "Anyone may see this." in said
    assert {path.name for path in Path("lists").iterdir()} == {"alice.csv", "bob.csv"}
    assert ev.Ledger.open("friends.ledger").account("alice").charged == 2.5


def test_the_commands_of_the_readme_run_and_print_what_it_shows(files, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    text = README.read_text("utf-8")
    lines = re.findall(r"^    (edgeveil .*\n)", text, re.MULTILINE)
    assert [line.split()[1] for line in lines] == ["ledger", "refresh", "suggest"]
    said = run_shell(Block("shell", "".join(lines), 1), "README.md")
    assert "nobody is charged for it" in said
    assert ev.Ledger.open("friends.ledger").account("alice").charged == 1
    shown = [line.split("┃") for line in (text + said).splitlines() if "┃ rank ┃" in line]
    assert len(shown) == 2
    assert [cell.strip() for cell in shown[0][1:]] == [cell.strip() for cell in shown[1][1:]]


def cells_of_the_page_for_readers(start):
    text = (DOCS / "paper.md").read_text("utf-8")
    return re.findall(r"`(" + start + r"[^`]*)`", text)


def test_python_cells_of_the_paper_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = ev.datasets.social_network(100, average_degree=8, seed=1).graph
    names = {kind.__name__: kind for kind in ev.mechanisms.MECHANISMS}
    names |= {"ev": ev, "graph": graph, "s": 7, "path": "friends.ledger"}
    names["private"] = ev.release(graph, ev.mechanisms.DPPushFlowCap.paper(1.0), [7])
    kinds = "|".join(kind.__name__ for kind in ev.mechanisms.MECHANISMS)
    all_cells = cells_of_the_page_for_readers(rf"(?:ev\.\w+[.(]|(?:{kinds})[.(])")
    cells = [cell for cell in all_cells if "plot" not in cell and "(epsilon," not in cell]
    assert len(cells) >= 25
    for cell in cells:
        if "release(graph, mechanism" not in cell:
            eval(cell, names)


def test_shell_cells_of_the_paper_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = ev.datasets.social_network(100, average_degree=8, seed=1).graph
    pairs = [(u, v) for u in range(100) for v in graph.neighbours(u) if u < v]
    Path("friends.csv").write_text("".join(f"{u},{v}\n" for u, v in pairs))
    cells = [cell for cell in cells_of_the_page_for_readers("edgeveil ") if "plot" not in cell]
    assert len(cells) >= 8
    run_shell(Block("shell", "\n".join(cells) + "\n", 1), "paper.md")


def test_paper_page_names_every_erratum_and_tests_that_exist():
    text = (DOCS / "paper.md").read_text("utf-8")
    errata = set(re.findall(r"\*\*(E\d+)\.", (DOCS / "theory/errata.md").read_text("utf-8")))
    assert errata <= set(re.findall(r"E\d+", text))
    named = set(re.findall(r"`(test_[^`]+)`", text))
    there = {file.stem for file in (README.parent / "tests").rglob("test_*.py")}
    assert len(named) >= 14
    assert named <= there


def test_the_readme_is_short():
    assert len(README.read_text("utf-8").splitlines()) <= 120


def test_pages_say_member_price_and_charge():
    """One word for one thing; only the page that translates old names has them."""
    old = re.compile(r"\b(recipients?|spend(s|ing)?|spent)\b", re.IGNORECASE)
    pages = [README, *DOCS.rglob("*.md")]
    old_words = {
        page.name: sorted({word[0].lower() for word in old.finditer(page.read_text("utf-8"))})
        for page in pages
        if page.name != "upgrading.md"
    }
    assert {name: words for name, words in old_words.items() if words} == {}


def test_wrong_output_on_a_page_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match=r"page.md:6 promises"):
        run_page(page)
    page.write_text("```shell\nedgeveil ledger show nowhere.ledger\n```\n")
    with pytest.raises(AssertionError, match=r"page.md:2"):
        run_page(page)
