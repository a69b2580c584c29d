"""The paper's observations, lemmas and examples, each as a test on its own algorithm."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.flow import (
    lazy_restart,
    personalized_pagerank,
    push_flow,
    push_flow_cap,
)
from edgeveil.flow.bounds import edge_cap
from edgeveil.jobs import release
from edgeveil.mechanisms import DPPushFlow, DPPushFlowCap, DPSparsePPR
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from edgeveil.privacy.noise import NoiseSource
from tests import oracle
from tests.strategies import graphs_with_source, restarts, sigmas

CLOSE = {"rtol": 1e-11, "atol": 1e-14}
NOISE = NoiseSource.insecure(11)


@given(graphs_with_source(8), restarts, sigmas, st.booleans(), st.integers(1, 25))
def test_observation_4_1(graph_source, restart, sigma, joint, rounds):
    graph, source = graph_source
    alpha = lazy_restart(restart)
    cap = edge_cap(sigma, alpha, rounds)
    trace = oracle.push_flow_cap(graph, source, alpha, rounds, cap, joint)
    f, h, r, p = (np.array(rows) for rows in (trace.f, trace.h, trace.r, trace.p))
    caps = graph.degrees * cap
    if joint:
        caps[source] = np.inf
    # The paper's sum counts what a capped node could not push once more in every round. That
    # does no harm (the minimum is the cap then), but the recursion lemma needs what arrived.
    arrived = np.vstack([r[:1], r[1:] - (r[:-1] - f[1:])])
    for i in range(1, rounds + 1):
        np.testing.assert_allclose(h[i], f[1 : i + 1].sum(axis=0), **CLOSE)
        np.testing.assert_allclose(h[i], np.minimum(r[:i].sum(axis=0), caps), **CLOSE)
        np.testing.assert_allclose(h[i], np.minimum(arrived[:i].sum(axis=0), caps), **CLOSE)
        np.testing.assert_allclose(p[i], alpha * h[i], **CLOSE)
        assert (f[i] >= 0).all()


@given(graphs_with_source(8), restarts, sigmas, st.booleans(), st.integers(1, 25))
def test_lemma_4_2_the_recursion_on_the_pushed_flow(graph_source, restart, sigma, joint, rounds):
    graph, source = graph_source
    alpha = lazy_restart(restart)
    cap = edge_cap(sigma, alpha, rounds)
    start = np.zeros(graph.n_nodes)
    start[source] = 1
    trace = oracle.push_flow_cap(graph, source, alpha, rounds, cap, joint)
    recursion = oracle.capped_recursion(graph, start, source, alpha, rounds, cap, joint)
    np.testing.assert_allclose(trace.h[-1], recursion, **CLOSE)
    h = np.array(trace.h)
    assert (h[1:] >= h[:-1] - 1e-15).all(), "the pushed flow never decreases"


@given(graphs_with_source(10), restarts, st.integers(1, 40))
def test_push_flow_is_a_xi_approximation(graph_source, restart, rounds):
    """p = PageRank of (s - r) with 0 <= r <= xi (Lemma 3.1)."""
    graph, source = graph_source
    alpha = lazy_restart(restart)
    trace = oracle.push_flow(graph, source, alpha, rounds)
    residual = np.array(trace.r[-1])
    assert residual.min() >= 0
    assert residual.max() <= math.exp(-lazy_restart(restart) * rounds) + 1e-15
    np.testing.assert_allclose(residual.sum(), (1 - alpha) ** rounds, **CLOSE)
    exact = [oracle.pagerank(graph, v, alpha) for v in range(graph.n_nodes)]
    np.testing.assert_allclose(
        trace.output, exact[source] - residual @ np.array(exact), rtol=0, atol=1e-12
    )


# -- accuracy: on graphs of high degree, and of what is released there ---------------------------

RESTART, ROUNDS = 0.15, 60
ALPHA = lazy_restart(RESTART)


def _clique(n):
    return graph_of_pairs(n, list(combinations(range(n), 2)))


def _dense(n, seed):
    """A random graph with 4 of 5 pairs."""
    pairs = np.array(list(combinations(range(n), 2)))
    kept = np.random.default_rng(seed).random(len(pairs)) < 0.8
    return graph_of_pairs(n, [tuple(map(int, pair)) for pair in pairs[kept]])


def _threshold_sigma(graph, model, rounds=ROUNDS):
    """The sigma at which the minimum degree D of the graph is just what Lemma 4.4 asks for.

    D = sqrt(1 / (alpha T)) in the joint, 1 / (alpha T) in the public model, with the paper's
    T = sigma / ((3 - alpha) (1 - (1 - alpha)^R)).
    """
    least = int(graph.degrees.min())
    cap = 1 / (ALPHA * (least if model == "public" else least**2))
    return math.nextafter(cap * (3 - ALPHA) * (1 - (1 - ALPHA) ** rounds), 1)


GRAPHS = {
    "clique": _clique(41),
    "dense": _dense(40, seed=1),
    "bipartite": graph_of_pairs(24, [(u, v) for u in range(12) for v in range(12, 24)]),
    "two cliques, joined": graph_of_pairs(
        16,
        [*combinations(range(8), 2), *combinations(range(8, 16), 2), (0, 8)],
    ),
}


@pytest.mark.parametrize("model", ["joint", "public"])
@pytest.mark.parametrize("name", GRAPHS)
def test_lemma_4_4_at_its_own_threshold_the_cap_changes_nothing(name, model):
    graph, paper = GRAPHS[name], {"model": model, "rounds": ROUNDS, "bound": "paper"}
    sigma = _threshold_sigma(graph, model)
    least = graph.degrees.min()
    cap = edge_cap(sigma, ALPHA, ROUNDS, "paper")
    asked = 1 / (ALPHA * cap) if model == "public" else math.sqrt(1 / (ALPHA * cap))
    assert asked == pytest.approx(least, rel=1e-12)
    sources = range(graph.n_nodes)
    uncapped = push_flow(graph, sources, rounds=ROUNDS)
    np.testing.assert_array_equal(push_flow_cap(graph, sources, sigma=sigma, **paper), uncapped)
    # A cap just below what the busiest node pushes along each of its edges changes something.
    pushed = uncapped / (ALPHA * graph.degrees)
    if model == "joint":
        np.fill_diagonal(pushed, 0)
    less = sigma * 0.99 * pushed.max() / cap
    capped = push_flow_cap(graph, sources, sigma=less, **paper)
    assert np.abs(capped - uncapped).max() > 1e-5


@cache
def _approximated(graph):
    """What a release is held against: PageRank of s - r with 0 <= r <= xi (Lemma 3.1)."""
    exact = personalized_pagerank(graph, range(graph.n_nodes), restart=RESTART, tol=1e-13)
    rows = []
    for source in range(graph.n_nodes):
        residual = np.array(oracle.push_flow(graph, source, ALPHA, ROUNDS).r[-1])
        assert residual.min() >= 0
        assert residual.max() <= math.exp(-ALPHA * ROUNDS)
        rows.append(exact[source] - residual @ exact)
    return np.array(rows)


def _distances(graph, mechanism, repeats):
    """How far released rows are from the approximated ones, in the largest coordinate."""
    targets, sources = _approximated(graph), range(graph.n_nodes)
    rows = [
        release(graph, mechanism, sources, noise=NOISE.derive("far", i)).values
        for i in range(repeats)
    ]
    return np.abs(np.array(rows) - targets).max(axis=2)


def _expected(share, trials):
    """Five standard deviations around a share."""
    return pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / trials))


def _check_laplace_distances(distances, scale, n):
    """All n coordinates within scale ln(n / delta), but for a share delta of the rows."""
    for delta in (0.5, 0.1):
        far = (distances > scale * math.log(n / delta)).mean()
        assert far <= delta
        # Not by luck: it is the share that independent Laplace variables of this scale give.
        assert far == _expected(1 - (1 - delta / n) ** n, distances.size)


@pytest.mark.parametrize("model", ["joint", "public"])
def test_corollary_4_6_accuracy_of_the_released_capped_flow(model):
    """Within (sigma / epsilon) ln(n / delta) of a xi-approximation with probability 1 - delta."""
    graph, epsilon = GRAPHS["dense"], 2.0
    n, sigma = graph.n_nodes, _threshold_sigma(graph, model)
    options = {"epsilon": epsilon, "model": model, "rounds": ROUNDS, "bound": "paper"}
    distances = _distances(graph, DPPushFlowCap(sigma=sigma, **options), 40)
    _check_laplace_distances(distances, sigma / epsilon, n)
    # The degree is needed: at a sigma for which it is too low, no row is that accurate.
    low = sigma / 100
    distances = _distances(graph, DPPushFlowCap(sigma=low, **options), 1)
    assert distances.min() > low / epsilon * math.log(n / 0.1)


@pytest.mark.parametrize("model", ["joint", "public"])
def test_corollary_d_1_accuracy_of_the_released_uncapped_flow(model):
    """The same without caps, with the sensitivity of Theorem 3.2 for sigma."""
    graph, epsilon = GRAPHS["dense"], 2.0
    least = int(graph.degrees.min())
    sensitivity = 2 * (1 - ALPHA) / (ALPHA * (least if model == "public" else least**2))
    mechanism = DPPushFlow(
        epsilon=epsilon, promised_min_degree=least, model=model, rounds=ROUNDS, bound="paper"
    )
    distances = _distances(graph, mechanism, 40)
    _check_laplace_distances(distances, sensitivity / epsilon, graph.n_nodes)


def _choices(graph, sigma, epsilon, repeats):
    """The flow that algorithm 6 chooses from, its threshold, and the chosen sets of releases."""
    mechanism = DPSparsePPR(sigma=sigma, epsilon=epsilon, rounds=ROUNDS, bound="paper")
    flow = push_flow_cap(graph, range(graph.n_nodes), sigma=sigma, rounds=ROUNDS, bound="paper")
    chosen = [
        release(graph, mechanism, range(graph.n_nodes), noise=NOISE.derive("sets", i)).values != 0
        for i in range(repeats)
    ]
    return flow, 3 * sigma * math.log(graph.n_nodes) / (epsilon / 2), np.array(chosen)


def test_lemma_i_2_small_entries_are_left_out():
    """At the hardest place, just below gamma / 3, each enters with probability 1 / (2 n^2)."""
    graph, repeats = _clique(6), 600
    n, sigma = graph.n_nodes, _threshold_sigma(graph, "joint")
    other = push_flow(graph, [0], rounds=ROUNDS)[0, 1]
    epsilon = 2 * sigma * math.log(n) / (other * (1 + 1e-6))  # gamma / 3 = other (1 + 1e-6)
    flow, gamma, chosen = _choices(graph, sigma, epsilon, repeats)
    small = flow < gamma / 3
    assert small.sum() == n * (n - 1)
    broken = (chosen & small).any(axis=2).mean()
    assert broken <= 1 / n
    assert broken == _expected(1 - (1 - 1 / (2 * n**2)) ** (n - 1), n * repeats)
    kept_promise = ~(chosen & small).any(axis=2)
    assert (chosen.sum(axis=2)[kept_promise] <= 3 / gamma).all()


def test_lemma_i_2_large_entries_are_kept():
    """At the hardest place, 2 gamma, each is lost with probability 1 / (2 n^3)."""
    graph, repeats = _clique(4), 800
    n, sigma = graph.n_nodes, _threshold_sigma(graph, "joint")
    other = push_flow(graph, [0], rounds=ROUNDS)[0, 1]
    epsilon = 12 * sigma * math.log(n) / (other * (1 - 1e-6))  # 2 gamma = other (1 - 1e-6)
    flow, gamma, chosen = _choices(graph, sigma, epsilon, repeats)
    assert (flow >= 2 * gamma).all()
    broken = (~chosen).any(axis=2).mean()
    assert broken <= 1 / n
    assert broken == _expected(1 - (1 - 1 / (2 * n**3)) ** (n - 1), n * repeats)


@pytest.mark.parametrize("model", ["joint", "public"])
def test_theorem_j_1_accuracy_and_sparsity_of_sparse_releases(model):
    """Within 2 gamma of a xi-approximation with at most 3 / gamma entries, but for 2 / n."""
    graph, repeats = GRAPHS["dense"], 20
    n, sigma = graph.n_nodes, _threshold_sigma(graph, model)
    other = np.median(push_flow(graph, [0], rounds=ROUNDS))
    epsilon = 6 * sigma * math.log(n) / other  # gamma is the median entry: some are chosen
    gamma = 6 * sigma * math.log(n) / epsilon
    options = {"epsilon": epsilon, "model": model, "rounds": ROUNDS, "bound": "paper"}
    mechanism = DPSparsePPR(sigma=sigma, **options)
    distances = _distances(graph, mechanism, repeats)
    assert (distances > 2 * gamma).mean() <= 2 / n
    entries = np.array(
        [
            np.count_nonzero(release(graph, mechanism, range(n), noise=NOISE.derive(i)).values, 1)
            for i in map(str, range(repeats))
        ]
    )
    assert (entries > 3 / gamma).mean() <= 2 / n
    assert 1 < entries.mean() < n, "neither nothing nor everything is chosen"
    # It is no empty statement: a fiftieth of the distance holds for no row, and where the degree
    # is too low for sigma, neither does the distance.
    assert distances.min() > gamma / 25
    low = DPSparsePPR(sigma=sigma / 100, **options)
    assert _distances(graph, low, 1).min() > 2 * gamma / 100


@pytest.mark.parametrize("D", [3, 5, 20])
def test_the_appendix_formulas_for_the_clique(D):
    """Lazy alpha = 1/2, clique on D + 1 nodes; edge (s, x) or (x, y) removed."""
    s, x, y = 0, 1, 2
    restart = 2 * Fraction(1, 2) / (1 + Fraction(1, 2))
    clique = graph_of_pairs(D + 1, list(combinations(range(D + 1), 2)))

    def rank(graph):
        return personalized_pagerank(graph, [s], restart=float(restart), tol=1e-13)[0]

    p = rank(clique)
    expected = np.full(D + 1, 1 / (3 * D + 1))
    expected[s] = (2 * D + 1) / (3 * D + 1)
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-12)

    p = rank(clique.with_edge_flipped(s, x))
    expected = np.full(D + 1, D / (3 * D**2 - D - 2))  # printed with + 2, which does not sum to 1
    expected[s], expected[x] = (6 * D + 5) / (9 * D + 6), 1 / (9 * D + 6)
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-12)

    p = rank(clique.with_edge_flipped(x, y))
    bottom = 9 * D**3 - 7 * D - 2
    expected = np.full(D + 1, (3 * D**2 - D) / bottom)
    expected[s] = (6 * D**3 + D**2 - 5 * D) / bottom
    expected[[x, y]] = 1 / (3 * D + 2)
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-12)
