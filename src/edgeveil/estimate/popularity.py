"""What the released degrees tell about every node, in cells of nearly equal degrees."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.estimate.degrees import DegreeEstimates, estimate_all

Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer]

CELLS = 24  # degree cells, in which the prior of a sum is the same
FINE = 8  # parts of a cell, in which popularity is the same

_TAIL_GROWTH = 0.5  # the tail's share grows with this power of the degree


class Popularity(NamedTuple):
    """What the released degrees tell, the same for everybody. From `learn`.

    Attributes
    ----------
    estimates : DegreeEstimates
        Degrees without most of their noise.
    order : array of shape (n,)
        Nodes, the most popular first.
    cell : array of shape (n,)
        Fine degree cell of each node; `FINE` of them are one cell.
    counts, degrees : arrays of shape (fine cells,)
        How many nodes each fine cell has, and their mean degree.
    total : float
        Sum of all degrees.
    cell_degrees : array of shape (cells,)
        Mean degree of each cell; the middle of its parts where it is empty.
    between : array of shape (2, fine cells)
        Where the mean degree of a fine cell lies, by logarithms: the cell whose mean is the next
        below, and the part of the way to the next one.
    growth : array of shape (cells,)
        How the share of large sums grows with the degree.
    """

    estimates: DegreeEstimates
    order: Indices
    cell: Indices
    counts: Vector
    degrees: Vector
    total: float
    cell_degrees: Vector
    between: Vector
    growth: Vector


def _by_cell(values: Vector) -> Vector:
    return np.asarray(values.reshape(CELLS, FINE).sum(axis=1))


def learn(noisy: Vector, scale: float) -> Popularity:
    """Prepare what all members' lists share.

    Parameters
    ----------
    noisy : array of shape (n,)
        Degrees with Laplace noise.
    scale : float
        Scale of that noise: 2 / split(epsilon)[0]; directed in-degrees: half of it.
    """
    estimates = estimate_all(noisy, scale)
    degrees = estimates.degrees
    low, high = float(degrees.min()), float(degrees.max())
    fine = CELLS * FINE
    steps = math.log(high / low) / fine if high > low else 1.0
    # A byte each: lists look nodes up at random, so it matters whether all fit into a cache.
    cell = np.minimum(np.log(degrees / low) / steps, fine - 1).astype(np.uint8)
    counts = np.bincount(cell, minlength=fine).astype(np.float64)
    middle = low * np.exp(steps * (np.arange(fine) + 0.5))
    sums = np.bincount(cell, degrees, minlength=fine)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), middle)
    order = np.argsort(-np.asarray(noisy), kind="stable")
    among = np.where(np.repeat(_by_cell(counts), FINE) > 0, counts, 1.0)
    coarse = _by_cell(among * means) / _by_cell(among)
    total = float(degrees.sum())
    growth = (coarse * len(degrees) / total) ** _TAIL_GROWTH
    between = _between(np.log(means), np.log(coarse))
    return Popularity(estimates, order, cell, counts, means, total, coarse, between, growth)


def _between(wanted: Vector, logs: Vector) -> Vector:
    at = np.clip(np.searchsorted(logs, wanted, side="right") - 1, 0, len(logs) - 2)
    gaps = np.diff(logs)[at]
    # Where degrees hardly differ there is no gap.
    part = np.divide(wanted - logs[at], gaps, out=np.zeros(len(at)), where=gaps > 0)
    return np.stack([at.astype(np.float64), np.clip(part, 0.0, 1.0)])
