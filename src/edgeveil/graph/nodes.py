"""The public, fixed node set: ids <-> indices.

The node set is public in every privacy model. It has a module of its own so that post-processing
can use the nodes without access to the edges.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from itertools import pairwise, product
from operator import le
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import is_whole
from edgeveil._internal.words import counted
from edgeveil.errors import InputError, ParameterError, UnknownNodeError

NodeId = int | str

_NAMED = 5  # repeated ids in a message
_LOOKED_AT, _LONG = 10_000, 100  # for "did you mean": ids compared, and longest name compared
# A hash table of all ids pays off if more than one in 16 is looked up: for a million sorted names
# it takes 0.35 s and 100 bytes each, while one binary search takes 10 us.
_FEW = 16
IntArray = npt.NDArray[np.int64]

# Text that is an integer's only spelling: not 007, +7, -0 or digits other than ASCII.
INTEGER = r"(?:0|-?[1-9][0-9]{0,18})"
_is_integer = re.compile(INTEGER).fullmatch

LONGEST_ID = 256  # bytes of UTF-8; every list may show any id, so one long id makes all long
MISSING: tuple[str, ...] = ("NULL", "Null", "null", "None", "NA", "N/A", "n/a", "<NA>", "\\N")
MISSING += ("#N/A", "#NA")
MISSING += tuple(map("".join, product("nN", "aA", "nN")))
"""Text that other programs write for a missing value."""

Ids = Literal["auto", "text"]
"""Kind of ids: integers if all of them are spelt as integers are, else text; or text always."""


def check_ids(ids: str) -> bool:
    """Whether ids are to be text in any case."""
    if ids not in ("auto", "text"):
        raise ParameterError(f'ids must be "auto" or "text", got {ids!r}')
    return ids == "text"


def integer_of(text: str) -> int | None:
    """The 64-bit integer that this text is the usual spelling of; None if it is not one.

    ``int(text)`` alone would merge ``7``, ``007`` and ``+7``, which may be three people.
    """
    if _is_integer(text) is None or not -(2**63) <= int(text) < 2**63:
        return None
    return int(text)


class NodeSet:
    """An ordered set of distinct node ids, all integers or all strings.

    The order is part of the set: column i of every row of scores belongs to node i.

    Parameters
    ----------
    kind : {"range", "int", "str"}
        ``range``: ids are 0 .. n-1. ``int``: 64-bit integers. ``str``: UTF-8 text.
    arrays : mapping of str to array
        The arrays of that kind: ``n`` | ``ids`` | ``text`` (bytes) and ``offsets`` (n + 1).
        Call `range`, `of_ints`, `of_strings` or `of` instead of the constructor.
    in_order : bool
        Whether the ids are known to be sorted, text by its bytes; if False, this is checked.

    Examples
    --------
    >>> nodes = NodeSet.of(["ann", "bob", "cem"])
    >>> nodes.index("bob"), nodes[2], len(nodes), "dan" in nodes
    (1, 'cem', 3, False)
    """

    __slots__ = ("__dict__", "__weakref__", "_arrays", "_in_order", "kind")

    def __init__(
        self, kind: str, arrays: Mapping[str, npt.NDArray[Any]], *, in_order: bool = False
    ) -> None:
        self.kind = kind
        self._in_order = in_order
        # views of class ndarray: memory maps become ordinary arrays over the same pages
        self._arrays = {name: np.asarray(array).view() for name, array in arrays.items()}
        for array in self._arrays.values():
            array.setflags(write=False)

    # -- constructors ---------------------------------------------------------------------

    @classmethod
    def range(cls, n: int) -> NodeSet:
        """Ids 0 .. n-1."""
        return cls("range", {"n": np.array(n, dtype=np.int64)})

    @classmethod
    def of_ints(cls, ids: npt.ArrayLike) -> NodeSet:
        """Distinct integers, in the order given."""
        array = np.array(ids, dtype=np.int64)
        nodes = cls("int", {"ids": array})
        nodes._refuse_repeats()
        if len(array) and np.array_equal(array, np.arange(len(array))):
            return cls.range(len(array))
        return nodes

    @classmethod
    def of_strings(cls, ids: Iterable[str]) -> NodeSet:
        """Distinct strings, in the order given."""
        encoded = [text.encode() for text in ids]
        if max(map(len, encoded), default=0) > LONGEST_ID:
            many = sum(len(text) > LONGEST_ID for text in encoded)
            raise InputError(f"{many} node ids are longer than {LONGEST_ID} bytes")
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(text) for text in encoded], out=offsets[1:])
        text = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        nodes = cls("str", {"text": text, "offsets": offsets})
        nodes._refuse_repeats()
        return nodes

    @classmethod
    def of(cls, ids: Iterable[Any]) -> NodeSet:
        """Distinct ids, all integers or all strings, in the order given.

        Raises
        ------
        InputError
            For mixed kinds, other kinds (floats, tuples, missing values) or repeats.
        """
        if isinstance(ids, NodeSet):
            return ids
        if isinstance(ids, range) and ids == range(len(ids)):
            return cls.range(len(ids))
        if isinstance(ids, np.ndarray):
            if ids.ndim == 1 and np.issubdtype(ids.dtype, np.integer):
                return cls.of_ints(ids)
            ids = ids.tolist()
        listed = list(ids)
        if all(isinstance(i, str) for i in listed):
            return cls.of_strings(listed) if listed else cls.range(0)
        if all(map(is_whole, listed)):
            try:
                return cls.of_ints(listed)
            except OverflowError:
                raise InputError("a node id does not fit into 64 bits; use strings") from None
        kinds = sorted({type(i).__name__ for i in listed})
        raise InputError(
            f"node ids must be all integers or all strings, got {', '.join(kinds)}; "
            "relabel the nodes first"
        )

    @classmethod
    def from_arrays(cls, kind: str, arrays: Mapping[str, npt.NDArray[Any]]) -> NodeSet:
        """Make a set from its `arrays`, for instance memory-mapped ones, without checks."""
        needed = {"range": {"n"}, "int": {"ids"}, "str": {"text", "offsets"}}
        if needed.get(kind) != set(arrays):
            raise InputError(f"unknown kind of node ids: {kind!r}")
        return cls(kind, arrays)

    def as_text(self) -> NodeSet:
        """The same ids in the same order, as text."""
        if self.kind == "str":
            return self
        return NodeSet.of_strings(map(str, self.ids.tolist()))

    # -- the set --------------------------------------------------------------------------

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that store the set, by name."""
        return dict(self._arrays)

    def digest(self, start: bytes = b"") -> hashlib._Hash:
        """SHA-256 of `start` and the arrays, to be continued."""
        digest = hashlib.sha256(start)
        for name, array in sorted(self._arrays.items()):
            digest.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest

    def __len__(self) -> int:
        if self.kind == "range":
            return int(self._arrays["n"])
        if self.kind == "int":
            return len(self._arrays["ids"])
        return len(self._arrays["offsets"]) - 1

    def __getitem__(self, index: int) -> NodeId:
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"index {index} is outside of a set of {n} nodes")
        index %= n
        if self.kind == "str":
            return self._bytes(index).decode()
        return int(index if self.kind == "range" else self._arrays["ids"][index])

    @property
    def ids(self) -> npt.NDArray[Any]:
        """All ids: 64-bit integers, or Python strings in an object array."""
        if self.kind == "range":
            return np.arange(len(self), dtype=np.int64)
        if self.kind == "int":
            return self._arrays["ids"]
        return np.array([text.decode() for text in self._texts()], dtype=object)

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self.ids.tolist())

    def __contains__(self, node: object) -> bool:
        return self.find(node) is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NodeSet):
            return NotImplemented
        return self.kind == other.kind and all(
            np.array_equal(array, other._arrays[name]) for name, array in self._arrays.items()
        )

    __hash__ = None  # type: ignore[assignment]  # large and compared by content

    def __repr__(self) -> str:
        return f"NodeSet({len(self)} nodes, kind={self.kind!r})"

    def index(self, node: NodeId) -> int:
        """Index of one id.

        Raises
        ------
        UnknownNodeError
            If the id is not in the (public) set.
        """
        place = self.find(node)
        if place is None:
            hint = ""
            if isinstance(node, str) != (self.kind == "str"):
                hint = f" (ids here are {'strings' if self.kind == 'str' else 'integers'})"
            elif isinstance(node, str) and (near := self._nearest(node)):
                hint = f"; did you mean {' or '.join(map(repr, near))}?"
            raise UnknownNodeError(f"{node!r} is not one of the {len(self)} public nodes{hint}")
        return place

    def named(self, word: str) -> NodeId:
        """The id that a word stands for, on a command line or in a token.

        Among integers it is one only if it is spelt as an integer is: 007 is not 7.
        """
        number = None if self.kind == "str" else integer_of(word)
        return word if number is None else number

    def indices(self, nodes: Iterable[NodeId]) -> IntArray:
        """Indices of many ids, in the order given.

        Raises
        ------
        UnknownNodeError
            For the first id that is not in the (public) set.
        """
        if isinstance(nodes, NodeSet) and nodes == self:
            return np.arange(len(self), dtype=np.int64)
        listed: Any = nodes.ids if isinstance(nodes, NodeSet) else nodes
        if not isinstance(listed, np.ndarray):
            listed = list(listed)
        if self.kind != "str" and (ids := _as_int64(listed)) is not None:
            at = self._find_ints(ids)
            if len(missing := np.flatnonzero(at < 0)):
                self.index(int(ids[missing[0]]))  # raises the error for this id
            return at
        if self.kind != "range" and len(listed) > len(self) // _FEW:
            _ = self._table  # build the table, which `find` then uses
        return np.fromiter((self.index(node) for node in listed), np.int64, len(listed))

    def _find_ints(self, ids: IntArray) -> IntArray:
        """Indices of integers, -1 for those that are not in the set."""
        n = len(self)
        if self.kind == "range":
            return np.where((ids >= 0) & (ids < n), ids, -1)
        own = self._arrays["ids"]
        place = np.minimum(np.searchsorted(own, ids, sorter=self._order), max(n - 1, 0))
        at = place if self._order is None else self._order[place]
        return np.where(own[at] == ids, at, -1) if n else np.full(len(ids), -1)

    def take(self, indices: Iterable[int]) -> list[NodeId]:
        """Ids at many indices."""
        if self.kind == "str":
            return [self[int(i)] for i in indices]
        at = np.asarray(indices if isinstance(indices, np.ndarray) else list(indices), np.int64)
        if len(at) and not -len(self) <= at.min() <= at.max() < len(self):
            raise IndexError(f"an index is outside of a set of {len(self)} nodes")
        taken: list[NodeId] = (at % len(self) if self.kind == "range" else self.ids[at]).tolist()
        return taken

    # -- look-up: binary search in the arrays if sorted, else a table ------------------------

    @cached_property
    def _table(self) -> dict[NodeId, int]:
        return {node: i for i, node in enumerate(self)}

    @cached_property
    def _is_sorted(self) -> bool:
        if self._in_order:
            return True
        keys = self._texts() if self.kind == "str" else self._arrays["ids"].tolist()
        return all(map(le, keys, keys[1:]))

    @cached_property
    def _order(self) -> IntArray | None:
        """The order that sorts integers; None if they are sorted."""
        return None if self._is_sorted else np.argsort(self._arrays["ids"], kind="stable")

    def _texts(self) -> list[bytes]:
        text = self._arrays["text"].tobytes()
        return [text[i:j] for i, j in pairwise(self._arrays["offsets"].tolist())]

    def _bytes(self, index: int) -> bytes:
        offsets = self._arrays["offsets"]
        return self._arrays["text"][offsets[index] : offsets[index + 1]].tobytes()

    def find(self, node: object) -> int | None:
        """Index of an id; None if it is not in the set."""
        n = len(self)
        if isinstance(node, str) and self.kind == "str":
            key: Any = node
        elif is_whole(node) and self.kind != "str":
            key = int(node)  # type: ignore[call-overload]
        else:
            return None
        if self.kind == "range":
            return key if 0 <= key < n else None
        if "_table" in self.__dict__ or not self._is_sorted:
            return self._table.get(key)
        if self.kind == "str":  # UTF-8 has the order of code points
            at = bisect_left(range(n), key.encode("utf-8", "surrogatepass"), key=self._bytes)
        else:
            at = bisect_left(self._arrays["ids"], key)
        return at if at < n and self[at] == key else None

    def _nearest(self, name: str) -> list[str]:
        """Up to three similar ids, among the `_LOOKED_AT` nearest in order if the set is sorted."""
        if len(name) > _LONG:
            return []
        ids = sorted(self)
        start = max(0, min(bisect_left(ids, name) - _LOOKED_AT // 2, len(ids) - _LOOKED_AT))
        lower = {str(node).lower(): str(node) for node in ids[start : start + _LOOKED_AT]}
        return [lower[near] for near in get_close_matches(name.lower(), lower)]

    def _refuse_repeats(self) -> None:
        ids = self.ids
        repeated = len(ids) - len(np.unique(ids) if self.kind == "int" else set(ids))
        if repeated:  # the node set is public, so they may be named
            often = [node for node, count in Counter(ids.tolist()).items() if count > 1]
            named = ", ".join(map(repr, often[:_NAMED])) + (", ..." if often[_NAMED:] else "")
            raise InputError(f"{counted(repeated, 'node id', 'occur')} more than once: {named}")


def _as_int64(ids: Any) -> IntArray | None:
    """The ids as an array; None if one of them is not a 64-bit integer."""
    if isinstance(ids, np.ndarray):
        integers = ids.ndim == 1 and np.issubdtype(ids.dtype, np.integer)
        return ids.astype(np.int64) if integers and ids.dtype != np.uint64 else None
    try:
        return np.array(ids, dtype=np.int64) if all(map(is_whole, ids)) else None
    except OverflowError:
        return None
