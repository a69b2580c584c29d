"""`as_graph`: an object in memory -> Graph, recognised without importing its library."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from edgeveil.errors import InputError
from edgeveil.graph import Graph
from edgeveil.io.libraries import read_igraph, read_networkit, read_networkx
from edgeveil.io.matrices import read_array, read_matrix
from edgeveil.io.node_lists import Nodes, read_nodes
from edgeveil.io.tables import read_table

__all__ = ["as_graph"]

_LIBRARIES = {
    "networkx": (read_networkx, "adjacency"),
    "igraph": (read_igraph, "get_edgelist"),
    "networkit": (read_networkit, "iterEdges"),
}


def as_graph(obj: Any, *, nodes: Nodes | None = None, directed: bool = False) -> Graph:
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
        names and tables: a list that holds all their ids. **Give it for a table or an
        edge_index wherever it is known independently of the edges who is a member:**
        without it the node set is taken from the private edges and yet is treated as
        public from here on.
    directed : bool
        Allow a directed graph, or a matrix or edge_index that is not symmetric, and read
        every arc as an undirected edge. Nothing changes for a table: its rows are
        undirected edges.

    Returns
    -------
    Graph

    Raises
    ------
    InputError
        If the object is of no known kind, or cannot be read as an undirected graph.

    Examples
    --------
    >>> import numpy as np
    >>> as_graph(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    Graph(3 nodes, 1 edges)
    >>> as_graph(np.array([[0, 1, 2], [1, 2, 3]]), directed=True)
    Graph(4 nodes, 3 edges)
    """
    if isinstance(obj, Graph):
        if nodes is not None:
            raise InputError("a Graph has its node set already; nodes= cannot change it")
        return obj
    node_set = read_nodes(nodes)
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
        return read_table(obj, nodes=node_set)
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
