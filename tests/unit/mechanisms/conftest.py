"""A graph to draw on, and what it means to be Laplace."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from edgeveil.mechanisms.hard_pairs import graph_of_pairs

# Every seed is fixed, so a p-value below this is a defect and not bad luck.
P_VALUE = 1e-3


@pytest.fixture(scope="package")
def network():
    """A random graph in which every node has a neighbour."""

    def make(n: int, p: float, seed: int = 3):
        rng = np.random.default_rng(seed)
        pairs = np.array(list(combinations(range(n), 2)))
        chosen = (rng.random(len(pairs)) < p) | (pairs[:, 1] == pairs[:, 0] + 1)
        return graph_of_pairs(n, pairs[chosen])

    return make


@pytest.fixture(scope="package")
def assert_laplace():
    """Refuse draws that are not independent Laplace of this scale, centred at 0."""

    def check(draws: np.ndarray, scale: float) -> None:
        draws = np.ravel(draws) / scale
        assert len(draws) >= 1000
        # |Laplace(1)| is Exp(1): mean 1, deviation 1.
        assert abs(np.abs(draws).mean() - 1) < 4 / np.sqrt(len(draws))
        assert stats.kstest(draws, stats.laplace.cdf).pvalue > P_VALUE
        assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 4 / np.sqrt(len(draws))

    return check
