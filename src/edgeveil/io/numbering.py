"""Edges of a piece -> pairs of numbers, while the node set is not known yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from edgeveil.errors import InputError
from edgeveil.io.columns import Indexed, RowError, index_columns, places_in
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

    from edgeveil.io.text import Edges

__all__ = ["Ids", "Numbering", "OtherIdsError"]

Array = npt.NDArray[Any]

# In a given node list; integers that are their own numbers; any integers; names
Ids = Literal["listed", "dense", "integers", "text"]


class OtherIdsError(Exception):
    """The ids are of another kind than was assumed."""

    def __init__(self, ids: Ids) -> None:
        super().__init__(ids)
        self.ids = ids


class Numbering:
    """Numbers the ends of edges: by a node list, by the ids themselves, or by sorted ids.

    Parameters
    ----------
    ids : {"listed", "dense", "integers", "text"}
        Of which kind ids are.
    nodes : NodeSet or None
        The node list, if they are listed.
    limit : int
        Integers from 0 up to it are dense; `seen` tells which of them occurred.
    """

    def __init__(self, ids: Ids, nodes: NodeSet | None, limit: int) -> None:
        self.ids, self.limit, self._nodes = ids, limit, nodes
        self.seen = np.zeros(0, dtype=np.bool_)
        self._places = None if nodes is None else _places_in(nodes)

    def __call__(self, edges: Edges, where: str) -> tuple[Array, pl.Series | None]:
        """Give the numbers, and the ids that they number if these are the piece's own."""
        import polars as pl

        if isinstance(edges, Indexed) or edges[0].dtype == pl.String:
            if self.ids in ("dense", "integers"):
                raise OtherIdsError("text")
        else:
            a, b = (ends.to_numpy() for ends in edges)
            if self.ids == "dense":
                return self._dense(a, b), None
            in_range = self._nodes is not None and self._nodes.kind == "range"
            if in_range and _are_below(len(self._nodes or ()), a, b):
                return np.array([a, b], dtype=np.int32), None
        ids, first, second = edges if isinstance(edges, Indexed) else index_columns(*edges)
        ends = np.array([first, second], dtype=np.int32)
        if self._places is None:
            return ends, ids
        try:
            ends = self._places(ids).astype(np.int32)[ends]
        except RowError as error:
            raise InputError(f"{where}: {error.reason}") from error
        outside = (ends < 0).any(axis=0)
        if outside.any():
            raise InputError(
                f"{where}: an edge names a node that is not in the node list "
                f"({int(outside.sum())} edges do, the first {int(outside.argmax()) + 1} edges on)"
            )
        return ends, None

    def _dense(self, first: Array, second: Array) -> Array:
        if not _are_below(self.limit, first, second):
            raise OtherIdsError("integers")
        ends = np.array([first, second], dtype=np.int32)
        size = 1 + int(ends.max(initial=-1))
        if size > len(self.seen):
            more = min(self.limit, 2 * size) - len(self.seen)
            self.seen = np.concatenate([self.seen, np.zeros(more, np.bool_)])
        for own in ends:
            self.seen[own] = True
        return ends


def _are_below(limit: int, *columns: Array) -> bool:
    return all(ids.min(initial=0) >= 0 and ids.max(initial=-1) < limit for ids in columns)


def _places_in(nodes: NodeSet) -> Callable[[pl.Series], Array]:
    """Give the function from ids to indices, -1 where there is none; a range needs no table."""
    if nodes.kind != "range":
        return places_in(nodes)

    def places(ids: pl.Series) -> Array:
        import polars as pl

        if ids.dtype == pl.String:
            raise RowError("the ids of the edges are text, those of the node list integers", 0)
        wanted = ids.to_numpy()
        return np.where((wanted >= 0) & (wanted < len(nodes)), wanted, -1)

    return places
