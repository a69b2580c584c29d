"""The interval covers what it should."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.evaluation.measurements import estimate


def _coverage(source_spread, repeat_spread, shared):
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(2000):
        values = (
            source_spread * rng.standard_normal((30, 1))
            + repeat_spread * rng.standard_normal((1, 12))
            + 0.5 * rng.standard_normal((30, 12))
        )
        interval = estimate(values.mean(axis=1), values.mean(axis=0), shared=shared)
        covered += interval.low <= 0 <= interval.high
    return covered / 2000


def test_sources_that_differ_widen_the_interval():
    assert _coverage(1.0, 0.0, shared=False) == pytest.approx(0.95, abs=0.015)


def test_noise_shared_by_all_sources_is_covered_when_it_is_said():
    assert _coverage(0.5, 0.5, shared=True) >= 0.94
    assert _coverage(0.5, 0.5, shared=False) < 0.8


def test_without_spread_the_interval_is_a_point():
    for values in ([0.3], [0.3, 0.3, 0.3]):
        interval = estimate(values)
        assert interval.low == interval.high == interval.mean == pytest.approx(0.3)


def test_mean_of_no_values_is_refused():
    with pytest.raises(ParameterError):
        estimate([])
