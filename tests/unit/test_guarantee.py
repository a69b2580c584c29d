"""Guarantee: what it accepts, what it adds up, what it says."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.privacy.guarantee import Guarantee

JOINT = Guarantee(epsilon=0.5, model="joint", theorem="docs/a.md", n_members=4)
PUBLIC = Guarantee(epsilon=2.0, model="public", theorem="docs/a.md", n_members=4)
SHARED = dataclasses.replace(JOINT, collusion="shared")
NONE = Guarantee(epsilon=math.inf, model="none", theorem="docs/a.md")
FREE = dataclasses.replace(SHARED, epsilon=0.0)


@pytest.mark.parametrize("guarantee", [JOINT, PUBLIC, SHARED, NONE, FREE])
def test_a_guarantee_is_frozen_hashable_and_plain_data(guarantee):
    for field in dataclasses.fields(guarantee):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(guarantee, field.name, getattr(guarantee, field.name))
    assert len({guarantee, dataclasses.replace(guarantee)}) == 1
    again = Guarantee(**json.loads(json.dumps(guarantee.as_dict())))
    assert again == guarantee


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"epsilon": math.inf}, "go together"),
        ({"model": "none"}, "go together"),
        ({"model": "JOINT"}, "model must be"),
        ({"collusion": "share"}, "collusion must be"),
        ({"private": 0}, "private must be"),
        ({"private": "yes"}, "private must be"),
        ({"collusion": ""}, "collusion must be"),
        ({"shared_epsilon": -0.1}, "shared_epsilon must be"),
        ({"shared_epsilon": 0.6}, "shared_epsilon must be"),
        ({"shared_epsilon": math.nan}, "shared_epsilon must be"),
        ({"shared_epsilon": 0.1, "collusion": "shared"}, "joint guarantees that add up"),
        ({"shared_epsilon": 0.1, "model": "public"}, "joint guarantees that add up"),
        ({"delta": -0.1}, "delta must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"delta": math.nan}, "delta must be"),
    ],
)
def test_nonsense_is_refused(wrong, words):
    with pytest.raises(ParameterError, match=words):
        dataclasses.replace(JOINT, **wrong)


def test_numbers_become_plain_ones():
    numpy = dataclasses.replace(JOINT, epsilon=np.float32(0.5), n_members=np.int64(4))
    assert numpy == JOINT
    assert (type(numpy.epsilon), type(numpy.n_members)) == (float, int)
    assert json.loads(json.dumps(numpy.as_dict())) == JOINT.as_dict()


def test_pooled_rows_add_up_unless_the_noise_is_shared_or_public():
    assert JOINT.pooled_epsilon == 2.0
    assert SHARED.pooled_epsilon == 0.5
    assert PUBLIC.pooled_epsilon == 2.0
    assert NONE.pooled_epsilon == math.inf
    assert FREE.pooled_epsilon == 0


def test_a_shared_part_counts_once():
    partly = dataclasses.replace(JOINT, shared_epsilon=0.2)
    assert JOINT.n_members == 4
    assert partly.pooled_epsilon == 0.2 + 4 * 0.3
    assert [float(partly.pooled(k)) for k in (1, 2)] == [0.5, 0.8]
    assert "k members who combine their lists can learn up to 0.2 + 0.3 k about" in str(partly)
    whole = dataclasses.replace(JOINT, epsilon=1.0)
    assert "k members who combine their lists can learn up to k about edges" in str(whole)
    assert dataclasses.replace(JOINT, shared_epsilon=0.5).pooled_epsilon == 0.5
    assert partly.as_dict()["shared_epsilon"] == 0.2


def test_joint_guarantee_says_what_it_covers_and_what_not():
    text = str(JOINT)
    assert "Show each list only to the member it was made for" in text
    assert "every edge that does not touch that member, at epsilon = 0.5" in text
    assert "more than a factor of e^0.5 (about 1.65)" in text
    assert "can learn up to 0.5 k about edges that touch none of them. Not covered: pub" in text
    assert "publishing the lists, or training one model on all of them" in text
    assert "further releases from the same graph (they add up)" in text
    assert "running time, memory, logs and errors" in text
    assert "Proof: docs/a.md." in text


def test_a_series_says_what_members_who_combine_learn_of_dates():
    series = dataclasses.replace(
        JOINT, epsilon=1.0, shared_epsilon=0.2, scope="series", known_edges="outgoing"
    )
    assert "since when two people are connected is protected at less than epsilon" in str(series)
    said = "up to 0.2 + 0.8 k (since when: less than twice that) about edges that start at none"
    assert said in str(series)


def test_shared_noise_is_not_said_to_add_up_over_members():
    assert "k members" not in str(SHARED)
    assert "members who combine their lists learn no more than that" in str(SHARED)
    assert "publishing the lists" in str(SHARED)


def test_a_public_guarantee_protects_every_edge_from_anyone():
    text = str(PUBLIC)
    assert "Anyone may see this. Protected: every edge of the graph, at epsilon = 2" in text
    assert "member" not in text
    assert "publishing the lists" not in text
    assert "further releases from the same graph (they add up)" in text


def test_epsilon_zero_says_that_members_learn_nothing_new():
    assert "a list holds only what its member knows already" in str(FREE)


def test_a_delta_is_printed():
    assert "delta = 1e-06" in str(dataclasses.replace(PUBLIC, delta=1e-6))
    assert "delta" not in str(PUBLIC)


@pytest.mark.parametrize("base", [JOINT, PUBLIC, SHARED, NONE, FREE])
def test_seeded_noise_overrides_every_other_statement(base):
    text = str(dataclasses.replace(base, private=False))
    assert text.startswith("NOT PRIVATE: the noise came from a seeded generator")
    assert "do not publish" in text
    assert "Protected" not in text


def test_exact_values_are_said_to_protect_nothing():
    assert str(NONE).startswith("NOT PRIVATE: exact values, no noise.")


def test_a_huge_epsilon_prints_without_overflow():
    assert "e^5000" in str(dataclasses.replace(PUBLIC, epsilon=5000.0))


def test_a_long_bound_on_a_coalition_is_rounded_up_in_words():
    shared = 0.4 * 3**0.5  # of TwoHop at epsilon 3
    said = str(Guarantee(epsilon=3.0, model="joint", theorem="docs/a.md", shared_epsilon=shared))
    assert "can learn up to 0.6929 + 2.3072 k about" in said
