"""Labelled graphs to try things on: a generated social network, and the paper's data by path."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from edgeveil.errors import InputError, ParameterError
from edgeveil.graph import Graph
from edgeveil.io import read_graph
from edgeveil.io.mat import load_mat
from edgeveil.nodes import NodeSet

__all__ = ["LabelledGraph", "load_blogcatalog", "load_pos", "social_network"]

IntArray = npt.NDArray[np.int64]

_WITHIN = 0.78  # of the drawn edges stay within a community, before chance adds some
_CLOSED = 0.15  # of the edges close a triangle: felt in sparse networks, dense ones have plenty
_SECOND_LABEL = 0.2  # of the nodes are in a second community
_TAIL = 2.5  # exponent of the power law of the degrees
_SPREAD = 30.0  # the largest expected degree over the smallest


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledGraph:
    """A graph whose nodes have labels.

    Attributes
    ----------
    graph : Graph
        The graph.
    labels : scipy.sparse.csr_array of bool, n x L
        Entry (v, l) is True where node v has label l.
    label_names : tuple of str
        The names of the L labels.
    """

    graph: Graph
    labels: sp.csr_array
    label_names: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.labels.shape != (self.graph.n_nodes, len(self.label_names)):
            raise InputError("labels must have one row per node and one column per label name")

    def __repr__(self) -> str:
        return f"LabelledGraph({self.graph!r}, {len(self.label_names)} labels)"


# -- the generated network ----------------------------------------------------------------


def social_network(
    n: int = 5000, *, average_degree: float = 40.0, communities: int = 10, seed: int = 0
) -> LabelledGraph:
    """Generate a labelled social network: nobody's data, for demonstrations and tests.

    Stochastic blocks with corrected degrees: communities of uneven sizes, one fifth of the
    nodes in two of them, degrees with a heavy tail, about three quarters of the edges
    within a community, and some closed triangles. The labels are the communities.

    Parameters
    ----------
    n : int
        Number of nodes; their ids are 0 .. n-1.
    average_degree : float
        Met exactly, up to rounding to whole edges. At most (n - 1) / 2.
    communities : int
        Number of communities, and labels.
    seed : int
        The same seed gives the same network. (A seed is fine here: nothing is private.)

    Returns
    -------
    LabelledGraph

    Examples
    --------
    >>> social_network(200, average_degree=10, communities=4)
    LabelledGraph(Graph(200 nodes, 1000 edges), 4 labels)
    """
    if n < 2:
        raise ParameterError(f"n must be at least 2, got {n}")
    if not 0 <= average_degree <= (n - 1) / 2:
        raise ParameterError(
            f"average_degree must be between 0 and (n - 1) / 2 = {(n - 1) / 2:g}, "
            f"got {average_degree}"
        )
    if not 1 <= communities <= n:
        raise ParameterError(f"communities must be between 1 and n = {n}, got {communities}")
    rng = np.random.default_rng(seed)
    member, community = _memberships(n, communities, rng)
    weight = _degree_weights(n, rng)
    edges = round(n * average_degree / 2)

    pairs = np.empty(0, dtype=np.int64)
    blocks = _Blocks(member, community, weight)
    pairs = _top_up(pairs, round(edges * (1 - _CLOSED)), n, rng, blocks.draw)
    base = Graph.from_edges(pairs // n, pairs % n, NodeSet.range(n))
    pairs = _top_up(pairs, edges, n, rng, lambda size, rng: _open_triangles(base, size, rng))

    graph = Graph.from_edges(pairs // n, pairs % n, NodeSet.range(n))
    ones = np.ones(len(member), dtype=np.bool_)
    labels = sp.csr_array((ones, (member, community)), shape=(n, communities))
    names = tuple(f"community {i}" for i in range(communities))
    return LabelledGraph(graph=graph, labels=labels, label_names=names)


def _memberships(n: int, communities: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Give (node, community) pairs, sorted by community; none of these is empty."""
    share = rng.uniform(0.5, 1.5, communities)
    first = rng.choice(communities, n, p=share / share.sum())
    first[rng.choice(n, communities, replace=False)] = np.arange(communities)
    nodes = np.arange(n)
    if communities > 1:
        twice = np.flatnonzero(rng.random(n) < _SECOND_LABEL)
        other = (first[twice] + rng.integers(1, communities, len(twice))) % communities
        nodes, first = np.concatenate([nodes, twice]), np.concatenate([first, other])
    order = np.argsort(first, kind="stable")
    return nodes[order], first[order]


