"""EdgeFlipping: the law of the flips, whose edges are put back, and what it costs."""

from __future__ import annotations

import math
import time
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.mechanisms import EdgeFlipping
from edgeveil.mechanisms.base import local_views
from edgeveil.mechanisms.edge_flipping import _pair_ends, _pair_number, _with_own_edges
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from edgeveil.mechanisms.run import shared_part
from edgeveil.privacy.noise import NoiseSource
from tests.seam import run_in_parts


def bits(graph) -> np.ndarray:
    """One bit for each pair u < v, in lexicographic order."""
    n = graph.n_nodes
    return graph.adjacency().toarray()[np.triu_indices(n, 1)].astype(bool)


def test_pairs_are_numbered_one_to_one_and_in_order():
    for n in range(1, 9):
        pairs = np.array(list(combinations(range(n), 2)), dtype=np.int64).reshape(-1, 2)
        numbers = np.arange(len(pairs))
        np.testing.assert_array_equal(_pair_number(pairs[:, 0], pairs[:, 1], n), numbers)
        np.testing.assert_array_equal(np.stack(_pair_ends(numbers, n), axis=1), pairs)


def test_the_numbers_of_pairs_stay_exact_at_ten_million_nodes():
    n = 10_000_000
    u = np.array([0, 1, n // 2, n - 3, n - 2])
    v = np.array([1, n - 1, n - 1, n - 1, n - 1])
    numbers = _pair_number(u, v, n)
    assert numbers[0] == 0
    assert numbers[-1] == n * (n - 1) // 2 - 1
    np.testing.assert_array_equal(np.stack(_pair_ends(numbers, n)), np.stack([u, v]))


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1, 3])
def test_edges_and_non_edges_flip_with_equal_probability(epsilon, network):
    """The probability is 1 / (1 + e^epsilon)."""
    graph, trials = network(50, 0.3), 300
    mechanism = EdgeFlipping(epsilon=epsilon)
    truth = bits(graph)
    flips = np.array(
        [
            bits(shared_part(mechanism, graph, NoiseSource.insecure(t))) ^ truth
            for t in range(trials)
        ]
    )
    q = 1 / (1 + math.exp(epsilon))
    for kind in (truth, ~truth):
        assert stats.binomtest(int(flips[:, kind].sum()), int(kind.sum()) * trials, q).pvalue > 1e-3
    # Every pair by itself, and every draw by itself.
    for axis, size in ((0, trials), (1, len(truth))):
        counts = flips.sum(axis=axis)
        chi = ((counts - size * q) ** 2 / (size * q * (1 - q))).sum()
        assert 1e-3 < stats.chi2.sf(chi, len(counts)) < 1 - 1e-3
    # Pairs beside each other, and far from each other, are independent.
    for lag in (1, 2, 49, 600):
        both = int((flips[:, lag:] & flips[:, :-lag]).sum())
        total = flips[:, lag:].size
        assert abs(both - total * q * q) < 4.5 * math.sqrt(total * q * q)


def test_joint_rows_keep_own_edges_and_flip_the_rest(network):
    graph = network(40, 0.2)
    joint = EdgeFlipping(epsilon=0.5)
    flipped, rows, _ = run_in_parts(joint, graph, range(40))
    for source in range(40):
        seen = _with_own_edges(flipped, source, graph.neighbours(source))
        np.testing.assert_array_equal(seen.neighbours(source), graph.neighbours(source))
        others = np.delete(np.arange(40), source)
        np.testing.assert_array_equal(
            seen.adjacency().toarray()[np.ix_(others, others)],
            flipped.adjacency().toarray()[np.ix_(others, others)],
        )
        expected = personalized_pagerank(seen, [source], tol=1e-12)[0]
        assert np.abs(rows[source] - expected).sum() < 1e-6


def test_joint_row_uses_true_edges_at_its_source_only(network):
    # Of the truth a row may use the edges at its source alone.
    graph = network(20, 0.3)
    mechanism = EdgeFlipping(epsilon=1)
    flipped, _, _ = run_in_parts(mechanism, graph, [0])
    for source in (0, 5, 9):
        before, after = (
            mechanism.estimate((), flipped, local_views(g, [source], "joint"))
            for g in (graph, graph.with_edge_flipped(5, 9))
        )
        assert np.array_equal(before, after) == (source not in (5, 9))


def test_the_public_model_flips_the_sources_own_edges_too(network):
    graph = network(40, 0.2)
    public = EdgeFlipping(epsilon=0.5, model="public")
    flipped, rows, _ = run_in_parts(public, graph, range(40))
    expected = personalized_pagerank(flipped, range(40), tol=1e-12)
    assert np.abs(rows - expected).sum(axis=1).max() < 1e-6
    changed = [not np.array_equal(flipped.neighbours(s), graph.neighbours(s)) for s in range(40)]
    assert all(changed)  # 15 of 39 pairs at each node, on average


def test_flips_are_shared_and_rows_need_no_noise(network):
    graph = network(20, 0.3)
    mechanism = EdgeFlipping(epsilon=1)
    views = local_views(graph, [3, 4], "joint")
    flipped, rows, _ = run_in_parts(mechanism, graph, [3, 4])
    assert list(mechanism.measure(graph, flipped, views)) == []
    np.testing.assert_array_equal(mechanism.estimate((), flipped, views), rows)


@pytest.mark.parametrize("model", ["joint", "public"])
def test_ten_thousand_nodes_take_seconds_and_little_memory(model, figure):
    n = 10_000
    ring = graph_of_pairs(n, np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1))
    mechanism = EdgeFlipping(epsilon=5, model=model)
    run_in_parts(mechanism, graph_of_pairs(3, []), [0])
    tracemalloc.start()
    begin = time.process_time()
    flipped, row, _ = run_in_parts(mechanism, ring, [0])
    seconds = time.process_time() - begin
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert row.shape == (1, n)
    expected = n * n / 2 / (1 + math.exp(5))
    assert abs(flipped.n_edges - expected - n) < 6 * math.sqrt(expected) + 200
    assert peak < n * n * 0.5
    assert seconds < 5
    figure(
        f"edge flipping, n = 10,000, epsilon = 5, {model}", f"{seconds:.2f} s, {peak / 1e6:.0f} MB"
    )
