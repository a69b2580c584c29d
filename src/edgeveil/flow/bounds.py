"""Sensitivity of push flows to one edge, and bounds on their float error. Pure arithmetic.

Nothing here looks at a graph: every bound holds for all graphs on n nodes. A cap is rounded
down by 2^-48, more than its evaluation in floats can err, so that it errs on the safe side.
"""

from __future__ import annotations

import math
from typing import Literal

from edgeveil._internal.checks import check_choice, positive
from edgeveil.errors import ParameterError
from edgeveil.flow.walk import check_restart, lazy_restart

Bound = Literal["tight", "paper"]

_SAFE = 1 - 2.0**-48
_MAX_ROUNDS = 100_000
_FIXED_POINT_ERROR = 2.0**-12  # of a computed fixed point, relative to min(sigma, 1)


def check_sigma(sigma: float) -> float:
    """Refuse a sensitivity that is not a positive finite number (or near the end of doubles)."""
    return positive("sigma", sigma)


def check_bound(bound: str) -> str:
    """Refuse anything but the two sensitivity theorems."""
    return check_choice("bound", bound, "tight", "paper")


def edge_cap(sigma: float, alpha: float, rounds: int, bound: str = "tight") -> float:
    """Cap T on the flow over one edge for which one edge moves R rounds by at most `sigma`.

    That is by (3 - alpha) T (1 - (1-alpha)^R) for the paper's bound (its Theorem 4.3, proof in
    docs/theory/push-flow-cap.md), and by C_R T for the tight one, see `rounds_constant`. `alpha`
    is the lazy walk's.
    """
    if check_bound(bound) == "paper":
        constant = -(3 - alpha) * math.expm1(rounds * math.log1p(-alpha))
    else:
        constant = rounds_constant(alpha, rounds)
    return check_sigma(sigma) / constant * _SAFE


def rounds_constant(alpha: float, rounds: int) -> float:
    """C_R: R rounds with cap T differ by at most C_R T for one edge more or less.

    C_1 = 2 alpha, and C_R = 2 alpha + rho (1 - q^(R-1)) + alpha beta mu q^(R-2) from R = 2 on,
    with q = 1 - alpha, beta = q / 2, kappa = 1 - restart and

    ============== ======================= ==============
    restart        rho                     mu
    ============== ======================= ==============
    at most 1/2    kappa                   restart
    at least 1/2   2 kappa / (1 + 2 kappa) the same
    ============== ======================= ==============

    docs/theory/tight-bounds.md, Theorem 3. At restart 0.15 it tends to 1.0122.
    """
    if rounds == 1:
        return 2 * alpha
    restart, kappa = 2 * alpha / (1 + alpha), (1 - alpha) / (1 + alpha)
    rho = mu = 2 * kappa / (1 + 2 * kappa)
    if restart <= 0.5:
        rho, mu = kappa, restart
    log_q = math.log1p(-alpha)
    first = alpha * (1 - alpha) / 2 * mu * math.exp((rounds - 2) * log_q)
    return 2 * alpha - rho * math.expm1((rounds - 1) * log_q) + first


def fixed_point_cap(sigma: float, restart: float, *, bound: str = "tight") -> float:
    """Cap T~ of the ordinary recursion H = min(r0 + (1 - restart) P^T H, d T~).

    T~ = (1 + alpha) T / 2, T the cap of infinitely many rounds: sigma / (3 - alpha) by the paper's
    bound, sigma / max(1 - alpha, 2 alpha) by the tight one (docs/theory/tight-bounds.md, Theorem
    2), written in the ordinary walk's restart probability.
    """
    paper = check_bound(bound) == "paper"
    constant = 6 - 4 * restart if paper else 2 * max(1 - restart, restart)
    return check_sigma(sigma) / constant * _SAFE


def fixed_point_error(sigma: float) -> float:
    """L1 distance that a computed row may have from the fixed point: 2^-12 min(sigma, 1)."""
    return _FIXED_POINT_ERROR * min(check_sigma(sigma), 1.0)


def fixed_point_rounds(sigma: float, restart: float) -> int:
    """Rounds K of the ordinary recursion that leave at most 2^-12 min(sigma, 1) undone in L1.

    K rounds from 0 err by at most (1 - restart)^K (docs/theory/tight-bounds.md, Lemma 3). K
    depends on public parameters only: 137 at sigma 1e-6 and restart 0.15. The faster sweeps get no
    more than K either.
    """
    digits = -math.log(fixed_point_error(sigma))
    # The factor outweighs the float error of both logarithms.
    rounds = max(1, math.ceil(digits / -math.log1p(-check_restart(restart)) * (1 + 2.0**-40)))
    if rounds > _MAX_ROUNDS:
        raise ParameterError(
            f"restart must be larger for the fixed point, which would take {rounds:,} rounds, "
            f"got {restart!r}"
        )
    return rounds


def float_error_bound(n: int, alpha: float) -> float:
    """L1 bound on the float64 error of a push flow on any graph of n nodes.

    Proof in docs/theory/float-error.md, for (n + 4) R <= 2^50: one round rounds every
    non-negative term at most m + 4 times, m = min(n, 76 + n / 512) by the kernels' order of
    summation, an error shrinks by (1 - alpha) a round, and the total flow never exceeds
    1 / alpha. For the ordinary recursion alpha is its restart probability.
    """
    return (min(n, 76 + n / 512) + 16) * 2.0**-52 / alpha


def flow_error_bound(n: int, *, sigma: float, restart: float, rounds: int | None) -> float:
    """L1 distance of a computed flow from the defined one, at most: rounding and truncation."""
    if rounds is None:
        return float_error_bound(n, restart) + fixed_point_error(sigma)
    return float_error_bound(n, lazy_restart(restart))
