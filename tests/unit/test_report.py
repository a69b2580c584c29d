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
    results = [suggest(graph, [member, 3], epsilon, k=12) for epsilon in (1.0, 5.0)]
    page = page_from_releases(results, graph, title="t", name="net")
    kinds = [
        (member_list.member, member_list.mechanism, member_list.epsilon, member_list.private)
        for member_list in page.lists
    ]
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
        (s.node, s.chance, s.why) for s in results[0].for_member(member)
    ]
    best = {row.node for row in exact.rows}
    assert len(best) == 12
    assert all(
        row.right == (row.node in best)
        for member_list in page.lists[:4]
        for row in member_list.rows
    )
    degrees = graph.degrees.copy()
    degrees[[member, *graph.neighbours(member)]] = -1
    assert [graph.degrees[row.node] for row in popular.rows] == sorted(degrees)[:-13:-1]
    assert private.promise == str(results[0].guarantee)


def test_hidden_friends_are_the_truth_where_edges_were_hidden(network):
    split = hide_edges(network[0])
    member = int(np.argmax(split.hidden.degrees))
    hidden = set(split.hidden.neighbours(member).tolist())
    suggestions = suggest(split.left, member, 4.0)
    page = page_from_releases([suggestions], split.left, title="t", hidden=split.hidden)
    assert {member_list.truth for member_list in page.lists} == {
        f"one of {len(hidden)} hidden friends"
    }
    marked = [row.right for member_list in page.lists for row in member_list.rows]
    assert marked == [row.node in hidden for member_list in page.lists for row in member_list.rows]
    assert any(marked)


def test_joint_rankings_omit_neighbours_and_show_tie_ranges(network):
    graph, member = network
    ranking = [rank(graph, member, 1.0), release(graph, OwnNeighbours(), [member])]
    page = page_from_releases(ranking, graph, title="t")
    left_out = {member, *graph.neighbours(member).tolist()}
    assert len(left_out) > 21, "otherwise there are strangers in every top 20"
    for member_list in page.lists:
        assert len(member_list.rows) == 20
        assert not {row.node for row in member_list.rows} & left_out
        assert member_list.remark == ""
    places = ranking[0].ranking(20, without=left_out)
    assert [(r.node, r.score, r.first, r.last) for r in page.lists[0].rows] == [
        (p.node, p.score, p.first, p.last) for p in places
    ]


def test_public_ranking_keeps_neighbours_of_its_source(network):
    graph, member = network
    ranking = rank(graph, member, 1.0, model="public")
    for truth in (None, graph):
        [shown] = [m for m in page_from_releases([ranking], truth, title="t").lists if m.private]
        assert [row.node for row in shown.rows] == [node for node, _ in ranking.top(20)]
        assert not shown.alone


def test_page_without_graph_holds_only_the_release(network):
    graph, member = network
    suggestions = suggest(graph, [member, 3], 1.0, k=5)
    page = page_from_releases([suggestions.only(3)], title="t")
    [member_list] = page.lists
    assert (member_list.member, member_list.private, member_list.alone, member_list.truth) == (
        3,
        True,
        True,
        "",
    )
    assert [row.node for row in member_list.rows] == [s.node for s in suggestions.for_member(3)]
    assert {row.right for row in member_list.rows} == {None}
    assert (page.results, page.notes, page.charges) == ([], [], None)


def test_exact_rows_are_never_private(network):
    released = release(network[0], NonPrivate(), [3])
    [member_list] = page_from_releases([released], title="t").lists
    assert (member_list.epsilon, member_list.private) == (None, False)


def test_accuracy_and_charges_are_shown_if_asked_for(network, tmp_path):
    graph, _ = network
    ledger = Ledger.create(tmp_path / "ledger", epsilon=4)
    suggestions = suggest(graph, [3, 4], 1.0, k=5, ledger=ledger)
    table = evaluate(graph, [1.0, 2.0], sources=3, k=5)
    page = page_from_releases([suggestions], title="t", results=table.results, ledger=ledger)
    lines = {result.mechanism for result in page.results}
    assert lines == {"private lists", "without privacy", "popularity", "limit"}
    assert {result.metric for result in page.results} == {"hits@5"}
    assert "a list of 5" in page.notes[0]
    assert page.charges.cap == 4
    assert [total for _, total in page.charges.steps] == [1.0]
    assert len(page.charges.rows) == 1


