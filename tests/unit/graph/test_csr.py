"""CSR rows of entries, against scipy's; the compiled loops against numpy."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.errors import InputError
from edgeveil.graph import _csr
from edgeveil.graph._csr import CSRArrays, csr_of_pairs
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet

KINDS = [np.int32, np.int64]


def rows_by_scipy(u, v, n):
    entries = len(u)
    kept = u != v
    u, v = u[kept], v[kept]
    arcs = sp.coo_array((np.ones(len(u), dtype=np.bool_), (u, v)), shape=(n, n)).tocsr()
    arcs.sum_duplicates()
    repeated = len(u) - arcs.nnz
    arcs.data[:] = True
    both = (arcs + arcs.T.tocsr()).tocsr()
    both.sort_indices()
    return CSRArrays(
        both.indptr, both.indices, entries - len(u), repeated, arcs.nnz - both.nnz // 2
    )


def is_same(u, v, n):
    actual, expected = csr_of_pairs(u, v, n), rows_by_scipy(u, v, n)
    assert actual.indices.dtype == np.int32
    return all(np.array_equal(a, b) for a, b in zip(actual, expected, strict=True))


@pytest.fixture
def as_if_large(monkeypatch):
    """Let any input take the way of large ones."""

    def set_up(bucket=1 << 14):
        monkeypatch.setattr(_csr, "_LARGE", 1)
        monkeypatch.setattr(_csr, "_BUCKET", bucket)

    return set_up


@given(st.data())
def test_any_small_input_gives_the_rows_of_scipy(data):
    n = data.draw(st.integers(1, 40))
    node = st.integers(0, n - 1)
    pairs = data.draw(st.lists(st.tuples(node, node), min_size=1, max_size=60))
    ends = np.array(pairs, dtype=data.draw(st.sampled_from([*KINDS, np.uint64, np.int8])))
    u, v = np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1])
    assert is_same(u, v, n)
    with pytest.MonkeyPatch.context() as patch:  # several buckets, also for a few entries
        patch.setattr(_csr, "_LARGE", 1)
        patch.setattr(_csr, "_BUCKET", data.draw(st.sampled_from([1, 8, 1 << 13])))
        assert is_same(u, v, n)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3000, 2**22 + 3])  # 2**22: keys of 64 bits
@pytest.mark.parametrize("bucket", [1 << 5, 1 << 13])
def test_many_entries_give_the_rows_of_scipy(as_if_large, n, kind, bucket):
    as_if_large(bucket)
    rng = np.random.default_rng(n)
    u = rng.integers(0, n, 100_000).astype(kind)
    v = (n * rng.random(100_000) ** 4).astype(kind)  # a few nodes have most edges
    assert is_same(u, v, n)
    assert is_same(np.zeros_like(u), v, n)  # all of it one row


def test_the_highest_node_of_the_largest_graph_fits_into_a_key():
    n = _csr.MOST_NODES
    bits = (n - 1).bit_length()
    bucket = _csr._one_bucket(np.array([0, n - 1]), np.array([n - 1, n - 2]), bits)
    keys = np.sort(bucket.keys)
    assert (keys >> (bits + 1)).tolist() == [0, n - 2, n - 1, n - 1]
    assert (keys >> 1 & (1 << bits) - 1).tolist() == [n - 1, n - 1, 0, n - 2]
    with pytest.raises(InputError, match="too many"):
        Graph.from_edges([0], [1], NodeSet.range(n + 1))


@pytest.mark.parametrize("directed", [False, True])
def test_compiled_loops_equal_numpy(as_if_large, directed):
    """All buckets at once, and by groups from several arrays, as files are read."""
    as_if_large(bucket=8)
    u, v = np.random.default_rng(3).integers(0, 50, (2, 400))
    bits, shift = 6, _csr.bucket_shift(50, 2 * len(u))
    whole = _csr._one_bucket(u, v, bits, directed=directed)
    counts = np.zeros((49 >> shift) + 1, dtype=np.int64)
    loops = _csr.count_buckets(u, v, 50, shift, counts, directed=directed)
    assert len(counts) > 8
    assert loops == (u == v).sum()
    pairs = [(u[:150], v[:150]), (u[150:], v[150:])]
    for cuts in ([0, len(counts)], [0, 1, 7, len(counts)]):
        keys = []
        for first, last in pairwise(cuts):
            buckets = _csr.scatter_pairs(
                pairs, 50, shift, counts[first:last], first=first, directed=directed
            )
            bucket = np.repeat(np.arange(first, last), np.diff(buckets.starts)).astype(np.uint64)
            keys.append(buckets.keys + (bucket << (shift + bits + 1)))
        assert np.array_equal(np.sort(np.concatenate(keys)), np.sort(whole.keys))


def test_loops_stay_within_their_arrays():
    """As plain Python, where an index out of bounds is an error."""
    program = (
        "import numpy as np\n"
        "from edgeveil.graph import _csr\n"
        "rng = np.random.default_rng(1)\n"
        "for n, bucket in ((1, 8), (5, 8), (40, 1), (40, 8), (300, 1 << 13), (70_000, 1 << 13)):\n"
        "    u, v = rng.integers(0, n, (2, 300))\n"
        "    _csr._LARGE, _csr._BUCKET = 1 << 20, bucket\n"
        "    small = _csr.csr_of_pairs(u, v, n)\n"
        "    _csr._LARGE = 1\n"
        "    large = _csr.csr_of_pairs(u, v, n)\n"
        "    assert all(np.array_equal(a, b) for a, b in zip(small, large))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        *((np.int32, bad) for bad in (-1, 5, 2**31 - 1, -(2**31))),
        *((np.int64, bad) for bad in (-1, 5, 2**31, 2**63 - 1, -(2**63))),
        *((np.uint64, bad) for bad in (5, 2**63, 2**64 - 1)),
    ],
)
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("large", [False, True])
def test_an_index_outside_is_found_wherever_it_is(as_if_large, kind, bad, side, large):
    if large:
        as_if_large()
    for place in (0, 50, 99):
        ends = np.zeros((2, 100), dtype=kind)
        ends[side, place] = bad
        assert csr_of_pairs(ends[0], ends[1], 5) is None


def test_empty_input_gives_empty_rows(as_if_large):
    none = np.empty(0, dtype=np.int64)
    zero = np.zeros(1, dtype=np.int64)
    assert [len(part) for part in csr_of_pairs(none, none, 3)[:2]] == [4, 0]
    assert csr_of_pairs(none, none, 0).indptr.tolist() == [0]
    assert csr_of_pairs(zero, zero, 0) is None
    as_if_large()
    assert csr_of_pairs(zero, zero, 0) is None
    assert csr_of_pairs(zero, zero, 1)[1:] == (pytest.approx([]), 1, 0, 0)


def test_a_large_graph_says_the_same_words(as_if_large):
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 50, (2, 400))
    nodes = NodeSet.range(50)
    small = Graph.from_edges(u, v, nodes)
    as_if_large()
    strided = np.stack([u, v], axis=1)
    for a, b in (
        (u, v),
        (u.astype(np.uint64), v.astype(np.int8)),
        (u.astype(np.int32), v),
        (strided[:, 0], strided[:, 1]),
        (u.tolist(), v.tolist()),
    ):
        large = Graph.from_edges(a, b, nodes)
        assert large == small
        assert large.read_report == small.read_report
        assert large.indices.dtype == large.indptr.dtype == np.int32
    with pytest.raises(InputError, match="outside of the 50 nodes"):
        Graph.from_edges(np.array([2**64 - 1], dtype=np.uint64), [0], nodes)
    with pytest.raises(InputError, match="two lists of node indices"):
        Graph.from_edges([1, 2], [1], nodes)
    with pytest.raises(InputError, match='directed="ignore"'):
        Graph.from_edges(u, v, nodes, must_be_symmetric=True)
    both = Graph.from_edges(np.r_[u, v], np.r_[v, u], nodes, must_be_symmetric=True)
    assert both == small


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("large", [False, True])
def test_kept_directions_give_the_rows_of_scipy(as_if_large, large, kind):
    if large:
        as_if_large()
    n = 300
    u, v = np.random.default_rng(1).integers(0, n, (2, 20_000)).astype(kind)
    kept = u != v
    arcs = sp.coo_array((np.ones(kept.sum(), dtype=bool), (u[kept], v[kept])), shape=(n, n)).tocsr()
    arcs.sum_duplicates()
    rows = csr_of_pairs(u, v, n, directed=True)
    assert np.array_equal(rows.indptr, arcs.indptr)
    assert np.array_equal(rows.indices, arcs.indices)
    assert rows[2:] == (int((~kept).sum()), int(kept.sum()) - arcs.nnz, 0)
