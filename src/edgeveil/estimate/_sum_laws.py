"""Laws of a true sum on a grid, and of the sum with Laplace noise, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgeveil.estimate import _suggestion_kernels as kernels

__all__ = ["TAIL", "Law", "exponentials", "grid", "poissons", "stays_below"]

Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer]

TAIL = (0.5, 1.0, 2.5)  # means of the exponentials of the tail, in friends' mean sums


@dataclass(frozen=True, eq=False)
class Law:
    """Law of a true sum by degree cell, on a grid, and its sums with Laplace noise."""

    points: Vector
    mass: Vector  # (rows, x)
    rate: float
    left: Vector
    right: Vector

    @classmethod
    def of(cls, points: Vector, mass: Vector, rate: float) -> Law:
        left, right = np.empty((2, len(mass), len(points) + 1))
        kernels.laplace_tables(mass, points, rate, left, right)
        return cls(points, mass, rate, left, right)

    def likelihood(self, rows: Indices, noisy: Vector) -> Vector:
        """Density of noisy sums, without the factor rate / 2; rows and sums broadcast."""
        at = np.searchsorted(self.points, noisy, side="right")
        below = np.exp(-self.rate * (noisy - self.points[np.maximum(at - 1, 0)]))
        after = self.points[np.minimum(at, len(self.points) - 1)]
        above = np.exp(-self.rate * (after - noisy))
        # The tables are 0 on the outer side of either end; so must the factors be finite there.
        below, above = np.where(at > 0, below, 0.0), np.where(at < len(self.points), above, 0.0)
        return np.asarray(self.left[rows, at] * below + self.right[rows, at] * above)

    def expected(self, rows: Indices, noisy: Vector) -> Vector:
        """Expected true sums, given noisy ones; not falling in these for one row."""
        moment = Law.of(self.points, self.mass * self.points, self.rate)
        whole = np.maximum(self.likelihood(rows, noisy), 1e-300)
        return np.asarray(moment.likelihood(rows, noisy) / whole)

    def given(self, chance: Vector) -> Vector:
        """Law of the true sum, given something that has this chance at each point."""
        mass = self.mass * chance
        return np.asarray(mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-300))


def stays_below(limit: float, points: Vector, rate: float) -> Vector:
    """Chance, for each point, that point and noise stay below the limit."""
    gap = rate * (limit - points)
    below = 0.5 * np.exp(np.minimum(gap, 0.0))
    return np.where(gap < 0, below, 1 - 0.5 * np.exp(-np.maximum(gap, 0.0)))


def grid(top: float, unit: float) -> tuple[Vector, Vector]:
    """Points from 0 to `top`: multiples of `unit`, from 30 on ever wider apart; their widths."""
    steps = [float(i) for i in range(31)]
    while steps[-1] * unit < top:
        steps.append(max(steps[-1] + 1, round(1.06 * steps[-1])))
    count = np.array(steps)
    edges = np.concatenate([[-0.5], (count[1:] + count[:-1]) / 2, [count[-1] + 0.5]])
    return count * unit, np.diff(edges)


def poissons(count: Vector, width: Vector, mean: Vector) -> Vector:
    """Poisson laws on a grid of counts; one row for each mean."""
    log_factorial = np.array([math.lgamma(c + 1) for c in count])
    mean = np.maximum(mean, 1e-9)[..., None]
    log_mass = count * np.log(mean) - mean - log_factorial
    mass = np.exp(log_mass - log_mass.max(axis=-1, keepdims=True)) * width
    return np.asarray(mass / mass.sum(axis=-1, keepdims=True))


def exponentials(points: Vector, width: Vector, typical: float) -> Vector:
    """The laws of the tail on the grid: (3, x)."""
    width = width.copy()
    width[0] /= 2
    mass = np.exp(-points / (np.array(TAIL)[:, None] * typical)) * width
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))
