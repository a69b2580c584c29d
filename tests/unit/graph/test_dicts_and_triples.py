"""Edges in memory as dicts, triples and records, as Python programs and JSON hold them."""

from __future__ import annotations

import json

import networkx as nx
import pytest

from edgeveil.errors import InputError
from edgeveil.graph.objects import as_graph

EDGES = [("ann", "bob"), ("bob", "cem")]
EXPECTED = as_graph(EDGES)


@pytest.mark.parametrize(
    "given",
    [
        {"ann": ["bob"], "bob": ["ann", "cem"], "cem": []},
        {"ann": {"bob"}, "bob": ("cem",)},
        {"ann": {"bob": {}}, "bob": {"cem": {"weight": 1}}},
        set(EDGES),
        iter(EDGES),
        zip(*zip(*EDGES, strict=True), strict=True),
        [(*edge, 1) for edge in EDGES],
        list(nx.Graph(EDGES).edges(data=True)),
        [{"source": u, "target": v} for u, v in EDGES],
        {"source": ["ann", "bob"], "target": ["bob", "cem"]},
        nx.node_link_data(nx.Graph(EDGES), edges="links"),
        nx.node_link_data(nx.Graph(EDGES), edges="edges"),
    ],
)
def test_as_graph_same_edges_in_any_form_give_one_graph(given):
    assert as_graph(given) == EXPECTED


def test_as_graph_dropped_weights_are_reported():
    assert as_graph([("ann", "bob", 0.5), ("bob", "cem", 1)]).read_report.weighted == 1
    assert as_graph({"ann": {"bob": {"weight": 2}, "cem": {}}}).read_report.weighted == 1
    link = {"source": 1, "target": 2, "weight": 3}
    assert as_graph({"nodes": [{"id": 1}, {"id": 2}], "links": [link]}).read_report.weighted == 1
    assert as_graph([link | {"source": 1}]).read_report.weighted == 1


def test_as_graph_directions_of_a_dict_are_kept():
    follows = as_graph({"bob": ["ann"], "cem": ["ann"]}, directed="keep")
    assert (follows.directed, follows.in_degrees.tolist()) == (True, [2, 0, 0])
    data = nx.node_link_data(nx.DiGraph(EDGES), edges="links")
    with pytest.raises(InputError, match="the graph is directed"):
        as_graph(data)
    assert as_graph(data, directed="ignore") == EXPECTED
    with pytest.raises(InputError, match="undirected: there are no directions"):
        as_graph(nx.node_link_data(nx.Graph(EDGES), edges="links"), directed="keep")


def test_as_graph_keys_of_json_are_text_beside_integers():
    given = json.loads(json.dumps({7: [8, 9], 8: [7]}))
    with pytest.raises(InputError, match=r"JSON has no other.*ids='text'"):
        as_graph(given)
    assert list(as_graph(given, ids="text").nodes) == ["7", "8", "9"]
    assert list(as_graph({"007": ["7"]}).nodes) == ["007", "7"]


def test_as_graph_dict_of_two_kinds_is_refused():
    ratings = {f"user {i}": [f"film {(i + j) % 6}" for j in range(4)] for i in range(6)}
    with pytest.raises(InputError, match="two kinds of nodes"):
        as_graph(ratings)
    assert as_graph(ratings, one_kind=True).n_edges == 24


def test_as_graph_keys_like_user1_are_ids_and_no_columns():
    assert as_graph({"user1": ["user3"], "user2": ["user4"]}).n_nodes == 4


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([("ann", "bob", "friend")], "entry 1: an edge in a list is a pair of ids"),
        ([("ann", "bob", 1, 2)], "entry 1: an edge in a list is a pair of ids"),
        ([[0, 1, 0], [1, 0, 1], [0, 1, 0]], "may be a matrix or 3 edges"),
        ([[0, 1, 2], [1, 2, 3]], "may be a matrix or 2 edges"),
        ({"ann": "bob"}, "maps each id to a list of ids"),
        ({"ann": 3}, "maps each id to a list of ids"),
        ({"ann": [["bob"]]}, "holds something that is no id"),
        ({"ann": ["bob", "NULL"]}, "1 node id is NaN, NULL or the like"),
        ({"nodes": [{"name": "ann"}], "links": []}, "as networkx writes them"),
        ({"user_id": [1, 2], "item_id": [3, 4]}, "two kinds of nodes"),
    ],
)
def test_as_graph_what_is_no_edge_is_one_sentence(given, expected):
    with pytest.raises(InputError, match=expected):
        as_graph(given)
