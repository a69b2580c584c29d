"""Composition: exact sums, rounded up, and who learns what."""

import math

import pytest

from edgeveil.errors import ParameterError
from edgeveil.privacy.compose import Disclosure, coalition_epsilon
from edgeveil.privacy.guarantee import Guarantee


def public(epsilon, **fields):
    return Disclosure(Guarantee(epsilon=epsilon, model="public", theorem="test", **fields))


def joint(epsilon, *members, **fields):
    guarantee = Guarantee(
        epsilon=epsilon, model="joint", theorem="test", n_sources=len(members), **fields
    )
    return Disclosure(guarantee, members)


def test_the_sum_is_exact_and_rounded_up():
    def sum_of(*epsilons):
        return coalition_epsilon(map(public, epsilons), [])

    assert sum_of(*[0.1] * 10) == 1.0  # as people write it
    assert sum_of(1.0, 2.0**-60) == 1 + 2.0**-52
    assert sum_of(1e308, 1e308) == math.inf
    assert sum_of() == 0.0


RELEASES = [
    public(0.5, n_sources=7),  # the total of all its rows, not the price of one
    joint(1.0, "alice", "bob"),
    joint(0.25, "alice", "carol", pooling="shared"),
]


def test_a_member_learns_the_public_releases_and_their_own():
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
    assert coalition_epsilon([awkward], ["alice", "bob"]) == 1.6


def test_somebody_with_two_rows_pays_for_both_unless_the_noise_is_shared():
    assert coalition_epsilon([joint(1.0, "alice", "alice", "bob")], ["alice"]) == 2
    assert coalition_epsilon([joint(1.0, "alice", "alice", pooling="shared")], ["alice"]) == 1


def test_everybody_together_pays_for_all_rows():
    releases = [joint(0.1, *[str(i) for i in range(100)])]
    everybody = [str(i) for i in range(100)]
    assert coalition_epsilon(releases, everybody) == 10.0


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
        coalition_epsilon([*RELEASES, naked], ["alice"]),
        coalition_epsilon([*RELEASES, naked], []),
    ):
        assert epsilon == math.inf


def test_a_delta_has_no_epsilon_without_it():
    releases = [public(1.0), joint(1.0, "alice", "bob", delta=0.125)]
    assert coalition_epsilon(releases, ["alice"]) == math.inf
    assert coalition_epsilon(releases, []) == 1.0
    assert coalition_epsilon([joint(0.0, "alice", delta=0.125)], ["alice"]) == math.inf


def test_a_joint_release_must_name_the_owner_of_every_row():
    guarantee = Guarantee(epsilon=1, model="joint", theorem="test", n_sources=2)
    with pytest.raises(ParameterError, match="2 rows, got 1"):
        Disclosure(guarantee, ("alice",))
    with pytest.raises(ParameterError, match="tuple"):
        Disclosure(guarantee, "ab")
    with pytest.raises(ParameterError, match="one string"):
        coalition_epsilon(RELEASES, "alice")
