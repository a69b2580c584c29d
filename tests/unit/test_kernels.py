"""Every variant of a kernel gives the same bits: lanes, widths of indices, threads, read-only."""

from __future__ import annotations

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy.sparse.csgraph import connected_components

from edgeveil.estimate.rows import exact_weights
from edgeveil.flow import _blocks, _kernels, personalized_pagerank, push_flow, push_flow_cap
from edgeveil.flow._blocks import block_zeros, components_of, layout_of
from edgeveil.flow._kernels import KERNELS, LANES, SINGLE_LANES, lane_blocks
from edgeveil.flow._lanes import load, store, sum_rows
from edgeveil.flow.bounds import edge_cap, fixed_point_cap, fixed_point_rounds
from edgeveil.flow.push_rounds import CappedBlock, Recursion
from edgeveil.flow.walk import lazy_restart
from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from experiments.forward_cap import inflow
from tests import oracle
from tests.flows import forward_flow
from tests.strategies import graphs, restarts, sigmas
from tests.two_hop import two_hop_sums

WIDTH = LANES  # a global, as the intrinsics need a constant
COMPUTE = {
    "rounds": lambda graph, sources: push_flow_cap(graph, sources, sigma=1e-4, rounds=30),
    "public": lambda graph, sources: push_flow_cap(graph, sources, sigma=1e-4, model="public"),
    "fixed point": lambda graph, sources: push_flow_cap(graph, sources, sigma=1e-4, rounds=None),
    "uncapped": lambda graph, sources: push_flow(graph, sources, rounds=20),
    "prepush": lambda graph, sources: push_flow_cap(
        graph, sources, sigma=1e-4, rounds=None, prepush=True
    ),
    "forward": lambda graph, sources: forward_flow(graph, sources, sigma=1e-4),
    "exact": lambda graph, sources: personalized_pagerank(graph, sources, tol=1e-9),
}


@njit
def sum_of_lanes(g, indices, first, last, out):
    store(sum_rows(WIDTH, g, indices, first, last), out, 0)


@njit
def sum_of_one(g, indices, first, last, out):
    store(sum_rows(1, g, indices, first, last), out, 0)


@njit
def second_row(g, out):
    store(load(WIDTH, g, 1), out, 0)


def hub_graph(n: int = 1300):
    """A hub with more neighbours than two flushes of the accumulators take; some loose ends."""
    rng = np.random.default_rng(5)
    pairs = [(0, v) for v in range(1, n - 3)]
    pairs += [(int(a), int(b)) for a, b in rng.integers(1, n - 3, (3 * n, 2)) if a != b]
    return graph_of_pairs(n, [*pairs, (n - 3, n - 2)])


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 63, 64, 511, 512, 513, 520, 1024, 1031, 3000])
@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.int64])
def test_a_sum_has_the_stated_order_at_any_width(count, dtype):
    rng = np.random.default_rng(count)
    g = rng.lognormal(size=(50, WIDTH), sigma=5)
    indices = rng.integers(0, 50, count + 3).astype(dtype)
    indices.setflags(write=False)
    out, alone = np.empty((1, WIDTH)), np.empty((1, 1))
    sum_of_lanes(g, indices, 2, count + 2, out)
    for lane in range(WIDTH):
        terms = g[indices[2 : count + 2], lane]
        assert out[0, lane] == oracle.neighbour_sum(terms.tolist())
        assert out[0, lane] == pytest.approx(math.fsum(terms), rel=1e-14)
        sum_of_one(np.ascontiguousarray(g[:, [lane]]), indices, 2, count + 2, alone)
        assert alone[0, 0] == out[0, lane]


def test_memory_of_a_block_begins_at_a_cache_line():
    for rows in (0, 1, 7, 100_001):
        block = block_zeros(rows, LANES)
        assert block.shape == (rows, LANES)
        assert not block.any()
        assert rows == 0 or block.ctypes.data % 64 == 0
    block[1] = np.arange(WIDTH)
    out = np.empty((1, WIDTH))
    second_row(block, out)
    np.testing.assert_array_equal(out[0], np.arange(WIDTH))


@pytest.mark.parametrize("lanes", [LANES, SINGLE_LANES])
@pytest.mark.parametrize("count", range(36))
def test_blocks_take_every_source_once(count, lanes):
    parts = list(lane_blocks(count, lanes))
    taken = [i for part, _ in parts for i in range(count)[part]]
    assert taken == list(range(count))
    assert all(part.stop - part.start <= loops.lanes for part, loops in parts)


