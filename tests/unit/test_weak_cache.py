"""What is kept beside an object is given out for that very object only."""

from __future__ import annotations

import gc
import threading
import time

import pytest

from edgeveil._internal.weak_cache import WeakCache


class Thing:
    """Compares by content, like a graph, so that no dict can hold it."""

    def __init__(self, content):
        self.content = content

    def __eq__(self, other):
        return self.content == other.content

    __hash__ = None


def test_value_is_made_once_and_dies_with_its_owner():
    kept, calls = WeakCache(), []
    thing, twin = Thing(1), Thing(1)
    for owner in (thing, thing, twin):
        kept.get(owner, lambda: calls.append(1) or len(calls))
    assert len(calls) == len(kept) == 2
    assert kept.get(twin, lambda: pytest.fail("made twice")) == 2
    del thing, twin, owner
    gc.collect()
    assert len(kept) == 0


def test_keys_have_values_of_their_own():
    kept, thing = WeakCache(), Thing(1)
    assert [kept.get(thing, lambda i=i: i, i) for i in (3, 4, 3)] == [3, 4, 3]


def test_an_address_that_is_used_again_gives_nothing_old():
    kept, first, second = WeakCache(), Thing(1), Thing(2)
    kept.get(first, lambda: "first")
    # As if `second` had got the address of `first`, and nobody had noticed that it is gone.
    kept._entries[id(second), None] = kept._entries[id(first), None]
    assert kept.get(second, lambda: "second") == "second"


def test_threads_wait_for_the_one_that_makes_it():
    kept, thing, calls = WeakCache(), Thing(1), []

    def make():
        time.sleep(0.1)  # the others ask meanwhile
        calls.append(1)
        return len(calls)

    threads = [threading.Thread(target=kept.get, args=(thing, make)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1]
