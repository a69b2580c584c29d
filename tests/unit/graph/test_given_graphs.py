"""Graphs of other libraries, paths and ledger paths go to every call that releases."""

from __future__ import annotations

import networkx as nx
import pytest

from edgeveil import (
    Ledger,
    PrivateEmbedding,
    audit,
    embed,
    evaluate,
    rank,
    release,
    suggest,
)
from edgeveil.errors import InputError, ParameterError
from edgeveil.graph.datasets import social_network
from edgeveil.graph.saved import save_graph
from edgeveil.jobs import price, release_to
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
    assert embed(given, [7], dimension=8).values.shape == (1, 8)
    assert release(given, prior, [7]).values.shape == (1, 60)
    assert release_to(tmp_path / "out", given, prior, [7]).sources == (7,)
    assert price(given, prior, [7]).guarantee.epsilon == 1


def test_a_ledger_is_opened_where_its_path_is_given(tmp_path):
    path = tmp_path / "f.ledger"
    Ledger.create(path, epsilon=2)
    rank(GRAPH, 7, epsilon=1, ledger=path)
    left = price(GRAPH, DegreePrior(epsilon=1), [7], ledger=str(path)).in_ledger
    assert left.left_nano == 1_000_000_000


@pytest.mark.parametrize("wrong", [7, None])
def test_what_is_no_graph_is_called_by_its_kind(wrong):
    with pytest.raises(InputError, match=f"a {type(wrong).__name__} is not a graph"):
        rank(wrong, 7, epsilon=1)


def test_release_or_ledger_as_graph_is_refused(tmp_path):
    """So is a graph in place of a ledger."""
    with pytest.raises(InputError, match="what was released"):
        suggest(rank(GRAPH, 7, epsilon=1), [7], epsilon=1)
    with pytest.raises(InputError, match="a Ledger is not a graph"):
        rank(Ledger.create(tmp_path / "f.ledger", epsilon=2), 7, epsilon=1)
    with pytest.raises(ParameterError, match="ledger must be a Ledger or its path, got Graph"):
        rank(GRAPH, 7, epsilon=1, ledger=GRAPH)


def test_measuring_and_fitting_read_what_they_are_given(given):
    table = evaluate(given, mechanisms=DegreePrior(epsilon=1), sources=2, k=5, min_degree=3)
    assert "degree-prior" in {row[0] for row in table.rows()}
    fitted = PrivateEmbedding(dimension=8).fit(given)
    assert fitted.embedding_.shape == (60, 8)
    assert fitted.n_features_in_ == 60


@pytest.mark.parametrize("wrong", ["degree-prior", DegreePrior, None])
def test_a_name_or_a_class_is_no_mechanism_and_that_is_said(wrong):
    calls = [
        lambda: release(GRAPH, wrong, [7]),
        lambda: price(GRAPH, wrong, [7]),
        lambda: audit(wrong),
        lambda: evaluate(GRAPH, mechanisms=[wrong]),
    ]
    if wrong is DegreePrior:
        calls += [
            lambda: rank(GRAPH, 7, mechanism=wrong),
            lambda: embed(GRAPH, [7], mechanism=wrong),
            lambda: suggest(GRAPH, [7], mechanism=wrong),
            lambda: evaluate(GRAPH, mechanisms=wrong),
        ]
    for call in calls:
        with pytest.raises(ParameterError, match="expected a mechanism with its parameters"):
            call()


def test_a_folder_that_is_not_there_is_named_as_it_was_given(tmp_path):
    ranking = rank(GRAPH, 7, epsilon=1)
    with pytest.raises(FileNotFoundError) as caught:
        ranking.write(tmp_path / "nowhere" / "r.csv")
    assert caught.value.filename == str(tmp_path / "nowhere" / "r.csv")