@pytest.mark.parametrize("what", COMPUTE)
def test_a_source_has_the_same_bits_alone_and_in_any_block(what):
    graph, compute = hub_graph(), COMPUTE[what]
    sources = [0, 3, 77, 1299, 1297, 500, 501, 502, 503, 0, 900, *range(20, 30)]
    together = compute(graph, sources)  # more than a block in single precision takes
    for part in (slice(1), slice(1, 3), slice(2, 7), slice(3, 11), slice(9, 11), slice(2, 20)):
        np.testing.assert_array_equal(compute(graph, sources[part]), together[part])
    np.testing.assert_array_equal(compute(graph, sources[::-1]), together[::-1])


@pytest.mark.parametrize("what", COMPUTE)
def test_narrow_and_wide_indices_give_the_same_bits(what, monkeypatch):
    sources = range(11)
    narrow = hub_graph()
    assert layout_of(narrow).indices.dtype == np.uint16
    expected = COMPUTE[what](narrow, sources)
    for dtype in (np.int32, np.int64):
        layout = _blocks._make_layout(narrow)
        changed = layout._replace(indices=layout.indices.astype(dtype))
        with monkeypatch.context() as patch:
            patch.setattr(_blocks, "_make_layout", lambda graph, changed=changed: changed)
            wide = hub_graph()
            np.testing.assert_array_equal(COMPUTE[what](wide, sources), expected)
            assert layout_of(wide).indices.dtype == dtype


@pytest.mark.parametrize("what", COMPUTE)
def test_threads_share_a_layout_and_change_no_bit(what, monkeypatch):
    calls = []
    make = _blocks._make_layout
    monkeypatch.setattr(_blocks, "_make_layout", lambda graph: (calls.append(1), make(graph))[1])
    graph, sources = hub_graph(), list(range(64))
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda i: COMPUTE[what](graph, sources[i : i + 5]), range(0, 64, 5)))
    assert len(calls) == 1
    np.testing.assert_array_equal(np.concatenate(parts), COMPUTE[what](graph, sources))


@pytest.mark.parametrize("what", COMPUTE)
def test_a_mapped_graph_that_is_not_copied_gives_the_same_flow(what, tmp_path, monkeypatch):
    graph = hub_graph()
    expected = COMPUTE[what](graph, range(3))
    for name in ("indptr", "indices"):
        np.save(tmp_path / name, getattr(graph, name))
    arrays = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices"))
    mapped = Graph(*arrays, graph.nodes)
    monkeypatch.setattr(_blocks, "_LARGEST_COPY", 0)
    assert np.shares_memory(layout_of(mapped).indices, mapped.indices)
    # The rows come in another order, so the sums do.
    np.testing.assert_allclose(COMPUTE[what](mapped, range(3)), expected, rtol=0, atol=2e-8)
    weights = exact_weights(np.random.default_rng(1).random(graph.n_nodes))
    np.testing.assert_array_equal(two_hop_sums(mapped, 4, weights), two_hop_sums(graph, 4, weights))


def layout_rows(graph):
    layout = layout_of(graph)
    return [[int(u) for u in layout.neighbours(v)] for v in range(graph.n_nodes)]


@given(graphs(), restarts, st.integers(1, 12), sigmas)
@settings(max_examples=40)
def test_rounds_equal_a_plain_loop_bit_for_bit(graph, restart, rounds, sigma):
    alpha, rows, layout = lazy_restart(restart), layout_rows(graph), layout_of(graph)
    beta, cap = (1 - alpha) / 2, edge_cap(sigma, alpha, rounds)
    flow = push_flow_cap(
        graph, range(graph.n_nodes), sigma=sigma, rounds=rounds, restart=restart, model="public"
    )
    for source in range(graph.n_nodes):
        own = int(layout.row_of[source])
        if not rows[own]:
            continue
        g = [0.0] * len(rows)
        for _ in range(rounds):
            sums = [oracle.neighbour_sum([g[u] for u in near]) for near in rows]
            share = [1 / len(near) if near else 0.0 for near in rows]
            start = [1 / len(rows[own]) if v == own else 0.0 for v in range(len(rows))]
            g = [min(start[v] + beta * (g[v] + sums[v] * share[v]), cap) for v in range(len(rows))]
        expected = [alpha * (g[row] * len(rows[row])) for row in layout.row_of]
        np.testing.assert_array_equal(flow[source], expected)


