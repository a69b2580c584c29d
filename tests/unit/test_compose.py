"""Composition: against exact enumeration, the closed form and dp-accounting."""

import itertools
import math
import random
from fractions import Fraction

import pytest
from dp_accounting.pld import common, privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeveil.errors import ParameterError
from edgeveil.privacy.compose import (
    MOST_CELLS,
    Disclosure,
    coalition_epsilon,
    optimal_epsilon,
    sum_epsilon,
    total_delta,
)
from edgeveil.privacy.guarantee import Guarantee


def peer_epsilon(epsilons, delta, interval=1e-5):
    """Epsilon by dp-accounting's privacy loss distributions, one for each release."""
    total = None
    for epsilon in epsilons:
        one = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, 0),
            value_discretization_interval=interval,
        )
        total = one if total is None else total.compose(one)
    return total.get_epsilon_for_delta(delta)


def exact_delta(ratios, factor):
    """Least delta at epsilon = log(factor) of randomised responses with P(+)/P(-) = ratio.

    All 2^k outcomes are enumerated in rational numbers: sum of max(0, P - factor * Q).
    """
    total = Fraction(0)
    for truth in itertools.product([True, False], repeat=len(ratios)):
        p = q = Fraction(1)
        for keeps, ratio in zip(truth, ratios, strict=True):
            yes, no = ratio / (1 + ratio), 1 / (1 + ratio)
            p, q = (p * yes, q * no) if keeps else (p * no, q * yes)
        total += max(Fraction(0), p - factor * q)
    return total


def log_up(ratio):
    """A float that is not below log(ratio)."""
    return math.nextafter(math.log(ratio), math.inf)


def test_the_sum_is_exact_and_rounded_up():
    many = [0.1] * 10
    exact = 10 * Fraction(0.1)
    assert sum_epsilon(many) >= exact
    assert math.nextafter(sum_epsilon(many), 0) < exact
    assert sum_epsilon([1.0, 2.0**-60]) == 1 + 2.0**-52
    assert sum_epsilon([1e308, 1e308]) == math.inf
    assert sum_epsilon([1.0, math.inf]) == math.inf


def test_without_delta_the_optimum_is_the_sum():
    assert optimal_epsilon([0.1] * 100, 0.0) == sum_epsilon([0.1] * 100)
    assert optimal_epsilon([0.1] * 100, 1e-250) == sum_epsilon([0.1] * 100)


def test_a_hundred_tenths_at_a_millionth_cost_less_than_half_of_their_sum():
    assert 4.774 < optimal_epsilon([0.1] * 100, 1e-6) < 4.78


