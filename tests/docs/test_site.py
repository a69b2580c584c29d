"""The built site: whole, offline, and made from the code and the results as they are now."""

from __future__ import annotations

import contextlib
import csv
import math
import re

import pytest

import edgeveil
from docs.site.build import ROOT, BuildError, stage
from docs.site.figures import SOURCES, digest
from docs.site.links import complaints
from docs.site.reference import api_table
from docs.site.rst_tables import to_markdown
from edgeveil.cli.app import COMMANDS

DOCS = ROOT / "docs"
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def test_every_page_is_built_and_no_link_is_broken(site):
    for page in DOCS.rglob("*.md"):
        assert (site / page.relative_to(DOCS)).with_suffix(".html").exists(), page
    assert complaints(site) == []


def test_the_reference_has_every_public_name_and_every_command(site):
    api = (site / "api.html").read_text("utf-8")
    missing = [name for name in edgeveil.__all__ if f'id="edgeveil.{name}"' not in api]
    assert not missing
    cli = (site / "cli.html").read_text("utf-8")
    assert [c for c in COMMANDS if f'id="edgeveil-{c}' not in cli] == []
    assert "====" not in api, "a table in a docstring was not understood"


def test_reference_in_the_repository_is_current():
    """Otherwise: paste what docs.site.reference.api_table gives between the marks of api.md."""
    assert api_table() in (DOCS / "api.md").read_text("utf-8")


def test_examples_and_figures_are_on_the_site(site):
    page = (site / "examples.html").read_text("utf-8")
    assert page.count("__future__") == len(list((ROOT / "examples").glob("*.py")))
    assert (site / "results" / "beyond" / "beyond.png").exists()


def test_broken_links_and_foreign_scripts_are_reported(tmp_path):
    (tmp_path / "b.html").write_text('<h2 id="here">x</h2>')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here"></a><a href="b.html#gone"></a><a href="c.html"></a>'
        '<img src="none.png"><script src="https://cdn.example/x.js"></script>'
        '<a href="https://arxiv.org/abs/2207.06944"></a><link rel="canonical" href="https://x/">'
    )
    (tmp_path / "s.css").write_text("@font-face { src: url('https://fonts.example/f.woff2') }")
    assert complaints(tmp_path) == [
        "a.html loads https://cdn.example/x.js from elsewhere",
        "a.html: none.png does not exist",
        "a.html: b.html#gone has no such anchor",
        "a.html: c.html does not exist",
        "s.css loads from elsewhere",
    ]


def test_tables_in_docstrings_become_markdown():
    bare = to_markdown("before\n\n== ====\na  b c\n   d\ne  f\n== ====\n\nafter")
    assert "|  |  |\n|---|---|\n| a | b c d |\n| e | f |" in bare
    assert bare.startswith("before\n")
    assert bare.endswith("\nafter")
    assert "| x | y |\n|---|---|\n| 1 | 2 |" in to_markdown("== ==\nx  y\n== ==\n1  2\n== ==")
    assert to_markdown("x = 1\n=====\n") == "x = 1\n====="


def test_a_page_that_the_navigation_lacks_stops_the_build(tmp_path, monkeypatch):
    monkeypatch.setattr("docs.site.build.pages_in_nav", lambda: {"index.md"})
    with pytest.raises(BuildError, match=r"lacks \['api.md'"):
        stage(tmp_path / "pages")


