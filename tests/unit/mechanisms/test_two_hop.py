"""Rows of two-hop and degree-prior: block by block what they are one by one, in plain numpy."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from edgeveil.estimate.rows import exact_weights
from edgeveil.flow.common_neighbours import two_hop_sums_of_lists
from edgeveil.graph.datasets import social_network
from edgeveil.mechanisms import DegreePrior, TwoHop
from edgeveil.mechanisms import run as runner
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from edgeveil.mechanisms.two_hop import split_epsilon
from edgeveil.privacy.noise import NoiseSource, calibrate
from tests.seam import noisy_row, run, run_in_parts, statistics_of, streams_of
from tests.two_hop import two_hop_sums
from tests.unit.estimate import plain_walk_model as plain

GRAPH = social_network(300, average_degree=12, seed=1).graph
# A star, a triangle with a tail, and nodes on their own.
SMALL = graph_of_pairs(20, [*((0, v) for v in range(1, 9)), (9, 10), (10, 11), (9, 11), (11, 12)])


def plain_row(mechanism, graph, estimates, source):
    """One row, from the noisy sums on in plain numpy."""
    stream = streams_of(NoiseSource.insecure(1), [source])
    n, own = graph.n_nodes, graph.neighbours(source)
    epsilon = split_epsilon(mechanism.epsilon, mechanism.degree_epsilon)[1]
    degrees = estimates.degrees_seen_by(own)
    if epsilon == 0 or len(own) == 0:
        row = plain.prior_row(n, source, own, degrees, mechanism.restart)
    else:
        floor = plain.best_degree_floor(estimates.degrees[own], n, float(epsilon))
        weights = exact_weights(floor / estimates.degrees)
        calibration = calibrate(coordinates=n, sensitivity=1, epsilon=epsilon)
        sums = two_hop_sums(graph, source, weights)
        noisy = noisy_row(sums, calibration, stream, 0)
        scale = calibration.noise_scale
        row = plain.complete_row(
            noisy, source, own, estimates, weights[own], floor, scale, mechanism.restart
        )
    return row / degrees if mechanism.score == "lift" else row


@pytest.mark.parametrize("graph", [GRAPH, SMALL], ids=["network", "small"])
@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0.3},
        {"epsilon": 1.0},
        {"epsilon": 20.0, "restart": 0.4},
        {"epsilon": 2.0, "score": "lift"},
        {"epsilon": 0.3, "degree_epsilon": 0.05},
    ],
    ids=str,
)
def test_rows_equal_the_plain_ones(graph, options):
    mechanism = TwoHop(**options)
    estimates, rows, _ = run_in_parts(mechanism, graph, range(graph.n_nodes))
    for source, row in enumerate(rows):
        wanted = plain_row(mechanism, graph, estimates, source)
        np.testing.assert_allclose(row, wanted, rtol=1e-11, atol=1e-14 * wanted.max())


@pytest.mark.parametrize(
    "mechanism",
    [
        TwoHop(epsilon=1),
        TwoHop(epsilon=0.3),
        TwoHop(epsilon=3, score="lift"),
        DegreePrior(epsilon=1),
        DegreePrior(epsilon=1, model="public", score="lift"),
    ],
    ids=lambda m: f"{m.name}-{m.epsilon}",
)
def test_blocks_groups_and_threads_give_the_same_bits(mechanism, monkeypatch):
    sources = [*range(60), 5, 299]
    rows = run(mechanism, GRAPH, sources)
    assert np.isfinite(rows).all()
    alone = np.concatenate([run(mechanism, GRAPH, [s]) for s in sources])
    np.testing.assert_array_equal(alone, rows)
    monkeypatch.setattr(runner, "_GROUP_BYTES", 7 * 8 * GRAPH.n_nodes)
    monkeypatch.setattr(runner, "_LANES", 1)
    assert runner.rows_at_once(GRAPH.n_nodes) == 7
    np.testing.assert_array_equal(run(mechanism, GRAPH, sources), rows)
    with ThreadPoolExecutor(4) as pool:
        parts = pool.map(lambda part: run(mechanism, GRAPH, part), [sources[:31], sources[31:]])
        np.testing.assert_array_equal(np.concatenate(list(parts)), rows)


def test_the_noise_is_that_of_single_rows_on_exact_sums():
    """What leaves the graph: the very sums, weights and lattice points of one source's call."""
    mechanism = TwoHop(epsilon=1)
    sources = [3, 200, 17]
    estimates, _, _ = run_in_parts(mechanism, GRAPH, sources)
    _, (asked, given) = statistics_of(mechanism, GRAPH, sources)
    sums, noisy, calibration = asked.values, given.values, asked.calibration
    epsilon = split_epsilon(1, None)[1]
    assert calibration == calibrate(coordinates=300, sensitivity=1, epsilon=epsilon)
    assert Fraction(calibration.epsilon) <= epsilon
    streams = streams_of(NoiseSource.insecure(1), sources)
    for i, source in enumerate(sources):
        own = GRAPH.neighbours(source)
        floor = plain.best_degree_floor(estimates.degrees[own], 300, float(epsilon))
        weights = exact_weights(floor / estimates.degrees)
        np.testing.assert_array_equal(sums[i], two_hop_sums(GRAPH, source, weights))
        single = noisy_row(sums[i], calibration, streams, i)
        np.testing.assert_array_equal(noisy[i], single)


def test_a_public_row_does_not_look_at_the_list():
    mechanism = DegreePrior(epsilon=1, model="public")
    sources = list(range(20))
    estimates, rows, _ = run_in_parts(mechanism, SMALL, sources)
    other = graph_of_pairs(20, [(0, 19)])
    again, _ = runner.make_rows(mechanism, other, estimates, sources, None)
    np.testing.assert_array_equal(rows, again)
    assert len(np.unique((rows[0][1:] / estimates.degrees[1:]).round(12))) == 1


@pytest.mark.parametrize("sources", [[4], [0, 13, 9, 9], []])
def test_sums_of_lists_are_those_of_single_sources(sources):
    rng = np.random.default_rng(2)
    degrees, floors = rng.uniform(1, 40, 20), rng.uniform(1, 40, len(sources))
    lists = [SMALL.neighbours(s) for s in sources]
    starts = np.cumsum([0, *map(len, lists)])
    flat = np.concatenate(lists) if lists else np.empty(0, dtype=np.int32)
    weights = exact_weights(np.repeat(floors, np.diff(starts)) / degrees[flat], 20)
    out = two_hop_sums_of_lists(SMALL, flat, starts, weights)
    assert out.shape == (len(sources), 20)
    for i, source in enumerate(sources):
        exact = exact_weights(floors[i] / degrees)
        np.testing.assert_array_equal(weights[starts[i] : starts[i + 1]], exact[lists[i]])
        np.testing.assert_array_equal(exact_weights(floors[i] / degrees[:2], 20), exact[:2])
        np.testing.assert_array_equal(out[i], two_hop_sums(SMALL, source, exact))


@pytest.mark.parametrize("epsilon", [1e70, 1e80, 1e170])
def test_huge_epsilon_gives_finite_rows(epsilon):
    mechanism = TwoHop(epsilon=epsilon)
    assert np.isfinite(run(mechanism, GRAPH, [0, 5])).all()
