"""The audit accuses mechanisms that are broken, and no others."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import pytest

from edgeveil.auditing import AuditResult, Pair, audit
from edgeveil.auditing.guessing import learn
from edgeveil.auditing.worst_pairs import two_cliques, wedge
from edgeveil.errors import ParameterError
from edgeveil.mechanisms import (
    MECHANISMS,
    DegreePrior,
    DPEmbeddingSparse,
    DPForwardCap,
    DPInstantEmbedding,
    DPPushFlow,
    DPPushFlowCap,
    DPSparsePPR,
    EdgeFlipping,
    GraphDiffusion,
    NonPrivate,
    OwnNeighbours,
    TwoHop,
    TwoHopEmbedding,
)
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource, add_laplace, calibrate

# For these parameters one edge moves the flow by sigma, to six digits.
TIGHT = {"epsilon": 1.0, "sigma": 1e-7, "restart": 0.999, "rounds": 1, "prepush": True}
# A correct mechanism would be accused with probability 0.001. All noise here is seeded.
SURE = 0.999
PREPUSH = {"epsilon": 1.0, "rounds": 1, "prepush": True}

AUDITED = [  # mechanism, trials, share of the claim that the audit has to reach
    (DPPushFlowCap(**TIGHT), 20_000, 0.8),
    (DPPushFlowCap(epsilon=1, restart=0.98, rounds=2), 20_000, 0.7),
    (DPPushFlowCap(epsilon=1), 5_000, 0.0),
    (DPPushFlowCap(epsilon=1, restart=0.98, rounds=1, model="public"), 20_000, 0.4),
    (DPPushFlowCap(epsilon=1, restart=0.6, rounds=None), 20_000, 0.7),
    (DPForwardCap(epsilon=1, restart=0.9, rounds=3), 20_000, 0.5),
    (GraphDiffusion(epsilon=1, steps=2, eta=1e-3), 3_000, 0.4),
    (DPPushFlow(epsilon=1, promised_min_degree=2), 5_000, 0.0),
    (DPPushFlow(epsilon=1, promised_min_degree=8, restart=0.98, model="public"), 20_000, 0.3),
    (DPSparsePPR(sigma=0.014, restart=0.8, **PREPUSH), 10_000, 0.15),
    (DPInstantEmbedding(sigma=1e-3, restart=0.9, dimension=4, **PREPUSH), 20_000, 0.7),
    (DPEmbeddingSparse(sigma=1e-3, restart=0.9, dimension=4, **PREPUSH), 8_000, 0.2),
    (EdgeFlipping(epsilon=1), 2_000, 0.7),
    (EdgeFlipping(epsilon=1, model="public"), 2_000, 0.7),
    (DegreePrior(epsilon=4), 1_000, 0.5),
    (DegreePrior(epsilon=4, model="public"), 1_000, 0.5),
    (TwoHop(epsilon=4), 1_000, 0.3),
    (TwoHopEmbedding(epsilon=4), 1_000, 0.3),
    (OwnNeighbours(), 100, 0.0),
    (NonPrivate(), 100, 0.0),
]


@pytest.mark.parametrize(
    ("mechanism", "trials", "share"), AUDITED, ids=lambda x: getattr(x, "name", None)
)
def test_no_mechanism_is_accused_and_tight_pairs_show_most_of_the_claim(
    mechanism, trials, share, figure
):
    result = audit(mechanism, trials=trials, noise=NoiseSource.insecure(4))
    assert result.consistent, str(result)
    if share:
        assert result.lower_bound > share * result.claimed, str(result)
    parameters = ", ".join(f"{k}={v}" for k, v in asdict(mechanism).items())
    figure(f"audit, {mechanism.name} ({parameters})", str(result))


def test_every_mechanism_is_audited():
    assert {type(mechanism) for mechanism, _, _ in AUDITED} == set(MECHANISMS)


# -- broken mechanisms ----------------------------------------------------------------------


class TooLittleNoise(DPPushFlowCap):
    """Five percent less noise than claimed."""

    def rows(self, prepared, sources, noise):
        honest = DPPushFlowCap(**asdict(self) | {"epsilon": 1.05 * self.epsilon})
        return honest.rows(prepared, sources, noise)


class CapTooLarge(DPPushFlowCap):
    """Flow capped for 1.25 sigma, noise for sigma: the sensitivity is understated by a fifth."""

    def rows(self, prepared, sources, noise):
        larger = {"sigma": 1.25 * self.sigma, "epsilon": 1.25 * self.epsilon}
        return DPPushFlowCap(**asdict(self) | larger).rows(prepared, sources, noise)


class SameNoiseTwice(DPPushFlowCap):
    """Draws the stream of a row a second time, and so takes its noise away again."""

    def rows(self, prepared, sources, noise):
        rows = super().rows(prepared, sources, noise)
        n = prepared.n_nodes
        # As much noise as in `rows`, but for the share of the float error: some 0.000003 %.
        again = calibrate(coordinates=n, sensitivity=self.sigma, epsilon=self.epsilon)
        for row, source in zip(rows, sources, strict=True):
            row -= add_laplace(np.zeros(n), again, noise.derive("row", int(source)))
        return rows


class RepeatedNoise(DPPushFlowCap):
    """One draw for all rows of a call: trials of one call are not independent."""

    def rows(self, prepared, sources, noise):
        row = super().rows(prepared, sources[:1], noise)
        return np.repeat(row, len(sources), axis=0)


@dataclass(frozen=True, kw_only=True)
class TwoSteps:
    """Counts the paths of two steps and claims that nobody's edges can be seen."""

    name = "two-steps"
    columns = "nodes"

    def guarantee(self, n_sources):
        return Guarantee(epsilon=0.0, model="joint", theorem="none", n_sources=n_sources)

    def prepare(self, graph, noise):
        return graph

    def rows(self, prepared, sources, noise):
        adjacency = prepared.adjacency()
        return (adjacency @ adjacency).toarray()[list(sources)]


