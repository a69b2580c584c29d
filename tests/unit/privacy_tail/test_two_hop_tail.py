"""Sums of strangers and counts among friends, against the sums of all nodes."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.flow.common_neighbours import (
    two_hop_sums_of_lists,
    two_hop_tail_of_lists,
)
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.base import local_views


def heavy_tailed(n, entries, seed=1):
    rng = np.random.default_rng(seed)
    weights = (np.arange(n) + 5.0) ** -0.6
    ends = rng.choice(n, (2, entries), p=rng.permutation(weights / weights.sum()))
    ends = ends[:, ends[0] != ends[1]]
    return Graph.from_edges(*ends, NodeSet.range(n))


def star_with_ring(n):
    """One node joined to all: lists of very different lengths."""
    around = np.arange(1, n)
    u = np.concatenate([np.zeros(n - 1, int), around[:-1]])
    return Graph.from_edges(u, np.concatenate([around, around[1:]]), NodeSet.range(n))


GRAPHS = {
    "rows of most nodes": heavy_tailed(60, 500),
    "rows of few nodes": heavy_tailed(3000, 4000),
    "both kinds": heavy_tailed(1000, 12_000),
    "star with ring": star_with_ring(300),
    "no edges": Graph.from_edges([], [], NodeSet.range(4)),
    "one edge": Graph.from_edges([0], [1], NodeSet.range(70_000)),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_strangers_have_the_sums_of_the_whole_row(name):
    graph = GRAPHS[name]
    sources = np.append(np.arange(min(graph.n_nodes, 150)), 0)  # one of them twice
    views = local_views(graph, sources, "joint")
    weights = np.random.default_rng(2).integers(0, 257, len(views.lists)) / 256
    given = views.lists, views.starts
    places, sums, starts = two_hop_tail_of_lists(graph, views.sources, *given, weights)
    full = two_hop_sums_of_lists(graph, *given, weights)
    common = two_hop_sums_of_lists(graph, *given, np.ones(len(weights)))
    assert starts[0] == 0
    assert starts[-1] == len(places) == len(sums)
    for i, source in enumerate(sources):
        friends, part = views.of(i), slice(starts[i], starts[i + 1])
        common[i][friends] = common[i][source] = 0
        np.testing.assert_array_equal(places[part], np.flatnonzero(common[i]))
        np.testing.assert_array_equal(sums[part], full[i][places[part]])


def test_sample_graphs_cover_both_ways_of_collecting():
    """A row with more paths than nodes is added up in an array, others are sorted."""
    shares = {}
    for name, graph in GRAPHS.items():
        degrees = graph.degrees
        ends = [degrees[graph.neighbours(i)].sum() for i in range(min(graph.n_nodes, 150))]
        wide = np.array(ends) >= graph.n_nodes
        shares[name] = wide.mean()
    assert shares["rows of most nodes"] > 0.9
    assert shares["rows of few nodes"] < 0.1
    assert 0.05 < shares["both kinds"] < 0.95


def test_no_sources_give_no_rows():
    graph = GRAPHS["both kinds"]
    views = local_views(graph, [], "joint")
    places, sums, starts = two_hop_tail_of_lists(
        graph, views.sources, views.lists, views.starts, np.empty(0)
    )
    assert (len(places), len(sums), starts.tolist()) == (0, 0, [0])
