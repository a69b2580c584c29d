"""When a member's next window opens: a function of its own list and public numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgeveil._check import whole
from edgeveil.errors import ParameterError
from edgeveil.graph import Graph

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class WindowRule:
    """When to ask about a member's new paths.

    A window is drawn once, so it should have enough to tell: one for every new friend drowns what
    trickles in, and so does a first window of a newcomer with three friends. The numbers are
    public; what they were chosen by is in docs/theory/series.md.

    Parameters
    ----------
    first : int
        Friends from which on a member's first window opens.
    patience : int
        Snapshots after a member's first friend from which on it opens with fewer.
    least : int
        New friends since the last window that open the next one, at least,
    share : float
        and as a share of the friends that the member had then.
    latest : int
        Snapshots after a window from which on the next one opens in any case.
    """

    first: int = 10
    patience: int = 8
    least: int = 10
    share: float = 0.5
    latest: int = 26

    @classmethod
    def for_epsilon(cls, epsilon: float) -> WindowRule:
        """The rule for a series at this epsilon: what can be told takes about 10 / epsilon friends.

        >>> WindowRule.for_epsilon(2.0)
        WindowRule(first=5, patience=8, least=5, share=0.5, latest=26)
        """
        enough = max(3, math.ceil(10 / epsilon))
        return cls(first=enough, least=enough)

    def __post_init__(self) -> None:
        for name in ("first", "patience", "least", "latest"):
            whole(name, getattr(self, name))
        if not 0 <= self.share <= 10:
            raise ParameterError(f"share must be a number from 0 to 10, got {self.share!r}")

    def due(self, graph: Graph, last: npt.NDArray[np.integer], until: int) -> Mask:
        """For every node whether its next window opens at snapshot `until`.

        `last` is where the last window of each node ended, 0 before its first one. Only births of
        a node's own edges are looked at.
        """
        friends, earlier, first_birth = own_births(graph, last, until)
        new, started = friends - earlier, last > 0
        grown = new >= np.maximum(self.least, np.ceil(self.share * earlier))
        later = started & (grown | (until - last.astype(np.int64) >= self.latest)) & (last < until)
        waited = (friends > 0) & (until - first_birth + 1 >= self.patience)
        return np.asarray(later | (~started & ((friends >= self.first) | waited)))


def own_births(
    graph: Graph, last: npt.NDArray[np.integer], until: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For every node: its friends ever, those up to its last window, and its first friend's birth.

    All up to snapshot `until`.
    """
    assert graph.births is not None
    n, indptr = graph.n_nodes, graph.indptr.astype(np.int64)
    friends, earlier = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    first = np.full(n, until, dtype=np.int64)
    step = 1 << 16
    for begin in range(0, n, step):  # a block of nodes at a time: memory stays small
        end = min(begin + step, n)
        births = graph.births[indptr[begin] : indptr[end]].astype(np.int64)
        rows = np.repeat(np.arange(end - begin), np.diff(indptr[begin : end + 1]))
        there = births <= until
        friends[begin:end] = np.bincount(rows[there], minlength=end - begin)
        before = births <= last[begin:end].astype(np.int64)[rows]
        earlier[begin:end] = np.bincount(rows[there & before], minlength=end - begin)
        np.minimum.at(first[begin:end], rows[there], births[there])
    return friends, earlier, first