@pytest.mark.parametrize("k", [1, 2, 5, 30])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0])
def test_equal_epsilons_give_the_closed_form_of_kairouz_oh_viswanath(k, epsilon):
    for i in range(1, (k + 1) // 2):
        terms = (
            math.comb(k, j) * (math.exp((k - j) * epsilon) - math.exp((k - 2 * i + j) * epsilon))
            for j in range(i)
        )
        delta = math.fsum(terms) / (1 + math.exp(epsilon)) ** k
        if delta > 0.9:  # the curve is flat there: rounding delta moves epsilon
            continue
        computed = optimal_epsilon([epsilon] * k, delta * (1 + 1e-9))
        assert computed == pytest.approx((k - 2 * i) * epsilon, rel=1e-6)


@pytest.mark.parametrize(
    ("ratios", "tolerance"),
    [
        ([Fraction(3, 2)] * 8, 1e-8),
        ([Fraction(2)] * 5 + [Fraction(4)] * 3, 1e-8),
        ([Fraction(3, 2), Fraction(2), Fraction(5, 4), Fraction(7, 3), Fraction(11, 10)], 1e-4),
        ([Fraction(10), Fraction(101, 100), Fraction(101, 100)], 1e-4),
    ],
)
@pytest.mark.parametrize("delta", [0.2, 1e-2, 1e-3, 1e-6])
def test_the_bound_holds_and_is_tight_by_exact_enumeration(ratios, tolerance, delta):
    epsilon = optimal_epsilon([log_up(ratio) for ratio in ratios], delta)
    below = Fraction(math.exp(epsilon)) * (1 - Fraction(1, 10**15))
    if epsilon == 0:
        assert exact_delta(ratios, Fraction(1)) <= delta
        return
    # The computed epsilon is valid ...
    assert exact_delta(ratios, max(below, Fraction(1))) <= Fraction(delta) * (
        1 + Fraction(1, 10**12)
    )
    # ... and nothing noticeably smaller is.
    assert exact_delta(ratios, below * (1 - Fraction(tolerance))) > delta


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize(
    "epsilons",
    [
        [0.1] * 100,
        [1.0] * 20,
        [0.1] * 50 + [0.5] * 10 + [1.1] * 3,
        [random.Random(i).uniform(0.01, 0.6) for i in range(30)],
        [3.0, 0.001, 0.02],
    ],
    ids=["tenths", "ones", "three kinds", "all different", "large and small"],
)
def test_dp_accounting_agrees(epsilons, delta):
    ours, peers = optimal_epsilon(epsilons, delta), peer_epsilon(epsilons, delta)
    # Both round up on a grid; the peer's error is at most its interval for each release.
    assert ours <= peers * (1 + 1e-4) + 1e-9
    assert ours >= peers - 1e-5 * len(epsilons) - 1e-9


@settings(deadline=None, max_examples=20)
@given(
    epsilons=st.lists(st.floats(1e-4, 3), min_size=1, max_size=6),
    more=st.floats(0, 2),
    delta=st.floats(1e-12, 0.5),
)
def test_the_optimum_is_at_most_the_sum_and_grows_with_every_release(epsilons, more, delta):
    epsilon = optimal_epsilon(epsilons, delta)
    assert 0 <= epsilon <= sum_epsilon(epsilons)
    # One release more may shift the grid: by less than a step for each release.
    step = sum_epsilon([*epsilons, more]) / MOST_CELLS
    assert optimal_epsilon([*epsilons, more], delta) >= epsilon - step * len(epsilons)
    assert optimal_epsilon(epsilons, delta / 2) >= epsilon


def test_one_release_alone_costs_its_epsilon_less_what_delta_buys():
    # delta at epsilon' is (e^eps - e^eps') / (1 + e^eps), solved for epsilon'.
    expected = math.log(math.e - 0.1 * (1 + math.e))
    assert optimal_epsilon([1.0], 0.1) == pytest.approx(expected, rel=1e-9)
    assert optimal_epsilon([1.0], 0.6) == 0.0


def test_many_releases_of_a_few_kinds_stay_exact():
    ours = optimal_epsilon([1e-3] * 100_000 + [1.3e-3] * 100_000, 1e-6)
    # Almost Gaussian: compare with as many releases of the mean square.
    alike = optimal_epsilon([math.sqrt((1 + 1.3**2) / 2) * 1e-3] * 200_000, 1e-6)
    assert ours == pytest.approx(alike, rel=1e-4)


@pytest.mark.parametrize("wrong", [-1.0, math.nan])
def test_a_wrong_epsilon_is_refused(wrong):
    with pytest.raises(ParameterError):
        sum_epsilon([wrong])
    with pytest.raises(ParameterError):
        optimal_epsilon([wrong], 1e-6)


@pytest.mark.parametrize("wrong", [-1e-9, 1.0, math.nan])
def test_a_wrong_delta_is_refused(wrong):
    with pytest.raises(ParameterError):
        optimal_epsilon([1.0], wrong)
    with pytest.raises(ParameterError):
        coalition_epsilon([], [], wrong)


def public(epsilon, **fields):
    return Disclosure(Guarantee(epsilon=epsilon, model="public", theorem="test", **fields))


def joint(epsilon, *recipients, **fields):
    guarantee = Guarantee(
        epsilon=epsilon, model="joint", theorem="test", n_sources=len(recipients), **fields
    )
    return Disclosure(guarantee, recipients)


RELEASES = [
    public(0.5, n_sources=7),  # the total of all its rows, not the price of one
    joint(1.0, "alice", "bob"),
    joint(0.25, "alice", "carol", pooling="shared"),
]


def test_a_recipient_learns_the_public_releases_and_their_own():
    assert coalition_epsilon(RELEASES, ["alice"]) == 1.75
    assert coalition_epsilon(RELEASES, ["bob"]) == 1.5
    assert coalition_epsilon(RELEASES, ["carol"]) == 0.75
    assert coalition_epsilon(RELEASES, ["dave"]) == coalition_epsilon(RELEASES, []) == 0.5


def test_a_coalition_adds_up_rows_but_shared_noise_once():
    assert coalition_epsilon(RELEASES, ["alice", "bob"]) == 0.5 + 2 + 0.25
    assert coalition_epsilon(RELEASES, ["alice", "carol"]) == 0.5 + 1 + 0.25
    assert coalition_epsilon(RELEASES, ["alice", "bob", "carol", "alice"]) == 0.5 + 2 + 0.25
    assert coalition_epsilon(RELEASES, []) == 0.5


def test_a_coalition_pays_a_shared_part_once():
    partly = joint(1.0, "alice", "bob", "carol", shared_epsilon=0.25)
    assert coalition_epsilon([partly], ["alice"]) == 1.0
    assert coalition_epsilon([partly], []) == 0.0
    assert coalition_epsilon([partly], ["alice", "bob"]) == 0.25 + 2 * 0.75
    assert coalition_epsilon([partly, *RELEASES], ["alice", "bob", "carol"]) == 2.5 + 2.75
    assert coalition_epsilon([partly] * 2, ["alice", "bob"]) == 2 * 1.75
    awkward = joint(1.0, "alice", "bob", shared_epsilon=0.4)
    assert 1.6 <= coalition_epsilon([awkward], ["alice", "bob"]) < 1.6 + 1e-12


def test_somebody_with_two_rows_pays_for_both_unless_the_noise_is_shared():
    assert coalition_epsilon([joint(1.0, "alice", "alice", "bob")], ["alice"]) == 2
    assert coalition_epsilon([joint(1.0, "alice", "alice", pooling="shared")], ["alice"]) == 1


def test_a_coalition_at_delta_pays_the_optimal_price():
    releases = [joint(0.1, *[str(i) for i in range(100)])]
    everybody = [str(i) for i in range(100)]
    assert coalition_epsilon(releases, everybody) == sum_epsilon([0.1] * 100)
    assert coalition_epsilon(releases, everybody, 1e-6) == optimal_epsilon([0.1] * 100, 1e-6)


@pytest.mark.parametrize(
    "naked",
    [
        Disclosure(Guarantee(epsilon=math.inf, model="none", theorem="none")),
        public(1.0, private=False),
        joint(1.0, "alice", private=False),
    ],
)
def test_one_release_without_protection_leaves_nobody_protected(naked):
    for epsilon in (
        coalition_epsilon([*RELEASES, naked], ["bob"]),
        coalition_epsilon([*RELEASES, naked], ["alice"], 1e-6),
        coalition_epsilon([*RELEASES, naked], []),
    ):
        assert epsilon == math.inf


def test_the_releases_own_deltas_are_paid_from_delta_first():
    releases = [public(1.0, delta=0.25), joint(1.0, "alice", "bob", delta=0.125)]
    assert total_delta(releases) == 0.25
    assert total_delta(releases, ["alice"]) == 0.375
    assert total_delta(releases, ["alice", "bob"]) == 0.5
    assert coalition_epsilon(releases, ["alice"], 0.375) == 2
    assert coalition_epsilon(releases, ["alice"], 0.37) == math.inf
    assert coalition_epsilon(releases, ["alice"], 0.4) == optimal_epsilon(
        [1.0, 1.0], float(Fraction(0.4) - Fraction(0.375))
    )
    assert coalition_epsilon(releases, []) == math.inf


def test_a_joint_release_must_name_the_owner_of_every_row():
    guarantee = Guarantee(epsilon=1, model="joint", theorem="test", n_sources=2)
    with pytest.raises(ParameterError, match="2 rows, got 1"):
        Disclosure(guarantee, ("alice",))
    with pytest.raises(ParameterError, match="tuple"):
        Disclosure(guarantee, "ab")
    with pytest.raises(ParameterError, match="one string"):
        coalition_epsilon(RELEASES, "alice")
