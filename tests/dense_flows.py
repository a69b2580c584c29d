"""Capped recursions for many small graphs at once, in dense form: (graphs, sources, nodes)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, permutations

import numpy as np

from edgeveil.flow import lazy_restart
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms.hard_pairs import graph_of_pairs


def every_graph(n: int) -> Iterator[tuple[int, Graph]]:
    """All 2^(n(n-1)/2) graphs on n labelled nodes, each with its edge set as a bit mask.

    Bit k of the mask is the k-th pair in lexicographic order, so the neighbours of graph
    ``mask`` are the graphs ``mask ^ (1 << k)``.
    """
    pairs = list(combinations(range(n), 2))
    for mask in range(1 << len(pairs)):
        yield mask, graph_of_pairs(n, [p for k, p in enumerate(pairs) if mask >> k & 1])


def all_adjacencies(n: int) -> np.ndarray:
    """Every graph on n nodes, in the order of its bit mask: (2^m, n, n)."""
    return np.array([graph.adjacency().toarray() for _, graph in every_graph(n)])


def dense_flow(
    adjacency,
    *,
    restart,
    rounds,
    cap,
    joint,
    prepush=False,
    forward=False,
    ordinary=False,
    start=None,
    sources=slice(None),
):
    """The capped recursion from every one of the `sources`, or from every row of `start`.

    Over all labelled graphs one source is enough: every other one is that source of a graph
    with other labels. `ordinary` takes the ordinary walk (the fixed point's form), `forward`
    leaves the caps out in the last round.
    """
    alpha = lazy_restart(restart)
    absorb, follow, own = (restart, 1 - restart, 0) if ordinary else (alpha, (1 - alpha) / 2, 1)
    n = adjacency.shape[1]
    degree = adjacency.sum(axis=2)
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    alone = (degree == 0)[:, None, :]
    eye = np.eye(n)[None, sources]
    offset = 0.0
    caps = degree[:, None, :] * cap
    if joint:
        caps = np.where(eye > 0, np.inf, caps)
    if prepush:
        spread = (adjacency * inverse[:, :, None])[:, sources]
        lonely = alone.transpose(0, 2, 1)[:, sources] * eye
        start = (1 - restart) ** 2 * spread + lonely
        offset = restart * eye * (1 - lonely) + restart * (1 - restart) * spread
    elif start is None:
        start = eye
    h = np.zeros((len(adjacency), start.shape[1], n))
    for i in range(rounds):
        inflow = h * (own + alone) + (h * inverse[:, None, :]) @ adjacency
        h = start + follow * inflow
        if not (forward and i == rounds - 1):
            h = np.minimum(h, caps)
    return offset + absorb * h


@cache
def _other_names(n: int) -> tuple[np.ndarray, np.ndarray]:
    """For every bit mask: the least mask of the same graph with 0 in its place, and who is who."""
    pairs = list(combinations(range(n), 2))
    names = np.array([(0, *rest) for rest in permutations(range(1, n))])
    masks, images = np.arange(1 << len(pairs)), np.zeros((len(names), 1 << len(pairs)), dtype=int)
    for image, name in zip(images, names, strict=True):
        for k, (u, v) in enumerate(pairs):
            image += (masks >> k & 1) << pairs.index((min(name[u], name[v]), max(name[u], name[v])))
    return images.min(axis=0), names[images.argmin(axis=0)]


def flow_from_0(adjacency, **options):
    """`dense_flow` from node 0 for every graph, with the graphs in the order of their bit masks.

    Graphs that differ in the names of the other nodes alone are computed once: 90 instead of 1,024
    on five nodes.
    """
    least, names = _other_names(adjacency.shape[1])
    chosen, place = np.unique(least, return_inverse=True)
    rows = dense_flow(adjacency[chosen], sources=slice(1), **options)
    return np.take_along_axis(rows[place], names[:, None, :], axis=2)


def largest_change(rows_by_mask: np.ndarray, n: int, model: str) -> float:
    """Largest L1 change over all pairs of neighbouring graphs; rows_by_mask is (2^m, k, n).

    In the joint model row s belongs to source s, and edges at s do not count.
    """
    worst = 0.0
    masks = np.arange(len(rows_by_mask))
    for k, edge in enumerate(combinations(range(n), 2)):
        sources = [s for s in range(rows_by_mask.shape[1]) if model == "public" or s not in edge]
        without = masks[(masks >> k & 1) == 0]
        change = rows_by_mask[without] - rows_by_mask[without | 1 << k]
        if sources:
            worst = max(worst, np.abs(change[:, sources]).sum(axis=2).max())
    return worst
