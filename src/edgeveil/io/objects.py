"""`as_graph`: an object in memory -> Graph, recognised and read without importing its library."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import InputError
from edgeveil.graph import Directed, Graph, check_directed
from edgeveil.io.matrices import read_array, read_matrix, row_nodes
from edgeveil.io.node_lists import Nodes, node_set, read_nodes
from edgeveil.io.tables import read_table
from edgeveil.nodes import NodeId, NodeSet

Array = npt.NDArray[np.int64]


def as_graph(obj: Any, *, nodes: Nodes | None = None, directed: Directed = False) -> Graph:
    """Make a `Graph` of an object that holds one.

    ============================== =========================================================
    Graph                          returned as it is
    scipy.sparse, dense numpy      a symmetric adjacency matrix; zeros are no edges
    networkx, igraph, networkit    an undirected graph, multigraphs too; ids are its nodes
                                   (igraph: the vertex attribute ``name``)
    edge_index                     2 x m integers, each arc in both directions: a numpy array
                                   or a tensor with ``.numpy()`` or ``__array__``
    a table                        anything with ``__arrow_c_stream__`` (pandas, polars,
                                   pyarrow, duckdb): the first two columns are an edge list,
                                   a numeric third is a weight
    ============================== =========================================================

    Weights, loops, repeats and directions are dropped and counted in ``graph.intake``.

    Parameters
    ----------
    obj : object
        What to read. A 2 x 2 integer array is refused: it may be a matrix or an edge_index.
    nodes : NodeSet, iterable of ids, or path, optional
        The public node set, in the order that results will have. For a matrix, igraph
        without names and networkit: the names of their nodes in order, as many as there
        are; for an edge_index: at least as many as it numbers; for networkx, igraph with
        names and tables: a list that holds all their ids. **Give it wherever it is known
        independently of the edges who is a member.** Without it ids are sorted (numbered
        nodes stay in the order of their numbers), since libraries keep nodes in the order in
        which edges first named them; the node set is taken to be public all the same, and
        every guarantee says so, but for a matrix: it has a row for everybody, and the order
        of its rows is as public as its size.
    directed : bool or "keep"
        True: allow a directed graph, or a matrix or edge_index that is not symmetric, and read
        every arc as an undirected edge; nothing changes for a table, whose rows are undirected
        edges. "keep": keep directions, from row to column, or from the first to the second
        column of a table: a follows b. Only `edgeveil.suggest` takes such a graph.

    Returns
    -------
    Graph

    Raises
    ------
    InputError
        If the object is of no known kind, or cannot be read as such a graph.

    Examples
    --------
    >>> import numpy as np
    >>> as_graph(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    Graph(3 nodes, 1 edges)
    >>> as_graph(np.array([[0, 1, 2], [1, 2, 3]]), directed=True)
    Graph(4 nodes, 3 edges)
    """
    check_directed(directed)
    if isinstance(obj, Graph):
        if nodes is not None:
            raise InputError("a Graph has its node set already; nodes= cannot change it")
        return obj
    node_set = read_nodes(nodes)
    import scipy.sparse as sp

    if sp.issparse(obj):
        return read_matrix(obj, nodes=node_set, directed=directed)
    if isinstance(obj, np.ndarray):
        return read_array(obj, nodes=node_set, directed=directed)
    families = {base.__module__.partition(".")[0] for base in type(obj).__mro__}
    for library, (read, method) in _LIBRARIES.items():
        if library in families and hasattr(obj, method):
            return read(obj, nodes=node_set, directed=directed)
    if hasattr(obj, "guarantee"):
        raise InputError(f"a {type(obj).__name__} holds what was released about a graph, no edges")
    if hasattr(obj, "__arrow_c_stream__"):
        return read_table(obj, nodes=node_set, directed=directed == "keep")
    if hasattr(obj, "numpy") or hasattr(obj, "__array__"):
        return read_array(_tensor(obj), nodes=node_set, directed=directed)
    hint = "; use read_graph for a path" if isinstance(obj, str) or hasattr(obj, "open") else ""
    raise InputError(f"a {type(obj).__name__} is no graph, matrix or table of edges{hint}")


def _tensor(obj: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Give a tensor's numbers, fetched from where it lives and without its gradient."""
    try:
        for step in ("detach", "cpu"):
            obj = getattr(obj, step)() if hasattr(obj, step) else obj
        return np.asarray(obj.numpy() if hasattr(obj, "numpy") else obj)
    except Exception as error:
        raise InputError(f"a {type(obj).__name__} cannot be read as an array") from error


# -- graphs of other libraries ------------------------------------------------------------


def _read_networkx(graph: Any, *, nodes: NodeSet | None, directed: Directed) -> Graph:
    """Read a networkx graph, multigraphs too; ids are its nodes."""
    _refuse_directed(graph.is_directed(), directed)
    names = list(graph)
    index = dict(zip(names, range(len(names)), strict=True))
    # adjacency() walks plain dicts: several times faster than edges()
    sizes = np.fromiter((len(near) for _, near in graph.adjacency()), np.int64, len(names))
    u = np.repeat(np.arange(len(names)), sizes)
    v = np.fromiter(
        chain.from_iterable(map(index.__getitem__, near) for _, near in graph.adjacency()),
        np.int64,
        len(u),
    )
    data = chain.from_iterable(near.values() for _, near in graph.adjacency())
    if graph.is_multigraph():
        parallel = [list(keyed.values()) for keyed in data]
        copies = np.fromiter(map(len, parallel), np.int64, len(u))
        u, v = np.repeat(u, copies), np.repeat(v, copies)
        data = chain.from_iterable(parallel)
    heavy = np.fromiter((edge.get("weight", 1) != 1 for edge in data), np.bool_, len(u))
    if not graph.is_directed():  # every edge is there twice, a loop once
        once = u <= v
        u, v, heavy = u[once], v[once], heavy[once]
    return _on_nodes(u, v, names, nodes, int(heavy.sum()), directed)


def _read_igraph(graph: Any, *, nodes: NodeSet | None, directed: Directed) -> Graph:
    """Read an igraph graph; ids are the vertex attribute ``name`` if there is one."""
    _refuse_directed(graph.is_directed(), directed)
    u, v = _pairs(graph.get_edgelist(), graph.ecount())
    weighted = 0
    if "weight" in graph.es.attributes():
        weighted = sum(weight not in (None, 1) for weight in graph.es["weight"])
    if "name" in graph.vs.attributes():
        return _on_nodes(u, v, graph.vs["name"], nodes, weighted, directed)
    on = row_nodes(graph.vcount(), nodes, "the igraph graph")
    return _graph(u, v, on, nodes, weighted, directed)


def _read_networkit(graph: Any, *, nodes: NodeSet | None, directed: Directed) -> Graph:
    """Read a networkit graph; ids are its node numbers, without those removed."""
    _refuse_directed(graph.isDirected(), directed)
    u, v = _pairs(graph.iterEdges(), graph.numberOfEdges())
    weighted = 0
    if graph.isWeighted():
        weighted = sum(weight != 1 for _, _, weight in graph.iterEdgesWeights())
    numbers = np.fromiter(graph.iterNodes(), np.int64, graph.numberOfNodes())
    u, v = np.searchsorted(numbers, u), np.searchsorted(numbers, v)
    own = NodeSet.of_ints(numbers) if nodes is None else nodes
    on = row_nodes(len(numbers), own, "the networkit graph")
    return _graph(u, v, on, nodes, weighted, directed)


def _refuse_directed(is_directed: bool, allowed: Directed) -> None:
    if is_directed and not allowed:
        raise InputError(
            "the graph is directed; pass directed=True to read every arc as an undirected edge, "
            'or "keep" to keep directions, for suggestions'
        )
    if allowed == "keep" and not is_directed:
        raise InputError("the graph is undirected: there are no directions to keep")


def _pairs(edges: Any, count: int) -> tuple[Array, Array]:
    ends = np.fromiter(chain.from_iterable(edges), np.int64, 2 * count)
    return ends[::2], ends[1::2]


def _graph(
    u: Array, v: Array, on: NodeSet, given: NodeSet | None, weighted: int, directed: Directed
) -> Graph:
    return Graph.from_edges(
        *(u, v, on),
        weighted=weighted,
        nodes_from_edges=given is None,
        directed=directed == "keep",
    )


def _on_nodes(
    u: Array,
    v: Array,
    names: Sequence[Any],
    nodes: NodeSet | None,
    weighted: int,
    directed: Directed,
) -> Graph:
    """Build the graph on the node list, which must hold all names, or on its names, sorted.

    Sorted, because libraries keep nodes in the order in which the edges first named them: the
    order of the columns of a release would tell who is joined to whom.
    """
    own = node_set(names)
    on = node_set(sorted(own)) if nodes is None else nodes
    place: dict[NodeId, int] = {node: i for i, node in enumerate(on)}
    move = np.fromiter((place.get(node, -1) for node in own), np.int64, len(own))
    outside = int((move < 0).sum())
    if outside:
        raise InputError(f"{outside} nodes of the graph are not in the node list")
    return _graph(move[u], move[v], on, nodes, weighted, directed)


_LIBRARIES = {
    "networkx": (_read_networkx, "adjacency"),
    "igraph": (_read_igraph, "get_edgelist"),
    "networkit": (_read_networkit, "iterEdges"),
}
