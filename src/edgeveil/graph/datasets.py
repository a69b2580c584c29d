"""Labelled graphs for experiments: a generated social network, and the paper's data sets."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from edgeveil.errors import InputError, ParameterError
from edgeveil.graph.graph import Graph
from edgeveil.graph.matrices import load_mat
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.read import read_graph

__all__ = ["LabelledGraph", "load_blogcatalog", "load_pos", "social_network"]

IntArray = npt.NDArray[np.int64]

_CIRCLES = 0.85  # share of edges within a circle
_JOINED = 0.8  # share of pairs within a circle that are joined
_HOME = 0.5  # largest share of edges from home circles, of which everybody has one
_CIRCLES_EACH = 2.5  # circles of an average member: determines their size
_ABROAD = 0.06  # share of a circle's members drawn from all nodes,
_ACROSS = 0.15  # and from its community; the others are near its centre
_NEARBY = 1.5  # distance that counts as near, in sizes of a circle
_SECOND_LABEL = 0.2  # share of nodes in a second community
_TAIL = 2.5  # exponent of the power law of the weights, hence of the degrees
_SPREAD = 30.0  # ratio of the largest weight to the smallest
_STARTS = "Al Bel Cor Dar El Fen Gal Hal Ira Jor Kel Lor Mar Nel Or Per Quin Ros Sel Tam"
_ENDINGS = "a an ara el ena eth ia ian ina is o or una us ya"


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
    names : tuple of str
        A name to show for each node, by its index; empty if there are none. Ids stay what
        they are.
    """

    graph: Graph
    labels: sp.csr_array
    label_names: tuple[str, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.labels.shape != (self.graph.n_nodes, len(self.label_names)):
            raise InputError("labels must have one row per node and one column per label name")
        if len(self.names) not in (0, self.graph.n_nodes):
            raise InputError("names must be one for each node, or none")

    def __repr__(self) -> str:
        return f"LabelledGraph({self.graph!r}, {len(self.label_names)} labels)"


# -- the generated network ----------------------------------------------------------------


def social_network(
    n: int = 5000, *, average_degree: float = 40.0, communities: int = 10, seed: int = 0
) -> LabelledGraph:
    """Generate a labelled social network, for demonstrations and tests.

    Members belong to circles (a family, a class, a team): most circles lie within one
    community, circles overlap, and four of five pairs of a circle know each other. So friends
    of friends are friends: the clustering coefficient is 0.25 or more. How many circles a
    member is in follows a power law, and so do degrees. The other edges join anybody, by
    weight. The labels are the communities; one fifth of the members is in two of them.

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

    circles = _Circles(member, community, weight, average_degree)
    pairs = np.empty(0, dtype=np.int64)
    pairs = _top_up(pairs, round(edges * _HOME), n, rng, circles.homes, rounds=1)
    pairs = _top_up(pairs, round(edges * _CIRCLES), n, rng, circles.draw)
    pairs = _top_up(pairs, edges, n, rng, circles.anybody)

    graph = Graph.from_edges(pairs // n, pairs % n, NodeSet.range(n))
    ones = np.ones(len(member), dtype=np.bool_)
    labels = sp.csr_array((ones, (member, community)), shape=(n, communities))
    names = tuple(f"community {i}" for i in range(communities))
    return LabelledGraph(graph=graph, labels=labels, label_names=names, names=invented_names(n))


def invented_names(n: int) -> tuple[str, ...]:
    """Give n different names of people who do not exist.

    Examples
    --------
    >>> invented_names(3)
    ('Ala A.', 'Belan B.', 'Corara C.')
    """
    starts, endings = _STARTS.split(), _ENDINGS.split()
    names = []
    for i in range(n):
        # 20, 15 and 26 in steps that repeat only after all 7,800 combinations
        around, j = divmod(i, 7800)
        start, rest = j % 20, j // 20
        first = starts[start] + endings[(rest + start) % 15]
        letter = chr(ord("A") + (rest // 15 + start) % 26)
        names.append(f"{first} {letter}." + (f" {around + 1}" if around else ""))
    return tuple(names)


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


class _Circles:
    """Draws node pairs: from circles within communities, or by weight from everybody."""

    def __init__(
        self,
        member: IntArray,
        community: IntArray,
        weight: npt.NDArray[np.float64],
        average_degree: float,
    ) -> None:
        self.member = member
        # the weight of a node in two communities is divided between them
        times = np.bincount(member, minlength=len(weight))
        self.reach = np.cumsum((weight / times)[member])
        ends = np.flatnonzero(np.diff(community, append=-1))
        self.high = self.reach[ends]
        self.low = np.concatenate([[0.0], self.high[:-1]])
        self.home = community * len(member)  # + the number of the circle, below
        # Membership in a circle of size c gives _JOINED (c - 1) friends.
        self.size = max(3.0, 1 + _CIRCLES * average_degree / (_CIRCLES_EACH * _JOINED))
        self.window = _NEARBY * self.size * self.reach[-1] / len(member)

    def homes(self, size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw the home circles: blocks of nodes that are neighbours in the order of members."""
        seats = round(self.size)
        circle = self.home + np.arange(len(self.member)) // seats
        pairs = []
        for step in range(1, min(seats, len(circle))):
            at = np.flatnonzero(circle[step:] == circle[:-step])
            at = at[rng.random(len(at)) < _JOINED]
            pairs.append((self.member[at], self.member[at + step]))
        first, second = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
        return first, second

    def draw(self, size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw about `size` pairs: all joined pairs of some circles."""
        first, second, drawn = [], [], 0
        while drawn < size:
            seats = max(3, round(self.size * rng.gamma(2.0, 0.5)))
            many = 1 + int((size - drawn) / (4 * _JOINED * seats * (seats - 1)))
            circle = self._seats(many, seats, rng)
            i, j = np.triu_indices(seats, 1)
            know = rng.random((many, len(i))) < _JOINED
            first.append(circle[:, i][know])
            second.append(circle[:, j][know])
            drawn += int(know.sum())
        return np.concatenate(first), np.concatenate(second)

    def _seats(self, many: int, seats: int, rng: np.random.Generator) -> IntArray:
        """Draw the members of some circles: most near the centre, some anywhere."""
        centre = rng.random((many, 1)) * self.high[-1]
        block = np.minimum(np.searchsorted(self.high, centre), len(self.high) - 1)
        low, high = self.low[block], self.high[block]
        near, far = np.maximum(centre - self.window, low), np.minimum(centre + self.window, high)
        where = rng.random((many, seats))
        reach = [where < _ABROAD, where < _ABROAD + _ACROSS]
        low = np.select(reach, [0.0, low], near)
        high = np.select(reach, [self.reach[-1], high], far)
        return self._find(low + rng.random((many, seats)) * (high - low))

    def anybody(self, size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw pairs from everybody, by weight."""
        first, second = (self._find(rng.random(size) * self.reach[-1]) for _ in range(2))
        return first, second

    def _find(self, spot: npt.NDArray[np.float64]) -> IntArray:
        # rounding may give the very end
        place = np.searchsorted(self.reach, spot, side="right")
        return self.member[np.minimum(place, len(self.reach) - 1)]


def _top_up(
    pairs: IntArray, edges: int, n: int, rng: np.random.Generator, draw: Any, rounds: int = 200
) -> IntArray:
    """Add drawn pairs, as u * n + v with u < v, until there are `edges` distinct ones."""
    for attempt in range(rounds):
        missing = edges - len(pairs)
        if missing <= 0:
            break
        size = missing + missing // 16 + 16
        # If communities are full, draw uniformly: at least half of all pairs is free
        u, v = draw(size, rng) if attempt < 20 else rng.integers(0, n, (2, size))
        u, v = np.minimum(u, v), np.maximum(u, v)
        fresh, at = np.unique((u * n + v)[u != v], return_index=True)
        # In the order of drawing, so that circles stay complete.
        fresh = fresh[np.argsort(at)]
        pairs = np.concatenate([pairs, fresh[~np.isin(fresh, pairs)][:missing]])
    return pairs


# -- the paper's data sets ----------------------------------------------------------------


def load_blogcatalog(path: str | os.PathLike[str]) -> LabelledGraph:
    """Load BlogCatalog (Tang & Liu 2009): bloggers, their friendships, their 39 interests.

    It has 10,312 nodes, 333,983 edges and 39 labels.

    Parameters
    ----------
    path : path
        ``blogcatalog.mat``, or the folder that holds it.
    """
    digest = "d4f4fb89ce1ccd4b7e2a183386c000773cc9362cc61f1be5b246a6d9c259da8f"
    return _load(Path(path), "blogcatalog.mat", digest)


def load_pos(path: str | os.PathLike[str]) -> LabelledGraph:
    """Load POS (Grover & Leskovec 2016): co-occurring words of Wikipedia, 40 parts of speech.

    The graph is read without weights and self-loops: 4,777 nodes, 92,295 edges, 40 labels.

    Parameters
    ----------
    path : path
        ``POS.mat``, or the folder that holds it.
    """
    digest = "b40977b48dec1d5016af0f6d5d2bce6f1c1037ccab948c2bbe324cea16754835"
    return _load(Path(path), "POS.mat", digest)


def _load(path: Path, name: str, sha256: str) -> LabelledGraph:
    file = path / name if path.is_dir() else path
    if not file.exists():
        raise InputError(f"there is no file {file}; expected is {name} with SHA-256 {sha256}")
    graph = read_graph(file, key="network")
    group = load_mat(file, "group")
    if group.ndim != 2 or group.shape[0] != graph.n_nodes:
        raise InputError(f"group in {file} must have one row for each of {graph.n_nodes} nodes")
    labels = sp.csr_array(group != 0)
    names = tuple(str(i) for i in range(labels.shape[1]))
    return LabelledGraph(graph=graph, labels=labels, label_names=names)
