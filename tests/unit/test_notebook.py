"""What notebooks show: the guarantee in words, alarms in red, and no HTML out of the data."""

from __future__ import annotations

import dataclasses
from html.parser import HTMLParser

import numpy as np
import pytest

from edgeveil.graph.datasets import social_network
from edgeveil.graph.nodes import NodeSet
from edgeveil.ledger import Ledger
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.results.provenance import Provenance
from edgeveil.results.release import Release
from edgeveil.results.suggestions import chance_in_words
from edgeveil.series.suggesting import suggest

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&lt;b&gt;", "x</td>"]
GUARANTEE = Guarantee(epsilon=0.5, model="joint", theorem="docs/a.md")
RANKING = Release(
    values=np.array([[0.5, 0.25, 0.1, 0.05]]),
    sources=(HOSTILE[0],),
    columns=NodeSet.of(HOSTILE),
    output="scores",
    guarantee=GUARANTEE,
    provenance=Provenance(
        mechanism="<i>m</i>", parameters={}, version="0", noise="secure", ledger=False
    ),
)


class Page(HTMLParser):
    """What a browser would see."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.cells: list[str] = []
        self.text = ""
        self.alarms = 0
        self.feed(html)
        self.close()
        assert not self.open, "every element is closed"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        self.alarms += "#b00020" in dict(attrs).get("style", "")
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


def test_ranking_shows_guarantee_and_escaped_best_nodes():
    page = Page(RANKING._repr_html_())
    assert str(GUARANTEE) in page.text
    assert page.alarms == 0
    assert page.cells[1::4] == HOSTILE
    assert page.cells[2::4] == ["0.5", "0.25", "0.1", "0.05"]
    assert page.cells[3::4] == ["not known"] * 4
    assert set(page.tags) == {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}


def test_release_shows_ten_nodes_of_a_single_ranking_only():
    many = dataclasses.replace(
        RANKING, values=np.arange(50.0)[None], columns=NodeSet.range(50), sources=(0,)
    )
    assert Page(many._repr_html_()).cells[1::4] == [str(i) for i in range(49, 39, -1)]
    rows = dataclasses.replace(many, values=np.zeros((2, 50)), sources=(0, 1))
    assert Page(rows._repr_html_()).cells == []
    embedded = dataclasses.replace(many, output="embeddings")
    assert Page(embedded._repr_html_()).cells == []
    assert "embeddings in 50 dimensions" in Page(embedded._repr_html_()).text


def test_a_ranking_shows_what_the_noise_leaves_open():
    noisy = dataclasses.replace(RANKING, uncertainty=np.array([[0.15]]))
    assert Page(noisy._repr_html_()).cells[3::4] == ["1", "2 to 4", "2 to 4", "2 to 4"]


def test_suggestions_show_reason_and_chance():
    graph = social_network(100, average_degree=10).graph
    single = suggest(graph, [3], 1.0)
    page = Page(single._repr_html_())
    listed = single.for_member(3)[:10]
    assert page.cells[2::5] == [str(s.node) for s in listed]
    assert page.cells[3::5] == [s.why for s in listed]
    assert page.cells[4::5] == [chance_in_words(s.chance) for s in listed]
    several = suggest(graph, [3, 4, 5], 1.0)
    assert Page(several._repr_html_()).cells[::5] == ["3", "4", "5"]


@pytest.mark.parametrize("changes", [{"private": False}, {"epsilon": np.inf, "model": "none"}])
def test_what_is_not_private_is_red(changes):
    guarantee = dataclasses.replace(GUARANTEE, **changes)
    for shown in (guarantee, dataclasses.replace(RANKING, guarantee=guarantee)):
        page = Page(shown._repr_html_())
        assert page.alarms == 1
        assert "NOT PRIVATE" in page.text


def test_a_guarantee_shows_all_that_it_says():
    hostile = dataclasses.replace(GUARANTEE, promise="<b>nobody</b> is alone")
    page = Page(hostile._repr_html_())
    assert str(hostile) in page.text
    assert "b" not in page.tags
    assert page.text.startswith("joint, epsilon = 0.5, under a public promise")


def test_a_ledger_shows_what_is_left(tmp_path):
    ledger = Ledger.create(tmp_path / "<b>budget", epsilon=2)
    page = Page(ledger._repr_html_())
    assert page.text == ledger.show()
    assert page.tags == ["pre"]
