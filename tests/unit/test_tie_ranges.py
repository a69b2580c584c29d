"""Places that noise leaves open, against a slow oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.results.release import RankedNode, ranked_nodes, tie_ranges


def slow(scores, halves, i):
    close = [
        j
        for j in range(len(scores))
        if abs(scores[i] - scores[j]) <= math.hypot(halves[i], halves[j])
    ]
    return min(close), max(close)


values = st.floats(-1, 1).map(lambda x: round(x, 3))
widths = st.one_of(st.just(0.0), st.floats(0, 1).map(lambda x: round(x, 3)))


@given(st.lists(st.tuples(values, widths), min_size=1, max_size=60), st.data())
def test_ranges_are_those_of_the_definition(drawn, data):
    drawn.sort(key=lambda pair: -pair[0])
    scores, halves = (np.array(column) for column in zip(*drawn, strict=True))
    k = data.draw(st.integers(0, len(drawn)))
    assert tie_ranges(scores, halves, k) == [slow(scores, halves, i) for i in range(k)]


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_equal_scores_are_told_apart_in_one_of_twenty(ratio):
    """The criterion for Laplace noise of two scales: 5 % at most, and not much less."""
    rng = np.random.default_rng(2)
    first, second = rng.laplace(0, 1, 400_000), rng.laplace(0, 1, 400_000) * ratio
    apart = np.abs(first - second) > math.hypot(math.log(20), ratio * math.log(20))
    assert 0.043 < apart.mean() < 0.0512


def test_places_say_what_they_are():
    ranking = ranked_nodes(["a", "b"], np.array([3.0, 2.0, 1.9]), np.array([0.1, 0.1, 0.1]))
    assert ranking == [RankedNode(1, "a", 3.0, 0.1, 1, 1), RankedNode(2, "b", 2.0, 0.1, 2, 3)]
    assert str(ranking[0]) == "1. a: 3 +- 0.1 (this rank)"
    assert str(ranking[1]) == "2. b: 2 +- 0.1 (ranks 2 to 3)"
    (unknown,) = ranked_nodes(["a"], np.array([3.0]), None)
    assert unknown == RankedNode(1, "a", 3.0, None, None, None)
    assert str(unknown) == "1. a: 3"
