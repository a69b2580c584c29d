"""The audit accuses mechanisms that are broken, and no others."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.mechanisms import (
    MECHANISMS,
    Aggregation,
    DegreePrior,
    DPEmbeddingSparse,
    DPInstantEmbedding,
    DPPushFlow,
    DPPushFlowCap,
    DPSparsePPR,
    EdgeFlipping,
    NonPrivate,
    OwnListEmbedding,
    OwnNeighbours,
    Suggest,
    TwoHop,
)
from edgeveil.mechanisms.hard_pairs import graph_of_pairs, two_cliques, wedge
from edgeveil.privacy import statistic
from edgeveil.privacy.noise import NoiseSource, add_laplace_to_rows
from edgeveil.testing import AuditResult, Pair, audit, verdict
from edgeveil.testing.guessing import fit_guesser
from edgeveil.testing.verdict import draw_rows
from edgeveil.testing.worst_pairs import worst_pair
from experiments.forward_cap import DPForwardCap
from experiments.graph_diffusion import GraphDiffusion

# For these parameters one edge moves the flow by sigma, to six digits.
TIGHT = {"epsilon": 1.0, "sigma": 1e-7, "restart": 0.999, "rounds": 1, "prepush": True}
# For these by three quarters of it: too little to tell, too much to search for a better pair.
MILD = {"epsilon": 1.0, "restart": 0.7, "rounds": 3}
# A correct mechanism would be accused with probability 0.001. All noise here is seeded.
SURE = 0.999
PREPUSH = {"epsilon": 1.0, "rounds": 1, "prepush": True}

AUDITED = [  # mechanism, trials, share of the claim that the audit has to reach
    (DPPushFlowCap(**TIGHT), 4_000, 0.7),
    (DPPushFlowCap(epsilon=1, restart=0.98, rounds=2), 4_000, 0.5),
    (DPPushFlowCap(epsilon=1), 200, 0.0),
    (DPPushFlowCap(epsilon=1, restart=0.98, rounds=1, model="public"), 4_000, 0.1),
    (DPPushFlowCap(epsilon=1, restart=0.6, rounds=None), 4_000, 0.5),
    (DPForwardCap(epsilon=1, restart=0.9, rounds=3), 4_000, 0.35),
    (GraphDiffusion(epsilon=1, steps=2, eta=1e-3), 3_000, 0.3),
    (DPPushFlow(epsilon=1, promised_min_degree=2), 200, 0.0),
    (DPPushFlow(epsilon=1, promised_min_degree=8, restart=0.98, model="public"), 4_000, 0.1),
    (DPSparsePPR(sigma=0.014, restart=0.8, **PREPUSH), 200, 0.0),
    (DPInstantEmbedding(sigma=1e-3, restart=0.9, dimension=4, **PREPUSH), 4_000, 0.5),
    (DPEmbeddingSparse(sigma=1e-3, restart=0.9, dimension=4, **PREPUSH), 8_000, 0.15),
    (EdgeFlipping(epsilon=1), 1_000, 0.5),
    (EdgeFlipping(epsilon=1, model="public"), 200, 0.0),  # the coins of the one above
    (DegreePrior(epsilon=4), 500, 0.3),
    (DegreePrior(epsilon=4, model="public"), 500, 0.3),
    (TwoHop(epsilon=4), 500, 0.15),
    (Suggest(epsilon=4), 100, 0.0),
    (Aggregation(epsilon=4), 500, 0.15),
    (OwnNeighbours(), 100, 0.0),
    (OwnListEmbedding(dimension=4), 100, 0.0),
    (NonPrivate(), 100, 0.0),
]


@pytest.mark.parametrize(
    ("mechanism", "trials", "share"), AUDITED, ids=lambda x: getattr(x, "name", None)
)
def test_audit_accuses_no_sound_mechanism(mechanism, trials, share, figure):
    """On tight pairs the lower bound reaches most of the claim."""
    pair = worst_pair(mechanism, steps=100)
    noise = NoiseSource.insecure(4)
    result = audit(mechanism, pair=pair, trials=trials, confidence=SURE, noise=noise)
    assert result.consistent, str(result)
    if share:
        assert result.lower_bound > share * result.claimed, str(result)
    parameters = ", ".join(f"{k}={v}" for k, v in asdict(mechanism).items())
    figure(f"audit, {mechanism.name} ({parameters})", str(result))


def test_every_mechanism_is_audited():
    assert {type(mechanism) for mechanism, _, _ in AUDITED} == {
        *MECHANISMS,
        DPForwardCap,
        GraphDiffusion,
    }


# -- broken mechanisms ----------------------------------------------------------------------


def spoiled(mechanism, **changes):
    """A correct mechanism with other parameters."""
    return DPPushFlowCap(**asdict(mechanism) | changes)


class TooLittleNoise(DPPushFlowCap):
    """Five percent less noise than claimed."""

    def calibration(self, n_nodes):
        return spoiled(self, epsilon=1.05 * self.epsilon).calibration(n_nodes)


class CapTooLarge(DPPushFlowCap):
    """Flow capped for 1.25 sigma, noise for sigma: the sensitivity is understated by a fifth."""

    def exact_rows(self, graph, sources):
        return spoiled(self, sigma=1.25 * self.sigma).exact_rows(graph, sources)


class ClaimsNothing(DPPushFlowCap):
    """Claims that nobody's edges can be seen."""

    def guarantee(self, n_members):
        return replace(super().guarantee(n_members), epsilon=0.0)


