"""Neighbouring graphs on which mechanisms come near their bounds: the shapes, by name.

Each shape was found by search (`edgeveil.testing.anneal`), then explained. None depends on data.
Each mechanism names the shapes that are worst for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two graphs that differ in one edge, and the source from which they are seen."""

    graph: Graph
    neighbour: Graph
    source: int


def graph_of_pairs(n: int, pairs: npt.ArrayLike, *, directed: bool = False) -> Graph:
    """The graph on 0 .. n-1 with the edges listed in `pairs` (m x 2)."""
    ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    return Graph.from_edges(ends[:, 0], ends[:, 1], NodeSet.range(n), directed=directed)


def wedge(n: int = 3, *, directed: bool = False) -> Pair:
    """Source 0 with neighbours 1 and 2, which get joined; further nodes are isolated.

    Both ends are at their caps in both graphs, and the new edge raises the cap of each: the change
    is 2 alpha T. For one round with prepush that is sigma: the bound is tight.
    """
    return _pair(n, [(0, 1), (0, 2)], (1, 2), directed=directed)


def two_cliques(own: int, other: int, *, at_source: bool) -> Pair:
    """The new edge joins the source's clique to another one.

    All flow over the new edge reaches nodes that had none, and most of it stays there. Worse
    than `wedge` for many rounds and a small restart probability, and the worst known shape where
    a minimum degree D is promised (own = D + 1). In the public model the edge is at the source,
    which may be isolated before (own = 1).
    """
    edges = [*combinations(range(own), 2), *combinations(range(own, own + other), 2)]
    return _pair(own + other, edges, (0 if at_source else 1, own))


def hanging_cliques(near: int, far: int, *, at_source: bool) -> Pair:
    """A node of one clique gets joined to another clique; the source's neighbour is that node.

    The end near the source passes less to each node of its own clique, and the flow over the new
    edge spreads in a clique that had none. The change is near its bound for many rounds and at
    the fixed point, if the flow over one edge is at the cap (docs/theory/tight-bounds.md). In the
    public model the near end is the source itself.
    """
    x = 0 if at_source else 1
    n = x + near + far
    edges = [*combinations(range(x, x + near), 2), *combinations(range(x + near, n), 2)]
    if not at_source:
        edges.append((0, 1))
    return _pair(n, edges, (x, x + near))


def wedge_with_leaves(leaves: int) -> Pair:
    """A wedge whose two ends have leaves: a larger graph with the same change."""
    ends = [(z, 3 + leaves * (z - 1) + i) for z in (1, 2) for i in range(leaves)]
    return _pair(3 + 2 * leaves, [(0, 1), (0, 2), *ends], (1, 2))


def wedge_with_cliques(degree: int) -> Pair:
    """A wedge in which every node has at least `degree` neighbours: each friend has a clique."""
    edges, n = [(0, i) for i in range(1, degree + 1)], degree + 1
    for i in range(1, degree + 1):
        clique = range(n, n + degree + 1)
        n += degree + 1
        edges += [*combinations(clique, 2), *((i, v) for v in clique[: degree - 1])]
    return _pair(n, edges, (1, 2))


def single_pair(*, at_source: bool) -> Pair:
    """The smallest graphs whose rows differ in one bit: whether there is an edge."""
    return _pair(2, [], (0, 1)) if at_source else _pair(3, [(0, 1)], (1, 2))


def two_hubs(near: int, far: int) -> Pair:
    """Source 0 has one friend, 1, who gets joined to 2; these have `near` and `far` leaves.

    The edge moves the degrees of 1 and 2 by one each, and the two-hop sum of 2 from 0 to the
    largest possible weight: all that two-hop protects. Degrees far apart in units of the noise
    are not shrunk towards each other, so that a row shows the noise.
    """
    leaves = [(1, 3 + i) for i in range(near)] + [(2, 3 + near + i) for i in range(far)]
    return _pair(3 + near + far, [(0, 1), *leaves], (1, 2))


def two_followed(far: int) -> Pair:
    """Directed. Source 0 follows 1, who gets an edge to 2, whom `far` others follow.

    The edge moves the in-degree of 2 by one, and the sum of 2 from 0 to the largest weight.
    """
    return _pair(3 + far, [(0, 1), *((3 + i, 2) for i in range(far))], (1, 2), directed=True)


def _pair(
    n: int, edges: list[tuple[int, int]], added: tuple[int, int], *, directed: bool = False
) -> Pair:
    return Pair(
        graph=graph_of_pairs(n, edges, directed=directed),
        neighbour=graph_of_pairs(n, [*edges, added], directed=directed),
        source=0,
    )


def capped_flow_pairs(model: str, *, isolated: bool = False) -> Iterator[Pair]:
    """The shapes for capped flows; with `isolated`, wedges beside isolated nodes as well."""
    if model == "public":
        yield from (two_cliques(1, k, at_source=True) for k in (2, 4, 8, 16, 64))
        yield hanging_cliques(51, 51, at_source=True)
        return
    yield wedge()
    yield from (two_cliques(2, k, at_source=False) for k in (1, 2, 4, 8, 16))
    yield hanging_cliques(51, 51, at_source=False)
    if isolated:
        yield from (wedge(n) for n in range(4, 65))
