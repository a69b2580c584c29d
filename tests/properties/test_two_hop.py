"""Two-hop sums: one edge elsewhere moves them by at most 1, exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.estimate.rows import exact_weights
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from edgeveil.testing import anneal
from tests.dense_flows import every_graph
from tests.strategies import graphs_with_source
from tests.two_hop import two_hop_sums


def exact_sums(graph, source, weights):
    """The definition, in rationals."""
    own = {int(u) for u in graph.neighbours(source)}
    sums = [Fraction(0)] * graph.n_nodes
    for v in range(graph.n_nodes):
        for u in own & {int(w) for w in graph.neighbours(v)}:
            sums[v] += Fraction(float(weights[u])) / (2 if v in own else 1)
    return sums


@given(graphs_with_source(), st.data())
def test_the_sums_are_exact_in_floating_point(graph_source, data):
    graph, source = graph_source
    raw = data.draw(st.lists(st.floats(0, 1), min_size=graph.n_nodes, max_size=graph.n_nodes))
    weights = exact_weights(np.array(raw))
    assert (weights <= np.array(raw)).all()
    computed = two_hop_sums(graph, source, weights)
    assert [Fraction(float(x)) for x in computed] == exact_sums(graph, source, weights)


def test_other_edge_moves_sums_at_most_1_on_5_nodes(figure):
    n = 5
    rng = np.random.default_rng(0)
    tables = [np.ones(n), *(exact_weights(rng.random(n)) for _ in range(3))]
    pairs = list(combinations(range(n), 2))
    worst = 0.0
    for weights in tables:
        sums = {
            mask: np.array([two_hop_sums(graph, s, weights) for s in range(n)])
            for mask, graph in every_graph(n)
        }
        for mask, rows in sums.items():
            for k, edge in enumerate(pairs):
                others = [s for s in range(n) if s not in edge]
                change = np.abs(rows - sums[mask ^ (1 << k)])[others].sum(axis=1).max()
                worst = max(worst, change)
    assert worst == 1.0  # never more, and reached
    figure("two-hop sums, all graphs of 5 nodes", f"largest change {worst:.3f} of 1")


def test_annealing_finds_no_pair_beyond_1():
    weights = np.ones(14)

    def change(pair):
        sums, other_sums = (
            two_hop_sums(g, pair.source, weights) for g in (pair.graph, pair.neighbour)
        )
        return float(np.abs(sums - other_sums).sum())

    _, worst = anneal(change, n=14, model="joint", seed=1, steps=600)
    assert worst == 1.0


def test_edge_at_the_source_moves_sums_by_more_than_1():
    """Why the mechanism is for the joint model only."""
    star = [(0, v) for v in range(1, 4)] + [(4, v) for v in range(1, 4)]

    graph = graph_of_pairs(6, [*star, (1, 5)])
    other = graph.with_edge_flipped(0, 1)
    change = np.abs(two_hop_sums(graph, 0, np.ones(6)) - two_hop_sums(other, 0, np.ones(6))).sum()
    assert change > 1
