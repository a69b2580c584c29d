"""Logistic regressions of many labels on the same features, solved together.

For every label minimise over (w, b)

    F(w, b) = strength * sum_i log(1 + exp(-s_i (x_i . w + b))) + |w|^2 / 2,      s_i = +-1,

which is what scikit-learn's LogisticRegression(C=strength) minimises; b is not regularised. The
labels share every product with the features, which is where the time goes. Features are centred
and rotated to their principal axes, so that the Hessian at equal weights is a diagonal: it starts
an L-BFGS iteration of each label, with an exact line search along the (convex) ray.

F with b minimised out is 1-strongly convex in w, so a gradient of norm g proves w to be within g
of the optimum (up to the part of b). The iteration ends when g <= `tolerance` for every label.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import expit

from edgeveil.errors import EdgeveilError

__all__ = ["fit_logistic"]

Matrix = npt.NDArray[np.float64]

_MEMORY = 12
_STEPS = 3  # Newton steps along the ray


def fit_logistic(
    features: Matrix | sp.csr_array,
    truth: npt.NDArray[np.bool_],
    *,
    strength: float = 1.0,
    tolerance: float = 1e-2,
    most: int = 2000,
) -> tuple[Matrix, Matrix]:
    """Weights of shape (features, labels) and intercepts, with a gradient of norm <= `tolerance`.

    Parameters
    ----------
    features : array or sparse array of shape (n, k)
        One row per example.
    truth : array of bool, n x labels
        Every column must hold both values.
    strength : float
        C of the regression; smaller regularises more.
    tolerance : float
        Bound of the Euclidean norm of the gradient, for every label.
    most : int
        Iterations after which to give up with an error.
    """
    axes, mean, spread = _principal_axes(features)
    rotated = features if axes is None else features @ axes - mean @ axes
    n, labels = truth.shape
    share = truth.mean(axis=0)
    # The Hessian's diagonal where every example has the label's share as its probability.
    diagonal = strength * share * (1 - share) * np.append(spread, n)[:, None]
    diagonal[:-1] += 1
    point = np.zeros((len(spread) + 1, labels))
    point[-1] = np.log(share / (1 - share))
    scores = np.tile(point[-1], (n, 1))
    slope = _gradient(rotated, truth, scores, point, strength)
    past: deque[tuple[Matrix, Matrix, Matrix]] = deque(maxlen=_MEMORY)
    for _ in range(most):
        if np.linalg.norm(slope, axis=0).max() <= tolerance:
            break
        step = -_inverse_hessian(slope, past, diagonal)
        change = rotated @ step[:-1] + step[-1]
        length = _along(truth, scores, change, point, step, strength)
        step *= length
        scores += change * length
        point += step
        before, slope = slope, _gradient(rotated, truth, scores, point, strength)
        bend = slope - before
        curvature = _dots(step, bend)
        past.append((step, bend, np.divide(1, curvature, where=curvature > 0, out=0 * curvature)))
    else:
        raise EdgeveilError("a logistic regression did not converge")
    weights = point[:-1] if axes is None else axes @ point[:-1]
    return weights, point[-1] - mean @ weights


def _principal_axes(features: Matrix | sp.csr_array) -> tuple[Matrix | None, Matrix, Matrix]:
    """Axes, the mean that is taken off, and the squared length of the features on each axis."""
    if isinstance(features, sp.csr_array):  # too wide to rotate, and centring would fill it
        lengths = features.multiply(features).sum(axis=0)
        return None, np.zeros(len(lengths)), np.asarray(lengths, dtype=np.float64)
    mean = features.mean(axis=0)
    centred = features - mean
    spread, axes = np.linalg.eigh(centred.T @ centred)
    return axes, mean, np.maximum(spread, 0)


def _gradient(
    features: Any, truth: npt.NDArray[np.bool_], scores: Matrix, point: Matrix, strength: float
) -> Matrix:
    off = strength * (expit(scores) - truth)
    return np.vstack([features.T @ off + point[:-1], off.sum(axis=0)])


def _along(
    truth: npt.NDArray[np.bool_],
    scores: Matrix,
    change: Matrix,
    point: Matrix,
    step: Matrix,
    strength: float,
) -> Matrix:
    """How far to go along each label's ray: Newton's method, kept within a bracket."""
    linear, square = _dots(point[:-1], step[:-1]), _dots(step[:-1], step[:-1])
    low, high = np.zeros(scores.shape[1]), np.full(scores.shape[1], np.inf)
    length = np.ones(scores.shape[1])
    for _ in range(_STEPS):
        chance = expit(scores + length * change)
        slope = strength * _dots(chance - truth, change) + linear + length * square
        chance *= (1 - chance) * change
        bend = strength * _dots(chance, change) + square
        low, high = np.where(slope < 0, length, low), np.where(slope < 0, high, length)
        newton = length - slope / np.maximum(bend, 1e-300)
        middle = np.where(np.isinf(high), 2 * length, (low + high) / 2)
        length = np.where((newton > low) & (newton < high), newton, middle)
    return length


def _inverse_hessian(
    slope: Matrix, past: deque[tuple[Matrix, Matrix, Matrix]], diagonal: Matrix
) -> Matrix:
    """The two loops of L-BFGS, for every label at once."""
    direction, taken = slope.copy(), []
    for step, bend, inverse in reversed(past):
        taken.append(inverse * _dots(step, direction))
        direction -= taken[-1] * bend
    direction /= diagonal
    for (step, bend, inverse), part in zip(past, reversed(taken), strict=True):
        direction += (part - inverse * _dots(bend, direction)) * step
    return direction


def _dots(a: Matrix, b: Matrix) -> Matrix:
    """The product of each column with the same column of the other."""
    return np.asarray(np.einsum("ij,ij->j", a, b))
