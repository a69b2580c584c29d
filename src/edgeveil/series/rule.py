"""When a member's next window opens: a function of its own list and of public numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import check_int
from edgeveil.errors import ParameterError
from edgeveil.graph.graph import Graph

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class WindowRule:
    """When to draw the next window of a member.

    Each path counts in one window only, so a window should hold enough paths to stand out from
    its noise: not a window for every new friend, nor a first one for three friends. The numbers
    are public; docs/theory/series.md says how they were chosen.

    Parameters
    ----------
    first : int
        A member's first window opens when it has this many friends,
    patience : int
        or, with fewer, this many snapshots after its first friend.
    least : int
        The next window opens when the member has at least this many new friends since the last
        one,
    share : float
        and at least this share of the friends that it had then,
    latest : int
        or this many snapshots after the last window in any case.
    """

    first: int = 10
    patience: int = 8
    least: int = 10
    share: float = 0.5
    latest: int = 26

    @classmethod
    def for_epsilon(cls, epsilon: float) -> WindowRule:
        """The rule for a series at this epsilon: a window needs about 10 / epsilon friends.

        >>> WindowRule.for_epsilon(2.0)
        WindowRule(first=5, patience=8, least=5, share=0.5, latest=26)
        """
        enough = max(3, math.ceil(10 / epsilon))
        return cls(first=enough, least=enough)

    def __post_init__(self) -> None:
        for name in ("first", "patience", "least", "latest"):
            check_int(name, getattr(self, name))
        if not 0 <= self.share <= 10:
            raise ParameterError(f"share must be a number from 0 to 10, got {self.share!r}")

    def due(self, graph: Graph, last: npt.NDArray[np.integer], until: int) -> Mask:
        """For every node, whether its next window opens at snapshot `until`.

        `last` is the snapshot at which each node's last window ended, 0 before its first one. Only
        `first_seen` of a node's own edges is used.
        """
        friends, earlier, first = own_first_seen(graph, last, until)
        new, started = friends - earlier, last > 0
        grown = new >= np.maximum(self.least, np.ceil(self.share * earlier))
        later = started & (grown | (until - last.astype(np.int64) >= self.latest)) & (last < until)
        waited = (friends > 0) & (until - first + 1 >= self.patience)
        return np.asarray(later | (~started & ((friends >= self.first) | waited)))


def own_first_seen(
    graph: Graph, last: npt.NDArray[np.integer], until: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For every node: friends so far, friends up to its last window, and its earliest edge.

    The last is when that edge was first seen. "So far" means up to snapshot `until`.
    """
    assert graph.first_seen is not None
    n, indptr = graph.n_nodes, graph.indptr.astype(np.int64)
    friends, earlier = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    first = np.full(n, until, dtype=np.int64)
    step = 1 << 16
    for begin in range(0, n, step):  # a block of nodes at a time: memory stays small
        end = min(begin + step, n)
        first_seen = graph.first_seen[indptr[begin] : indptr[end]].astype(np.int64)
        rows = np.repeat(np.arange(end - begin), np.diff(indptr[begin : end + 1]))
        there = first_seen <= until
        friends[begin:end] = np.bincount(rows[there], minlength=end - begin)
        before = first_seen <= last[begin:end].astype(np.int64)[rows]
        earlier[begin:end] = np.bincount(rows[there & before], minlength=end - begin)
        np.minimum.at(first[begin:end], rows[there], first_seen[there])
    return friends, earlier, first
