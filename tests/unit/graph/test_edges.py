"""Columns of ids, indexed by their distinct values."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from edgeveil.graph import edges
from edgeveil.graph._csr_kernels import number_by_hash
from edgeveil.graph.edges import IdIndex, IndexedEdges, index_columns, sort_ids


def indexed_in_order(first: pl.Series, second: pl.Series) -> IndexedEdges:
    ids, u, v = index_columns(first, second)
    return IndexedEdges(sort_ids(ids, u, v), u, v)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("distinct", [1, 7, 3000, 200_000])
@pytest.mark.parametrize("name", [lambda x: x * 2**40, lambda x: x.astype(str)])
def test_equal_ids_and_only_these_get_one_number(monkeypatch, distinct, name, large):
    if large:
        monkeypatch.setattr(edges, "_LARGE", 1 << 10)
    monkeypatch.setattr(edges, "_BLOCK", 1 << 14)
    rng = np.random.default_rng(distinct)
    ids = pl.Series(name(rng.integers(0, distinct, 200_000)))
    numbers = IdIndex(ids.dtype, len(ids))
    codes = numbers.add(ids)
    assert numbers.ids[codes].equals(ids)
    assert numbers.ids.equals(ids.unique(maintain_order=True))
    assert len(numbers.add(ids[:0])) == 0


@pytest.mark.parametrize("good", [1, 2, 9])
def test_colliding_hashes_keep_ids_apart(monkeypatch, good):
    keys = edges._keys
    monkeypatch.setattr(edges, "_LARGE", 1)
    monkeypatch.setattr(edges, "_BLOCK", 100)
    monkeypatch.setattr(
        edges, "_keys", lambda ids, seed: keys(ids, seed) % (7 if seed < good else 2**64 - 1)
    )
    ids = pl.Series([f"{i % 400}" for i in range(1000)])
    numbers = IdIndex(ids.dtype, len(ids))
    assert numbers.add(ids).tolist() == [i % 400 for i in range(1000)]
    assert numbers.add(ids[::-1]).tolist() == [i % 400 for i in range(999, -1, -1)]


def test_number_by_hash_refuses_more_keys_than_room():
    """As plain Python, where an index out of bounds is an error."""
    rng = np.random.default_rng(1)
    codes = np.empty(60, dtype=np.int32)
    for distinct, expected in ((1, 1), (7, 7), (8, 8), (9, -1)):
        keys = np.r_[np.arange(distinct), rng.integers(0, distinct, 60 - distinct)]
        rows = np.empty(60, dtype=np.int64)
        with np.errstate(over="ignore"):
            table, factor = np.zeros(16, dtype=np.uint64), np.uint64(3**40)
            loop = number_by_hash.py_func
            assert loop(keys.astype(np.uint64), factor, table, 4, 0, codes, rows) == expected
        if expected > 0:
            assert np.array_equal(keys[rows[:expected]][codes], keys)


@pytest.mark.parametrize("spread", [1, 3, 10**12])
def test_integers_are_indexed_whether_near_or_far_apart(spread):
    rng = np.random.default_rng(1)
    a, b = rng.integers(-900, 1000, (2, 5000)) * spread
    ids, first, second = indexed_in_order(pl.Series(a), pl.Series(b))
    assert ids.to_list() == np.unique(np.r_[a, b]).tolist()
    assert np.array_equal(ids.to_numpy()[first], a)
    assert np.array_equal(ids.to_numpy()[second], b)


def test_the_lowest_and_the_highest_integer_are_indexed():
    ends = [-(2**63), 2**63 - 1]
    ids, first, second = indexed_in_order(pl.Series(ends), pl.Series([0, -1]))
    assert ids.to_list() == [ends[0], -1, 0, ends[1]]
    assert (first.tolist(), second.tolist()) == ([0, 3], [2, 1])


def test_names_are_indexed_in_the_order_of_code_points():
    rng = np.random.default_rng(2)
    first, second = (pl.Series([f"é{i}" for i in rng.integers(0, 900, 4000)]) for _ in "ab")
    indexed = indexed_in_order(first, second)
    assert indexed.ids.to_list() == sorted({*first, *second})
    assert indexed.ids.gather(indexed.first).to_list() == first.to_list()
    assert indexed.ids.gather(indexed.second).to_list() == second.to_list()