def test_links_hold_where_the_repository_is_browsed():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in _LINK.findall(page.read_text("utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []


@pytest.mark.parametrize("name", SOURCES)
def test_pictures_are_drawn_from_the_results_as_they_are(name):
    """Otherwise: ./run docs --figures."""
    assert digest(SOURCES[name]) in (DOCS / "images" / name).read_text("utf-8")


@pytest.fixture(scope="module")
def mean():
    """Recall@100 as measured, by data set, mechanism, epsilon and scope."""
    with (ROOT / "results/beyond/results.csv").open(newline="") as file:
        return {
            (r["dataset"], r["mechanism"], r["epsilon"], r["scope"]): float(r["mean"])
            for r in csv.DictReader(file)
            if r["metric"] == "recall@100"
        }


def test_the_numbers_of_the_readme_are_the_measured_ones(mean):
    text = (ROOT / "README.md").read_text("utf-8").partition("| epsilon |")[2]
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines()[2:4]]
    names = ("two-hop", "push-flow-cap (paper)", "graph-diffusion", "edge flipping")
    for epsilon, *cells in rows:
        for mechanism, cell in zip(names, cells, strict=True):
            both = [mean[d, mechanism, epsilon, "non-neighbours"] for d in ("POS", "BlogCatalog")]
            assert [float(v) for v in cell.split("/")] == pytest.approx(both, abs=0.0051)


def test_readme_classification_table_equals_results():
    with (ROOT / "results/classification/results.csv").open(newline="") as file:
        means = {
            (r["mechanism"], float(r["epsilon"])): float(r["mean"])
            for r in csv.DictReader(file)
            if (r["dataset"], r["metric"], r["scope"]) == ("Amherst", "accuracy", "60% labelled")
        }
    text = (ROOT / "README.md").read_text("utf-8").partition("| ε | GAP |")
    head, _, *rows = ("| ε | GAP |" + text[2]).splitlines()[:5]
    names = [cell.strip() for cell in head.strip("|").split("|")][1:]
    assert len(rows) == 3
    for row in rows:
        epsilon, *cells = [float(cell) for cell in row.strip("|").split("|")]
        measured = [means[name, epsilon] for name in names]
        assert cells == pytest.approx(measured, abs=0.0051)
    alone, exact = means["features alone", 0], means["exact sums (not private)", math.inf]
    said = f"features alone {alone:.2f}, all edges without privacy {exact:.2f}".replace(" 0.", " .")
    assert said in (ROOT / "README.md").read_text("utf-8")


def test_rank_page_numbers_equal_results(mean):
    text = (DOCS / "rank.md").read_text("utf-8").partition("<!-- numbers: ")[2]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    head, _, *rows = [[c.strip() for c in line.strip("|").split("|")] for line in lines[:10]]
    assert len(rows) == 8
    for scope, epsilon, *cells in rows:
        for mechanism, cell in zip(head[2:], cells, strict=True):
            both = [mean[d, mechanism, epsilon, scope] for d in ("POS", "BlogCatalog")]
            assert [float(v) for v in cell.split("/")] == pytest.approx(both, abs=0.0051)


# -- in a real browser without a network -----------------------------------------------------


@pytest.fixture
def offline(browser):
    context = browser.new_context(offline=True)
    yield context
    context.close()


def test_pages_request_only_their_own_files(offline, site):
    page = offline.new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(request.url))
    # Of every kind one: a start page, pictures, the reference, formulae. What a page names is
    # looked at in all of them (`complaints`).
    for name in ("index", "guide", "api", "theory/noise"):
        page.goto((site / f"{name}.html").as_uri())
        page.wait_for_load_state("networkidle")
        assert page.locator("h1").count() == 1
        for picture in page.locator("article img").all():
            assert picture.evaluate("image => image.complete && image.naturalWidth > 0")
    page.close()
    assert asked
    assert [url for url in asked if not url.startswith(site.as_uri()) and url[:5] != "data:"] == []
    assert complaints == []


def test_content_policy_forbids_foreign_resources(offline, site):
    page = offline.new_page()
    page.goto((site / "index.html").as_uri())
    refused = page.evaluate(
        """new Promise(done => {
            document.addEventListener("securitypolicyviolation", e => done(e.blockedURI))
            document.body.append(Object.assign(new Image(), {src: "https://cdn.example/x.png"}))
        })"""
    )
    page.close()
    assert refused.startswith("https://cdn.example")


def test_search_finds_pages_from_disk(offline, site):
    from playwright.sync_api import TimeoutError as TookTooLong

    page = offline.new_page()
    for patience in (1, 5, 20):  # a busy machine is slower; the parts cannot be waited for
        page.goto((site / "index.html").as_uri())
        page.wait_for_load_state("networkidle")
        page.keyboard.press("Control+k")
        page.wait_for_timeout(500 * patience)  # the search's own animation
        page.keyboard.type("collude", delay=50)
        page.wait_for_timeout(1000 * patience)
        page.keyboard.press("Enter")
        with contextlib.suppress(TookTooLong):
            page.wait_for_url("**/guide.html*", timeout=2000 * patience)
            break
    assert page.url.endswith("#what-if-members-collude")
    page.close()
