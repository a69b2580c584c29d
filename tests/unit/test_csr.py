"""CSR rows of entries, against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from edgeveil import _csr
from edgeveil._csr import Rows, rows_of_pairs
from edgeveil.errors import InputError
from edgeveil.graph import Graph
from edgeveil.nodes import NodeSet

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
    return Rows(both.indptr, both.indices, entries - len(u), repeated, arcs.nnz - both.nnz // 2)


def is_same(u, v, n):
    found, expected = rows_of_pairs(u, v, n), rows_by_scipy(u, v, n)
    assert found.indices.dtype == np.int32
    return all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@given(st.data())
def test_any_small_input_gives_the_rows_of_scipy(data):
    n = data.draw(st.integers(1, 40))
    node = st.integers(0, n - 1)
    pairs = data.draw(st.lists(st.tuples(node, node), min_size=1, max_size=60))
    ends = np.array(pairs, dtype=data.draw(st.sampled_from([*KINDS, np.uint64, np.int8])))
    assert is_same(ends[:, 0], ends[:, 1], n)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3000, 2**22 + 3])  # 2**22: keys beyond 32 bits
def test_many_entries_give_the_rows_of_scipy(n, kind):
    rng = np.random.default_rng(n)
    u = rng.integers(0, n, 100_000).astype(kind)
    v = (n * rng.random(100_000) ** 4).astype(kind)  # a few nodes have most edges
    assert is_same(u, v, n)
    assert is_same(np.zeros_like(u), v, n)  # all of it one row


def test_the_highest_node_of_the_largest_graph_fits_into_a_key():
    bits = (_csr.MOST_NODES - 1).bit_length()
    assert 2 * bits + 1 <= 63
    with pytest.raises(InputError, match="too many"):
        Graph.from_edges([0], [1], NodeSet.range(_csr.MOST_NODES + 1))


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        *((np.int32, bad) for bad in (-1, 5, 2**31 - 1, -(2**31))),
        *((np.int64, bad) for bad in (-1, 5, 2**31, 2**63 - 1, -(2**63))),
        *((np.uint64, bad) for bad in (5, 2**63, 2**64 - 1)),
    ],
)
@pytest.mark.parametrize("side", [0, 1])
def test_an_index_outside_is_found_wherever_it_is(kind, bad, side):
    for place in (0, 50, 99):
        ends = np.zeros((2, 100), dtype=kind)
        ends[side, place] = bad
        assert rows_of_pairs(ends[0], ends[1], 5) is None


def test_no_entries_and_no_nodes():
    none = np.empty(0, dtype=np.int64)
    one = np.zeros(1, dtype=np.int64)
    assert [len(part) for part in rows_of_pairs(none, none, 3)[:2]] == [4, 0]
    assert rows_of_pairs(none, none, 0).indptr.tolist() == [0]
    assert rows_of_pairs(one, one, 0) is None
    assert rows_of_pairs(one, one, 1)[1:] == (pytest.approx([]), 1, 0, 0)


def test_any_kind_of_array_gives_the_same_graph_and_words():
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 50, (2, 400))
    nodes = NodeSet.range(50)
    plain = Graph.from_edges(u, v, nodes)
    strided = np.stack([u, v], axis=1)
    for a, b in (
        (u, v),
        (u.astype(np.uint64), v.astype(np.int8)),
        (u.astype(np.int32), v),
        (strided[:, 0], strided[:, 1]),
        (u.tolist(), v.tolist()),
    ):
        other = Graph.from_edges(a, b, nodes)
        assert other == plain
        assert other.intake == plain.intake
        assert other.indices.dtype == other.indptr.dtype == np.int32
    with pytest.raises(InputError, match="outside of the 50 nodes"):
        Graph.from_edges(np.array([2**64 - 1], dtype=np.uint64), [0], nodes)
    with pytest.raises(InputError, match="two lists of node indices"):
        Graph.from_edges([1, 2], [1], nodes)
    with pytest.raises(InputError, match="directed=True"):
        Graph.from_edges(u, v, nodes, must_be_symmetric=True)
    both = Graph.from_edges(np.r_[u, v], np.r_[v, u], nodes, must_be_symmetric=True)
    assert both == plain


@pytest.mark.parametrize("kind", KINDS)
def test_kept_directions_give_the_rows_of_scipy(kind):
    n = 300
    u, v = np.random.default_rng(1).integers(0, n, (2, 20_000)).astype(kind)
    kept = u != v
    arcs = sp.coo_array((np.ones(kept.sum(), dtype=bool), (u[kept], v[kept])), shape=(n, n)).tocsr()
    arcs.sum_duplicates()
    found = rows_of_pairs(u, v, n, directed=True)
    assert np.array_equal(found.indptr, arcs.indptr)
    assert np.array_equal(found.indices, arcs.indices)
    assert found[2:] == (int((~kept).sum()), int(kept.sum()) - arcs.nnz, 0)
