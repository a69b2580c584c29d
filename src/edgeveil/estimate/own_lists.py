"""OwnLists: what each recipient of a block knows by itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.nodes import NodeSet

__all__ = ["OwnLists"]


class OwnLists(NamedTuple):
    """What each recipient of a block knows by itself, and the public nodes.

    Attributes
    ----------
    sources : array of shape (m,)
        The recipients.
    lists : array of int
        The neighbours of the first, sorted, then those of the next; in a directed graph those
        whom it follows.
    starts : array of shape (m + 1,)
        Those of recipient i are ``lists[starts[i] : starts[i + 1]]``.
    nodes : NodeSet
        The public node set.
    followers : tuple of arrays of int
        In a directed graph, if recipients are taken to know it: who follows each of them. Else
        empty.
    """

    sources: npt.NDArray[np.int64]
    lists: npt.NDArray[np.integer]
    starts: npt.NDArray[np.int64]
    nodes: NodeSet
    followers: tuple[npt.NDArray[np.integer], ...] = ()

    def of(self, i: int) -> npt.NDArray[np.integer]:
        """The list of recipient i."""
        return self.lists[self.starts[i] : self.starts[i + 1]]

    def only(self, i: int) -> OwnLists:
        """Recipient i alone."""
        own = self.of(i)
        return OwnLists(self.sources[i : i + 1], own, np.array([0, len(own)]), self.nodes)
