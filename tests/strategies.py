"""Hypothesis strategies for graphs that have bitten others."""

from __future__ import annotations

from itertools import combinations

from hypothesis import strategies as st

from edgeveil.mechanisms.hard_pairs import graph_of_pairs


def _named(n: int, shape: str):
    if shape == "star":
        return [(0, v) for v in range(1, n)]
    if shape == "path":
        return [(v, v + 1) for v in range(n - 1)]
    if shape == "clique":
        return list(combinations(range(n), 2))
    if shape == "two cliques":
        half = n // 2
        return [*combinations(range(half), 2), *combinations(range(half, n), 2)]
    return []


@st.composite
def graphs(draw, max_nodes: int = 14, min_nodes: int = 1):
    """Random graphs, stars, paths, cliques, two parts, empty graphs; with isolated nodes."""
    n = draw(st.integers(min_nodes, max_nodes))
    shape = draw(st.sampled_from(["random", "star", "path", "clique", "two cliques", "empty"]))
    if shape != "random":
        isolated = draw(st.integers(0, 2))
        return graph_of_pairs(n + isolated, _named(n, shape))
    pairs = list(combinations(range(n), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return graph_of_pairs(n, chosen)


@st.composite
def graphs_with_source(draw, max_nodes: int = 14, min_nodes: int = 1):
    graph = draw(graphs(max_nodes, min_nodes))
    return graph, draw(st.integers(0, graph.n_nodes - 1))


restarts = st.sampled_from([0.01, 0.15, 0.5, 0.85, 0.99])
sigmas = st.floats(-9, 1).map(lambda exponent: 10.0**exponent)
