"""Compiled loops of `suggestions`: shares of the components of a mixture, by EM. As `_kernels`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil.estimate._compile import compiled

__all__ = ["KINDS", "PLAIN", "TAIL", "fit_mixture", "fit_share"]

PLAIN = 5  # Poisson laws, about what t = 1/4, 1/2, 1, 2, 4 times as many pairs explain
TAIL = (0.5, 1.0, 2.5)  # means of the exponentials, in friends' mean sums
KINDS = PLAIN + len(TAIL)

_TAIL_MOST = 0.5  # of the nodes of a cell
_FIRST_SHARE = 0.001  # of each exponential, before the fit
_STEPS, _FASTER = 60, 7
_SETTLED = 1e-3  # a fit ends when no share moves by more, relatively
_POSSIBLE = 1e-290  # values that are less likely under all laws tell nothing, and would overflow


@compiled
def fit_share(odds: Any, for_one: float, for_other: float, rounds: int) -> float:
    """Fit by EM the share of the first of two laws, of which each value has one.

    IN ``odds``: likelihood under the first law, divided by that under the second.
    """
    share = for_one / (for_one + for_other)
    for _ in range(rounds):
        count, against = for_one, (1 - share) / share
        for i in range(len(odds)):
            count += 1 / (1 + against / odds[i]) if odds[i] > 0 else 0.0
        share = count / (len(odds) + for_one + for_other)
    return share


@compiled
def fit_mixture(
    likelihoods: Any,  # IN  (m, k) of each value under each component
    cells: Any,  # IN  (m) degree cell of each
    often: Any,  # IN  (m) how often it was seen
    growth: Any,  # IN  (c) how the share of the tail grows with the degree
    pseudo: float,  # counts that each component of the tail has beforehand; the others have 1
    faster: bool,
    mix: Any,  # OUT (c, k) shares by cell
) -> None:
    """Fit the shares of a mixture to one row by EM: `_STEPS` steps, or 7 times three `faster` ones.

    Faster: two steps of EM give a direction and how fast it slows down; the third goes on from as
    far as that leads (Varadhan and Roland 2008, SqS3), unless a share would not stay positive.
    That ranks as well, but where noise is large it goes further than the data tell.
    """
    shares, before, between = np.full(KINDS, _FIRST_SHARE), np.empty(KINDS), np.empty(KINDS)
    shares[:PLAIN] = 1 / PLAIN
    counts, exposure = np.empty(KINDS), 1.0
    for i in range(len(cells)):
        exposure += often[i] * growth[cells[i]]
    for _ in range(_FASTER if faster else _STEPS):
        before[:] = shares
        _improve(likelihoods, cells, often, growth, pseudo, exposure, shares, mix, counts)
        if not faster:
            moved = 0.0
            for k in range(KINDS):
                moved = max(moved, abs(shares[k] - before[k]) / (shares[k] + 1e-9))
            if moved < _SETTLED:
                break
            continue
        between[:] = shares
        _improve(likelihoods, cells, often, growth, pseudo, exposure, shares, mix, counts)
        moved = slowed = last = 0.0
        for k in range(KINDS):
            first, second = between[k] - before[k], shares[k] - between[k]
            # Shares differ by orders of magnitude: lengths are measured relative to them.
            moved += (first / shares[k]) ** 2
            slowed += ((second - first) / shares[k]) ** 2
            last = max(last, abs(second) / (shares[k] + 1e-9))
        if last < _SETTLED:
            break
        far = max(math.sqrt(moved / slowed), 1.0) if slowed > 0 else 1.0
        least = np.inf
        for k in range(KINDS):
            first, second = between[k] - before[k], shares[k] - between[k]
            between[k] = before[k] + 2 * far * first + far * far * (second - first)
            least = min(least, between[k])
        if least > 0:
            shares[:] = between
            _improve(likelihoods, cells, often, growth, pseudo, exposure, shares, mix, counts)
    _mix(shares, growth, mix)


@compiled
def _mix(shares: Any, growth: Any, mix: Any) -> None:
    """OUT ``mix`` (c, k): the tail grows with the degree, the others share what it leaves."""
    tail = 0.0
    for k in range(PLAIN, KINDS):
        tail += shares[k]
    for c in range(len(growth)):
        cut = min(growth[c], _TAIL_MOST / tail)
        for k in range(PLAIN):
            mix[c, k] = shares[k] * (1 - tail * cut)
        for k in range(PLAIN, KINDS):
            mix[c, k] = shares[k] * cut


@compiled
def _improve(
    likelihoods: Any, cells: Any, often: Any, growth: Any, pseudo: float, exposure: float,
    shares: Any, mix: Any, counts: Any,
) -> None:  # fmt: skip
    """INOUT ``shares``: one step of EM. ``mix`` and ``counts`` (k) are overwritten."""
    _mix(shares, growth, mix)
    counts[:PLAIN] = 1.0
    counts[PLAIN:] = pseudo
    for i in range(len(cells)):
        c, one, other = cells[i], 0.0, 0.0  # no views here: counting their users would cost most
        for k in range(KINDS // 2):
            one += mix[c, k] * likelihoods[i, k]
            other += mix[c, KINDS // 2 + k] * likelihoods[i, KINDS // 2 + k]
        if one + other > _POSSIBLE:
            scale = often[i] / (one + other)
            for k in range(KINDS):
                counts[k] += mix[c, k] * likelihoods[i, k] * scale
    explained = 0.0
    for k in range(PLAIN):
        explained += counts[k]
    for k in range(KINDS):
        shares[k] = counts[k] / (explained if k < PLAIN else exposure)
