"""The compiled readers of plain text: the same graphs and the same words as without them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgeveil import _compiled
from edgeveil.errors import InputError
from edgeveil.io import indexing, plain_text, read_graph
from edgeveil.io.plain_text import read_plain_integers, read_plain_names


def read(data: bytes, *, fast: bool, threads: int = 1, **options: object):
    """Give what a file with these bytes is read as: graph and intake, or the message."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_text, "LARGE", 0 if fast else 1 << 60)
        patch.setattr(indexing, "_LARGE", 0 if fast else 1 << 60)
        patch.setattr(_compiled, "threads_for", lambda entries: threads)
        path = Path(folder, "g.csv")
        path.write_bytes(data)
        try:
            graph = read_graph(path, **options)
        except InputError as error:
            return str(error).replace(folder, "")
        return graph, graph.intake


ids = (
    st.integers(-(2**63) - 1, 2**63)
    | st.integers(-3, 30)
    | st.sampled_from(["007", "+5", "-0", "-", "9" * 19, "9" * 20, "1.5", "12345678", "123456789"])
).map(str)
names = st.sampled_from(
    [
        *("a", "b", "user1", "user12", "12345678", "12345678x", "x" * 15, "x" * 16, "x" * 17),
        *("x" * 16 + "ab", "x" * 16 + "ba", "y" * 24 + "z", "y" * 25, "é", "a\0", "a b"),
        *("#a", "nan"),
    ]
)
odd = st.sampled_from(['"a"', " a", "a ", "a\t", "", "a,b", "a\nb", "a\r", "\ufeffa", "a\n\nb"])
line_ends = st.sampled_from(["\n", "\r\n"])


def texts(field: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    def text(rows: list[tuple[str, str]], end: str, last: bool, head: str, mark: str) -> bytes:
        body = end.join(f"{a}{mark}{b}" for a, b in rows) + (end if last else "")
        return (head + body).encode()

    return st.builds(
        text,
        st.lists(st.tuples(field, field), min_size=1, max_size=12),
        line_ends,
        st.booleans(),
        st.sampled_from(["", "", "source,target\n", "# c\n\n", "\ufeff"]),
        st.sampled_from([",", ",", "\t", " "]),
    )


@settings(max_examples=400)
@given(
    data=texts(ids) | texts(names) | texts(names | odd) | texts(ids | names) | texts(ids | odd),
    threads=st.integers(1, 3),
    options=st.sampled_from([{}, {}, {"columns": (1, 0)}, {"nodes": ["a", "b", "7", "007"]}])
    | st.sampled_from([{"nodes": range(30)}, {"nodes": [5, -3, 2**62]}]),
)
@example(data=b"\xff,a\na,b\n", threads=1, options={})
@example(data=b"a,\xc3\n\xa9,b\n", threads=1, options={})
def test_with_and_without_compiled_loops_a_file_reads_the_same(data, threads, options):
    fast = read(data, fast=True, threads=threads, **options)
    assert fast == read(data, fast=False, **options)


@settings(max_examples=300)
@given(
    data=st.binary(max_size=80)
    | st.lists(st.sampled_from([b"1", b"23", b"a", b",", b"\n", b"-"])).map(b"".join),
    body=st.integers(0, 3),
    threads=st.integers(1, 4),
)
def test_no_bytes_are_too_odd_for_the_loops(data, body, threads):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compiled, "threads_for", lambda entries: threads)
        body = min(body, len(data))
        rows = [line for line in data[body:].split(b"\n") if line]
        integers = read_plain_integers(data, body, ",", narrow=True)
        if integers is not None:
            pairs = list(zip(*(column.tolist() for column in integers), strict=True))
            assert pairs == [tuple(map(int, row.split(b","))) for row in rows]
        factors = read_plain_names(data, body, ",")
        if factors is not None:
            found = [
                b"%s,%s" % tuple(factors.names[int(i)].encode() for i in pair)
                for pair in zip(factors.first, factors.second, strict=True)
            ]
            assert found == [row.removesuffix(b"\r") for row in rows]
            assert factors.names.to_list() == sorted(set(factors.names))


def test_plain_text_is_read_by_the_loops():
    """The tests above compare; this one sees that there is something to compare."""
    first, second = read_plain_integers(b"1,-2\r\n12345678,9\n", 0, ",", narrow=True)
    assert first.dtype == np.int32
    assert (first.tolist(), second.tolist()) == ([1, 12345678], [-2, 9])
    wide = read_plain_integers(b"1,2\n5000000000,3\n", 0, ",", narrow=True)
    assert wide[0].tolist() == [1, 5000000000]
    factors = read_plain_names(b"bob ann\nann zo\xc3\xab\n", 0, " ")
    assert factors.names.to_list() == ["ann", "bob", "zoë"]
    assert (factors.first.tolist(), factors.second.tolist()) == ([1, 0], [0, 2])


@pytest.mark.parametrize("length", [6, 30])
def test_many_names_with_one_hash_stay_many(monkeypatch, length):
    """Multipliers of 0 put all names into one slot, and give long ones the same words."""
    monkeypatch.setattr(plain_text, "_seeds", lambda: np.zeros(4, dtype=np.uint64))
    monkeypatch.setattr(_compiled, "threads_for", lambda entries: 2)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3000, (4000, 2))
    label = [f"n{i:0{length - 6}}same-end" for i in range(3000)]
    text = "".join(f"{label[a]},{label[b]}\n" for a, b in rows).encode()
    factors = read_plain_names(text, 0, ",")
    assert factors.names.to_list() == sorted({label[i] for i in rows.ravel()})
    back = [factors.names[int(i)] for i in factors.first]
    assert back == [label[a] for a, _ in rows]


@pytest.mark.parametrize("spread", [1, 10**12])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_large_columns_of_integers_are_indexed_as_small_ones(monkeypatch, spread, kind):
    rng = np.random.default_rng(1)
    spread = min(spread, 700_000) if kind is np.int32 else spread
    a, b = (rng.integers(-1000, 1000, (2, 5000)) * spread).astype(kind)
    monkeypatch.setattr(indexing, "_TABLE_FREE", 1)
    small = indexing.graph_of_integers(a, b, None, weighted=0)
    some = indexing.NodeSet.of_ints(rng.permutation(np.unique(np.r_[a, b])))
    listed = indexing.graph_of_integers(a, b, some, weighted=0)
    monkeypatch.setattr(indexing, "_LARGE", 1)
    assert indexing.graph_of_integers(a, b, None, weighted=0) == small
    assert indexing.graph_of_integers(a, b, some, weighted=0) == listed
    few = indexing.NodeSet.of_ints([0, -(2**63), 2**63 - 1, int(a[0])])
    with pytest.raises(indexing.RowError, match="not in the node list"):
        indexing.graph_of_integers(a, b, few, weighted=0)


def test_many_rows_of_a_table_are_factorised_as_few(monkeypatch):
    rng = np.random.default_rng(2)
    first, second = (pl.Series("id", [f"n{i}" for i in rng.integers(0, 900, 4000)]) for _ in "ab")
    small = indexing.factorise(first, second)
    monkeypatch.setattr(indexing, "_LARGE", 1)
    large = indexing.factorise(first, second)
    assert large.names.equals(small.names)
    assert np.array_equal(large.first, small.first)
    assert np.array_equal(large.second, small.second)
    assert large.names.gather(large.second).equals(second)
