"""A cache of values computed from an object, which live as long as the object."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class WeakCache(Generic[T]):
    """Weak cache by identity, for objects that compare by content and so cannot be dict keys.

    Invariant: an entry is returned only for the very object it was made from. The id alone is not
    enough, because a new object may get the id of one that was freed; with the layout of another
    graph a release would be about another graph.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[int, Hashable], tuple[weakref.ref[object], T]] = {}
        self._lock = threading.RLock()  # threads that ask at the same time share one result

    def get(self, owner: object, make: Callable[[], T], key: Hashable = None) -> T:
        """The cached value of `owner` (and `key`, if there are several), made now if missing."""
        place = id(owner), key
        with self._lock:
            entry = self._entries.get(place)
            if entry is not None and entry[0]() is owner:
                return entry[1]
            value = make()
            reference = weakref.ref(owner, lambda _: self._entries.pop(place, None))
            self._entries[place] = reference, value
            return value

    def __len__(self) -> int:
        return len(self._entries)
