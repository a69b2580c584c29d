"""Rows of two-hop and degree-prior: block by block what they are one by one, in plain numpy."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from edgeveil.auditing.search import graph_of_pairs
from edgeveil.datasets import social_network
from edgeveil.flow.two_hop import exact_weights, two_hop_sums, two_hop_sums_of_lists
from edgeveil.mechanisms import DegreePrior, TwoHop, TwoHopEmbedding, released_degrees
from edgeveil.privacy.noise import NoiseSource, add_laplace, calibrate
from tests.unit.estimate import plain_walk_model as plain

GRAPH = social_network(300, average_degree=12, seed=1).graph
# A star, a triangle with a tail, and nodes on their own.
SMALL = graph_of_pairs(20, [*((0, v) for v in range(1, 9)), (9, 10), (10, 11), (9, 11), (11, 12)])


def prepared_by(mechanism, graph):
    noise = NoiseSource.insecure(1)
    return mechanism.prepare(graph, noise.derive("shared")), noise.derive("rows")


def plain_row(mechanism, prepared, source, noise):
    """One row, from the noisy sums on in plain numpy."""
    graph, known = prepared.graph, prepared.known
    n, own = graph.n_nodes, graph.neighbours(source)
    epsilon = released_degrees.split_epsilon(mechanism.epsilon, mechanism.degree_epsilon)[1]
    degrees = known.degrees_seen_by(own)
    if epsilon == 0 or len(own) == 0:
        row = plain.prior_row(n, source, own, degrees, mechanism.restart)
    else:
        floor = plain.best_degree_floor(known.degrees[own], n, float(epsilon))
        weights = exact_weights(floor / known.degrees)
        calibration = calibrate(coordinates=n, sensitivity=1, epsilon=epsilon)
        sums = two_hop_sums(graph, source, weights)
        noisy = np.array(add_laplace(sums, calibration, noise.derive("row", source)))
        scale = calibration.noise_scale
        row = plain.complete_row(
            noisy, source, own, known, weights[own], floor, scale, mechanism.restart
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
def test_rows_are_the_plain_ones(graph, options):
    mechanism = TwoHop(**options)
    prepared, noise = prepared_by(mechanism, graph)
    rows = mechanism.rows(prepared, range(graph.n_nodes), noise)
    for source, row in enumerate(rows):
        wanted = plain_row(mechanism, prepared, source, noise)
        np.testing.assert_allclose(row, wanted, rtol=1e-11, atol=1e-14 * wanted.max())


@pytest.mark.parametrize(
    "mechanism",
    [
        TwoHop(epsilon=1),
        TwoHop(epsilon=0.3),
        TwoHop(epsilon=3, score="lift"),
        TwoHopEmbedding(epsilon=1, dimension=16),
        DegreePrior(epsilon=1),
        DegreePrior(epsilon=1, model="public", score="lift"),
    ],
    ids=lambda m: f"{m.name}-{m.epsilon}",
)
def test_blocks_groups_and_threads_give_the_same_bits(mechanism, monkeypatch):
    prepared, noise = prepared_by(mechanism, GRAPH)
    sources = [*range(60), 5, 299]
    rows = mechanism.rows(prepared, sources, noise)
    assert np.isfinite(rows).all()
    alone = np.concatenate([mechanism.rows(prepared, [s], noise) for s in sources])
    np.testing.assert_array_equal(alone, rows)
    monkeypatch.setattr(released_degrees, "_GROUP_BYTES", 7 * 8 * GRAPH.n_nodes)
    np.testing.assert_array_equal(mechanism.rows(prepared, sources, noise), rows)
    with ThreadPoolExecutor(4) as pool:
        parts = pool.map(
            lambda part: mechanism.rows(prepared, part, noise), [sources[:31], sources[31:]]
        )
        np.testing.assert_array_equal(np.concatenate(list(parts)), rows)
    assert mechanism.rows(prepared, [], noise).shape == (0, rows.shape[1])


def test_the_noise_is_that_of_single_rows_on_exact_sums(monkeypatch):
    """What leaves the graph: the very sums, weights and lattice points of one source's call."""
    seen = []
    real = released_degrees.add_laplace_to_rows

    def spy(rows, calibration, noises):
        before = rows.copy()
        real(rows, calibration, noises)
        seen.append((before, rows.copy(), calibration))

    monkeypatch.setattr(released_degrees, "add_laplace_to_rows", spy)
    mechanism = TwoHop(epsilon=1)
    prepared, noise = prepared_by(mechanism, GRAPH)
    sources = [3, 200, 17]
    mechanism.rows(prepared, sources, noise)
    ((sums, noisy, calibration),) = seen
    epsilon = released_degrees.split_epsilon(1, None)[1]
    assert calibration == calibrate(coordinates=300, sensitivity=1, epsilon=epsilon)
    assert Fraction(calibration.epsilon) <= epsilon
    for i, source in enumerate(sources):
        own = GRAPH.neighbours(source)
        floor = released_degrees.best_degree_floor(prepared.degrees[own], 300, float(epsilon))
        weights = exact_weights(floor / prepared.degrees)
        np.testing.assert_array_equal(sums[i], two_hop_sums(GRAPH, source, weights))
        one = add_laplace(sums[i], calibration, noise.derive("row", source))
        np.testing.assert_array_equal(noisy[i], one)


def test_a_public_row_does_not_look_at_the_list():
    mechanism = DegreePrior(epsilon=1, model="public")
    prepared, noise = prepared_by(mechanism, SMALL)
    other = released_degrees.ReleasedDegrees(graph_of_pairs(20, [(0, 19)]), prepared.known)
    sources = list(range(20))
    rows = mechanism.rows(prepared, sources, noise)
    np.testing.assert_array_equal(rows, mechanism.rows(other, sources, noise))
    assert len(np.unique(rows[0][1:] / prepared.degrees[1:]).round(12)) == 1


@pytest.mark.parametrize("sources", [[4], [0, 13, 9, 9], []])
def test_sums_of_lists_are_those_of_single_sources(sources):
    rng = np.random.default_rng(2)
    degrees, floors = rng.uniform(1, 40, 20), rng.uniform(1, 40, len(sources))
    lists = [SMALL.neighbours(s) for s in sources]
    starts = np.cumsum([0, *map(len, lists)])
    flat = np.concatenate(lists) if lists else np.empty(0, dtype=np.int32)
    out = np.full((len(sources), 20), np.nan)
    weights = two_hop_sums_of_lists(SMALL, flat, starts, degrees, floors, out)
    for i, source in enumerate(sources):
        exact = exact_weights(floors[i] / degrees)
        np.testing.assert_array_equal(weights[starts[i] : starts[i + 1]], exact[lists[i]])
        np.testing.assert_array_equal(exact_weights(floors[i] / degrees[:2], 20), exact[:2])
        np.testing.assert_array_equal(out[i], two_hop_sums(SMALL, source, exact))


@pytest.mark.parametrize("epsilon", [1e70, 1e80, 1e170])
def test_an_epsilon_beyond_all_measure_gives_numbers(epsilon):
    mechanism = TwoHop(epsilon=epsilon)
    prepared, noise = prepared_by(mechanism, GRAPH)
    assert np.isfinite(mechanism.rows(prepared, [0, 5], noise)).all()