def _degree_weights(n: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Draw from a power law on [1, _SPREAD], by inverting its distribution function."""
    power = 1 - _TAIL
    return np.asarray((1 + rng.random(n) * (_SPREAD**power - 1)) ** (1 / power))


class _Blocks:
    """Draws node pairs: the first by weight, the second within its community or anywhere."""

    def __init__(
        self, member: IntArray, community: IntArray, weight: npt.NDArray[np.float64]
    ) -> None:
        self.member, self.community = member, community
        # a node in two communities shares its weight out between them
        times = np.bincount(member, minlength=len(weight))
        self.reach = np.cumsum((weight / times)[member])
        ends = np.flatnonzero(np.diff(community, append=-1))
        self.high = self.reach[ends]
        self.low = np.concatenate([[0.0], self.high[:-1]])

    def draw(self, size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        first = self._find(rng.random(size) * self.reach[-1])
        within = rng.random(size) < _WITHIN
        block = self.community[first]
        low = np.where(within, self.low[block], 0.0)
        high = np.where(within, self.high[block], self.reach[-1])
        second = self._find(low + rng.random(size) * (high - low))
        return self.member[first], self.member[second]

    def _find(self, spot: npt.NDArray[np.float64]) -> IntArray:
        # rounding may put a spot on the very end
        found = np.searchsorted(self.reach, spot, side="right")
        return np.minimum(found, len(self.reach) - 1)


def _open_triangles(graph: Graph, size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw pairs of nodes that have a neighbour in common."""
    if graph.n_edges == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    middle = graph.indices[rng.integers(0, len(graph.indices), size)]
    start, degree = graph.indptr[middle].astype(np.int64), graph.degrees[middle]
    first = graph.indices[start + rng.integers(0, degree)]
    second = graph.indices[start + rng.integers(0, degree)]
    return first.astype(np.int64), second.astype(np.int64)


def _top_up(pairs: IntArray, edges: int, n: int, rng: np.random.Generator, draw: Any) -> IntArray:
    """Add drawn pairs, as u * n + v with u < v, until there are `edges` distinct ones."""
    for attempt in range(200):
        missing = edges - len(pairs)
        if missing <= 0:
            break
        size = missing + missing // 4 + 16
        # Where communities are full already, draw from everywhere: half of all pairs is free
        u, v = draw(size, rng) if attempt < 20 else rng.integers(0, n, (2, size))
        u, v = np.minimum(u, v), np.maximum(u, v)
        fresh = np.setdiff1d((u * n + v)[u != v], pairs)
        if len(fresh) > missing:
            fresh = rng.choice(fresh, missing, replace=False)
        pairs = np.concatenate([pairs, fresh])
    return pairs


# -- the paper's data sets ----------------------------------------------------------------


def load_blogcatalog(path: str | os.PathLike[str]) -> LabelledGraph:
    """Load BlogCatalog (Tang & Liu 2009): bloggers, their friendships, their 39 interests.

    Parameters
    ----------
    path : path
        ``blogcatalog.mat``, or the folder that holds it.

    Returns
    -------
    LabelledGraph
        10,312 nodes, 333,983 edges, 39 labels.

    Raises
    ------
    InputError
        If the file is not there, or holds no matrices ``network`` and ``group``.
    """
    return _load(
        Path(path),
        "blogcatalog.mat",
        "d4f4fb89ce1ccd4b7e2a183386c000773cc9362cc61f1be5b246a6d9c259da8f",
    )


def load_pos(path: str | os.PathLike[str]) -> LabelledGraph:
    """Load POS (Grover & Leskovec 2016): co-occurring words of Wikipedia, 40 parts of speech.

    The graph is read without weights and self-loops.

    Parameters
    ----------
    path : path
        ``POS.mat``, or the folder that holds it.

    Returns
    -------
    LabelledGraph
        4,777 nodes, 92,295 edges, 40 labels.

    Raises
    ------
    InputError
        If the file is not there, or holds no matrices ``network`` and ``group``.
    """
    return _load(
        Path(path),
        "POS.mat",
        "b40977b48dec1d5016af0f6d5d2bce6f1c1037ccab948c2bbe324cea16754835",
    )


def _load(path: Path, name: str, sha256: str) -> LabelledGraph:
    file = path / name if path.is_dir() else path
    if not file.exists():
        raise InputError(f"there is no file {file}; expected is {name} with SHA-256 {sha256}")
    graph = read_graph(file)
    group = load_mat(file, "group")
    if group.ndim != 2 or group.shape[0] != graph.n_nodes:
        raise InputError(f"group in {file} must have one row for each of {graph.n_nodes} nodes")
    labels = sp.csr_array(group != 0)
    names = tuple(str(i) for i in range(labels.shape[1]))
    return LabelledGraph(graph=graph, labels=labels, label_names=names)
