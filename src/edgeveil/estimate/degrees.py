"""Empirical Bayes estimates of degrees from degrees with Laplace noise. All post-processing.

The noise's distribution is public, so the prior of the true degrees is estimated from the noisy
ones (nonparametric maximum likelihood, by EM on a grid), and then each degree's posterior mean
under it. This shrinks small degrees, where the noise is larger than the differences, and hardly
changes hubs. The posterior also gives confidence intervals.

A member also knows its friends. A node of degree d is d times as likely to be a friend, so a
friend's degree has the posterior weighted by d, with mean E[d^2] / E[d] (the friendship paradox).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

_MAX_SAMPLE = 1500  # quantiles that stand for the whole sample
_EM_ROUNDS = 60
_DEVIATIONS = 2.5  # posterior deviations for 95 %; 2 would do if the prior were known exactly
_GRID_POINTS = 64  # of `DegreeEstimates.grid`
_MIN_NEARBY = 100  # noisy degrees nearby that are needed to estimate the prior there


@dataclass(frozen=True)
class DegreeEstimates:
    """Posterior means of the degrees, and 95 % confidence intervals.

    95 % of the true degrees lie within `uncertainty` of `degrees`. Where there are few noisy
    degrees nearby (hubs) it is b ln 20 around the noisy degree, and holds for each node by itself;
    elsewhere it is 2.5 posterior deviations, and holds for 95 % of the nodes, over the noise and
    the nodes.
    """

    degrees: Vector  # (n) posterior means, at least 1
    of_friends: Vector  # (n) the same for a node that is known to be a friend; at least as large
    uncertainty: Vector  # (n)
    scale: float  # b of the noise

    @cached_property
    def grid(self) -> Vector:
        """Degrees from the smallest to the largest in a geometric series."""
        return np.geomspace(self.degrees.min(), self.of_friends.max(), _GRID_POINTS)

    @cached_property
    def _cells(self) -> tuple[npt.NDArray[np.int64], Vector]:
        """The grid point below each degree, and how far the degree is on the way to the next."""
        below = np.searchsorted(self.grid, self.degrees, side="right") - 1
        below = np.clip(below, 0, _GRID_POINTS - 2)
        width = np.diff(self.grid)[below]
        share = np.zeros(len(self.degrees))
        np.divide(self.degrees - self.grid[below], width, out=share, where=width > 0)
        return below, share

    def interpolate(self, values: Vector, friends: npt.NDArray[np.integer]) -> Vector:
        """From values at the grid's degrees to values at the degrees that a member sees.

        The same as ``np.interp``, which is most of the time of a row: cells are found once for
        all members.
        """
        below, share = self._cells
        interpolated = values[below] + share * np.diff(values)[below]
        interpolated[friends] = np.interp(self.of_friends[friends], self.grid, values)
        return np.asarray(interpolated)

    @property
    def total_uncertainty(self) -> float:
        """Half-width of the sum of all degrees, relative to it."""
        return 2 * self.scale * math.sqrt(2 * len(self.degrees)) / float(self.degrees.sum())

    def seen_by(self, friends: npt.NDArray[np.integer]) -> DegreeEstimates:
        """The estimates of a member with these friends."""
        uncertainty = self.uncertainty.copy()
        uncertainty[friends] += self.of_friends[friends] - self.degrees[friends]
        return replace(self, degrees=self.degrees_seen_by(friends), uncertainty=uncertainty)

    def degrees_seen_by(self, friends: npt.NDArray[np.integer]) -> Vector:
        """The degrees alone, as estimated by a member with these friends."""
        degrees = self.degrees.copy()
        degrees[friends] = self.of_friends[friends]
        return degrees


def estimate_all(noisy: Vector, scale: float) -> DegreeEstimates:
    """Estimate degrees from those with Laplace noise of a public scale (0: no noise).

    The estimates are monotone in `noisy`, so rankings do not change.
    """
    noisy = np.asarray(noisy, dtype=np.float64)
    if noisy.size == 0:
        return DegreeEstimates(noisy, noisy, noisy, scale)
    if scale == 0:  # without noise there is nothing to estimate
        exact = np.maximum(noisy, 1.0)
        return DegreeEstimates(exact, exact, np.zeros_like(exact), scale)
    sample = np.quantile(noisy, np.linspace(0, 1, min(noisy.size, _MAX_SAMPLE)))
    grid = _grid(sample[-1])
    likelihood = np.exp(-np.abs(sample[:, None] - grid) / scale)
    # So that a value far outside the grid, in units of the noise, does not give 0 / 0.
    likelihood += 1e-300
    weight = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(_EM_ROUNDS):
        posterior = likelihood * weight
        posterior /= posterior.sum(axis=1, keepdims=True)
        weight = posterior.mean(axis=0)
    mean, square = posterior @ grid, posterior @ grid**2
    deviation = np.sqrt(((grid - mean[:, None]) ** 2 * posterior).sum(axis=1))
    # Posterior means are monotone in the observation (Laplace noise has the monotone likelihood
    # ratio property); the running maximum removes rounding.
    degrees, of_friends = (
        np.interp(noisy, sample, np.maximum.accumulate(guess)) for guess in (mean, square / mean)
    )
    by_noise = np.abs(noisy - degrees) + math.log(20) * scale
    by_prior = _DEVIATIONS * np.interp(noisy, sample, deviation) + 0.5
    ordered = np.sort(noisy)
    nearby = np.searchsorted(ordered, noisy + 2 * scale) - np.searchsorted(
        ordered, noisy - 2 * scale
    )
    uncertainty = np.where(nearby < _MIN_NEARBY, by_noise, np.minimum(by_noise, by_prior))
    return DegreeEstimates(degrees, np.maximum(of_friends, degrees), uncertainty, scale)


def _grid(largest: float) -> Vector:
    """Candidate degrees: all small ones, then a geometric grid."""
    top = max(1.2 * largest, 40.0)
    return np.unique(np.round(np.concatenate([np.arange(1, 30), np.geomspace(30, top, 120)])))
