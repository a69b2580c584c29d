"""The compiled readers of plain text: the same graphs and the same words as without them."""

from __future__ import annotations

import gzip
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgeveil import _compiled
from edgeveil.errors import InputError
from edgeveil.io import factors, indexing, plain_names, plain_text, read_graph
from edgeveil.io.indexing import join
from edgeveil.io.plain_names import names_as_strings, read_plain_names
from edgeveil.io.plain_text import Source, read_plain_integers

PIECES = [20, 40, 100, 1 << 18]


def read(data: bytes, *, fast: bool, threads: int = 1, piece: int = 100, **options: object):
    """Give what a file with these bytes is read as: graph and intake, or the message."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_text, "LARGE", 0 if fast else 1 << 60)
        patch.setattr(plain_text, "_PIECE", piece)
        patch.setattr(indexing, "_LARGE", 0 if fast else 1 << 60)
        patch.setattr(factors, "_LARGE", 0 if fast else 1 << 60)
        patch.setattr(_compiled, "threads_for", lambda entries: threads)
        packed = options.pop("packed", False)
        path = Path(folder, "g.csv.gz" if packed else "g.csv")
        path.write_bytes(gzip.compress(data) if packed else data)
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
    piece=st.sampled_from(PIECES),
    packed=st.booleans(),
    options=st.sampled_from([{}, {}, {"columns": (1, 0)}, {"nodes": ["a", "b", "7", "007"]}])
    | st.sampled_from([{"nodes": range(30)}, {"nodes": [5, -3, 2**62]}]),
)
@example(data=b"\xff,a\na,b\n", threads=1, piece=40, packed=False, options={})
@example(data=b"a,\xc3\n\xa9,b\n", threads=1, piece=40, packed=False, options={})
def test_with_and_without_compiled_loops_a_file_reads_the_same(
    data, threads, piece, packed, options
):
    fast = read(data, fast=True, threads=threads, piece=piece, packed=packed, **options)
    assert fast == read(data, fast=False, packed=packed, **options)


@settings(max_examples=300)
@given(
    data=st.binary(max_size=80)
    | st.lists(st.sampled_from([b"1", b"23", b"a", b",", b"\n", b"-"])).map(b"".join),
    body=st.integers(0, 3),
    threads=st.integers(1, 4),
    piece=st.sampled_from([5, *PIECES]),
)
def test_no_bytes_are_too_odd_for_the_loops(data, body, threads, piece):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compiled, "threads_for", lambda entries: threads)
        patch.setattr(plain_text, "_PIECE", piece)
        source = whole(data, min(body, len(data)))
        rows = [line for line in data[source.start :].split(b"\n") if line]
        integers = read_plain_integers(source, ",", narrow=True)
        if integers is not None:
            pairs = list(zip(*(column.tolist() for column in join(integers.parts)), strict=True))
            assert pairs == [tuple(map(int, row.split(b","))) for row in rows]
            numbers = [number for pair in pairs for number in pair]
            assert not numbers or (integers.low, integers.high) == (min(numbers), max(numbers))
        names = read_plain_names(source, ",")
        if names is not None:
            found = [
                b"%s,%s" % tuple(names.nodes[int(i)].encode() for i in pair)
                for pair in zip(*join(names.parts), strict=True)
            ]
            assert found == [row.removesuffix(b"\r") for row in rows]
            assert list(names.nodes) == sorted(set(names.nodes))
            assert names.is_nan == any(name.lower() == "nan" for name in names.nodes)
            assert names.is_integer == all(indexing.is_integer(name) for name in names.nodes)


def whole(data: bytes, body: int = 0) -> Source:
    return Source(data, body, len(data))


def test_plain_text_is_read_by_the_loops():
    """The tests above compare; this one sees that there is something to compare."""
    parts, low, high = read_plain_integers(whole(b"1,-2\r\n12345678,9\n"), ",", narrow=True)
    assert parts[0][0].dtype == np.int32
    assert [column.tolist() for column in join(parts)] == [[1, 12345678], [-2, 9]]
    assert (low, high) == (-2, 12345678)
    wide = read_plain_integers(whole(b"1,2\n5000000000,3\n"), ",", narrow=True)
    assert join(wide.parts)[0].tolist() == [1, 5000000000]
    names = read_plain_names(whole(b"bob ann\nann zo\xc3\xab\n"), " ")
    assert list(names.nodes) == ["ann", "bob", "zoë"]
    assert [column.tolist() for column in join(names.parts)] == [[1, 0], [0, 2]]


def test_a_line_longer_than_a_piece_and_a_file_that_shrinks_are_not_plain(monkeypatch, tmp_path):
    monkeypatch.setattr(plain_text, "_PIECE", 8)
    assert read_plain_names(whole(b"a,b\n1234567,123\n"), ",") is None
    assert read_plain_integers(whole(b"1,2\n1234567,123\n"), ",", narrow=True) is None
    assert read_plain_integers(Source(b"1,2\n3,4\n", 0, 100), ",", narrow=True) is None
    gone = Source(tmp_path / "gone.csv", 0, 100)
    assert read_plain_integers(gone, ",", narrow=True) is None
    assert read_plain_names(gone, ",") is None


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_many_lines_in_many_pieces(monkeypatch, tmp_path, threads, end):
    """Short lines after long ones: more rows than the first piece lets expect."""
    monkeypatch.setattr(plain_text, "_PIECE", 1000)
    monkeypatch.setattr(_compiled, "threads_for", lambda entries: threads)
    rng = np.random.default_rng(0)
    rows = np.r_[rng.integers(10**8, 2**31, (500, 2)), rng.integers(0, 900, (20_000, 2))]
    data = "".join(f"{a},{b}{end}" for a, b in rows).encode()
    path = tmp_path / "edges.csv"
    path.write_bytes(data)
    for source in (whole(data), Source(path, 0, len(data))):
        parts = read_plain_integers(source, ",", narrow=False).parts
        assert len(parts) == threads
        assert np.array_equal(np.stack(join(parts), axis=1), rows)
        names = read_plain_names(source, ",")
        label = np.array(list(names.nodes))
        assert label.tolist() == sorted({str(i) for i in rows.ravel()})
        assert names.is_integer
        assert np.array_equal(np.stack([label[c] for c in join(names.parts)], 1), rows.astype(str))


@pytest.mark.parametrize("length", [6, 30])
def test_many_names_with_one_hash_stay_many(monkeypatch, length):
    """Multipliers of 0 give all names one tag and one line, and long ones the same words."""
    monkeypatch.setattr(plain_names, "_seeds", lambda: np.zeros(4, dtype=np.uint64))
    monkeypatch.setattr(_compiled, "threads_for", lambda entries: 2)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 400, (4000, 2))
    label = [f"n{i:0{length - 6}}same-end" for i in range(3000)]
    text = "".join(f"{label[a]},{label[b]}\n" for a, b in rows).encode()
    names = read_plain_names(whole(text), ",")
    assert list(names.nodes) == sorted({label[i] for i in rows.ravel()})
    back = [names.nodes[int(i)] for i in join(names.parts)[0]]
    assert back == [label[a] for a, _ in rows]
    # So many are no chance: the readers that nobody can slow down take over.
    text = "".join(f"{a},{b}\n" for a, b in zip(label[::2], label[1::2], strict=True)).encode()
    assert read_plain_names(whole(text), ",") is None


@pytest.mark.parametrize("line", ["x\r,y\n", "x,\ry\n", "\rx,y\n"])
def test_a_carriage_return_inside_a_line_is_not_plain(line):
    """Their number alone would not show it."""
    text = ("a,b\r\n" * 50 + line + "a,c\r\n" * 50).encode()
    assert read_plain_names(whole(text), ",") is None
    assert read_plain_names(whole(text.replace(line.encode(), b"")), ",") is not None


def test_a_name_that_begins_like_a_mark_keeps_its_beginning():
    names = read_plain_names(whole("\uffee,\uffef\n\ufeff,\uffee\n".encode()), ",")
    assert names_as_strings(names.nodes, ",").to_list() == ["\ufeff", "\uffee", "\uffef"]


@pytest.mark.parametrize("threads", [1, 2])
def test_long_names_that_differ_late_are_told_apart_and_sorted(monkeypatch, threads):
    monkeypatch.setattr(plain_text, "_PIECE", 3000)
    monkeypatch.setattr(_compiled, "threads_for", lambda entries: threads)
    label = [f"{'same' * 5}-{i % 7}-{i}@example.org" for i in range(500)]
    rows = [*pairwise(label)] * 4  # most names are known when their piece is read
    names = read_plain_names(whole("".join(f"{a},{b}\n" for a, b in rows).encode()), ",")
    assert list(names.nodes) == sorted(label)
    pairs = zip(*join(names.parts), strict=True)
    assert [(names.nodes[int(a)], names.nodes[int(b)]) for a, b in pairs] == rows


@pytest.mark.parametrize("spread", [1, 10**12])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_large_columns_of_integers_are_indexed_as_small_ones(monkeypatch, spread, kind):
    rng = np.random.default_rng(1)
    spread = min(spread, 700_000) if kind is np.int32 else spread
    a, b = (rng.integers(-1000, 1000, (2, 5000)) * spread).astype(kind)
    monkeypatch.setattr(indexing, "_TABLE_FREE", 1)
    small = indexing.graph_of_integers([(a, b)], None, weighted=0)
    some = indexing.NodeSet.of_ints(rng.permutation(np.unique(np.r_[a, b])))
    listed = indexing.graph_of_integers([(a, b)], some, weighted=0)
    monkeypatch.setattr(indexing, "_LARGE", 1)
    assert indexing.graph_of_integers([(a, b)], None, weighted=0) == small
    assert indexing.graph_of_integers([(a, b)], some, weighted=0) == listed
    few = indexing.NodeSet.of_ints([0, -(2**63), 2**63 - 1, int(a[0])])
    with pytest.raises(indexing.RowError, match="not in the node list"):
        indexing.graph_of_integers([(a, b)], few, weighted=0)


def test_many_rows_of_a_table_are_factorised_as_few(monkeypatch):
    rng = np.random.default_rng(2)
    first, second = (pl.Series("id", [f"n{i}" for i in rng.integers(0, 900, 4000)]) for _ in "ab")
    small = factors.factorise(first, second)
    monkeypatch.setattr(factors, "_LARGE", 1)
    large = factors.factorise(first, second)
    assert large.names.equals(small.names)
    assert np.array_equal(large.first, small.first)
    assert np.array_equal(large.second, small.second)
    assert large.names.gather(large.second).equals(second)
