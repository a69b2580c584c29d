"""The page of one's own graph, in a real browser: what `edgeveil report` writes for it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pytest

from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs import rank
from edgeveil.ledger import Ledger
from edgeveil.privacy.noise import NoiseSource
from edgeveil.report import PageData, page_from_releases
from edgeveil.report.charges import charges_of
from edgeveil.series import refresh
from edgeveil.series.suggesting import suggest

# How many lines the text of each element takes.
LINES = """all => all.map(e => {
  const range = document.createRange();
  range.selectNodeContents(e);
  return new Set([...range.getClientRects()].map(box => box.top)).size;
})"""


@dataclass
class Own:
    """Somebody's graph, with names."""

    graph: Graph
    names: list[str]


@pytest.fixture(scope="module", params=[False, True], ids=["undirected", "directed"])
def own(request) -> Own:
    network = social_network(400, average_degree=14, seed=1)
    names = [f"{name} {i}" for i, name in enumerate(network.names)]
    u, v = network.graph.adjacency().nonzero()
    part = slice(None, None, 2) if request.param else slice(None)
    nodes = NodeSet.of_strings(names)
    return Own(Graph.from_edges(u[part], v[part], nodes, directed=request.param), names)


def test_list_shows_protection_and_reasons_in_plain_words(visit, own):
    suggestions = suggest(own.graph, own.names[:2], epsilon=2.0, k=8)
    page = visit(
        page_from_releases([suggestions], title="Two members"), width=1280, height=800
    ).page
    promise, table = (
        page.locator(f"#list {part}").bounding_box() for part in (".promise", "table")
    )
    assert promise["y"] < table["y"], "protection is said before the names"
    for name in own.names[:2]:
        page.get_by_role("radio", name=name, exact=True).check()
        lines = suggestions.for_member(name)
        assert page.locator("#list tbody td:nth-child(2)").all_inner_texts() == [
            s.node for s in lines
        ]
        why = page.locator("#list tbody td:nth-child(3)").evaluate_all(
            "all => all.map(e => e.textContent)"
        )
        assert why == [f"{s.strength} {s.why}" if s.stands_out else s.why for s in lines]
        assert page.locator("#list .places").count() == 0
        shown = page.locator(".releasable").inner_text()
        assert "epsilon" not in shown, "the field's words are behind a click"
        assert "ε" not in shown
        assert "7.39 times as likely" in shown  # e^2, rounded up
    box = page.locator("#list tbody").bounding_box()
    assert box["y"] + box["height"] <= 800, "the list is on the first screen"


def test_one_members_page_may_be_passed_on_and_no_other(visit, own, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=4)
    suggestions = suggest(own.graph, own.names[:2], epsilon=1.0, k=5, ledger=ledger)
    alone = page_from_releases([suggestions.only(own.names[0])], title="One")
    cases = [
        (alone, ""),
        (page_from_releases([suggestions], title="Two"), "lists of 2 members"),
        (
            page_from_releases([suggestions.only(own.names[0])], own.graph, title="t"),
            "the curator's part",
        ),
        (
            replace(page_from_releases([suggestions], title="t", ledger=ledger), lists=alone.lists),
            "ledger",
        ),
    ]
    for data, holds in cases:
        page = visit(data).page
        assert page.locator("h2").first.inner_text() == f"For {own.names[0]} alone"
        lead = page.locator(".zone-head p").first.inner_text()
        assert ("do not pass it on" in lead) == bool(holds), lead
        assert holds in lead
    assert page.locator(".keeper .total path").count() == 1
    assert page.locator(".keeper tbody tr").count() == 1


def test_300_members_can_be_chosen_from(visit, own):
    suggestions = suggest(own.graph, own.names[:300], epsilon=1.0, k=5)
    page = visit(page_from_releases([suggestions], own.graph, title="Many")).page
    page.locator("main > .controls select").select_option(label=own.names[271])
    wanted = [s.node for s in suggestions.for_member(own.names[271])]
    assert page.locator("#list td:nth-child(2)").all_inner_texts() == wanted
    assert page.locator("h2").first.inner_text() == f"For {own.names[271]} alone"
    assert page.locator("#truth table").count() == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report_on_a_phone_needs_no_sideways_scrolling(visit, tmp_path, scheme):
    graph = Graph.from_edges(
        [0, 1, 2, 3], [1, 2, 3, 4], NodeSet.of_strings(["ann", "bob", "cy", "dee", "eve"])
    )
    ledger = Ledger.create(tmp_path / "ledger", epsilon=4)
    suggestions = suggest(graph, ["ann"], epsilon=1.0, ledger=ledger)
    data = page_from_releases([suggestions], graph, title="Tiny", ledger=ledger)
    page = visit(data, width=390, height=844, is_mobile=True, color_scheme=scheme).page
    page.locator(".total path").wait_for()
    assert page.locator("#list tbody tr").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate("innerWidth") == 390


def test_a_phone_shows_ranks_and_words_on_one_line(visit, own, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=4)
    suggestions = suggest(
        own.graph, own.names[:1], epsilon=1.0, ledger=ledger, label="friends", k=12
    )
    page = visit(page_from_releases([suggestions], title="t", ledger=ledger), width=390).page
    page.locator(".total path").wait_for()
    ranks = page.locator("#list tbody td:first-child").evaluate_all(LINES)
    assert ranks == [1] * 12
    label = page.locator(".charges tbody td", has_text=re.compile("^friends$"))
    assert label.evaluate_all(LINES) == [1]


def test_public_ranking_is_for_anyone_seeded_for_nobody(visit):
    graph = social_network(100, average_degree=8).graph
    public = rank(graph, 3, 1.0, model="public")
    page = visit(page_from_releases([public], title="t")).page
    assert page.locator("h2").inner_text() == "3, for anyone"
    assert page.locator("#list td.places").count() == 20
    assert "private score" in page.locator("#list thead").inner_text()
    seeded = suggest(graph, 3, 1.0, noise=NoiseSource.insecure(1))
    page = visit(page_from_releases([seeded], title="t")).page
    assert page.locator(".releasable").count() == 0
    assert page.locator("h2").inner_text() == "Not private: do not pass it on"


def test_no_column_of_a_ledger_is_cut_off_at_1200_pixels(visit, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=4)
    graph = social_network(100, average_degree=8).graph
    words = {"purpose": "weekly suggestions for the newsletter", "operator": "data team"}
    refresh(graph, ledger=ledger, epsilon=1.0, label="friends", **words)
    rank(graph, 3, 0.5, ledger=ledger, label="payments of last year")
    page = visit(PageData(title="t", charges=charges_of(ledger)), width=1200).page
    page.locator(".total path").wait_for()
    cut = page.locator(".scroll").evaluate("e => e.scrollWidth - e.clientWidth")
    assert cut <= 0
    heads = page.locator(".charges th").all_inner_texts()
    assert (heads[4], len(heads)) == ("mechanism", 11)
    cell = page.locator(".charges tbody tr").first.locator(".mechanism")
    assert cell.inner_text().startswith("series of lists\nepsilon 1, directed false")
    assert page.locator(".charged circle").count() == 2
