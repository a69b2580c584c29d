"""Places in a ranking, and which of them the noise leaves open.

Two scores x and y with 95 % half-widths h and g can be told apart if |x - y| exceeds
sqrt(h^2 + g^2). The errors of the two are independent, so for normal errors that is the 95 %
half-width of their difference; for Laplace errors it is a little more than needed: with h = b
ln 20 and g = c ln 20 the difference exceeds it with probability (b^2 e^(-t/b) - c^2 e^(-t/c)) /
(b^2 - c^2), t = ln 20 sqrt(b^2 + c^2), which is 0.05 for c = 0 and falls to 0.045 at c = b. To
ask that the two intervals do not overlap, |x - y| > h + g, would be stricter than 95 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]


class Place(NamedTuple):
    """One entry of a ranking.

    Attributes
    ----------
    place : int
        Rank of the node; 1 is the best.
    node : id
        The node.
    score : float
        The released score.
    uncertainty : float or None
        How far noise may have moved the score (95 %); None if nothing is known about it.
    first, last : int or None
        The best and the worst place among the nodes that cannot be told apart from this one, at
        95 % for each pair separately. Both equal `place` if it can be told apart from all others.
        A node in between with a smaller uncertainty may still be told apart.
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
    around = zip(halves[:k].tolist(), tie_ranges(scores, halves, k), strict=True)
    return [
        Place(*place, half, first + 1, last + 1)
        for place, (half, (first, last)) in zip(shown, around, strict=True)
    ]


def tie_ranges(scores: Vector, halves: Vector, k: int) -> list[tuple[int, int]]:
    """First and last place (from 0) that cannot be told apart from each of the first k."""
    found = []
    for i in range(k):
        close = np.flatnonzero(np.abs(scores - scores[i]) <= np.hypot(halves, halves[i]))
        found.append((int(close[0]), int(close[-1])))
    return found
