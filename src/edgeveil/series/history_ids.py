"""The node set of a history: it only grows, and a forgotten member loses its id.

Ids are compared as text: 7 and "7" are one member. The set holds integers for as long as all ids
are integers, and text from the first one that is not.

Index i belongs to one member for ever. The index of a forgotten member stays, so that no other
index changes; its id is replaced by a placeholder that no snapshot may use as an id. If the id
occurs again, for the same person or another one, it gets a new index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from edgeveil.errors import InputError
from edgeveil.graph._csr import MOST_NODES
from edgeveil.graph.edges import IdIndex
from edgeveil.graph.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

IntArray = npt.NDArray[np.int64]

# Placeholders: the control character "substitute" and the index, or the lowest integers
_MARK = "\x1a"
_LOWEST = -(2**63)


def grow(
    nodes: NodeSet, snapshot: NodeSet, forgotten: Sequence[int] = ()
) -> tuple[NodeSet, IntArray]:
    """Append the new ids of a snapshot; return the whole set and the snapshot's indices in it.

    `forgotten`: the indices whose ids are placeholders.
    """
    _refuse_marks(snapshot)
    if not len(nodes):
        return snapshot, np.arange(len(snapshot))
    if not len(snapshot):
        return nodes, np.arange(0)
    if (nodes.kind == "str") != (snapshot.kind == "str"):
        if nodes.kind != "str":
            nodes = without_ids(nodes.as_text(), np.array(forgotten, dtype=np.int64))
        snapshot = snapshot.as_text()
    for longer, shorter in ((nodes, snapshot), (snapshot, nodes)):
        if _starts_with(longer, shorter):
            return longer, np.arange(len(snapshot))
    places = _number(nodes, snapshot)
    joined = np.flatnonzero(places >= len(nodes))
    if len(nodes) + len(joined) > MOST_NODES:
        raise InputError(f"a history has at most {MOST_NODES:,} nodes")
    if not len(joined):
        return nodes, places
    if nodes.kind != "str":
        return NodeSet.of_ints(np.concatenate([nodes.ids, snapshot.ids[joined]])), places
    more = NodeSet.of_strings(map(str, snapshot.take(joined))).arrays
    old = nodes.arrays
    offsets = np.concatenate([old["offsets"], old["offsets"][-1] + more["offsets"][1:]])
    text = np.concatenate([old["text"], more["text"]])
    return NodeSet("str", {"text": text, "offsets": offsets}), places


def without_ids(nodes: NodeSet, forgotten: IntArray) -> NodeSet:
    """Replace these ids by placeholders."""
    ids = nodes.ids.copy()
    if nodes.kind != "str":
        ids[forgotten] = _LOWEST + forgotten
        return NodeSet.of_ints(ids)
    ids[forgotten] = [f"{_MARK}forgotten {index}" for index in forgotten.tolist()]
    return NodeSet.of_strings(ids.tolist())


def _refuse_marks(snapshot: NodeSet) -> None:
    if snapshot.kind == "int" and snapshot.ids.min(initial=0) < _LOWEST + 2**31:
        raise InputError("the lowest 64-bit integers are reserved for forgotten members")
    if snapshot.kind == "str":
        text, offsets = snapshot.arrays["text"], snapshot.arrays["offsets"]
        firsts = offsets[:-1][np.diff(offsets) > 0]
        if np.any(text[firsts] == ord(_MARK)):
            raise InputError("an id starts with the control character U+001A; rename it")


def _starts_with(longer: NodeSet, shorter: NodeSet) -> bool:
    """Whether the ids of one set are the first ones of another, in the same order."""
    n = len(shorter)
    if n > len(longer):
        return False
    if longer.kind != "str":
        return longer.kind == shorter.kind == "range" or np.array_equal(longer.ids[:n], shorter.ids)
    one, other = longer.arrays, shorter.arrays
    return np.array_equal(one["offsets"][: n + 1], other["offsets"]) and np.array_equal(
        one["text"][: len(other["text"])], other["text"]
    )


def _number(nodes: NodeSet, snapshot: NodeSet) -> IntArray:
    """Index of every id of the snapshot; new ids are numbered from the end of the set."""
    import polars as pl

    def series(ids: NodeSet) -> pl.Series:
        if ids.kind == "str":
            return pl.Series("id", ids.ids.tolist(), dtype=pl.String)
        return pl.Series("id", ids.ids, dtype=pl.Int64)

    kind = pl.String() if nodes.kind == "str" else pl.Int64()
    numbers = IdIndex(kind, len(nodes) + len(snapshot))
    numbers.add(series(nodes))
    return numbers.add(series(snapshot)).astype(np.int64)