class TenPercentTooLittle(DPPushFlowCap):
    """Ten percent less noise than claimed."""

    def calibration(self, n_nodes):
        return spoiled(self, epsilon=1.1 * self.epsilon).calibration(n_nodes)


def test_ten_percent_too_little_noise_is_a_violation():
    # At this epsilon a game tells most for its price; with 20,000 trials, four of five seeds do.
    # (Five percent take the game four times as many; the exact layer sees them below.)
    options = {"trials": 30_000, "confidence": SURE, "noise": NoiseSource.insecure(1)}
    result = audit(TenPercentTooLittle(**TIGHT | {"epsilon": 3.0}), **options)
    assert not result.consistent, str(result)
    assert result.exact_loss == pytest.approx(3.3, rel=1e-3)
    assert 3 < result.lower_bound <= 3.3


def test_exact_layer_finds_too_little_noise_without_trials():
    result = audit(TooLittleNoise(**TIGHT), trials=100, noise=NoiseSource.insecure(1))
    assert result.lower_bound < 1
    assert not result.consistent


def test_sound_mechanism_is_no_violation():
    options = {"trials": 10_000, "confidence": SURE, "noise": NoiseSource.insecure(1)}
    result = audit(DPPushFlowCap(**TIGHT | {"epsilon": 3.0}), **options)
    assert result.consistent, str(result)
    assert result.lower_bound > 2.6
    assert result.conclusive


def test_a_sensitivity_understated_by_a_fifth_is_a_violation():
    noise = NoiseSource.insecure(2)
    result = audit(CapTooLarge(**TIGHT), trials=15_000, confidence=SURE, noise=noise)
    assert not result.consistent, str(result)
    assert result.exact_loss == pytest.approx(1.25, rel=1e-3)
    assert 1 < result.lower_bound <= 1.25


def test_error_in_drawing_is_found_by_the_game_only(monkeypatch):
    def half(rows, calibration, noises):
        exact = rows.copy()
        add_laplace_to_rows(rows, calibration, noises)
        rows += exact
        rows /= 2

    monkeypatch.setattr(statistic, "add_laplace_to_rows", half)
    noise = NoiseSource.insecure(3)
    result = audit(DPPushFlowCap(**TIGHT), trials=2_000, confidence=SURE, noise=noise)
    assert result.exact_loss <= 1
    assert result.lower_bound > 1
    assert not result.consistent, str(result)


def test_trials_do_not_depend_on_batches(monkeypatch):
    """Each has noise of its own: a bound from trials that share noise would be wrong."""
    pair, noise = wedge(), NoiseSource.insecure(3)
    for mechanism in (DPPushFlowCap(**TIGHT), TwoHop(epsilon=1)):
        drawn = []
        for batch in (1, 7, 1024):
            monkeypatch.setattr(verdict, "_BATCH", batch)
            drawn.append(draw_rows(mechanism, pair.graph, 0, 20, noise, lambda _: None))
        assert len(np.unique(drawn[0], axis=0)) == 20
        np.testing.assert_array_equal(drawn[1], drawn[0])
        np.testing.assert_array_equal(drawn[2], drawn[0])


def test_a_false_claim_of_zero_is_a_violation():
    result = audit(ClaimsNothing(**TIGHT), trials=100, noise=NoiseSource.insecure(3))
    assert not result.consistent
    assert result.exact_loss == pytest.approx(1, rel=1e-3)
    assert "VIOLATION" in str(result)


# -- the bound ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_lower_bound_exceeds_truth_as_rarely_as_claimed(epsilon):
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
        guesser = fit_guesser(first[0], second[0], games=games - split, confidence=0.8)
        too_high += guesser.certify(first[1], second[1], 0.8) > epsilon
    # Three standard deviations above a fifth.
    assert too_high <= audits * 0.2 + 3 * math.sqrt(audits * 0.16)


