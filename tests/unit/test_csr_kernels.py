"""The compiled way to CSR rows against scipy's, on every kind of input."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil import _csr_kernels
from edgeveil import graph as graph_module
from edgeveil._csr_kernels import rows_of_pairs, rows_of_parts
from edgeveil.errors import InputError
from edgeveil.graph import Graph, _rows_by_scipy
from edgeveil.nodes import NodeSet

KINDS = [np.int32, np.int64]


def is_same(u, v, n, threads):
    fast, slow = rows_of_pairs(u, v, n, threads), _rows_by_scipy(u, v, n)
    return all(np.array_equal(a, b) for a, b in zip(fast, slow, strict=True))


@given(st.data())
def test_any_small_input_gives_the_rows_of_scipy(data):
    n = data.draw(st.integers(1, 40))
    node = st.integers(0, n - 1)
    pairs = data.draw(st.lists(st.tuples(node, node), min_size=1, max_size=60))
    kind = data.draw(st.sampled_from(KINDS))
    ends = np.array(pairs, dtype=kind)
    u, v = np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1])
    with pytest.MonkeyPatch.context() as patch:  # several buckets, also for a few entries
        patch.setattr(_csr_kernels, "_BUCKET", data.draw(st.sampled_from([1, 8, 1 << 13])))
        assert is_same(u, v, n, data.draw(st.integers(1, 4)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [1, 2, 3000, 2**22 + 3])  # 2**22: keys of 64 bits
@pytest.mark.parametrize("bucket", [1 << 5, 1 << 13])
def test_many_entries_give_the_rows_of_scipy(monkeypatch, n, threads, kind, bucket):
    monkeypatch.setattr(_csr_kernels, "_BUCKET", bucket)
    rng = np.random.default_rng(n)
    u = rng.integers(0, n, 100_000).astype(kind)
    v = (n * rng.random(100_000) ** 4).astype(kind)  # a few nodes have most edges
    assert is_same(u, v, n, threads)
    assert is_same(np.zeros_like(u), v, n, threads)  # all of it one row


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("n", [5, 32, 300, 512])
def test_few_nodes_and_many_entries(n, threads):
    """Keys of few bits: one digit each, and threads whose counters lie side by side."""
    u, v = np.random.default_rng(n).integers(0, n, (2, 1 << 20))
    assert is_same(u, v, n, threads)


def test_no_loop_leaves_its_arrays():
    """As plain Python, where an index out of bounds is an error."""
    program = (
        "import numpy as np\n"
        "from edgeveil import _csr_kernels\n"
        "from edgeveil.graph import _rows_by_scipy\n"
        "rng = np.random.default_rng(1)\n"
        "for n, bucket in ((1, 8), (5, 8), (40, 1), (40, 8), (300, 1 << 13), (70_000, 1 << 13)):\n"
        "    _csr_kernels._BUCKET = bucket\n"
        "    u, v = rng.integers(0, n, (2, 300))\n"
        "    for threads in (1, 3):\n"
        "        fast = _csr_kernels.rows_of_pairs(u, v, n, threads)\n"
        "        slow = _rows_by_scipy(u, v, n)\n"
        "        assert all(np.array_equal(a, b) for a, b in zip(fast, slow))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]


@given(st.data())
def test_parts_of_ids_from_anywhere_give_the_rows_of_the_ids_that_occur(data):
    low = data.draw(st.sampled_from([0, 5, -7, -(2**63), 2**63 - 60]))
    node = st.integers(low, low + data.draw(st.sampled_from([3, 50])))
    pair = st.tuples(node, node)
    drawn = data.draw(st.lists(st.lists(pair, max_size=20), min_size=1, max_size=4))
    parts = [tuple(np.array(part, dtype=np.int64).reshape(-1, 2).T.copy()) for part in drawn]
    ids, index = np.unique(np.concatenate(parts, axis=1), return_inverse=True)
    index = index.reshape(2, -1)
    if index.size:
        slow = _rows_by_scipy(index[0], index[1], len(ids))
        n = int(ids[-1]) - low + 1
        seen = np.zeros(n, dtype=np.bool_)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_csr_kernels, "_BUCKET", data.draw(st.sampled_from([1, 8, 1 << 13])))
            threads = data.draw(st.integers(1, 4))
            fast = rows_of_parts(parts, n, low=low, seen=seen, threads=threads)
        assert all(np.array_equal(a, b) for a, b in zip(fast, slow, strict=True))
        assert (np.flatnonzero(seen) + low).tolist() == ids.tolist()
        assert parts == []  # its arrays can be freed


def test_ids_outside_of_their_range_leave_the_parts_alone():
    parts = [(np.array([3, 4]), np.array([5, 6]))]
    assert rows_of_parts(parts, 3, low=3) is None
    assert rows_of_parts(parts, 3, low=4) is None
    assert len(parts) == 1
    assert rows_of_parts(parts, 4, low=3).indptr.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        *((np.int32, bad) for bad in (-1, 5, 2**31 - 1, -(2**31))),
        *((np.int64, bad) for bad in (-1, 5, 2**31, 2**63 - 1, -(2**63))),
    ],
)
@pytest.mark.parametrize("side", [0, 1])
def test_an_index_outside_is_found_wherever_it_is(kind, bad, side):
    for place in (0, 50, 99):
        ends = np.zeros((2, 100), dtype=kind)
        ends[side, place] = bad
        assert rows_of_pairs(ends[0], ends[1], 5, 2) is None


def test_no_entries_and_no_nodes():
    none = np.empty(0, dtype=np.int64)
    assert [len(part) for part in rows_of_pairs(none, none, 3)[:2]] == [4, 0]
    assert rows_of_pairs(none, none, 0).indptr.tolist() == [0]
    assert rows_of_pairs(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), 0) is None


def test_a_large_graph_is_built_by_the_kernel_with_the_same_words(monkeypatch):
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 50, (2, 400))
    nodes = NodeSet.range(50)
    small = Graph.from_edges(u, v, nodes)
    monkeypatch.setattr(graph_module, "_LARGE", 1)
    monkeypatch.setattr(graph_module, "_rows_by_scipy", None)
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
        assert large.intake == small.intake
        assert large.indices.dtype == large.indptr.dtype == np.int32
    with pytest.raises(InputError, match="outside of the 50 nodes"):
        Graph.from_edges(np.array([2**64 - 1], dtype=np.uint64), [0], nodes)
    with pytest.raises(InputError, match="two lists of node indices"):
        Graph.from_edges([1, 2], [1], nodes)
    with pytest.raises(InputError, match="directed=True"):
        Graph.from_edges(u, v, nodes, must_be_symmetric=True)
    both = Graph.from_edges(np.r_[u, v], np.r_[v, u], nodes, must_be_symmetric=True)
    assert both == small
