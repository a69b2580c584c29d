"""Composition: the only place where guarantees are added up.

Two rules, both proven in ``docs/theory/composition.md``:

- pure epsilons add (`sum_epsilon`);
- at a failure probability delta > 0 the optimal bound for releases known only by their epsilons
  is that of as many randomised responses (`optimal_epsilon`; Kairouz, Oh, Viswanath 2015).

Every rounding goes towards the larger epsilon.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from edgeveil.errors import ParameterError
from edgeveil.privacy.guarantee import Guarantee

__all__ = [
    "Disclosure",
    "coalition_epsilon",
    "optimal_epsilon",
    "sum_epsilon",
    "total_delta",
]

MOST_CELLS = 2**18  # the finest grid for different epsilons that have no common step
SMALLEST_DELTA = 1e-200  # below it, float underflow is not negligible: take the plain sum


def sum_epsilon(epsilons: Iterable[float]) -> float:
    """Add up pure epsilons, exactly; only the result is rounded, up.

    Holds for any releases, chosen adaptively or not, their epsilons included.

    >>> sum_epsilon([0.5, 0.25])
    0.75
    >>> sum_epsilon([])
    0.0
    """
    return _sum(_counted(epsilons))


def optimal_epsilon(epsilons: Iterable[float], delta: float) -> float:
    """Epsilon at `delta` of pure-DP releases of which only the epsilons are known.

    Parameters
    ----------
    epsilons : iterable of float
        One pure epsilon for each release. The releases may be chosen adaptively; the list of
        epsilons must be fixed beforehand (if it is not, use `sum_epsilon`).
    delta : float
        The probability with which the bound may fail, in [0, 1); 0 gives the plain sum.

    Returns
    -------
    float
        Never below the optimum and never above the plain sum. If all epsilons are multiples of
        one step (all equal, or 0.1, 0.5, 1, ...) it is the optimum up to a factor of 1 + 1e-9.
        Otherwise it is the optimum for epsilons each of which was enlarged by less than one
        grid step, ``min(sum, 10 * root of the sum of squares) / MOST_CELLS`` (coarser for more
        than 1000 different values).

    Examples
    --------
    >>> round(optimal_epsilon([0.1] * 100, delta=1e-6), 3)
    4.775
    >>> optimal_epsilon([0.5, 0.25], delta=0)
    0.75
    """
    return _optimal(_counted(epsilons), Fraction(_checked_delta(delta)))


@dataclass(frozen=True)
class Disclosure:
    """One release and who got it.

    Attributes
    ----------
    guarantee : Guarantee
        What the release protects.
    recipients : tuple of str
        Model ``joint``: the owner of each row, one entry per row (somebody who owns two rows
        stands there twice). Not looked at for a public release: everybody sees it.
    """

    guarantee: Guarantee
    recipients: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.recipients, tuple):
            raise ParameterError("recipients must be a tuple of names")
        if self.guarantee.model == "joint" and len(self.recipients) != self.guarantee.n_sources:
            # Counting one name for many rows would count too little.
            raise ParameterError(
                f"a joint release needs one recipient for each of its "
                f"{self.guarantee.n_sources} rows, got {len(self.recipients)}"
            )

    @property
    def protects(self) -> bool:
        """Whether the release protects anything: not without noise, nor with a known seed."""
        return self.guarantee.private and self.guarantee.model != "none"

    def copies(self, members: Collection[str]) -> int:
        """How many times its epsilon counts against `members` who pool all they got.

        Of a `Guarantee.shared_epsilon` only the rest counts that often.
        """
        if self.guarantee.model != "joint" or not self.protects:
            return 1
        rows = sum(recipient in members for recipient in self.recipients)
        return min(rows, 1) if self.guarantee.pooling == "shared" else rows


def coalition_epsilon(
    releases: Iterable[Disclosure], members: Iterable[str], delta: float = 0.0
) -> float:
    """What `members` who pool all they got learn at most about an edge that touches none of them.

    Parameters
    ----------
    releases : iterable of Disclosure
        All releases from the graph.
    members : iterable of str
        The recipients who pool their rows: one of them, several, or none, for what somebody who
        got no row learns about any edge.
    delta : float
        The total probability with which the returned epsilon may fail. The releases' own deltas
        (`total_delta`) are paid from it first, the rest goes into `optimal_epsilon`.

    Returns
    -------
    float
        Public releases once, the members' rows each, rows with shared noise once. ``inf`` if one
        of these releases is not private, or if `delta` is below the releases' own deltas.
    """
    counts, own_delta = _pooled(releases, members)
    left = Fraction(_checked_delta(delta)) - own_delta
    return _optimal(counts, left) if left >= 0 else math.inf


def total_delta(releases: Iterable[Disclosure], members: Iterable[str] = ()) -> float:
    """Sum of the deltas of what `members` saw: the least delta that gives a finite epsilon."""
    return _rounded_up(_pooled(releases, members)[1])


def _pooled(
    releases: Iterable[Disclosure], members: Iterable[str]
) -> tuple[Counter[float], Fraction]:
    """Epsilons that count against `members`, with multiplicity, and the sum of their deltas."""
    if isinstance(members, str):
        raise ParameterError("members must be a collection of names, got one string")
    names = frozenset(members)
    counts: Counter[float] = Counter()
    delta = Fraction(0)
    for release in releases:
        guarantee, copies = release.guarantee, release.copies(names)
        delta += copies * Fraction(guarantee.delta)
        if not release.protects:
            counts[math.inf] += copies
        elif copies > 1 and guarantee.shared_epsilon:
            counts[guarantee.shared_epsilon] += 1
            counts[_rounded_up(guarantee.pooled(2) - guarantee.pooled(1))] += copies
        else:
            counts[guarantee.epsilon] += copies
    return +counts, delta


def _counted(epsilons: Iterable[float]) -> Counter[float]:
    counts = Counter(float(epsilon) for epsilon in epsilons)
    for epsilon in counts:
        if not epsilon >= 0:
            raise ParameterError(f"epsilon must be a number >= 0, got {epsilon}")
    return counts


def _checked_delta(delta: float) -> float:
    if not 0 <= delta < 1:
        raise ParameterError(f"delta must be in [0, 1), got {delta}")
    return delta


def _rounded_up(value: Fraction) -> float:
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _sum(counts: Counter[float]) -> float:
    if math.inf in counts:
        return math.inf
    return _rounded_up(sum((n * Fraction(e) for e, n in counts.items()), Fraction(0)))


def _optimal(counts: Counter[float], delta: Fraction) -> float:
    total = _sum(counts)
    if total == 0 or math.isinf(total) or delta < SMALLEST_DELTA:
        return total
    counts = Counter({epsilon: n for epsilon, n in counts.items() if epsilon > 0})
    step, multiples = _grid(counts)
    cells = sum(counts[epsilon] * m for epsilon, m in multiples.items())
    # All terms below are positive, so relative float errors only add up: at most 16 ulps for each
    # release, unit of epsilon and cell. 2^-40 pays for the tails cut off on the way.
    slack = 1 + 2.0**-49 * (counts.total() + total + cells)
    target = math.nextafter(float(delta), 0) * (1 - 2.0**-40) / slack
    cut = target * 2.0**-50 / len(counts)

    # negatives[i]: probability that the responses that came out negative weigh first + i steps.
    first, negatives = 0, np.ones(1)
    for epsilon, n in sorted(counts.items(), key=lambda item: -item[1]):
        stride = multiples[epsilon]
        skipped, weights = _trim(_binomial(n, stride * step), cut)
        cut_off, negatives = _trim(_convolve(negatives, weights, stride), cut)
        first += stride * skipped + cut_off
    # The loss is (cells - 2 * weight) * step; only positive losses matter, and it is rounded up.
    weight = first + np.arange(negatives.size, dtype=np.float64)
    losses = np.float64(step * (1 + 2.0**-50)) * (cells - 2 * weight)
    return min(total, _least_epsilon(losses[losses > 0], negatives[losses > 0], target))


def _least_epsilon(
    losses: NDArray[np.float64], probabilities: NDArray[np.float64], target: float
) -> float:
    """Least epsilon (from above, by bisection) with E[(1 - exp(epsilon - loss))+] <= target."""

    def delta_at(epsilon: float) -> float:
        above = losses > epsilon
        return float(-(probabilities[above] @ np.expm1(epsilon - losses[above])))

    if losses.size == 0 or delta_at(0.0) <= target:
        return 0.0
    low, high = 0.0, float(losses.max())
    while high - low > high * 2.0**-40:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle) <= target else (middle, high)
    return high


def _grid(counts: Counter[float]) -> tuple[float, dict[float, int]]:
    """Find a step and, for every epsilon, the least multiple of it that is not below.

    Rounding an epsilon up is always valid: an epsilon-DP release is epsilon'-DP for every
    epsilon' >= epsilon. The step is a fraction of the smallest epsilon if that fits all of them
    (a hair larger, so that 1.1 is 11 times 0.1 although the floats are not).
    """
    smallest = min(counts)
    # Work: as far as the loss may stray, in steps, times the terms of all convolutions (the first
    # one, with the most frequent epsilon, is free).
    reach = min(_sum(counts), 10 * math.sqrt(sum(n * e * e for e, n in counts.items())))
    terms = sorted(min(n + 1, 10 * math.isqrt(n) + 10) for n in counts.values())
    most_cells = max(2**14, min(MOST_CELLS, 2**29 // max(1, sum(terms[:-1]))))
    for parts in range(1, 101):
        step = smallest / parts * (1 + 2.0**-40)
        if step == 0 or reach / step > most_cells:
            break
        multiples = _multiples(counts, step)
        if all(m * step <= epsilon * (1 + 2.0**-32) for epsilon, m in multiples.items()):
            return step, multiples
    step = reach / most_cells
    return step, _multiples(counts, step)


def _multiples(counts: Counter[float], step: float) -> dict[float, int]:
    return {epsilon: math.ceil(Fraction(epsilon) / Fraction(step)) for epsilon in counts}


def _binomial(n: int, epsilon: float) -> NDArray[np.float64]:
    """Distribution of the number of negative ones among n randomised responses at `epsilon`.

    Built outwards from the mode by ratios, so that every entry has a small *relative* error.
    """
    odds = math.exp(-epsilon)
    mode = math.floor((n + 1) * odds / (1 + odds))
    above = np.arange(mode + 1, n + 1)
    below = np.arange(mode, 0, -1)
    up = np.cumprod((n - above + 1) / above * odds)
    down = np.cumprod(below / (n - below + 1) / odds) if mode else np.ones(0)
    weights: NDArray[np.float64] = np.concatenate([down[::-1], np.ones(1), up])
    weights /= weights.sum()
    return weights


def _trim(weights: NDArray[np.float64], cut: float) -> tuple[int, NDArray[np.float64]]:
    """Leave off at most `cut` of mass at either end; also return where the rest begins."""
    begin = int(np.searchsorted(np.cumsum(weights), cut, side="right"))
    end = weights.size - int(np.searchsorted(np.cumsum(weights[::-1]), cut, side="right"))
    return begin, weights[begin:end]


def _convolve(
    base: NDArray[np.float64], weights: NDArray[np.float64], stride: int
) -> NDArray[np.float64]:
    """Add an independent variable that takes the value j * stride with probability weights[j]."""
    out = np.zeros(base.size + stride * (weights.size - 1))
    if base.size < weights.size:
        reach = stride * (weights.size - 1) + 1
        for i in np.flatnonzero(base):
            out[i : i + reach : stride] += base[i] * weights
    else:
        for j in np.flatnonzero(weights):
            out[j * stride : j * stride + base.size] += weights[j] * base
    return out
