"""`aggregate`, and public embeddings: noisy sums of neighbours' public vectors."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import edgeveil as ev
from edgeveil.errors import BudgetError, ParameterError, UnknownNodeError
from edgeveil.estimate.public import NodeVectors
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs.aggregating import aggregation
from edgeveil.mechanisms import Aggregation
from edgeveil.mechanisms.hard_pairs import Pair
from edgeveil.mechanisms.run import exact_loss, rows_of
from edgeveil.testing import audit
from edgeveil.testing.conformance import Conformance

GRAPH = ev.datasets.social_network(200, average_degree=10).graph
VALUES = np.random.default_rng(0).normal(size=(200, 3))
SEEDED = ev.NoiseSource.insecure(1)


def exact(mechanism, graph):
    """The rows without noise."""
    return rows_of(mechanism, graph, range(graph.n_nodes), None)


def directed_graph(n=40):
    drawn = np.random.default_rng(2).random((n, n)) < 0.1
    a, b = np.nonzero(drawn & ~np.eye(n, dtype=bool))
    return Graph.from_edges(a, b, NodeSet.range(n), directed=True)


class TestAggregation(Conformance):
    mechanisms = (
        Aggregation(epsilon=0.5, dimension=4, directed=True),
        aggregation(GRAPH, VALUES, epsilon=1.0, bound=2.0),
    )


# -- the sums -------------------------------------------------------------------------------------


def test_without_noise_rows_are_sums_of_clipped_vectors():
    mechanism = aggregation(GRAPH, VALUES, epsilon=1.0, bound=2.0)
    norms = np.abs(VALUES).sum(axis=1, keepdims=True)
    clipped = VALUES * np.minimum(1, 2.0 / norms)
    expected = GRAPH.adjacency() @ clipped
    assert np.allclose(exact(mechanism, GRAPH), expected, atol=1e-4)
    assert mechanism.values.clipped == pytest.approx((norms > 2).mean())


def test_whole_values_within_the_bound_are_exact():
    flagged = dict.fromkeys(range(0, 200, 7), 1)
    mechanism = aggregation(GRAPH, flagged, epsilon=1.0)
    column = np.isin(np.arange(200), list(flagged)).astype(float)
    assert np.array_equal(exact(mechanism, GRAPH)[:, 0], GRAPH.adjacency() @ column)


def test_a_table_and_a_dict_of_some_nodes_are_the_same(tmp_path):
    flagged = dict.fromkeys(range(0, 200, 7), 1)
    rows = "".join(f"{node},1\n" for node in flagged)
    (tmp_path / "flags.csv").write_text(f"node,flagged\n{rows}")
    table = pl.DataFrame({"node": list(flagged), "flagged": [1] * len(flagged)})
    of_dict = aggregation(GRAPH, flagged, epsilon=1.0, columns=["flagged"])
    for values in (table, tmp_path / "flags.csv"):
        mechanism = aggregation(GRAPH, values, epsilon=1.0)
        assert mechanism.values.names == ("flagged",)
        assert np.array_equal(exact(mechanism, GRAPH), exact(of_dict, GRAPH))


def test_directed_columns_are_of_followed_then_of_followers():
    graph = directed_graph()
    values = np.arange(40.0) / 40
    mechanism = aggregation(graph, values, epsilon=1.0)
    arcs = graph.adjacency()
    expected = np.stack([arcs @ values, arcs.T @ values], axis=1)
    assert np.allclose(exact(mechanism, graph), expected, atol=1e-3)
    aggregates = ev.aggregate(graph, values, epsilon=1.0, columns=["age"])
    assert list(aggregates.columns) == ["followed: age", "followers: age"]


@pytest.mark.parametrize("units", [[3, 2], [-5, 0], [-(2**63), 0]])
def test_vectors_with_more_than_the_most_units_are_refused(units):
    nodes, starts = NodeSet.range(1), np.array([0, 2])
    given = {"starts": starts, "columns": np.array([0, 1]), "units": np.array(units)}
    with pytest.raises(ParameterError, match="more than 4 units"):
        NodeVectors(nodes=nodes, names=(), width=2, most=4, unit=1.0, **given)


def test_long_names_of_columns_fit_into_a_ledger(tmp_path):
    names = [f"{'long' * 10}{i}" for i in range(300)]
    ledger = ev.Ledger.create(tmp_path / "a.ledger", epsilon=2)
    values = np.ones((GRAPH.n_nodes, 300))
    aggregates = ev.aggregate(GRAPH, values, epsilon=1, columns=names, ledger=ledger)
    assert list(aggregates.columns) == names
    assert aggregates.provenance.parameters["values"]["columns"] == 300
    assert ledger.account().charged == 1


def test_noise_has_the_scale_of_twice_the_bound():
    mechanism = aggregation(GRAPH, VALUES, epsilon=0.5, bound=3.0)
    aggregates = ev.aggregate(GRAPH, VALUES, epsilon=0.5, bound=3.0, noise=SEEDED)
    noise = np.abs(aggregates.values - exact(mechanism, GRAPH))
    assert noise.mean() == pytest.approx(2 * 3.0 / 0.5, rel=0.15)


@given(
    arrays(np.float64, (3, 4), elements=st.floats(-1e6, 1e6)),
    st.sampled_from([1e-3, 0.1, 1.0, 7.3, 1e4]),
)
def test_units_of_a_vector_never_exceed_the_most(values, bound):
    vectors = NodeVectors.clip(NodeSet.range(3), (), values, bound)
    assert (vectors.lengths <= vectors.most).all()
    back = sp.csr_array(
        (vectors.units * vectors.unit, vectors.columns, vectors.starts), shape=(3, 4)
    )
    norms = np.abs(values).sum(axis=1, keepdims=True)
    expected = values * np.minimum(1, bound / np.maximum(norms, bound / 2))
    assert np.abs(back.toarray() - expected).max() <= 2.1 * vectors.unit


def test_float_sums_that_are_too_long_give_up_a_unit():
    values = np.full((1, 3), 1 / 3) + np.array([0, 0, 1e-16])
    vectors = NodeVectors.clip(NodeSet.range(1), (), values * 3, 3.0)
    assert vectors.lengths[0] <= vectors.most


# -- the loss -------------------------------------------------------------------------------------


@pytest.mark.parametrize("directed", [False, True])
def test_an_edge_between_vectors_of_the_bound_loses_epsilon(directed):
    two = NodeSet.range(2)
    graph = Graph.from_edges([], [], two, directed=directed)
    pair = Pair(graph=graph, neighbour=graph.with_edge_flipped(0, 1), source=0)
    for values in ([[2.0, -1.0], [0.0, 9.0]], [[3.0, 0.0], [-1.5, 1.5]]):
        mechanism = aggregation(graph, values, epsilon=0.7, bound=3.0)
        assert exact_loss(mechanism, pair) == pytest.approx(0.7, rel=1e-5)
        assert exact_loss(mechanism, pair) <= 0.7


def test_shorter_vectors_lose_less():
    graph = Graph.from_edges([], [], NodeSet.range(2))
    pair = Pair(graph=graph, neighbour=graph.with_edge_flipped(0, 1), source=0)
    mechanism = aggregation(graph, [[0.5], [0.25]], epsilon=1.0)
    assert exact_loss(mechanism, pair) == pytest.approx(0.375, rel=1e-5)


def test_an_audit_is_consistent_and_conclusive():
    result = audit(Aggregation(epsilon=1.0, dimension=2), trials=500, noise=SEEDED)
    assert result.consistent
    assert result.conclusive
    assert result.exact_loss == pytest.approx(1.0)


# -- what goes in ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "options", "error", "says"),
    [
        (np.ones((3, 1)), {}, ParameterError, "one row for each of the 200 nodes"),
        ({999: 1}, {}, UnknownNodeError, "999"),
        ({1: float("nan")}, {}, ParameterError, "finite"),
        (VALUES, {"bound": 0}, ParameterError, "bound must be"),
        (None, {"bound": float("nan")}, ParameterError, "bound must be"),
        (VALUES, {"columns": ["a"]}, ParameterError, "names 1 columns, values have 3"),
        (VALUES, {"columns": "abc"}, ParameterError, "a list of names"),
        (VALUES, {"columns": ["a", "a", "b"]}, ParameterError, "names of their own"),
        (VALUES, {"dimension": 3}, ParameterError, "for rows without values"),
        (None, {"columns": ["a"]}, ParameterError, "names of values"),
        (None, {"dimension": 0}, ParameterError, "dimension must be"),
        (VALUES, {"skip_exhausted": True}, ParameterError, "nobody can be left out"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_charge(tmp_path, values, options, error, says):
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=2)
    with pytest.raises(error, match=says):
        ev.aggregate(GRAPH, values, epsilon=1.0, ledger=ledger, **options)
    assert ledger.charges() == []


def test_columns_of_a_table_are_named_and_chosen(tmp_path):
    table = pl.DataFrame({"node": range(200), "a": VALUES[:, 0], "b": VALUES[:, 1]})
    aggregates = ev.aggregate(GRAPH, table, epsilon=1.0, noise=SEEDED)
    assert list(aggregates.columns) == ["a", "b"]
    assert aggregates.table().columns == ["source", "a", "b"]
    assert "rows of a, b" in str(ev.aggregate(GRAPH, table, epsilon=1.0))
    chosen = ev.aggregate(GRAPH, table, epsilon=1.0, columns=["b"])
    assert chosen.values.shape == (200, 1)
    with pytest.raises(ParameterError, match="no column 'c'"):
        ev.aggregate(GRAPH, table, epsilon=1.0, columns=["c"])
    for name in ("s.parquet", "s.json"):
        aggregates.write(tmp_path / name)
        again = ev.Release.read(tmp_path / name)
        assert again.columns == aggregates.columns
        assert np.array_equal(again.values, aggregates.values)


def test_everybody_is_charged_once_and_the_same_call_is_free(tmp_path):
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=1.5)
    first, second = (ev.aggregate(GRAPH, VALUES, epsilon=1.0, ledger=ledger) for _ in range(2))
    assert np.array_equal(first.values, second.values)
    (charge,) = ledger.charges()
    assert (charge.model, charge.epsilon_nano) == ("public", 10**9)
    with pytest.raises(BudgetError):
        ev.aggregate(GRAPH, VALUES * 2, epsilon=1.0, ledger=ledger)
    assert "Not protected: the values" in str(first.guarantee)


# -- public embeddings ----------------------------------------------------------------------------


def test_public_embeddings_cost_epsilon_for_all_rows(tmp_path):
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=1.0)
    some = ev.embed(GRAPH, [3, 7], model="public", epsilon=1.0, ledger=ledger)
    every = ev.embed(GRAPH, model="public", epsilon=1.0, ledger=ledger)
    assert every.values.shape == (200, 64)
    assert np.array_equal(every.values[[3, 7]], some.values)
    assert every.guarantee.epsilon == 1.0
    whole = ev.aggregate(GRAPH, epsilon=1.0, ledger=ledger)  # the same statistic, paid for already
    assert np.array_equal(whole.values, every.values)


def test_public_embeddings_refuse_what_is_for_the_own_list():
    with pytest.raises(ParameterError, match="for the own list"):
        ev.embed(GRAPH, model="public", epsilon=1.0, dimension="nodes")
    with pytest.raises(ParameterError, match="epsilon is required"):
        ev.embed(GRAPH, model="public")
    with pytest.raises(ParameterError, match="model must be"):
        ev.embed(GRAPH, model="private", dimension="nodes")


def test_directed_public_embeddings_hold_both_directions():
    embeddings = ev.embed(directed_graph(), model="public", epsilon=1.0, dimension=8)
    assert embeddings.values.shape == (40, 8)
    named = ev.embed(directed_graph(), mechanism="aggregation", epsilon=1.0, dimension=8)
    assert named.provenance.parameters == embeddings.provenance.parameters
    with pytest.raises(ParameterError, match="even for directed"):
        ev.embed(directed_graph(), model="public", epsilon=1.0, dimension=3)
