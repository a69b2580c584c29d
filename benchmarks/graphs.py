"""The graphs that are measured on: BlogCatalog or its like, and generated ones of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from benchmarks.settings import Settings
from edgeveil import Graph, NodeSet, open_graph, save_graph
from edgeveil.graph.datasets import load_blogcatalog, social_network

__all__ = [
    "described",
    "draw_edges",
    "draw_spread_ends",
    "large_graph",
    "nodes_for",
    "scaled_graph",
    "small_graph",
    "some_sources",
    "typical_members",
]

_AVERAGE_DEGREE = 20


def small_graph(settings: Settings) -> tuple[str, Graph]:
    """BlogCatalog, or a generated network of its size."""
    if settings.tiny:
        return "generated, tiny", social_network(300, average_degree=12).graph
    if settings.data and (settings.data / "blogcatalog.mat").exists():
        return "BlogCatalog", load_blogcatalog(settings.data).graph
    return "generated, size of BlogCatalog", social_network(10_312, average_degree=64.8).graph


def large_graph(settings: Settings) -> tuple[str, Graph]:
    """A power-law graph of one million nodes and nearly ten million edges."""
    edges = 20_000 if settings.tiny else 10_000_000
    return f"generated, {edges:,} edges", scaled_graph(edges, settings)


def scaled_graph(edges: int, settings: Settings) -> Graph:
    """The generated graph of a size, opened memory-mapped; made and saved when first asked for."""
    folder = settings.work / f"power-law-{edges}"
    if not folder.exists():
        n = nodes_for(edges)
        settings.work.mkdir(parents=True, exist_ok=True)
        save_graph(Graph.from_edges(*draw_edges(n, edges), NodeSet.range(n)), folder)
    return open_graph(folder)


def nodes_for(edges: int) -> int:
    """How many nodes a generated graph has."""
    return edges * 2 // _AVERAGE_DEGREE


def draw_edges(n: int, edges: int, seed: int = 1) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Ends of random edges whose expected degrees follow a power law with exponent 2.5.

    Chung and Lu's model: an end is node x with probability in proportion to (x + s)^(-2/3),
    s = n / 10,000, which cuts the largest expected degree off at 460 times the smallest. Names
    are shuffled. Loops and repeats (well below 1 %) are left in for the reader to drop.
    """
    names = np.random.default_rng(seed).permutation(n).astype(np.int32)
    u, v = np.empty(edges, dtype=np.int32), np.empty(edges, dtype=np.int32)
    _draw_ends(names, seed, u)
    _draw_ends(names, seed + 1, v)
    return u, v


@njit(cache=True)
def _draw_ends(names: Any, seed: int, out: Any) -> None:
    np.random.seed(seed)  # numba's own generator, nothing private
    n = len(names)
    shift = n / 10_000
    low = shift ** (1 / 3)
    high = (n + shift) ** (1 / 3)
    for i in range(len(out)):
        x = (low + np.random.random() * (high - low)) ** 3 - shift
        out[i] = names[min(int(x), n - 1)]


@njit(cache=True)
def draw_spread_ends(n: int, seed: int, out: Any) -> None:
    """The same, with names spread by a multiplication: no table of n names is needed."""
    np.random.seed(seed)
    shift = n / 10_000
    low = shift ** (1 / 3)
    high = (n + shift) ** (1 / 3)
    factor = 2_654_435_761  # a prime: every node has a name of its own
    for i in range(len(out)):
        x = (low + np.random.random() * (high - low)) ** 3 - shift
        out[i] = min(int(x), n - 1) * factor % n


def some_sources(graph: Graph, count: int, seed: int = 0) -> npt.NDArray[np.int64]:
    """Different random nodes, none of them isolated."""
    choice = np.flatnonzero(graph.degrees > 0)
    return np.random.default_rng(seed).choice(choice, min(count, len(choice)), replace=False)


def typical_members(graph: Graph, count: int, paths: int = 2_000) -> list[int]:
    """Members of median degree, those first whose friends have about `paths` friends together."""
    degrees = graph.degrees
    typical = np.flatnonzero(degrees == np.median(degrees))[: 50 * count]
    reached = np.array([degrees[graph.neighbours(int(s))].sum() for s in typical])
    return [int(s) for s in typical[np.argsort(abs(reached - paths), kind="stable")[:count]]]


def described(name: str, graph: Graph) -> dict[str, Any]:
    """A graph's name and sizes, for the figures."""
    return {"name": name, "nodes": graph.n_nodes, "edges": graph.n_edges}
