"""Degrees from noisy degrees: the best guess at d, given d + Laplace noise.

The noise law is public, so the distribution of the true degrees can be estimated from the noisy
ones (nonparametric maximum likelihood, by EM on a grid), and then each degree's posterior mean
under it. This pulls the many small degrees together, where the noise is larger than the
differences, and leaves hubs alone. The posterior also tells how far off a guess may be.

A recipient knows one thing more: who its friends are. To be somebody's friend is d times as
likely for a node of degree d, so a friend's degree has the posterior of the others weighted by
d, with mean E[d^2] / E[d]. All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

_LARGEST_SAMPLE = 1500  # quantiles that stand for the whole sample
_ROUNDS = 60
_DEVIATIONS = 2.5  # posterior deviations that hold 95 %; 2 would, were the prior known
_CROWD = 100  # noisy degrees nearby without which the prior is a guess


@dataclass(frozen=True)
class DegreeEstimates:
    """What noisy degrees tell about the true ones.

    95 % of the true degrees lie within `uncertainty` of `degrees`. Where there are few noisy
    degrees nearby (hubs) it is the noise's own b ln 20 around the noisy degree, and holds for each
    node by itself; elsewhere it is 2.5 posterior deviations, and holds for 95 % of the nodes, over
    the noise and the nodes.
    """

    degrees: Vector  # (n) posterior means, at least 1
    of_friends: Vector  # (n) the same for a node that is known to be somebody's friend; not less
    uncertainty: Vector  # (n)
    scale: float  # b of the noise

    @cached_property
    def extent(self) -> tuple[float, float, float]:
        """Sum of the degrees, the least of them, and the largest."""
        return float(self.degrees.sum()), float(self.degrees.min()), float(self.degrees.max())

    @property
    def total_uncertainty(self) -> float:
        """How far the sum of all degrees may be off, as a share of it."""
        return 2 * self.scale * math.sqrt(2 * len(self.degrees)) / float(self.degrees.sum())

    def seen_by(self, friends: npt.NDArray[np.integer]) -> DegreeEstimates:
        """The same as somebody with these friends sees it."""
        uncertainty = self.uncertainty.copy()
        uncertainty[friends] += self.of_friends[friends] - self.degrees[friends]
        return replace(self, degrees=self.degrees_seen_by(friends), uncertainty=uncertainty)

    def degrees_seen_by(self, friends: npt.NDArray[np.integer]) -> Vector:
        """The degrees alone, as somebody with these friends sees them."""
        degrees = self.degrees.copy()
        degrees[friends] = self.of_friends[friends]
        return degrees


def estimate_all(noisy: Vector, scale: float) -> DegreeEstimates:
    """Estimate degrees from those with Laplace noise of a public scale; 0: they have none.

    Means do not fall where `noisy` rises: no ranking changes.
    """
    noisy = np.asarray(noisy, dtype=np.float64)
    if noisy.size == 0:
        return DegreeEstimates(noisy, noisy, noisy, scale)
    if scale == 0:  # without noise there is nothing to estimate
        exact = np.maximum(noisy, 1.0)
        return DegreeEstimates(exact, exact, np.zeros_like(exact), scale)
    sample = np.quantile(noisy, np.linspace(0, 1, min(noisy.size, _LARGEST_SAMPLE)))
    grid = _grid(sample[-1])
    likelihood = np.exp(-np.abs(sample[:, None] - grid) / scale)
    # A value far outside of the grid in units of the noise must not divide 0 by 0.
    likelihood += 1e-300
    weight = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(_ROUNDS):
        posterior = likelihood * weight
        posterior /= posterior.sum(axis=1, keepdims=True)
        weight = posterior.mean(axis=0)
    mean, square = posterior @ grid, posterior @ grid**2
    deviation = np.sqrt(((grid - mean[:, None]) ** 2 * posterior).sum(axis=1))
    # Posterior means do not fall in the observation (Laplace noise has the monotone likelihood
    # ratio property); the maximum removes rounding.
    degrees, of_friends = (
        np.interp(noisy, sample, np.maximum.accumulate(guess)) for guess in (mean, square / mean)
    )
    by_noise = np.abs(noisy - degrees) + math.log(20) * scale
    by_prior = _DEVIATIONS * np.interp(noisy, sample, deviation) + 0.5
    ordered = np.sort(noisy)
    nearby = np.searchsorted(ordered, noisy + 2 * scale) - np.searchsorted(
        ordered, noisy - 2 * scale
    )
    uncertainty = np.where(nearby < _CROWD, by_noise, np.minimum(by_noise, by_prior))
    return DegreeEstimates(degrees, np.maximum(of_friends, degrees), uncertainty, scale)


def _grid(largest: float) -> Vector:
    """Candidate degrees: all small ones, then ever wider steps."""
    top = max(1.2 * largest, 40.0)
    return np.unique(np.round(np.concatenate([np.arange(1, 30), np.geomspace(30, top, 120)])))
