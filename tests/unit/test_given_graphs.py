"""Graphs of other libraries, paths and ledger paths go to every call that releases."""

from __future__ import annotations

import networkx as nx
import pytest

from edgeveil import Ledger, embed, rank, release, suggest
from edgeveil.datasets import social_network
from edgeveil.engine import price, release_to
from edgeveil.errors import InputError, ParameterError
from edgeveil.io import save_graph
from edgeveil.mechanisms import DegreePrior

GRAPH = social_network(60, average_degree=8, seed=1).graph


@pytest.fixture(params=["networkx", "scipy", "path", "text"])
def given(request, tmp_path):
    if request.param == "networkx":
        return nx.from_scipy_sparse_array(GRAPH.adjacency())
    if request.param == "scipy":
        return GRAPH.adjacency()
    path = save_graph(GRAPH, tmp_path / "g")
    return path if request.param == "path" else str(path)


def test_every_call_reads_what_it_is_given(given, tmp_path):
    prior = DegreePrior(epsilon=1)
    assert len(suggest(given, [7], epsilon=1, k=5).for_member(7)) == 5
    assert rank(given, 7, epsilon=1).columns == GRAPH.nodes
    assert embed(given, [7], epsilon=1, dimension=8).values.shape == (1, 8)
    assert release(given, prior, [7]).values.shape == (1, 60)
    assert release_to(tmp_path / "out", given, prior, [7]).sources == (7,)
    assert price(given, prior, [7]).guarantee.epsilon == 1


def test_a_ledger_is_opened_where_its_path_is_given(tmp_path):
    path = tmp_path / "f.ledger"
    Ledger.create(path, epsilon=2)
    rank(GRAPH, 7, epsilon=1, ledger=path)
    left = price(GRAPH, DegreePrior(epsilon=1), [7], ledger=str(path)).in_ledger
    assert left.left_nano == 1_000_000_000


@pytest.mark.parametrize("wrong", [[(1, 2)], 7, None])
def test_what_is_no_graph_is_called_by_its_kind(wrong):
    with pytest.raises(InputError, match=f"a {type(wrong).__name__} is no graph"):
        rank(wrong, 7, epsilon=1)


def test_a_release_and_a_ledger_are_no_graph_and_a_graph_is_no_ledger(tmp_path):
    with pytest.raises(InputError, match="what was released"):
        suggest(rank(GRAPH, 7, epsilon=1), [7], epsilon=1)
    with pytest.raises(InputError, match="a Ledger is no graph"):
        rank(Ledger.create(tmp_path / "f.ledger", epsilon=2), 7, epsilon=1)
    with pytest.raises(ParameterError, match="ledger must be a Ledger or its path, got Graph"):
        rank(GRAPH, 7, epsilon=1, ledger=GRAPH)
