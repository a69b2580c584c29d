"""What is worked out from an object once, and kept as long as the object lives."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """A store of things made from objects that compare by content, so that no dict can hold them.

    Invariant: an entry is only ever given out for the very object it was made from. An address
    alone does not say so, because the next object may get the address of one that is gone; a
    layout of another graph would be a release about another graph.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[int, Hashable], tuple[weakref.ref[object], T]] = {}
        self._lock = threading.RLock()  # a thing is made once, whatever threads ask for it

    def get(self, owner: object, make: Callable[[], T], key: Hashable = None) -> T:
        """Give what was made from `owner` (under `key`, if there are several), or make it now."""
        place = id(owner), key
        with self._lock:
            found = self._entries.get(place)
            if found is not None and found[0]() is owner:
                return found[1]
            made = make()
            gone = weakref.ref(owner, lambda _: self._entries.pop(place, None))
            self._entries[place] = gone, made
            return made

    def __len__(self) -> int:
        return len(self._entries)