def test_verdict_of_a_tight_mechanism_never_accuses(monkeypatch):
    """300 audits of plain Laplace noise: the 95 % bound exceeds the claim in some of them."""
    pair, rng = wedge(), np.random.default_rng(1)

    def plain(mechanism, graph, source, trials, noise, report):
        centre = mechanism.epsilon * (graph is pair.neighbour)
        return rng.laplace(loc=centre, size=(trials, 1))

    monkeypatch.setattr(verdict, "draw_rows", plain)
    options = {"pair": pair, "trials": 1_000}
    results = [
        audit(DPPushFlowCap(**TIGHT), noise=NoiseSource.insecure(seed), **options)
        for seed in range(300)
    ]
    assert sum(result.lower_bound > result.claimed for result in results) >= 3
    assert all(result.consistent for result in results)
    # It is no blunt verdict: most of the claim is proved, and three times the loss is accused.
    assert np.median([result.verdict_bound for result in results]) > 0.4
    tight = DPPushFlowCap(**TIGHT)
    monkeypatch.setattr(
        verdict,
        "draw_rows",
        lambda mechanism, *rest: plain(spoiled(mechanism, epsilon=3.0), *rest),
    )
    assert not audit(tight, noise=NoiseSource.insecure(0), **options).consistent


def test_ten_times_the_trials_prove_more():
    bounds = [
        audit(
            DPPushFlowCap(**TIGHT), trials=trials, confidence=SURE, noise=NoiseSource.insecure(8)
        ).lower_bound
        for trials in (1_000, 10_000)
    ]
    assert bounds[0] < bounds[1] < 1


# -- the verdict ----------------------------------------------------------------------------


MADE = {"confidence": 0.95, "trials": 100_000, "pair": "two graphs on 3 nodes"}


def test_the_verdict_has_a_line_for_each_layer():
    bounds = {"exact_loss": 0.999, "lower_bound": 0.97, "verdict_bound": 0.94}
    assert str(AuditResult(claimed=1.0, **bounds, **MADE)) == (
        "claimed epsilon 1.000: exact loss of the noised numbers 0.999 on two graphs on 3 nodes\n"
        "claimed epsilon 1.000: guessing from releases proves at least 0.970 at 95 % confidence, "
        "0.940 at the verdict's (100,000 trials)\n"
        "consistent"
    )
    for layers in (
        {"exact_loss": 1.05, "lower_bound": 0.2},
        {"exact_loss": 0.9, "lower_bound": 1.03, "verdict_bound": 1.01},
    ):
        result = AuditResult(claimed=1.0, **layers, **MADE)
        assert not result.consistent
        assert "VIOLATION: more is learnt than is claimed" in str(result)
    assert AuditResult(claimed=1.0, exact_loss=0.9, lower_bound=1.03, **MADE).consistent
    assert "nothing is claimed" in str(audit(NonPrivate()))


def test_a_verdict_that_could_not_have_failed_says_so():
    blind = AuditResult(claimed=1.0, exact_loss=0.25, lower_bound=0.1, **MADE)
    assert not blind.conclusive
    assert "25% of the claim: noise that is too small by less than a factor of 4.0" in str(blind)
    assert str(blind).endswith("no pair of graphs is known on which this could have failed")
    none = AuditResult(claimed=1.0, exact_loss=0.0, lower_bound=0.0, **MADE)
    assert "nothing would show here" in str(none)
    tight = AuditResult(claimed=1.0, exact_loss=0.95, lower_bound=0.1, **MADE)
    assert str(replace(blind, tight_case=tight)).endswith("\nconsistent")
    broken = replace(tight, exact_loss=1.05)
    assert not replace(blind, tight_case=broken).consistent
    assert str(replace(blind, tight_case=broken)).endswith("once in a million audits at most)")


def test_inconclusive_audit_also_plays_the_tight_case():
    given = audit(DPPushFlowCap(**MILD), trials=200, noise=NoiseSource.insecure(1))
    assert not given.conclusive
    assert given.tight_case is not None
    assert given.tight_case.conclusive
    assert given.consistent
    assert (
        audit(DPPushFlowCap(**TIGHT), trials=200, noise=NoiseSource.insecure(1)).tight_case is None
    )


def test_mild_parameters_errors_are_seen_in_the_tight_case():
    result = audit(TooLittleNoise(**MILD), trials=200, noise=NoiseSource.insecure(1))
    assert not result.conclusive
    assert not result.consistent
    assert not result.tight_case.consistent


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
