"""Graph: an immutable, simple graph in CSR form on a public, fixed node set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import check_int
from edgeveil._internal.words import counted
from edgeveil.errors import InputError, ParameterError
from edgeveil.graph._csr import MOST_NODES, csr_of_pairs
from edgeveil.graph.nodes import NodeSet

if TYPE_CHECKING:
    import scipy.sparse as sp

MOST_SNAPSHOTS = 2**16 - 2  # numbers of snapshots are 16-bit integers, from 1
# first_seen of an edge that ended before its series began, or leads to who was forgotten
UNKNOWN = 2**16 - 1

Directed = Literal["refuse", "ignore", "keep"]
"""How a reader treats directed input: refuse it, ignore directions, or keep them."""


@dataclass(frozen=True, kw_only=True)
class ReadReport:
    """What was dropped when a graph was read. For the curator only.

    Attributes
    ----------
    entries : int
        Edges, arcs or stored matrix entries found.
    self_loops : int
        Entries from a node to itself (dropped).
    repeated : int
        Entries that repeat an earlier one in the same direction (dropped).
    both_directions : int
        Edges that were given in both directions (kept once; 0 if directions are kept).
    weighted : int
        Entries whose weight was not 1 (the weight was dropped).
    nodes_from_edges : bool
        Whether the node set was taken from the edges, because no node list was given. Then who
        is in it depends on private edges, and every guarantee says so.
    layout : str
        Text files only: how the first line was read, and which columns hold the ids; empty for
        two columns without a header. Not saved with a graph.
    """

    entries: int = 0
    self_loops: int = 0
    repeated: int = 0
    both_directions: int = 0
    weighted: int = 0
    nodes_from_edges: bool = False
    layout: str = field(default="", compare=False)

    def __str__(self) -> str:
        parts = [
            (self.self_loops, "self-loop", "dropped"),
            (self.repeated, "repeat", "dropped"),
            (self.both_directions, "edge", "given in both directions"),
            (self.weighted, "weight", "ignored"),
        ]
        dropped = ", ".join(f"{counted(n, what)} {fate}" for n, what, fate in parts if n)
        return f"{counted(self.entries, 'row')} read" + (f": {dropped}" if dropped else "")


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Unweighted, simple graph on a public node set; undirected unless directions were kept.

    Neighbours of node v are ``indices[indptr[v] : indptr[v + 1]]``, sorted. Every undirected edge
    is stored in both directions; in a directed graph the neighbours of v are the nodes that v
    follows. A node without edges stays in the graph, with degree 0: so the node set, and the shape
    of every result, never depends on a private edge.

    Parameters
    ----------
    indptr, indices : arrays of int32 or int64, read-only
        The CSR structure. It is not checked: it must be sorted, without loops and repeats, and
        symmetric unless `directed`. For anything else use `from_edges`, `edgeveil.as_graph` or
        `edgeveil.read_graph`.
    nodes : NodeSet
        The public node set.
    read_report : ReadReport
        What the reader dropped. For the curator only.
    directed : bool
        Whether edges have a direction (public).
    first_seen : array of uint16, read-only, optional
        Only in the graph of an `edgeveil.History`: for every entry of `indices`, the number of the
        snapshot (from 1) in which the edge was first seen, or `UNKNOWN`. Private, like the edges.

    Examples
    --------
    >>> graph = Graph.from_edges([0, 1, 1], [1, 2, 0], NodeSet.of(["ann", "bob", "cem", "dan"]))
    >>> graph
    Graph(4 nodes, 2 edges)
    >>> print(graph.read_report)
    3 rows read: 1 edge given in both directions
    """

    indptr: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    nodes: NodeSet
    read_report: ReadReport = field(default_factory=ReadReport)
    directed: bool = field(default=False, kw_only=True)
    first_seen: npt.NDArray[np.uint16] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        n, entries, first_seen = len(self.nodes), len(self.indices), self.first_seen
        if len(self.indptr) != n + 1 or self.indptr[0] != 0 or self.indptr[-1] != entries:
            raise InputError("the arrays of the graph do not fit together")
        if first_seen is not None and (
            first_seen.shape != (entries,) or first_seen.dtype != np.uint16
        ):
            raise InputError("first_seen must be one 16-bit number for every entry of the graph")
        object.__setattr__(self, "indptr", _read_only(self.indptr))
        object.__setattr__(self, "indices", _read_only(self.indices))
        object.__setattr__(
            self, "first_seen", None if first_seen is None else _read_only(first_seen)
        )

    @classmethod
    def from_edges(
        cls,
        u: npt.NDArray[Any] | Sequence[int],
        v: npt.NDArray[Any] | Sequence[int],
        nodes: NodeSet,
        *,
        weighted: int = 0,
        must_be_symmetric: bool = False,
        nodes_from_edges: bool = False,
        directed: bool = False,
    ) -> Graph:
        """Build a graph from index pairs, normalising loops, repeats and directions.

        Parameters
        ----------
        u, v : array-like of int
            Entry i joins node ``u[i]`` and node ``v[i]`` (indices into `nodes`).
        nodes : NodeSet
            The public node set.
        weighted : int
            How many entries had a weight other than 1; only recorded.
        must_be_symmetric : bool
            Refuse input that has some pair in one direction only.
        nodes_from_edges : bool
            Whether `nodes` was taken from the edges themselves; only recorded.
        directed : bool
            Keep directions: entry i leads from ``u[i]`` to ``v[i]``.

        Raises
        ------
        InputError
            If an index is outside the node set, or the input is not symmetric although
            `must_be_symmetric` is set.

        Notes
        -----
        Peak memory, in addition to the input: 8 bytes per entry up to about 2M nodes and 16 above,
        of which 8 are the graph itself.
        """
        n = len(nodes)
        u, v = _as_indices(u), _as_indices(v)
        if len(u) != len(v):
            raise InputError("edges must be given as two lists of node indices")
        if n > MOST_NODES:
            raise InputError(f"{n} nodes are too many: a graph has at most {MOST_NODES:,}")
        csr = csr_of_pairs(u, v, n, directed=directed)
        if csr is None:
            raise InputError(f"an edge names a node outside of the {n} nodes given")
        indptr, indices = csr.indptr, csr.indices
        if must_be_symmetric and csr.both_directions != len(indices) // 2:
            raise InputError(
                "the input is directed: some pairs are given in one direction only; "
                'pass directed="ignore" to read every arc as an undirected edge, '
                'or "keep" to keep directions, for suggestions'
            )
        read_report = ReadReport(
            entries=len(u),
            self_loops=csr.self_loops,
            repeated=csr.repeated,
            both_directions=csr.both_directions,
            weighted=weighted,
            nodes_from_edges=nodes_from_edges,
        )
        indptr = indptr.astype(index_type(len(indices)), copy=False)
        return cls(indptr, indices, nodes, read_report, directed=directed)

    @property
    def n_nodes(self) -> int:
        """Number of nodes (public)."""
        return len(self.nodes)

    @property
    def n_edges(self) -> int:
        """Number of edges (private)."""
        return len(self.indices) if self.directed else len(self.indices) // 2

    @cached_property
    def degrees(self) -> npt.NDArray[np.int64]:
        """Number of neighbours of every node (private); directed: how many it follows."""
        return _read_only(np.diff(self.indptr).astype(np.int64, copy=False))

    @cached_property
    def in_degrees(self) -> npt.NDArray[np.int64]:
        """Number of edges that lead to every node (private); undirected: `degrees`."""
        if not self.directed:
            return self.degrees
        return _read_only(np.bincount(self.indices, minlength=self.n_nodes))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of nodes, edges and `first_seen`: the graph in a ledger. Keep it private."""
        kind = b" directed" * self.directed + b" first_seen" * (self.first_seen is not None)
        digest = self.nodes.digest(b"edgeveil graph 1" + kind)
        for array in (self.indptr, self.indices):
            # int32 and int64 forms of one graph are the same graph: hash in slices as int64
            for start in range(0, len(array), 1 << 20):
                digest.update(array[start : start + (1 << 20)].astype("<i8").data)
        if self.first_seen is not None:
            digest.update(self.first_seen.astype("<u2", copy=False).data)
        return digest.hexdigest()

    def neighbours(self, index: int) -> npt.NDArray[Any]:
        """Indices of the neighbours of node `index`, sorted; directed: whom it follows."""
        return self.indices[self.indptr[index] : self.indptr[index + 1]]

    def followers(self, index: int) -> npt.NDArray[Any]:
        """Indices of the nodes whose edges lead to node `index`, sorted."""
        if not self.directed:
            return self.neighbours(index)
        indptr, indices = self.transposed
        return indices[indptr[index] : indptr[index + 1]]

    @cached_property
    def transposed(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The CSR structure of the reversed edges."""
        turned = self.adjacency().tocsc()
        return _read_only(turned.indptr), _read_only(turned.indices)

    def adjacency(self) -> sp.csr_array:
        """The adjacency matrix, row to column, as a new scipy CSR array of float64 ones."""
        import scipy.sparse as sp  # imported late: it takes long to load

        ones = np.ones(len(self.indices))
        shape = (self.n_nodes, self.n_nodes)
        return sp.csr_array((ones, self.indices.copy(), self.indptr.copy()), shape=shape)

    def with_edge_flipped(self, x: int, y: int, *, first_seen: int | None = None) -> Graph:
        """The neighbouring graph: without edge (x, y) if this one has it, with it if not.

        Directed: the edge from x to y. An edge added to a graph with `first_seen` needs one.
        """
        if x == y:
            raise InputError("a self-loop is not an edge")
        if not (0 <= x < self.n_nodes and 0 <= y < self.n_nodes):
            raise InputError(f"an edge names a node outside of the {self.n_nodes} nodes given")
        arcs = [(x, y)] if self.directed else sorted([(x, y), (y, x)])
        at = [int(self.indptr[a] + np.searchsorted(self.neighbours(a), b)) for a, b in arcs]
        is_there = y in self.neighbours(x)
        indptr = self.indptr.astype(np.int64)
        for a, _ in arcs:
            indptr[a + 1 :] += -1 if is_there else 1
        numbers = self.first_seen
        if is_there:
            indices = np.delete(self.indices, at)
            numbers = None if numbers is None else np.delete(numbers, at)
        else:
            if (numbers is None) != (first_seen is None):
                raise ParameterError("first_seen= is for adding an edge to a graph that has it")
            indices = np.insert(self.indices, at, [b for _, b in arcs])
            if numbers is not None and first_seen is not None:
                check_int("first_seen", first_seen, 1, MOST_SNAPSHOTS)
                numbers = np.insert(numbers, at, first_seen)
        indptr = indptr.astype(index_type(len(indices)))
        return Graph(indptr, indices, self.nodes, directed=self.directed, first_seen=numbers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return (
            self.directed == other.directed
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
            and self.nodes == other.nodes
            and _same_first_seen(self.first_seen, other.first_seen)
        )

    def __hash__(self) -> int:
        return int(self.fingerprint[:15], 16)

    def __repr__(self) -> str:
        return f"Graph({self.n_nodes} nodes, {self.n_edges} {'directed ' * self.directed}edges)"


def check_directed(directed: Directed) -> Directed:
    """Refuse anything but the three values of `Directed`."""
    if isinstance(directed, str) and directed in ("refuse", "ignore", "keep"):
        return directed
    raise ParameterError(f"directed must be 'refuse', 'ignore' or 'keep', got {directed!r}")


def index_type(size: int) -> type[np.int32 | np.int64]:
    """The narrower of int32 and int64 that can count up to `size`."""
    return np.int32 if size <= np.iinfo(np.int32).max else np.int64


def _same_first_seen(first: npt.NDArray[Any] | None, second: npt.NDArray[Any] | None) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second)


def _as_indices(values: npt.NDArray[Any] | Sequence[int]) -> npt.NDArray[Any]:
    """A one-dimensional integer array (numpy makes an empty list float)."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise InputError("edges must be given as two lists of node indices")
    return array if array.size else array.astype(np.int64)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A contiguous, read-only array of class `numpy.ndarray`, as the compiled kernels expect."""
    plain = np.ascontiguousarray(array).view(np.ndarray)
    plain.setflags(write=False)
    return plain