@given(graphs(), restarts, sigmas, st.booleans(), st.randoms())
@settings(max_examples=60)
def test_a_sweep_equals_a_plain_loop_and_certifies_its_residual(
    graph, restart, sigma, joint, random
):
    rows, layout = layout_rows(graph), layout_of(graph)
    n, follow = graph.n_nodes, 1 - restart
    cap = fixed_point_cap(sigma, restart)
    omega = random.choice([1.0, 1.3, 1.9])
    sources = [random.randrange(n) for _ in range(LANES)]
    slot = np.arange(1, n + 1, dtype=np.int32)
    start, caps = np.zeros((n + 1, LANES)), np.full((n + 1, LANES), cap)
    for lane, source in enumerate(sources):
        start[source + 1, lane] = layout.inverse_degree[source]
        if joint:
            caps[source + 1, lane] = math.inf
    g, residual = np.zeros((n, LANES)), np.empty((1, LANES))
    plain = [[0.0] * n for _ in sources]
    for _ in range(5):
        KERNELS[LANES].capped_sweep(
            layout,
            slot,
            start,
            caps,
            cap,
            follow,
            omega,
            g,
            residual,
        )
        for lane, state in enumerate(plain):
            ours = start[1:, lane].tolist(), caps[1:, lane].tolist()
            bound = oracle.capped_sweep(rows, *ours, follow, omega, state)
            np.testing.assert_array_equal(g[:, lane], state)
            assert residual[0, lane] == bound
            means = [math.fsum(state[u] for u in near) / max(len(near), 1) for near in rows]
            step = np.minimum(start[1:, lane] + follow * np.array(means), caps[1:, lane])
            off = (layout.degree * np.abs(step - state)).sum()
            assert off <= bound * (1 + 1e-9) + 1e-14


@pytest.mark.parametrize("forward", [False, True])
def test_lanes_that_no_sweep_certifies_get_the_plain_rounds(forward):
    graph = hub_graph(200)
    impossible = {"residual": -1.0}
    recursion = Recursion(**vars(Recursion.fixed_point(0.15, 1e-6, 1e-5, joint=True)) | impossible)
    block = CappedBlock(layout_of(graph), recursion, KERNELS[LANES])
    sources = np.arange(5)
    block.load(sources)
    assert [lanes.tolist() for lanes in block.sweep(-1.0)] == [sources.tolist()]
    flow = (inflow(block) if forward else block.g)[:, :5].copy()
    other = CappedBlock(layout_of(graph), recursion, KERNELS[LANES])
    other.load(sources)
    other.rounds(recursion.rounds)
    np.testing.assert_array_equal(block.g, other.g)
    np.testing.assert_array_equal(flow, (inflow(other) if forward else other.g)[:, :5])
    assert (flow > block.g[:, :5]).any() == forward


def test_sweeps_are_far_fewer_than_rounds(figure):
    graph = social_network(2000, average_degree=30).graph
    count = 0
    loops = KERNELS[LANES]

    def counted(*arguments):
        nonlocal count
        count += 1
        loops.capped_sweep(*arguments)

    recursion = Recursion.fixed_point(0.15, 1e-6, fixed_point_cap(1e-6, 0.15), joint=True)
    counting = type(loops)(**vars(loops) | {"capped_sweep": counted})
    block = CappedBlock(layout_of(graph), recursion, counting)
    block.load(np.arange(LANES))
    for _ in block.sweep(recursion.residual):
        pass
    assert count < fixed_point_rounds(1e-6, 0.15) / 3
    figure("fixed point, sigma 1e-6, restart 0.15", f"{count} sweeps instead of 137 rounds")


@given(graphs(max_nodes=30))
def test_components_are_scipys(graph):
    layout = layout_of(graph)
    label, volumes = components_of(graph)
    count, expected = connected_components(graph.adjacency())
    assert len(volumes) == count == len(set(label))
    pairs = set(zip(label[layout.row_of].tolist(), expected.tolist(), strict=True))
    assert len(pairs) == count
    assert volumes.sum() == graph.degrees.sum()


