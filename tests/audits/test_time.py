"""Guessing from samples which history it was: over two calls, and over two generations."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.mechanisms import EdgeFlipping
from edgeveil.mechanisms.hard_pairs import single_pair
from edgeveil.mechanisms.run import rows_after, shared_part
from edgeveil.privacy.noise import NoiseSource
from edgeveil.testing.guessing import fit_guesser

TRIALS, SURE = 700, 0.999
FLIPPING = EdgeFlipping(epsilon=1.0)
PAIR = single_pair(at_source=False)


def call(graph, shared, noise, source):
    return rows_after(FLIPPING, graph, shared, [source], noise.derive("rows")).ravel()


def one_campaign(graph, seed):
    """Two calls: the shared part is one draw."""
    noise = NoiseSource.insecure(seed)
    shared = shared_part(FLIPPING, graph, noise.derive("shared"))
    return np.concatenate([call(graph, shared, noise, PAIR.source) for _ in range(2)])


def two_generations(graph, seed):
    """Two campaigns, each with a draw of its own, on a graph that has not changed."""
    return np.concatenate(
        [
            call(graph, shared_part(FLIPPING, graph, noise.derive("shared")), noise, PAIR.source)
            for noise in (NoiseSource.insecure(seed), NoiseSource.insecure(10**6 + seed))
        ]
    )


@pytest.mark.parametrize(
    ("history", "at_least", "at_most"), [(one_campaign, 0.5, 1.0), (two_generations, 1.2, 2.0)]
)
def test_what_can_be_guessed_is_what_was_charged(history, at_least, at_most, record_property):
    first, second = (
        np.array([history(graph, seed + TRIALS * side) for seed in range(TRIALS)])
        for side, graph in enumerate((PAIR.graph, PAIR.neighbour))
    )
    half = TRIALS // 2
    guesser = fit_guesser(first[:half], second[:half], games=2 * half, confidence=SURE)
    proved = guesser.certify(first[half:], second[half:], SURE)
    record_property("figure", f"epsilon proved by guessing over {history.__name__}: {proved:.2f}")
    assert at_least <= proved <= at_most
