"""`aggregate`: noisy sums of neighbours' public vectors, for one epsilon, for anybody to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from edgeveil._internal.checks import positive
from edgeveil.errors import ParameterError
from edgeveil.estimate.public import NodeVectors
from edgeveil.graph.graph import Graph
from edgeveil.graph.node_tables import read_features
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs.job import release
from edgeveil.jobs.request import Options, graph_of
from edgeveil.mechanisms.aggregation import Aggregation
from edgeveil.results.release import Release


def aggregate(
    graph: Graph,
    values: Any = None,
    *,
    epsilon: float,
    bound: float = 1.0,
    columns: Sequence[str] | None = None,
    dimension: int | None = None,
    hash_key: str = "edgeveil",
    **options: Unpack[Options],
) -> Release:
    """For every node the sum of its neighbours' public vectors, privately, for anybody to see.

    For example how many flagged accounts an account pays, or the sum of the ages of somebody's
    contacts: private features of the neighbourhood, for whatever model you use. Public model: all
    rows may be published, and every edge is protected with epsilon in all. Every entry has Laplace
    noise of scale 2 bound / epsilon. **The values are not protected, and must not come from the
    edges.** To predict classes of nodes, `edgeveil.classify` gets more out of the same epsilon.

    Parameters
    ----------
    graph : Graph
        The private graph, or anything that `edgeveil.as_graph` or `edgeveil.read_graph` takes.
        In a directed graph the columns come twice: of those whom a node follows, then of its
        followers.
    values : array, sparse matrix, table, dict or path, optional
        A vector of numbers for every node: rows in the order of ``graph.nodes``; or a table with a
        column of nodes, or a dict of node and number, with 0 for all others. Without values, each
        node says 1 or -1 in one of `dimension` columns, by a public hash: a public embedding of all
        nodes.
    epsilon : float
        Privacy loss of all rows together, for any edge.
    bound : float
        The most that the absolute values of a vector may add up to; public. Longer vectors are
        scaled down to it: ``provenance.parameters["values"]["clipped"]`` is their share. The
        noise grows with it. Entries are rounded toward 0 to multiples of bound / 2**20.
    columns : sequence of str, optional
        Names of the columns; of a table, those to use.
    dimension : int, optional
        Without values: numbers in a row, 64 by default.
    hash_key : str
        Without values: chooses the public hash.

    Other Parameters
    ----------------
    ledger, label, generation, purpose, operator, noise, engine, progress : optional
        As for `edgeveil.release`. With a ledger, epsilon is charged once, to everybody, and the
        same call is free.

    Returns
    -------
    Release
        One row for each node, with the names of the columns.

    Examples
    --------
    >>> import edgeveil as ev
    >>> graph = ev.datasets.social_network(300, average_degree=12).graph
    >>> flagged = {7: 1, 8: 1}
    >>> sums = aggregate(graph, flagged, epsilon=1.0, columns=["flagged"])
    >>> sums.table().columns, sums.guarantee.brief
    (['source', 'flagged'], 'public, epsilon = 1')
    """
    graph = graph_of(graph)
    mechanism = aggregation(
        graph, values, epsilon=epsilon, bound=bound, columns=columns, dimension=dimension,
        hash_key=hash_key,
    )  # fmt: skip
    return release(graph, mechanism, **options)


def aggregation(
    graph: Graph,
    values: Any = None,
    *,
    epsilon: float,
    bound: float = 1.0,
    columns: Sequence[str] | None = None,
    dimension: int | None = None,
    hash_key: str = "edgeveil",
) -> Aggregation:
    """Read and check what `aggregate` is given, without looking at an edge; parameters as there.

    The mechanism can be priced (`edgeveil.price`) and audited.
    """
    directions, norm = 2 if graph.directed else 1, positive("bound", bound)
    if values is None:
        if columns is not None:
            raise ParameterError("columns are names of values: give values=, or dimension=")
        width = 64 if dimension is None else dimension
        return Aggregation(
            epsilon=epsilon, dimension=width, directed=graph.directed, hash_key=hash_key
        )
    if dimension is not None:
        raise ParameterError("dimension is for rows without values: leave it out")
    table, names = _table_of(values, graph.nodes)
    if columns is not None:
        table, names = _chosen(table, names, columns)
    if "source" in names or len(set(names)) < len(names):
        raise ParameterError("columns must have names of their own, other than source")
    vectors = NodeVectors.clip(graph.nodes, names, table, norm)
    return Aggregation(
        epsilon=epsilon,
        dimension=vectors.width * directions,
        directed=graph.directed,
        values=vectors,
    )


def _table_of(values: Any, nodes: NodeSet) -> tuple[Any, tuple[str, ...]]:
    if not isinstance(values, Mapping):
        return read_features(values, nodes, "values", of_all=False)
    numbers, _ = read_features(list(values.values()), NodeSet.range(len(values)), "values")
    table = np.zeros((len(nodes), numbers.shape[1]))
    table[nodes.indices(values)] = numbers
    return table, ()


def _chosen(
    table: Any, names: tuple[str, ...], columns: Sequence[str]
) -> tuple[Any, tuple[str, ...]]:
    """The columns with these names, or these names for the columns."""
    wanted = tuple(columns)
    if isinstance(columns, str) or not all(isinstance(name, str) for name in wanted):
        raise ParameterError(f"columns must be a list of names, got {columns!r}")
    if names:
        if lacking := [name for name in wanted if name not in names]:
            raise ParameterError(f"values have no column {lacking[0]!r}; there are {names}")
        return table[:, [names.index(name) for name in wanted]], wanted
    if len(wanted) != table.shape[1]:
        raise ParameterError(f"columns names {len(wanted)} columns, values have {table.shape[1]}")
    return table, wanted
