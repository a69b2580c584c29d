"""Places in a ranking, and which of them the noise leaves open.

Two scores x and y with 95 % half-widths h and g can be told apart if |x - y| exceeds
sqrt(h^2 + g^2). The errors of the two are independent, so for normal errors that is the 95 %
half-width of their difference; for Laplace errors it is a little more than needed: with h = b
ln 20 and g = c ln 20 the difference exceeds it with probability (b^2 e^(-t/b) - c^2 e^(-t/c)) /
(b^2 - c^2), t = ln 20 sqrt(b^2 + c^2), which is 0.05 for c = 0 and falls to 0.045 at c = b. That
the intervals overlap, |x - y| <= h + g, is too much to ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

_STEP = 256


class Place(NamedTuple):
    """One place of a ranking.

    Attributes
    ----------
    place : int
        1 for the best.
    node : id
        Who has it.
    score : float
        The released score.
    uncertainty : float or None
        How far noise may have moved the score (95 %); None if nothing is known about it.
    first, last : int or None
        The best and the worst place held by a node that cannot be told apart from this one, at
        95 % for each pair by itself. Both are `place` if it can be told apart from all others.
        Some in between may still be told apart: a node whose own score is sharper.
    """

    place: int
    node: int | str
    score: float
    uncertainty: float | None
    first: int | None
    last: int | None

    def __str__(self) -> str:
        text = f"{self.place}. {self.node}: {self.score:.6g}"
        if self.uncertainty is None or self.first is None or self.last is None:
            return text
        span = f"places {self.first} to {self.last}" if self.first < self.last else "this place"
        return f"{text} +- {self.uncertainty:.2g} ({span})"


def in_words(first: int | None, last: int | None) -> str:
    """Which places the noise leaves open.

    >>> in_words(3, 9), in_words(4, 4), in_words(None, None)
    ('3 to 9', '4', 'not known')
    """
    if first is None or last is None:
        return "not known"
    return f"{first} to {last}" if first < last else str(first)


def places(nodes: Sequence[int | str], scores: Vector, halves: Vector | None) -> list[Place]:
    """The first places of a ranking.

    Parameters
    ----------
    nodes : sequence of ids
        Who is on the first places.
    scores : array of shape (m,)
        All scores of the ranking, from the highest to the lowest.
    halves : array of shape (m,), optional
        Their half-widths, if known.
    """
    k = len(nodes)
    shown = zip(range(1, k + 1), nodes, scores[:k].tolist(), strict=True)
    if halves is None:
        return [Place(*place, None, None, None) for place in shown]
    first, last = tie_ranges(scores, halves, k)
    around = zip(halves[:k].tolist(), (first + 1).tolist(), (last + 1).tolist(), strict=True)
    return [Place(*place, *ties) for place, ties in zip(shown, around, strict=True)]


def tie_ranges(scores: Vector, halves: Vector, k: int) -> tuple[Places, Places]:
    """First and last place (from 0) that cannot be told apart from each of the first k.

    O(m + k log m) for m scores and, for each of the k, the distance from the range of overlapping
    intervals to the true one, which is short unless widths differ wildly.
    """
    own = np.arange(k)
    if k and (halves == halves[0]).all():
        gap, rising = np.sqrt(2.0) * halves[0], -scores
        first = np.searchsorted(rising, rising[:k] - gap, side="left")
        last = np.searchsorted(rising, rising[:k] + gap, side="right") - 1
    else:
        # Intervals that do not overlap can be told apart: search from where they begin to. The
        # lowest lower end up to a place falls with the place, so that is found by halving.
        low, high = scores - halves, scores + halves
        lowest = np.minimum.accumulate(low)
        highest = np.maximum.accumulate(high[::-1])
        first = np.minimum(np.searchsorted(-lowest, -high[:k]), own)
        last = np.maximum(len(scores) - 1 - np.searchsorted(highest, low[:k]), own)
        for i in range(k):
            first[i] = _nearest(scores, halves, i, first[i], 1)
            last[i] = _nearest(scores, halves, i, last[i], -1)
    # Rounding must not put a place outside of its own range.
    return np.minimum(first, own), np.maximum(last, own)


def _nearest(scores: Vector, halves: Vector, i: int, start: int, direction: int) -> int:
    """From `start` towards i, the first place that cannot be told apart from place i."""
    at, step = int(start), _STEP
    while at != i:
        stop = min(at + step, i) if direction > 0 else max(at - step, i)
        window = np.arange(at, stop, direction)
        close = np.abs(scores[window] - scores[i]) <= np.hypot(halves[window], halves[i])
        if close.any():
            return at + direction * int(np.argmax(close))
        at, step = stop, 2 * step
    return i
