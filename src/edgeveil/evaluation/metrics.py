"""Metrics that compare rows of scores with exact values. Pure numpy, no graph.

Ties. A row of zeros must not score well because of the order of the columns. On the scored side
equal scores stand in random order, and every metric is the expected value over that order,
computed exactly, not drawn. On the exact side every node that ties with the k-th counts as right.

Each function takes one exact row of n values and one row of scores, or a matrix of them, and
gives one value per row of scores. All n count if k is larger.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError

Vector = npt.NDArray[np.float64]


def top_k_metrics(exact: Vector, scores: Vector, k: int = 100) -> tuple[Vector, Vector]:
    """Recall@k and NDCG@k.

    Recall: the share of the k highest scores that belong to the k highest exact values. NDCG:
    the gain of the k highest scores as a share of the largest possible; the gain of a node is its
    exact value, not negative, and place i (from 1) counts 1 / log2(i + 1).

    Examples
    --------
    >>> exact = np.array([4.0, 3.0, 2.0, 1.0])
    >>> recall, ndcg = top_k_metrics(exact, np.array([4.0, 1.0, 3.0, 2.0]), 2)
    >>> recall, ndcg.round(4)
    (array([0.5]), array([0.8929]))
    >>> top_k_metrics(exact, np.zeros(4), 2)[0]  # as good as a random order
    array([0.5])
    """
    exact, scores = _checked(exact, scores)
    if k < 1:
        raise ParameterError(f"k must be at least 1, got {k}")
    if len(exact) == 0:
        return np.ones(len(scores)), np.ones(len(scores))
    ideal = np.sort(exact)[::-1][:k]
    relevant = (exact >= ideal[-1]).astype(np.float64)
    discount = 1 / np.log2(np.arange(2, len(ideal) + 2))
    right, gain = _top_worth(scores, np.stack([relevant, exact]), k)
    best = float(ideal @ discount)
    ndcg = gain @ discount / best if best > 0 else np.ones(len(scores))
    return right.mean(axis=1), ndcg


def hits_at_k(relevant: npt.NDArray[np.bool_], scores: Vector, k: int = 100) -> Vector:
    """How many of the k highest scores are relevant.

    Examples
    --------
    >>> hits_at_k(np.array([True, False, False]), np.array([0.0, 0.0, 5.0]), 2)
    array([0.5])
    """
    worth, scores = _checked(np.asarray(relevant, dtype=np.float64), scores)
    return np.asarray(_top_worth(scores, worth[None], k)[0].sum(axis=1))


def _top_worth(scores: Vector, worth: Vector, k: int) -> Vector:
    """Expected worth of each of the top k places, best first: (kinds of worth, rows, k)."""
    n = scores.shape[1]
    k = min(k, n)
    top = np.argpartition(scores, n - k, axis=1)[:, n - k :]
    values = np.take_along_axis(scores, top, axis=1)
    order = np.argsort(-values, axis=1)
    top = np.take_along_axis(top, order, axis=1)
    values = np.take_along_axis(values, order, axis=1)
    expected = worth[:, top]
    last = values[:, -1:]
    cut = (scores == last).sum(axis=1) > (values == last).sum(axis=1)
    tied = cut | (values[:, 1:] == values[:, :-1]).any(axis=1)
    for row in np.flatnonzero(tied):
        expected[:, row] = _mean_over_ties(scores[row], values[row], worth)
    return expected


def _mean_over_ties(scores: Vector, values: Vector, worth: Vector) -> Vector:
    """Expected worth of each of the top places, over random orders of equal scores.

    `values` are the sorted k highest of `scores`; `worth` has a row per kind of worth.
    """
    levels, place = np.unique(values, return_inverse=True)
    at = np.searchsorted(levels, scores)
    at[at == len(levels)] = 0
    member = levels[at] == scores
    count = np.bincount(at[member], minlength=len(levels))
    means = [np.bincount(at[member], w[member], minlength=len(levels)) / count for w in worth]
    return np.stack(means)[:, place]


def _checked(exact: Vector, scores: Vector) -> tuple[Vector, Vector]:
    exact, scores = np.asarray(exact, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    scores = np.atleast_2d(scores)
    if exact.ndim != 1 or scores.ndim != 2 or scores.shape[1] != len(exact):
        raise ParameterError("scores must have one value for each exact value")
    if np.isnan(exact).any() or np.isnan(scores).any():
        raise ParameterError("scores must not be NaN")
    return exact, scores