def test_seeded_list_is_not_private_and_embeddings_refused(network):
    graph, _ = network
    suggestions = suggest(graph, 3, 1.0, noise=NoiseSource.insecure(1))
    assert not page_from_releases([suggestions], graph, title="t").lists[0].private
    with pytest.raises(ParameterError, match="embeddings have no order"):
        page_from_releases([release(graph, DPInstantEmbedding(epsilon=1), [0])], graph, title="t")


def test_a_page_takes_names_and_several_members():
    graph = social_network(60, average_degree=10, seed=1).graph
    u, v = graph.adjacency().nonzero()
    named = Graph.from_edges(u, v, NodeSet.of_strings(f"member {i}" for i in range(60)))
    released = release(named, TwoHop(epsilon=1), ["member 3", "member 8"])
    page = page_from_releases([released], named, title="t")
    assert [member_list.member for member_list in page.lists] == ["member 3"] * 3 + ["member 8"] * 3
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
    predictions = classify(graph, labels, epsilon=1.0)
    shown = page_from_predictions(predictions, title="t", without="features alone").predictions
    assert (shown["n_nodes"], shown["n_labelled"], shown["quality"]) == (150, 150, None)
    assert (shown["private"], shown["epsilon"], shown["promise"]) == (
        True,
        1.0,
        str(predictions.guarantee),
    )
    assert "2.72 times as likely" in shown["in_short"]
    assert "labels, features, and who has a label" in shown["in_short"]
    assert sum(shown["predicted"]) == 150
    for example in shown["examples"]:
        row = list(map(str, predictions.nodes)).index(example["node"])
        assert example["predicted"] == predictions.probabilities[row].argmax()
        assert example["probability"] == predictions.probabilities[row, example["predicted"]]
        assert example["heard"] == [
            round(float(v), 1) for v in predictions.sums[row, :, example["predicted"]]
        ]
    text = render_page(PageData(title="t", predictions=shown))
    data = re.search(r'id="data">(.*?)</script>', text)
    assert json.loads(data.group(1))["predictions"]["classes"] == ["class 0", "class 1", "class 2"]


def test_page_of_predictions_leaves_out_nodes_without_a_class(labelled):
    graph, labels = labelled
    predictions = classify(graph, labels, epsilon=1.0).abstain(0.5)
    shown = page_from_predictions(predictions, title="t").predictions
    assert shown["n_abstained"] == predictions.n_abstained > 0
    assert sum(shown["predicted"]) == 150 - predictions.n_abstained
    assert all(example["probability"] >= 0.5 for example in shown["examples"])


def test_seeded_predictions_are_not_private_on_their_page(labelled):
    graph, labels = labelled
    predictions = classify(graph, labels, epsilon=1.0, noise=NoiseSource.insecure(1))
    shown = page_from_predictions(predictions, title="t").predictions
    assert (shown["private"], shown["in_short"]) == (False, "")


def test_page_speaks_the_words_of_its_lists():
    graph = social_network(300, average_degree=12, seed=3).graph
    hidden = Graph.from_edges([7, 7], [8, 9], graph.nodes)
    suggestions = suggest(graph, 7, 1.0).in_words("accounts,payments")
    results = evaluate(graph, 1.0, sources=5, k=10).results
    page = page_from_releases([suggestions], graph, hidden=hidden, results=results, title="For 7")
    (note,) = page.notes
    assert note.startswith("A tenth of the payments was hidden")
    assert "each account's hidden accounts" in note
    assert "between other accounts" in page.lists[0].in_short
    assert {member_list.truth for member_list in page.lists} == {"one of 2 hidden accounts"}
    scopes = {result.scope for result in page.results}
    assert page.lists[0].group in scopes  # the chart opens on it
    words = " ".join(
        [
            note,
            *scopes,
            *(
                f"{member_list.in_short} {member_list.remark} {member_list.truth}"
                for member_list in page.lists
            ),
        ]
    )
    words += " ".join(row.why for member_list in page.lists for row in member_list.rows)
    assert not {"friend", "friends", "member", "people"} & set(words.split())
