"""Compiled loops of `suggestions`: laws of a sum on a grid, and what Laplace noise makes of them.

Laws lie side by side: row x of a table has the mass of every law at point x, so that all loops
run over neighbours in memory. As `_walk_kernels`: no bounds checks, arrays in and out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil.estimate._compile import compiled, inner

PLAIN = 5  # Poisson laws, about what t = 1/4, 1/2, 1, 2, 4 times as many pairs explain
TAIL = (0.5, 1.0, 2.5)  # means of the exponentials, in friends' mean sums
UNIT_STEPS = 30  # points of a grid lie one unit apart up to here
_FROM_ONE = 50.0  # up to this mean e^mean is far from overflow: each point from the one before
_NOTHING = 1e-250  # numbers near the end of the floats are slow


def _steps() -> Any:
    """Whole numbers, from 30 on ever wider apart: points of every grid, in its unit."""
    steps = [float(i) for i in range(UNIT_STEPS + 1)]
    while steps[-1] < 1e15:
        steps.append(max(steps[-1] + 1, round(1.06 * steps[-1])))
    return np.array(steps)


STEPS = _steps()
_LOG_FACTORIALS = np.array([math.lgamma(step + 1) for step in STEPS])


@compiled
def size_of(top: float, unit: float) -> int:
    """How many points a grid needs to reach from 0 to `top`."""
    size = UNIT_STEPS + 1
    while size < len(STEPS) and STEPS[size - 1] * unit < top:
        size += 1
    return size


@compiled
def widths_of(widths: Any) -> None:
    """OUT ``widths`` (x): how much of the line, in units, each point stands for."""
    last = len(widths) - 1
    widths[0] = 1.0
    for x in range(1, last):
        widths[x] = (STEPS[x + 1] - STEPS[x - 1]) / 2
    widths[last] = 0.5 + (STEPS[last] - STEPS[last - 1]) / 2


@compiled
def poissons(means: Any, widths: Any, mass: Any, value: Any, whole: Any) -> None:
    """OUT ``mass`` (x, at least l): Poisson laws of these means (l), in units; room for two (l)."""
    lanes, size = len(means), len(widths)
    for i in range(lanes):
        means[i] = max(means[i], 1e-9)
        value[i], whole[i] = 1.0, 0.0
    for x in range(size):
        if x > UNIT_STEPS:
            gap, shift = STEPS[x] - STEPS[x - 1], _LOG_FACTORIALS[x] - _LOG_FACTORIALS[x - 1]
            for i in range(lanes):
                if value[i] > 0.0:
                    value[i] *= math.exp(gap * math.log(means[i]) - shift)
        elif x > 0:
            for i in range(lanes):
                value[i] *= means[i] * (1 / STEPS[x])
        for i in range(lanes):
            value[i] = value[i] if value[i] > _NOTHING else 0.0
            mass[x, i] = value[i] * widths[x]
            whole[i] += mass[x, i]
    for i in range(lanes):
        if means[i] >= _FROM_ONE:
            _poisson_by_logs(means[i], widths, mass, i)
            whole[i] = 1.0
        whole[i] = 1 / whole[i]
    for x in range(size):
        for i in range(lanes):
            mass[x, i] *= whole[i]


@inner
def _poisson_by_logs(mean: float, widths: Any, mass: Any, lane: int) -> None:
    log_mean, top, whole = math.log(mean), -np.inf, 0.0
    for x in range(len(widths)):
        top = max(top, STEPS[x] * log_mean - _LOG_FACTORIALS[x])
    for x in range(len(widths)):
        value = math.exp(STEPS[x] * log_mean - _LOG_FACTORIALS[x] - top) * widths[x]
        mass[x, lane] = value
        whole += value
    for x in range(len(widths)):
        mass[x, lane] /= whole


@compiled
def exponentials(typical: float, unit: float, widths: Any, tails: Any, first: int) -> None:
    """OUT ``tails`` (x, first + 3): exponential laws; of the first point's width half is left."""
    for j in range(first, first + len(TAIL)):
        rate, whole, value = unit / (TAIL[j - first] * typical), 0.0, 1.0
        step = math.exp(-rate)
        for x in range(len(widths)):
            if x > UNIT_STEPS:
                value = math.exp(-rate * STEPS[x])
            elif x > 0:
                value *= step
            tails[x, j] = value * widths[x] * (1.0 if x > 0 else 0.5)
            whole += tails[x, j]
        for x in range(len(widths)):
            tails[x, j] /= whole


@compiled
def decays_of(rate: float, decays: Any) -> None:
    """OUT ``decays`` (x): exp(-rate * gap) from each point to the next; 0 after the last."""
    last = len(decays) - 1
    one = math.exp(-rate)
    for x in range(last):
        decays[x] = one if x < UNIT_STEPS else math.exp(-rate * (STEPS[x + 1] - STEPS[x]))
    decays[last] = 0.0


@compiled
def laplace_tables(mass: Any, size: int, lanes: int, decays: Any, left: Any, right: Any) -> None:
    """OUT (x + 1, l): sums of mass * exp(-rate * distance) over the points on either side of each.

    left[j + 1] sums over the points up to j, with the distance from point j; right[j] over the
    points from j on. left[0] and right[x] are 0. So the likelihood of a z between points j and
    j + 1 is rate / 2 times
    left[j + 1] exp(-rate (z - x_j)) + right[j + 1] exp(-rate (x_(j+1) - z)).
    """
    for i in range(lanes):
        left[0, i] = right[size, i] = 0.0
    for x in range(size):
        decay = decays[x - 1] if x > 0 else 0.0
        for i in range(lanes):
            left[x + 1, i] = left[x, i] * decay + mass[x, i]
    for x in range(size - 1, -1, -1):
        for i in range(lanes):
            right[x, i] = right[x + 1, i] * decays[x] + mass[x, i]


@compiled
def place_of(z: float, unit: float, size: int) -> int:
    """How many points of the grid are at most z."""
    # A guess for the points that lie a unit apart, and steps from there.
    at = min(int(min(max(z / unit, -1.0), 1.0 * UNIT_STEPS)) + 1, size)
    while at < size and STEPS[at] * unit <= z:
        at += 1
    while at > 0 and STEPS[at - 1] * unit > z:
        at -= 1
    return at


@compiled
def beside(z: float, at: int, unit: float, rate: float, size: int) -> Any:
    """What the two table entries of a value between points at - 1 and at are multiplied with.

    Beyond either end that is a factor of all laws alike, and left out: it would underflow.
    """
    if at == size:
        return 1.0, 0.0
    if at == 0:
        return 0.0, 1.0
    return math.exp(-rate * (z - STEPS[at - 1] * unit)), math.exp(-rate * (STEPS[at] * unit - z))


@inner
def stays_below(limit: float, unit: float, rate: float, unseen: Any) -> None:
    """OUT ``unseen`` (x): chance that a sum at each point stays below the threshold."""
    for x in range(len(unseen)):
        gap = rate * (limit - STEPS[x] * unit)
        unseen[x] = 0.5 * math.exp(gap) if gap < 0 else 1 - 0.5 * math.exp(-gap)


@inner
def sort(values: Any) -> None:
    """INOUT ``values``: rising. By Shell's gaps: numpy's own takes a second to compile."""
    gap = 1
    while 3 * gap < len(values):
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(values)):
            value, at = values[i], i
            while at >= gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 3
