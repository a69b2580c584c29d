"""Graphs of other libraries, read through their own methods: none of them is imported."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import InputError
from edgeveil.graph import Graph
from edgeveil.io.matrices import row_nodes
from edgeveil.io.node_lists import node_set
from edgeveil.nodes import NodeId, NodeSet

__all__ = ["read_igraph", "read_networkit", "read_networkx"]


def read_networkx(graph: Any, *, nodes: NodeSet | None, directed: bool) -> Graph:
    """Read a networkx graph, multigraphs too; ids are its nodes, in its order."""
    _refuse_directed(graph.is_directed(), directed)
    names = list(graph)
    own = node_set(names)
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
    return _on_nodes(u, v, own, nodes, int(heavy.sum()))


def read_igraph(graph: Any, *, nodes: NodeSet | None, directed: bool) -> Graph:
    """Read an igraph graph; ids are the vertex attribute ``name`` if there is one."""
    _refuse_directed(graph.is_directed(), directed)
    u, v = _pairs(graph.get_edgelist(), graph.ecount())
    weighted = 0
    if "weight" in graph.es.attributes():
        weighted = sum(weight not in (None, 1) for weight in graph.es["weight"])
    if "name" in graph.vs.attributes():
        return _on_nodes(u, v, node_set(graph.vs["name"]), nodes, weighted)
    nodes = row_nodes(graph.vcount(), nodes, "the igraph graph")
    return Graph.from_edges(u, v, nodes, weighted=weighted)


def read_networkit(graph: Any, *, nodes: NodeSet | None, directed: bool) -> Graph:
    """Read a networkit graph; ids are its node numbers, without those removed."""
    _refuse_directed(graph.isDirected(), directed)
    u, v = _pairs(graph.iterEdges(), graph.numberOfEdges())
    weighted = 0
    if graph.isWeighted():
        weighted = sum(weight != 1 for _, _, weight in graph.iterEdgesWeights())
    numbers = np.fromiter(graph.iterNodes(), np.int64, graph.numberOfNodes())
    u, v = np.searchsorted(numbers, u), np.searchsorted(numbers, v)
    if nodes is None:
        nodes = NodeSet.of_ints(numbers)
    else:
        nodes = row_nodes(len(numbers), nodes, "the networkit graph")
    return Graph.from_edges(u, v, nodes, weighted=weighted)


def _refuse_directed(is_directed: bool, allowed: bool) -> None:
    if is_directed and not allowed:
        raise InputError(
            "the graph is directed; pass directed=True to read every arc as an undirected edge"
        )


def _pairs(edges: Any, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    ends = np.fromiter(chain.from_iterable(edges), np.int64, 2 * count)
    return ends[::2], ends[1::2]


def _on_nodes(
    u: npt.NDArray[Any], v: npt.NDArray[Any], own: NodeSet, nodes: NodeSet | None, weighted: int
) -> Graph:
    """Build the graph on its own nodes, or on the node list, which must hold all of them."""
    if nodes is None:
        return Graph.from_edges(u, v, own, weighted=weighted)
    place: dict[NodeId, int] = {node: i for i, node in enumerate(nodes)}
    move = np.fromiter((place.get(node, -1) for node in own), np.int64, len(own))
    outside = int((move < 0).sum())
    if outside:
        raise InputError(f"{outside} nodes of the graph are not in the node list")
    return Graph.from_edges(move[u], move[v], nodes, weighted=weighted)
