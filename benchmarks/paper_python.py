"""The paper's capped push flow (algorithm 2) as plain Python runs it: a loop over the nodes.

Two forms. `push_rows` holds the state in numpy arrays and slices a scipy matrix row for every
node that pushes, which is how published reference code for the paper is built. `push_lists`
holds everything in dictionaries and lists, the fastest form that plain Python has for the
pseudo-code. Both stop after the rounds asked for and tell how much they pushed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.settings import RESTART, ROUNDS, SIGMA
from edgeveil import Graph
from edgeveil.flow import lazy_restart
from edgeveil.flow.bounds import edge_cap

__all__ = ["Pushed", "count_pushes", "push_lists", "push_rows"]

ALPHA = lazy_restart(RESTART)
CAP = edge_cap(SIGMA, ALPHA, ROUNDS)


@dataclass(frozen=True, kw_only=True)
class Pushed:
    """What some rounds came to: the output, and how many nodes and edges sent flow."""

    output: npt.NDArray[np.float64]
    nodes: int
    edges: int


def push_rows(graph: Graph, source: int, rounds: int) -> Pushed:
    """Node by node; a matrix row is cut out for each of them."""
    matrix = graph.adjacency()
    degrees = graph.degrees
    p, sent, rest = np.zeros((3, graph.n_nodes))
    rest[source] = 1.0
    caps = degrees * CAP
    caps[source] = np.inf
    nodes = edges = 0
    for _ in range(rounds):
        flow = np.minimum(rest, caps - sent)
        sent += flow
        rest = rest - flow + (1 - ALPHA) / 2 * flow
        p += ALPHA * flow
        for v in range(graph.n_nodes):
            if flow[v] > 0:
                neighbours = matrix[[v]].nonzero()[1]
                rest[neighbours] += (1 - ALPHA) / 2 * flow[v] / degrees[v]
                nodes, edges = nodes + 1, edges + len(neighbours)
    return Pushed(output=p, nodes=nodes, edges=edges)


def push_lists(lists: dict[int, list[int]], source: int, rounds: int) -> Pushed:
    """Edge by edge, on a dictionary of lists of neighbours."""
    p, sent, rest = (dict.fromkeys(lists, 0.0) for _ in range(3))
    rest[source] = 1.0
    nodes = edges = 0
    for _ in range(rounds):
        flow: dict[int, float] = {}
        for v, residual in rest.items():
            room = residual if v == source else min(residual, len(lists[v]) * CAP - sent[v])
            if room > 0:
                flow[v] = room
        for v, pushed in flow.items():
            sent[v] += pushed
            rest[v] -= pushed
        for v, pushed in flow.items():
            p[v] += ALPHA * pushed
            rest[v] += (1 - ALPHA) / 2 * pushed
            share = (1 - ALPHA) / 2 * pushed / len(lists[v])
            for u in lists[v]:
                rest[u] += share
            nodes, edges = nodes + 1, edges + len(lists[v])
    output = np.array([p[v] for v in range(len(lists))])
    return Pushed(output=output, nodes=nodes, edges=edges)


def as_lists(graph: Graph) -> dict[int, list[int]]:
    """The graph as plain Python holds it."""
    return {v: graph.neighbours(v).tolist() for v in range(graph.n_nodes)}


def count_pushes(graph: Graph, source: int, rounds: int) -> dict[str, Any]:
    """How many nodes and edges send flow in all rounds, by the same recursion on whole vectors."""
    matrix, degrees = graph.adjacency(), graph.degrees
    share = (1 - ALPHA) / 2 / np.maximum(degrees, 1)
    p, sent, rest = np.zeros((3, graph.n_nodes))
    rest[source] = 1.0
    caps = degrees * CAP
    caps[source] = np.inf
    nodes = edges = 0
    for _ in range(rounds):
        flow = np.minimum(rest, caps - sent)
        sent += flow
        p += ALPHA * flow
        rest = rest - flow + (1 - ALPHA) / 2 * flow + matrix @ (share * flow)
        pushing = flow > 0
        nodes, edges = nodes + int(pushing.sum()), edges + int(degrees[pushing].sum())
    return {"nodes": nodes, "edges": edges, "output": p}
