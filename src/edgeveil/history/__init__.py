"""The history of a label: all edges seen so far, and in which snapshot each was first seen.

    history   History: create, open, add a snapshot, forget a member
    timed     an edge list with a column of times -> a history
    ids       the public node set as it grows: indices stay for ever, a forgotten id goes
    merging   a snapshot into the rows on the disk, in blocks
    state     the folder: one whole state after another, never half of one

No noise and no budget is here; everything but the node sets and dates is private.
"""

from edgeveil.history.history import History
from edgeveil.history.state import Snapshot

__all__ = ["History", "Snapshot"]
