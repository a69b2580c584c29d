"""Pages from releases: what is on them, and what is not."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.evaluation.hits import hide_edges
from edgeveil.evaluation.own_graph import evaluate
from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs import rank, release
from edgeveil.jobs.classifying import classify
from edgeveil.ledger import Ledger
from edgeveil.mechanisms import DPInstantEmbedding, NonPrivate, OwnNeighbours, TwoHop
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource
from edgeveil.report import PageData, page_from_predictions, page_from_releases, render_page
from edgeveil.report.list_page import _in_short
from edgeveil.series.suggesting import suggest


@pytest.fixture(scope="module")
def network():
    graph = social_network(300, average_degree=30, seed=0).graph
    return graph, int(graph.degrees.argmax())


def test_page_shows_lists_beside_exact_and_popular_ones(network):
    graph, member = network
    made = [suggest(graph, [member, 3], epsilon, k=12) for epsilon in (1.0, 5.0)]
    page = page_from_releases(made, graph, title="t", name="net")
    kinds = [(one.member, one.mechanism, one.epsilon, one.private) for one in page.lists]
    assert kinds == [
        (m, *rest)
        for m in (member, 3)
        for rest in (
            ("suggest", 1.0, True), ("suggest", 5.0, True),
            ("without privacy", None, False), ("popularity", None, False),
        )
    ]  # fmt: skip
    private, _, exact, popular = page.lists[:4]
    assert [(r.node, r.chance, r.why) for r in private.rows] == [
        (s.node, s.chance, s.why) for s in made[0].for_member(member)
    ]
    best = {row.node for row in exact.rows}
    assert len(best) == 12
    assert all(row.right == (row.node in best) for one in page.lists[:4] for row in one.rows)
    degrees = graph.degrees.copy()
    degrees[[member, *graph.neighbours(member)]] = -1
    assert [graph.degrees[row.node] for row in popular.rows] == sorted(degrees)[:-13:-1]
    assert private.promise == str(made[0].guarantee)


def test_hidden_friends_are_the_truth_where_edges_were_hidden(network):
    split = hide_edges(network[0])
    member = int(np.argmax(split.hidden.degrees))
    hidden = set(split.hidden.neighbours(member).tolist())
    made = suggest(split.left, member, 4.0)
    page = page_from_releases([made], split.left, title="t", hidden=split.hidden)
    assert {one.truth for one in page.lists} == {f"one of {len(hidden)} hidden friends"}
    marked = [row.right for one in page.lists for row in one.rows]
    assert marked == [row.node in hidden for one in page.lists for row in one.rows]
    assert any(marked)


def test_joint_rankings_omit_neighbours_and_show_tie_ranges(network):
    graph, member = network
    made = [rank(graph, member, 1.0), release(graph, OwnNeighbours(), [member])]
    page = page_from_releases(made, graph, title="t")
    known = {member, *graph.neighbours(member).tolist()}
    assert len(known) > 21, "otherwise there are strangers in every top 20"
    for one in page.lists:
        assert len(one.rows) == 20
        assert not {row.node for row in one.rows} & known
        assert one.remark == ""
    places = made[0].ranking(20, without=known)
    assert [(r.node, r.score, r.first, r.last) for r in page.lists[0].rows] == [
        (p.node, p.score, p.first, p.last) for p in places
    ]


def test_public_ranking_keeps_neighbours_of_its_source(network):
    graph, member = network
    made = rank(graph, member, 1.0, model="public")
    for truth in (None, graph):
        [shown] = [m for m in page_from_releases([made], truth, title="t").lists if m.private]
        assert [row.node for row in shown.rows] == [node for node, _ in made.top(20)]
        assert not shown.alone


def test_page_without_graph_holds_only_the_release(network):
    graph, member = network
    made = suggest(graph, [member, 3], 1.0, k=5)
    page = page_from_releases([made.only(3)], title="t")
    [one] = page.lists
    assert (one.member, one.private, one.alone, one.truth) == (3, True, True, "")
    assert [row.node for row in one.rows] == [s.node for s in made.for_member(3)]
    assert {row.right for row in one.rows} == {None}
    assert (page.results, page.notes, page.spending) == ([], [], None)


def test_exact_rows_are_never_private(network):
    made = release(network[0], NonPrivate(), [3])
    [one] = page_from_releases([made], title="t").lists
    assert (one.epsilon, one.private) == (None, False)


def test_accuracy_and_spending_are_shown_if_they_are_asked_for(network, tmp_path):
    graph, _ = network
    ledger = Ledger.create(tmp_path / "ledger", epsilon=4)
    made = suggest(graph, [3, 4], 1.0, k=5, ledger=ledger)
    found = evaluate(graph, [1.0, 2.0], sources=3, k=5)
    page = page_from_releases([made], title="t", results=found.results, ledger=ledger)
    lines = {result.mechanism for result in page.results}
    assert lines == {"private lists", "without privacy", "popularity", "limit"}
    assert {result.metric for result in page.results} == {"hits@5"}
    assert "a list of 5" in page.notes[0]
    assert page.spending.cap == 4
    assert [total for _, total in page.spending.steps] == [1.0]
    assert len(page.spending.rows) == 1


def test_seeded_list_is_not_private_and_embeddings_refused(network):
    graph, _ = network
    made = suggest(graph, 3, 1.0, noise=NoiseSource.insecure(1))
    assert not page_from_releases([made], graph, title="t").lists[0].private
    with pytest.raises(ParameterError, match="embeddings have no order"):
        page_from_releases([release(graph, DPInstantEmbedding(epsilon=1), [0])], graph, title="t")


def test_a_page_takes_names_and_several_members():
    graph = social_network(60, average_degree=10, seed=1).graph
    u, v = graph.adjacency().nonzero()
    named = Graph.from_edges(u, v, NodeSet.of_strings(f"member {i}" for i in range(60)))
    made = release(named, TwoHop(epsilon=1), ["member 3", "member 8"])
    page = page_from_releases([made], named, title="t")
    assert [one.member for one in page.lists] == ["member 3"] * 3 + ["member 8"] * 3
    assert page.lists[3].rows[0].node.startswith("member ")


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({"epsilon": 1.0}, "every connection between other people: .* than 2.72 times as likely"),
        ({"known_edges": "outgoing"}, "every connection that the member has not made itself"),
        ({"promise": "p"}, "holds under a public promise"),
        ({"private": False}, "^$"),
        ({"epsilon": 30.0}, "^$"),
        ({"model": "public"}, "^$"),
        ({"delta": 1e-9}, "^$"),
    ],
)
def test_short_statement_claims_no_more_than_the_guarantee(claim, said):
    given = {"epsilon": 1.0, "model": "joint", "theorem": "t", **claim}
    assert re.search(said, _in_short(Guarantee(**given)))
    if said != "^$":
        [factor] = re.findall(r"than ([\d.,]+) times", _in_short(Guarantee(**given)))
        assert float(factor) >= math.exp(given["epsilon"])


@pytest.fixture(scope="module")
def labelled(network):
    graph = network[0]
    return graph, {node: f"class {node % 3}" for node in range(0, 300, 2)}


def test_page_of_predictions_holds_what_was_released(labelled):
    graph, labels = labelled
    made = classify(graph, labels, epsilon=1.0)
    shown = page_from_predictions(made, title="t", without="features alone").predictions
    assert (shown["n_nodes"], shown["n_labelled"], shown["quality"]) == (150, 150, None)
    assert (shown["private"], shown["epsilon"], shown["promise"]) == (
        True,
        1.0,
        str(made.guarantee),
    )
    assert "2.72 times as likely" in shown["in_short"]
    assert "labels, features, and who has a label" in shown["in_short"]
    assert sum(shown["predicted"]) == 150
    for one in shown["examples"]:
        row = list(map(str, made.nodes)).index(one["node"])
        assert one["predicted"] == made.probabilities[row].argmax()
        assert one["probability"] == made.probabilities[row, one["predicted"]]
        assert one["heard"] == [round(float(v), 1) for v in made.sums[row, :, one["predicted"]]]
    text = render_page(PageData(title="t", predictions=shown))
    data = re.search(r'id="data">(.*?)</script>', text)
    assert json.loads(data.group(1))["predictions"]["classes"] == ["class 0", "class 1", "class 2"]


def test_page_of_predictions_leaves_out_nodes_without_a_class(labelled):
    graph, labels = labelled
    made = classify(graph, labels, epsilon=1.0).abstain(0.5)
    shown = page_from_predictions(made, title="t").predictions
    assert shown["n_abstained"] == made.n_abstained > 0
    assert sum(shown["predicted"]) == 150 - made.n_abstained
    assert all(one["probability"] >= 0.5 for one in shown["examples"])


def test_seeded_predictions_are_not_private_on_their_page(labelled):
    graph, labels = labelled
    made = classify(graph, labels, epsilon=1.0, noise=NoiseSource.insecure(1))
    shown = page_from_predictions(made, title="t").predictions
    assert (shown["private"], shown["in_short"]) == (False, "")


def test_page_speaks_the_words_of_its_lists():
    graph = social_network(300, average_degree=12, seed=3).graph
    hidden = Graph.from_edges([7, 7], [8, 9], graph.nodes)
    made = suggest(graph, 7, 1.0).in_words("accounts,payments")
    results = evaluate(graph, 1.0, sources=5, k=10).results
    page = page_from_releases([made], graph, hidden=hidden, results=results, title="For 7")
    (note,) = page.notes
    assert note.startswith("A tenth of the payments was hidden")
    assert "each account's hidden accounts" in note
    assert "between other accounts" in page.lists[0].in_short
    assert {one.truth for one in page.lists} == {"one of 2 hidden accounts"}
    scopes = {result.scope for result in page.results}
    assert page.lists[0].group in scopes  # the chart opens on it
    words = " ".join(
        [note, *scopes, *(f"{one.in_short} {one.remark} {one.truth}" for one in page.lists)]
    )
    words += " ".join(row.why for one in page.lists for row in one.rows)
    assert not {"friend", "friends", "member", "people"} & set(words.split())
