"""The own list as an embedding, and what `embed` makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil import embed
from edgeveil.errors import ParameterError
from edgeveil.estimate.hashing import hash_nodes
from edgeveil.graph.datasets import social_network
from edgeveil.ledger import Ledger
from edgeveil.mechanisms import DPInstantEmbedding, OwnListEmbedding, OwnNeighbours
from edgeveil.mechanisms.requirements import check_mechanism
from tests.seam import run
from tests.strategies import graphs_with_source

GRAPH = social_network(120, average_degree=8, seed=1).graph


@given(graphs_with_source(), st.integers(1, 20))
def test_every_friend_counts_once_in_its_dimension_with_its_sign(drawn, dimension):
    graph, source = drawn
    (row,) = run(OwnListEmbedding(dimension=dimension), graph, [source])
    node_hash, expected = hash_nodes(graph.nodes, dimension), np.zeros(dimension)
    for friend in graph.neighbours(source).tolist():
        expected[node_hash.bucket[friend]] += node_hash.sign[friend]
    length = np.sqrt((expected**2).sum())
    np.testing.assert_allclose(row, expected / length if length else expected)


@given(graphs_with_source())
def test_without_a_hash_a_row_is_the_list_at_unit_length(drawn):
    graph, source = drawn
    (row,) = run(OwnListEmbedding.unhashed(graph.n_nodes), graph, [source])
    friends = graph.neighbours(source).tolist()
    assert np.flatnonzero(row).tolist() == friends
    np.testing.assert_allclose(row[friends], 1 / np.sqrt(max(len(friends), 1)))


@given(graphs_with_source(min_nodes=4), st.integers(1, 20))
def test_own_list_ignores_edges_elsewhere(drawn, dimension):
    graph, source = drawn
    others = [v for v in range(graph.n_nodes) if v != source]
    neighbour = graph.with_edge_flipped(others[0], others[-1])
    for mechanism in (
        OwnListEmbedding(dimension=dimension),
        OwnListEmbedding.unhashed(graph.n_nodes),
    ):
        np.testing.assert_array_equal(
            run(mechanism, graph, [source]), run(mechanism, neighbour, [source])
        )


def test_embed_gives_the_own_list_at_no_charge(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1)
    embeddings = embed(GRAPH, ledger=ledger)
    assert embeddings.values.shape == (120, 1024)
    assert embeddings.guarantee.epsilon == embeddings.guarantee.pooled_epsilon == 0
    assert "no such edge is used, so this costs nothing" in str(embeddings.guarantee)
    assert ledger.account("7").charged_nano == 0
    sparse = embeddings.to_scipy()
    assert (np.diff(sparse.indptr) <= GRAPH.degrees).all()
    np.testing.assert_array_equal(sparse.toarray(), embeddings.values)
    whole = embed(GRAPH, [3, 5], dimension="nodes")
    assert [np.flatnonzero(row).tolist() for row in whole.values] == [
        GRAPH.neighbours(3).tolist(),
        GRAPH.neighbours(5).tolist(),
    ]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epsilon": 1}, "costs nothing: leave epsilon out"),
        ({"dimension": 0}, "dimension must be an integer >= 1"),
        ({"dimension": "all"}, "dimension must be an integer >= 1"),
        ({"mechanism": OwnNeighbours()}, "gives scores; embed\\(\\) of a release of scores makes"),
        ({"mechanism": OwnListEmbedding.unhashed(7)}, "each of the 120 nodes, not 7"),
        ({"mechanism": DPInstantEmbedding(epsilon=1), "epsilon": 2}, "epsilon is given twice"),
        ({"mechanism": DPInstantEmbedding(epsilon=1), "dimension": "nodes"}, "is for the own list"),
    ],
)
def test_contradictory_arguments_are_refused(wrong, words):
    with pytest.raises(ParameterError, match=words):
        embed(GRAPH, [3], **wrong)


@pytest.mark.parametrize("wrong", [{"dimension": 1.5}, {"hash_key": None}, {"dimension": None}])
def test_parameters_are_checked_at_construction(wrong):
    with pytest.raises(ParameterError):
        OwnListEmbedding(**wrong)
    assert check_mechanism(OwnListEmbedding()).output == "embeddings"
