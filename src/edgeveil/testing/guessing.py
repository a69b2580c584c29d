"""The guessing game: from outputs on two graphs to a lower bound on epsilon.

The game: a fair coin picks one of two neighbouring graphs, the mechanism runs on it, and the
auditor sees the output and guesses the graph or passes. If the mechanism is epsilon-private,
each guess is right with probability at most e^epsilon / (1 + e^epsilon), whatever the rule: for
"second graph" on the outputs A and "first graph" on B,

    P(right) = (P'(A) + P(B)) / 2 <= e^epsilon (P(A) + P'(B)) / 2 = e^epsilon P(wrong).

This covers both directions of the definition. Games are independent, so given the number of
guesses the number of right ones is binomial: one Clopper-Pearson bound is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from edgeveil.mechanisms.base import Rows

Vector = npt.NDArray[np.float64]
Score = Callable[[Rows], Vector]

_BINS = 24
_LEVELS = 64
# The frequency score has many parameters and overfits, so it must be this much better.
_MARGIN = 1.1


@dataclass(frozen=True, kw_only=True)
class Guesser:
    """Guess the second graph if the score is at least `high`, the first if at most `low`."""

    score: Score
    low: float
    high: float

    def certify(self, first: Rows, second: Rows, confidence: float) -> float:
        """Lower bound on epsilon at this confidence, from outputs that were not trained on."""
        from_first, from_second = self.score(first), self.score(second)
        right = (from_second >= self.high).sum() + (from_first <= self.low).sum()
        wrong = (from_first >= self.high).sum() + (from_second <= self.low).sum()
        return float(_epsilon(np.asarray(right), np.asarray(wrong), confidence))


def fit_guesser(first: Rows, second: Rows, *, games: int, confidence: float) -> Guesser:
    """Choose the score and thresholds with the best predicted bound.

    Trained on outputs on the first and on the second graph, (trials, columns). `games` is the
    number of fresh games that will follow: more games favour rarer outputs with larger ratios.
    """
    # A score is fitted to one half and evaluated, with its thresholds, on the other (overfitting).
    (fit_first, first), (fit_second, second) = (np.array_split(rows, 2) for rows in (first, second))
    best, best_bound = None, 0.0
    for fit in (_location_score, _frequency_score):
        score = fit(fit_first, fit_second)
        from_first, from_second = score(first), score(second)
        pooled = np.concatenate([from_first, from_second])
        levels = np.unique(np.quantile(pooled, np.linspace(0, 1, _LEVELS), method="nearest"))
        low = np.concatenate([[-np.inf], levels])
        high = np.concatenate([levels, [np.inf]])
        right = _at_most(from_first, low)[:, None] + _at_least(from_second, high)[None]
        wrong = _at_most(from_second, low)[:, None] + _at_least(from_first, high)[None]
        value = _predicted_bound(right, wrong, games / len(pooled), confidence)
        value[low[:, None] >= high[None]] = -np.inf  # the two regions must be disjoint
        i, j = np.unravel_index(np.argmax(value), value.shape)
        if best is None or value[i, j] > _MARGIN * best_bound:
            best_bound = float(value[i, j])
            best = Guesser(score=score, low=float(low[i]), high=float(high[j]))
    assert best is not None  # (-inf, inf), which always passes, is among the choices
    return best


def _predicted_bound(right: Vector, wrong: Vector, more: float, confidence: float) -> Vector:
    """The bound that `more` times as many games would give, predicted with caution.

    Of thousands of rules some look good by chance, above all those that guess seldom. So the
    share of right guesses is replaced by its 0.1 % Clopper-Pearson lower bound.
    """
    share = betaincinv(np.maximum(right, 1), wrong + 1, 0.001) * (right >= 1)
    guesses = (right + wrong) * more
    return _epsilon(guesses * share, guesses * (1 - share), confidence)


def _epsilon(right: Vector, wrong: Vector, confidence: float) -> Vector:
    """Logit of the Clopper-Pearson lower bound on the share of right guesses, at least 0."""
    least = betaincinv(np.maximum(right, 1), wrong + 1, 1 - confidence)
    odds = np.maximum(least, 1e-300) / np.maximum(1 - least, 1e-300)
    return np.where(right >= 1, np.maximum(np.log(odds), 0.0), 0.0)


def _at_most(scores: Vector, levels: Vector) -> Rows:
    return np.searchsorted(np.sort(scores), levels, side="right").astype(np.float64)


def _at_least(scores: Vector, levels: Vector) -> Rows:
    return len(scores) - np.searchsorted(np.sort(scores), levels, side="left").astype(np.float64)


def _location_score(first: Rows, second: Rows) -> Score:
    """Log-likelihood ratio of Laplace noise around two centres, the medians of the outputs.

    The medians estimate the exact vectors, so the score needs no knowledge of the mechanism.
    """
    centre, other = np.median(first, axis=0), np.median(second, axis=0)
    scale = np.median(np.abs(first - centre), axis=0) / math.log(2)
    uncertainty = scale * math.sqrt(1 / len(first) + 1 / len(second))
    # Columns whose medians differ only by chance would add noise to the score.
    used = np.flatnonzero((scale > 0) & (np.abs(centre - other) > 4 * uncertainty))

    def score(rows: Rows) -> Vector:
        values = rows[:, used]
        ratio = (np.abs(values - centre[used]) - np.abs(values - other[used])) / scale[used]
        # Beyond both centres the ratio is constant; rounding keeps it so in float arithmetic.
        return np.asarray(ratio.sum(axis=1).round(9))

    return score


def _frequency_score(first: Rows, second: Rows) -> Score:
    """Sum over the columns of the log-ratio of a value's frequencies on the two graphs.

    Values are binned by quantiles; a frequent value, like an exact 0, has a bin of its own.
    """
    tables = []
    for a, b in zip(first.T, second.T, strict=True):
        pooled = np.concatenate([a, b])
        at = np.quantile(pooled, np.linspace(0, 1, _BINS + 1), method="nearest")
        edges = np.unique(np.concatenate([at, np.nextafter(at, np.inf)]))
        counts = [
            np.bincount(np.searchsorted(edges, x, side="right"), minlength=len(edges) + 1) + 1.0
            for x in (a, b)
        ]
        tables.append((edges, np.log(counts[1] / len(b)) - np.log(counts[0] / len(a))))

    def score(rows: Rows) -> Vector:
        total = np.zeros(len(rows))
        for column, (edges, ratio) in zip(rows.T, tables, strict=True):
            total += ratio[np.searchsorted(edges, column, side="right")]
        return total

    return score