def test_pagerank_stays_in_the_sources_component():
    first = hub_graph(60)
    pairs = np.argwhere(np.triu(first.adjacency().toarray()))
    graph = graph_of_pairs(130, np.concatenate([pairs, pairs + 65]))
    rows = personalized_pagerank(graph, [0, 65, 1, 66, 64, 57, 3, 4])
    assert not rows[[0, 2, 6, 7]][:, 65:].any()
    assert not rows[[1, 3]][:, :65].any()
    np.testing.assert_array_equal(rows[4], np.eye(130)[64])
    np.testing.assert_allclose(rows[5, 57] + rows[5, 58], 1, atol=1e-9)
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("restart", [1e-4, 0.01, 0.5, 0.999])
def test_long_paths_and_rings_keep_the_tolerance_too(restart):
    """Eigenvalues next to 1: the hard case for every iteration."""
    n = 60
    for pairs in ([(v, v + 1) for v in range(n - 1)], [(v, (v + 1) % n) for v in range(n)]):
        graph = graph_of_pairs(n, pairs)
        rows = personalized_pagerank(graph, range(0, n, 7), restart=restart, tol=1e-10)
        for row, source in zip(rows, range(0, n, 7), strict=True):
            exact = oracle.pagerank(graph, source, lazy_restart(restart))
            assert np.abs(row - exact).sum() <= 1e-10


@given(graphs(max_nodes=30))
def test_two_hop_sums_equal_the_matrix_product(graph):
    weights = exact_weights(np.random.default_rng(0).random(graph.n_nodes))
    adjacency = graph.adjacency().toarray()
    for source in range(graph.n_nodes):
        expected = (adjacency[source] * weights) @ adjacency
        expected[adjacency[source] > 0] /= 2
        np.testing.assert_array_equal(two_hop_sums(graph, source, weights), expected)


@pytest.fixture
def sweeps(monkeypatch):
    """Counts the sweeps of every width and precision."""
    counts = Counter()

    def counted(loops, name):
        def call(*arguments):
            g = next(a for a in arguments if getattr(a, "ndim", 0) == 2 and len(a) > 100)
            counts[loops.lanes, g.dtype.name] += 1
            return getattr(loops, name)(*arguments)

        return call

    for lanes, loops in list(_kernels.KERNELS.items()):
        names = ("exact_sweep", "capped_sweep")
        changed = vars(loops) | {name: counted(loops, name) for name in names}
        monkeypatch.setitem(_kernels.KERNELS, lanes, type(loops)(**changed))
    return counts


@pytest.mark.parametrize("what", ["exact", "fixed point"])
def test_sweeps_are_single_precision_then_double(what, sweeps):
    graph = social_network(2000, average_degree=30).graph
    calls = {
        "exact": lambda: personalized_pagerank(graph, range(16), tol=1e-6),
        "fixed point": lambda: push_flow_cap(graph, range(16), sigma=1e-3, rounds=None),
    }
    calls[what]()
    single, double = sweeps[16, "float32"], sweeps[8, "float64"]
    assert sweeps.total() == single + double
    assert double >= 2  # two blocks
    assert double / 2 <= single / 2


def test_a_walk_that_mixes_slowly_is_exact_all_the_same():
    n, restart = 400, 0.002  # a path: single precision alone is off by far more
    graph = graph_of_pairs(n, [(v, v + 1) for v in range(n - 1)])
    rows = personalized_pagerank(graph, [0, 3, 200], restart=restart, tol=1e-11)
    walk = graph.adjacency().toarray() / graph.degrees[:, None]
    inverse = np.linalg.inv(np.eye(n) - (1 - restart) * walk)
    assert np.abs(rows - restart * inverse[[0, 3, 200]]).sum(axis=1).max() <= 1e-10


@pytest.mark.parametrize(("sigma", "restart"), [(1e-4, 0.002), (1.0, 0.01)])
def test_single_precision_is_left_once_it_falls_no_further(sweeps, sigma, restart):
    """First its roundings add up to more than the residual that is hoped for; then they do not,
    but the residual rises for many sweeps before it falls."""
    graph = social_network(300, average_degree=10).graph
    push_flow_cap(graph, range(3), sigma=sigma, restart=restart, rounds=None)
    single, double = sweeps[16, "float32"], sweeps[8, "float64"]
    assert 0 < double < single < 300
