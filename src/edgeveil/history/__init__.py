"""The history of a label: all edges seen so far, and in which snapshot each was first seen.

    history   History: create, open, add a snapshot, forget a member
    timed     an edge list with a column of times -> a history
    ids       the public node set, which only grows; a forgotten id is erased, its index stays
    merging   merge a snapshot into the rows on disk, in blocks
    state     the folder: a new state replaces the old one atomically

Nothing here draws noise or charges a budget. Everything but the node sets and dates is private.
"""

from edgeveil.history.history import History
from edgeveil.history.state import Snapshot

__all__ = ["History", "Snapshot"]
