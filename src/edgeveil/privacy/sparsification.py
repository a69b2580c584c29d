"""DPSparsification (algorithm 6): which coordinates are large, privately."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from edgeveil.privacy.noise import NoiseSource, add_laplace, calibrate

__all__ = ["sparsify", "threshold"]


def threshold(n: int, sensitivity: float, epsilon: float | Fraction) -> float:
    """The paper's gamma = 3 sigma ln(n) / epsilon."""
    return 3 * sensitivity * math.log(n) / float(epsilon)


def sparsify(
    values: npt.NDArray[np.float64],
    *,
    sensitivity: float | Fraction,
    epsilon: float | Fraction,
    gamma: float,
    error: float,
    noise: NoiseSource,
) -> npt.NDArray[np.bool_]:
    """Mark coordinate i with probability P[Laplace(gamma, sigma / epsilon) <= p_i].

    That event is "p_i + Laplace >= gamma", so the marks are post-processing of one Laplace
    release of the vector; its noise is not used again (docs/theory/sparse.md).
    """
    calibration = calibrate(
        coordinates=len(values), sensitivity=sensitivity, epsilon=epsilon, error=error
    )
    return np.asarray(add_laplace(values, calibration, noise) >= gamma)
