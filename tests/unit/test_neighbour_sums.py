"""Sums of what neighbours say: listeners only, exact, and moved by one edge by at most 1."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.estimate import classification as cl
from edgeveil.flow.neighbour_sums import neighbour_sums, neighbour_sums_by_matrix
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet


def _random(rng: np.random.Generator, n: int, *, directed: bool) -> Graph:
    u, v = rng.integers(n, size=(2, 3 * n))
    return Graph.from_edges(u, v, NodeSet.range(n), directed=directed)


def _labels(rng: np.random.Generator, n: int, classes: int, most: int) -> cl.Labels:
    counts = rng.integers(0, most + 1, size=n)
    named = [rng.permutation(classes)[:count] for count in counts]
    starts = np.concatenate(([0], np.cumsum(counts)))
    return cl.Labels(starts, np.concatenate(named).astype(np.int64), classes)


@pytest.mark.parametrize("directed", [False, True])
def test_sums_random_words_equal_the_matrix_product(directed: bool) -> None:
    rng = np.random.default_rng(1)
    for n in (5, 60, 400):
        graph, labels = _random(rng, n, directed=directed), _labels(rng, n, 4, 3)
        messages = cl.Messages(
            labels.starts, labels.classes, rng.integers(-9, 9, len(labels.classes))
        )
        listens = rng.random(n) < 0.5
        for threads in (1, 3):
            sums = neighbour_sums(graph, *messages, 4, listens, threads=threads)
            assert sums.shape == (listens.sum(), 8 if directed else 4)
            assert np.array_equal(sums, neighbour_sums_by_matrix(graph, *messages, 4, listens))


def test_sums_column_out_of_range_is_refused() -> None:
    graph = _random(np.random.default_rng(2), 5, directed=False)
    starts, ones = np.arange(6), np.ones(5, dtype=np.int64)
    with pytest.raises(ParameterError, match="outside of the 3"):
        neighbour_sums(graph, starts, 3 * ones, ones, 3, np.ones(5, dtype=bool))


@pytest.mark.parametrize("directed", [False, True])
def test_all_rounds_one_edge_move_by_at_most_one(directed: bool) -> None:
    """Messages of round 2 are any function of what was released, the same for both graphs."""
    rng, largest = np.random.default_rng(3), 0.0
    for _ in range(300):
        n = int(rng.integers(3, 9))
        graph, labels = _random(rng, n, directed=directed), _labels(rng, n, 3, 2)
        trains = labels.labelled & (rng.random(n) < 0.4)
        validates = labels.labelled & ~trains & (rng.random(n) < 0.3)
        listens = trains | validates | (~labels.labelled & (rng.random(n) < 0.8))
        roles = cl.Roles(listens, trains, validates)
        prior = np.log(rng.dirichlet([0.3, 0.3, 0.3], size=n) + 1e-9)
        first = cl.first_messages(labels, roles, prior)
        last = cl.second_messages(labels, roles, first.speaks, rng.integers(3, size=n))
        assert (first.speaks ^ last.speaks).all()
        x, y = rng.permutation(n)[:2].tolist()
        other = graph.with_edge_flipped(x, y)
        moved = sum(
            np.abs(
                neighbour_sums(graph, *messages, 3, listens)
                - neighbour_sums(other, *messages, 3, listens)
            ).sum()
            for messages in (first, last)
        )
        largest = max(largest, moved / cl.denominator(labels))
    assert largest == 1.0