def test_five_percent_too_little_noise_is_a_violation():
    noise = NoiseSource.insecure(1)
    result = audit(TooLittleNoise(**TIGHT), trials=150_000, confidence=SURE, noise=noise)
    assert not result.consistent, str(result)
    assert 1 < result.lower_bound <= 1.05


def test_the_same_mechanism_with_all_its_noise_is_none():
    noise = NoiseSource.insecure(1)
    result = audit(DPPushFlowCap(**TIGHT), trials=50_000, confidence=SURE, noise=noise)
    assert result.consistent, str(result)
    assert result.lower_bound > 0.9


def test_a_sensitivity_understated_by_a_fifth_is_a_violation():
    noise = NoiseSource.insecure(2)
    result = audit(CapTooLarge(**TIGHT), trials=20_000, confidence=SURE, noise=noise)
    assert not result.consistent, str(result)
    assert 1 < result.lower_bound <= 1.25


def test_noise_that_is_drawn_twice_is_seen_although_trials_are_run_in_batches():
    noise = NoiseSource.insecure(3)
    result = audit(SameNoiseTwice(**TIGHT), trials=500, confidence=SURE, noise=noise)
    assert result.lower_bound > 3, str(result)


def test_trials_that_would_share_noise_are_run_one_by_one():
    noise = NoiseSource.insecure(3)
    result = audit(RepeatedNoise(**TIGHT), trials=2_000, confidence=SURE, noise=noise)
    assert result.consistent, str(result)


def test_a_false_claim_of_zero_is_a_violation():
    result = audit(TwoSteps(), trials=1_000, confidence=SURE, noise=NoiseSource.insecure(3))
    assert not result.consistent
    assert result.lower_bound > 3


# -- the bound ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_lower_bound_exceeds_the_truth_no_more_often_than_it_says(epsilon):
    """Plain Laplace noise whose epsilon is known, 300 audits at 80 % confidence."""
    rng = np.random.default_rng(6)
    audits, games, too_high = 300, 1_000, 0
    for _ in range(audits):
        coins = rng.random(games) < 0.5
        rows = rng.laplace(size=(games, 2))
        rows[coins] += epsilon / 2
        split = games // 5
        first, second = (
            (rows[:split][mine[:split]], rows[split:][mine[split:]]) for mine in (~coins, coins)
        )
        guesser = learn(first[0], second[0], games=games - split, confidence=0.8)
        too_high += guesser.certify(first[1], second[1], 0.8) > epsilon
    # Three standard deviations above a fifth.
    assert too_high <= audits * 0.2 + 3 * math.sqrt(audits * 0.16)


def test_ten_times_the_trials_prove_more():
    bounds = [
        audit(DPPushFlowCap(**TIGHT), trials=trials, noise=NoiseSource.insecure(8)).lower_bound
        for trials in (1_000, 10_000)
    ]
    assert bounds[0] < bounds[1] < 1


# -- the verdict ----------------------------------------------------------------------------


def test_the_verdict_is_one_sentence():
    made = {"confidence": 0.95, "trials": 100_000, "pair": "two graphs on 3 nodes"}
    assert str(AuditResult(claimed=1.0, lower_bound=0.97, **made)) == (
        "claimed epsilon 1.00, audited lower bound 0.97 at 95 % confidence (100,000 trials): "
        "consistent"
    )
    assert str(AuditResult(claimed=1.0, lower_bound=1.0304, **made)) == (
        "VIOLATION: claimed epsilon 1.000, but it is at least 1.030 at 95 % confidence "
        "(100,000 trials)"
    )
    assert "nothing is claimed" in str(audit(NonPrivate()))


def test_progress_counts_up_to_all_runs():
    seen = []
    audit(DPPushFlowCap(**TIGHT), trials=1_500, progress=lambda *x: seen.append(x))
    assert seen == sorted(seen)
    assert seen[-1] == (3_000, 3_000)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (Pair(graph=wedge().graph, neighbour=wedge(4).graph, source=0), "same nodes"),
        (Pair(graph=wedge().graph, neighbour=wedge().graph, source=0), "exactly one edge"),
        (
            Pair(graph=graph_of_pairs(3, []), neighbour=wedge().neighbour, source=0),
            "exactly one edge",
        ),
        (two_cliques(1, 2, at_source=True), "must not differ at the source"),
        (Pair(graph=wedge().graph, neighbour=wedge().neighbour, source=3), "index in 0 .. 2"),
    ],
)
def test_graphs_that_the_guarantee_does_not_compare_are_refused(pair, message):
    with pytest.raises(ParameterError, match=message):
        audit(DPPushFlowCap(epsilon=1), pair=pair)


@pytest.mark.parametrize("wrong", [{"trials": 10}, {"confidence": 1.0}, {"confidence": 0.3}])
def test_senseless_arguments_are_refused(wrong):
    with pytest.raises(ParameterError):
        audit(DPPushFlowCap(epsilon=1), **wrong)
