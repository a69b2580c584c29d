"""`as_graph`: an object in memory -> Graph, recognised and read without importing its library."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.errors import InputError
from edgeveil.graph.columns import (
    Columns,
    ReadOptions,
    is_header_of_ids,
    likely_pair,
    refuse_two_kinds,
)
from edgeveil.graph.edges import with_text_ids
from edgeveil.graph.graph import Directed, Graph, check_directed
from edgeveil.graph.lines import refuse_url
from edgeveil.graph.matrices import read_array, read_matrix, row_nodes
from edgeveil.graph.node_lists import Nodes, node_set, read_nodes
from edgeveil.graph.nodes import Ids, NodeId, NodeSet, check_ids
from edgeveil.graph.tables import collect, is_weight, read_rows, read_table, weight_of

Array = npt.NDArray[np.int64]


def as_graph(
    obj: Any,
    *,
    nodes: Nodes | None = None,
    directed: Directed = "refuse",
    columns: Columns | None = None,
    ids: Ids = "auto",
    one_kind: bool = False,
) -> Graph:
    """Make a `Graph` from an object of another library, or from edges in memory.

    ============================== =========================================================
    Graph                          returned as it is
    scipy.sparse, dense numpy      a symmetric adjacency matrix; a zero is not an edge
    networkx, igraph, networkit    an undirected graph, multigraphs too; ids are its nodes
                                   (igraph: the vertex attribute ``name``)
    edge_index                     2 x m integers, each arc in both directions: a numpy array
                                   or a tensor with ``.numpy()`` or ``__array__``
    a table                        anything with ``__arrow_c_stream__`` (pandas, polars,
                                   pyarrow, duckdb): the first two columns are an edge list,
                                   a numeric third is a weight; a polars LazyFrame likewise
    a list of pairs                ``[("ann", "bob"), ("bob", "cem")]``: an edge each; also
                                   triples with a weight, and dicts with two ids each
    a dict of lists                ``{"ann": ["bob", "cem"]}``: the neighbours of each id; also
                                   nodes and links, as networkx writes JSON
    ============================== =========================================================

    Weights, loops, repeats and directions are dropped and counted in ``graph.read_report``.

    Parameters
    ----------
    obj : object
        What to read. A 2 x 2 integer array is refused, because it may be a matrix or an
        edge_index. So are lists of lists that may be either: write pairs as tuples.
    nodes : NodeSet, iterable of ids, or path, optional
        As in `edgeveil.read_graph`. For a matrix, networkit, and igraph without names: the names
        of all nodes, in order. For an edge_index: names for at least all nodes that it numbers.
        For networkx, igraph with names, and tables: a list that holds all their ids. Without it,
        ids are sorted (numbered nodes stay in the order of their numbers), because libraries keep
        nodes in the order in which edges first named them, which is private. A matrix has a row
        for everybody, and the order of its rows is as public as its size.
    directed : {"refuse", "ignore", "keep"}
        How to treat directions. "refuse": refuse a directed graph, and a matrix or edge_index that
        is not symmetric. "ignore": read every arc as an undirected edge. With both, a table, list
        or dict of lists, which does not say whether it is directed, holds undirected edges. "keep":
        keep directions, from row to column, or from the first id of a row or pair to the second
        (a follows b). Only `edgeveil.suggest` and `edgeveil.refresh` take such a graph.
    columns : pair of str or int, optional
        The two id columns of a table or of records, by name or by position from 0. Default: the
        first two, if that is clear.
    ids : {"auto", "text"}
        "auto": ids are of the kind that the object has; if the node list has another kind, or one
        column of a table, all are text. "text": ids are text in any case.
    one_kind : bool
        Both columns of a table, list or dict hold the same kind of nodes; see
        `edgeveil.read_graph`.

    Returns
    -------
    Graph

    Raises
    ------
    InputError
        If the object is not of a known kind, or cannot be read as a graph.

    Examples
    --------
    >>> import numpy as np
    >>> as_graph(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    Graph(3 nodes, 1 edges)
    >>> as_graph(np.array([[0, 1, 2], [1, 2, 3]]), directed="ignore")
    Graph(4 nodes, 3 edges)
    >>> as_graph([("ann", "bob"), ("bob", "cem")], nodes=["ann", "bob", "cem", "dan"])
    Graph(4 nodes, 2 edges)
    """
    check_directed(directed)
    as_text = check_ids(ids)
    if isinstance(obj, Graph):
        if nodes is not None:
            raise InputError("a Graph has its node set already; nodes= cannot change it")
        graph = obj
    else:
        options = ReadOptions(
            nodes=read_nodes(nodes, ids=ids), columns=columns, text=as_text, one_kind=one_kind
        )
        graph = _read(obj, options, directed)
    return with_text_ids(graph) if as_text else graph


def _read(obj: Any, options: ReadOptions, directed: Directed) -> Graph:
    """Read an object by the first interface that it has."""
    import scipy.sparse as sp

    if sp.issparse(obj):
        return read_matrix(obj, nodes=options.nodes, directed=directed)
    if isinstance(obj, np.ndarray):
        return read_array(obj, nodes=options.nodes, directed=directed)
    families = {base.__module__.partition(".")[0] for base in type(obj).__mro__}
    for library, (read, method) in _LIBRARIES.items():
        if library in families and hasattr(obj, method):
            return _graph_of(read(obj), options.nodes, directed, f"the {library} graph")
    if hasattr(obj, "guarantee"):
        raise InputError(f"a {type(obj).__name__} holds what was released about a graph, no edges")
    if "polars" in families and hasattr(obj, "collect"):
        obj = collect(obj)
    if hasattr(obj, "__arrow_c_stream__"):
        return read_table(obj, options, directed=directed == "keep")
    if isinstance(obj, Mapping):
        return _graph_of_dict(obj, options, directed)
    if isinstance(obj, list | tuple):
        return read_rows(obj, options, directed=directed == "keep")
    if isinstance(obj, Set | Iterator):
        return read_rows(list(obj), options, directed=directed == "keep")
    if hasattr(obj, "numpy") or hasattr(obj, "__array__"):
        return read_array(_tensor(obj), nodes=options.nodes, directed=directed)
    hint = ""
    if isinstance(obj, str | os.PathLike):
        refuse_url(obj)
        hint = "; use read_graph for a path"
    raise InputError(f"a {type(obj).__name__} is not a graph, matrix or table of edges{hint}")


def _tensor(obj: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """A tensor as an array, copied from its device and without its gradient."""
    try:
        for step in ("detach", "cpu"):
            obj = getattr(obj, step)() if hasattr(obj, step) else obj
        return np.asarray(obj.numpy() if hasattr(obj, "numpy") else obj)
    except Exception as error:
        raise InputError(f"a {type(obj).__name__} cannot be read as an array") from error


# -- dicts -----------------------------------------------------------------------------------


def _graph_of_dict(obj: Mapping[Any, Any], options: ReadOptions, directed: Directed) -> Graph:
    """Read a dict of lists of neighbours, or nodes and links as d3 and networkx write JSON."""
    links = obj.get("links", obj.get("edges"))
    if isinstance(obj.get("nodes"), list) and isinstance(links, list):
        edges = _read_node_link(obj, links)
    else:
        if _are_columns(obj):
            return read_table(dict(obj), options, directed=directed == "keep")
        edges = _read_neighbours(obj, as_text=options.as_text)
        # it does not say whether it is directed
        edges = edges._replace(directed=directed == "keep")
    if not options.one_kind:
        refuse_two_kinds("the dict", len(edges.ids), lambda: [(edges.u, edges.v)])
    return _graph_of(edges, options.nodes, directed, "the dict")


def _are_columns(obj: Mapping[Any, Any]) -> bool:
    """Whether the keys are names of columns of equal length, and no ids."""
    names = list(obj)
    if len(names) < 2 or not all(isinstance(name, str) for name in names):
        return False
    if not (likely_pair(names, roles_only=True) or is_header_of_ids(names[:2])):
        return False
    columns = list(obj.values())
    if not all(
        isinstance(column, Sequence) and len(column) == len(columns[0]) for column in columns
    ):
        return False
    return not any(name in column for name in names for column in columns)


def _read_neighbours(obj: Mapping[Any, Any], *, as_text: bool) -> _Edges:
    """Edges from every key to each of its neighbours, which may be keys of a dict themselves."""
    u: list[int] = []
    v: list[int] = []
    weighted = 0
    index: dict[Any, int] = {}
    for node, neighbours in obj.items():
        if not isinstance(neighbours, Collection) or isinstance(neighbours, str):
            raise InputError("a dict is read as a graph if it maps each id to a list of ids")
        own = index.setdefault(str(node) if as_text else node, len(index))
        try:
            others = map(str, neighbours) if as_text else neighbours
            v.extend(index.setdefault(other, len(index)) for other in others)
        except TypeError as error:
            raise InputError("a dict of lists holds something that is no id") from error
        u += [own] * len(neighbours)
        if isinstance(neighbours, Mapping):
            weights = filter(is_weight, neighbours.values())
            weighted += sum(weight_of(weight) != 1 for weight in weights)
    if any(isinstance(key, str) for key in obj) and not all(isinstance(i, str) for i in index):
        raise InputError(
            "the dict has text as keys (JSON has no other) and other ids in its lists: say "
            "ids='text'"
        )
    return _Edges(False, np.array(u, np.int64), np.array(v, np.int64), list(index), False, weighted)


def _read_node_link(obj: Mapping[Any, Any], links: list[Any]) -> _Edges:
    try:
        index = {node["id"]: i for i, node in enumerate(obj["nodes"])}
        u, v = (
            np.array([index[link[end]] for link in links], np.int64) for end in ("source", "target")
        )
    except (KeyError, TypeError) as error:
        raise InputError(
            "the dict has nodes and links, but not as networkx writes them: every node with an "
            "id, every link with the ids of its source and its target"
        ) from error
    weighted = sum(weight_of(link) != 1 for link in links)
    return _Edges(obj.get("directed") is True, u, v, list(index), False, weighted)


# -- graphs of other libraries ------------------------------------------------------------


class _Edges(NamedTuple):
    """Edges as indices in the ids; `numbered`: ids are 0 .. n-1, which a node list may name."""

    directed: bool
    u: Array
    v: Array
    ids: Sequence[Any] | Array
    numbered: bool
    weighted: int


def _read_networkx(graph: Any) -> _Edges:
    """Read a networkx graph, multigraphs too; ids are its nodes."""
    index = {node: i for i, node in enumerate(graph)}
    edges = list(graph.edges(data="weight", default=1))
    u, v = (np.fromiter((index[edge[k]] for edge in edges), np.int64, len(edges)) for k in (0, 1))
    weighted = sum(weight != 1 for _, _, weight in edges)
    return _Edges(graph.is_directed(), u, v, list(index), False, weighted)


def _read_igraph(graph: Any) -> _Edges:
    """Read an igraph graph; ids are the vertex attribute ``name`` if there is one."""
    weights = graph.es["weight"] if "weight" in graph.es.attributes() else ()
    weighted = sum(weight not in (None, 1) for weight in weights)
    named = "name" in graph.vs.attributes()
    ids = graph.vs["name"] if named else range(graph.vcount())
    u, v = _pairs(graph.get_edgelist(), graph.ecount())
    return _Edges(graph.is_directed(), u, v, ids, not named, weighted)


def _read_networkit(graph: Any) -> _Edges:
    """Read a networkit graph; ids are its node numbers, without those removed."""
    weights = graph.iterEdgesWeights() if graph.isWeighted() else ()
    weighted = sum(weight != 1 for _, _, weight in weights)
    ids = np.fromiter(graph.iterNodes(), np.int64, graph.numberOfNodes())
    u, v = _pairs(graph.iterEdges(), graph.numberOfEdges())
    u, v = np.searchsorted(ids, u), np.searchsorted(ids, v)
    return _Edges(graph.isDirected(), u, v, ids, True, weighted)


def _pairs(edges: Any, count: int) -> tuple[Array, Array]:
    ends = np.fromiter(chain.from_iterable(edges), np.int64, 2 * count)
    return ends[::2], ends[1::2]


def _graph_of(edges: _Edges, nodes: NodeSet | None, directed: Directed, what: str) -> Graph:
    """Build the graph on the node list, which must hold all ids, or on its ids.

    Names are sorted: libraries keep nodes in the order in which edges first named them, so the
    order of a release's columns would reveal edges.
    """
    if edges.directed and directed == "refuse":
        raise InputError(
            'the graph is directed; pass directed="ignore" to read every arc as an undirected '
            'edge, or "keep" to keep directions, for suggestions'
        )
    if directed == "keep" and not edges.directed:
        raise InputError("the graph is undirected: there are no directions to keep")
    u, v, own = edges.u, edges.v, node_set(edges.ids)
    if edges.numbered:
        node_ids = row_nodes(len(own), own if nodes is None else nodes, what)
    else:
        if nodes is not None and (nodes.kind == "str") != (own.kind == "str"):
            nodes, own = nodes.as_text(), own.as_text()
        node_ids = node_set(sorted(own)) if nodes is None else nodes
        place: dict[NodeId, int] = {node: i for i, node in enumerate(node_ids)}
        index = np.fromiter((place.get(node, -1) for node in own), np.int64, len(own))
        outside = int((index < 0).sum())
        if outside:
            raise InputError(f"{outside} nodes of the graph are not in the node list")
        u, v = index[u], index[v]
    return Graph.from_edges(
        u,
        v,
        node_ids,
        weighted=edges.weighted,
        nodes_from_edges=nodes is None,
        directed=directed == "keep",
    )


_LIBRARIES = {
    "networkx": (_read_networkx, "adjacency"),
    "igraph": (_read_igraph, "get_edgelist"),
    "networkit": (_read_networkit, "iterEdges"),
}
