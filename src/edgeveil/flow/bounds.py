"""What one edge can change in a push flow, and what floating point can. Pure arithmetic.

Nothing here looks at a graph: every bound holds for all graphs on n nodes.
"""

from __future__ import annotations

import math

import numpy as np

from edgeveil.errors import ParameterError

__all__ = ["check_sigma", "edge_cap", "float_error_bound"]


def check_sigma(sigma: float) -> float:
    """Refuse a sensitivity that is not a positive finite number (or near the end of doubles)."""
    plain = sigma.item() if isinstance(sigma, np.generic) else sigma
    number = isinstance(plain, (int, float)) and not isinstance(plain, bool)
    if not number or not 1e-280 < plain < 1e280:
        raise ParameterError(f"sigma must be a positive number, got {sigma!r}")
    return float(sigma)


def edge_cap(sigma: float, alpha: float, rounds: int) -> float:
    """Cap T on the flow over one edge for which one edge moves the result at most `sigma`.

    T = sigma / ((3 - alpha)(1 - (1 - alpha)^R)): Theorem 4.3 of the paper, proof in
    docs/theory/push-flow-cap.md. Rounded down, so that float arithmetic errs on the safe side.

    Examples
    --------
    >>> round(edge_cap(1e-6, 0.0811, 100) * 1e7, 3)
    3.427
    """
    pushed = -math.expm1(rounds * math.log1p(-alpha))
    return check_sigma(sigma) / ((3 - alpha) * pushed) * (1 - 2.0**-48)


def float_error_bound(n: int, alpha: float) -> float:
    """L1 bound on the float64 error of a push flow on any graph of n nodes.

    Proof in docs/theory/float-error.md, for (n + 4) R <= 2^50: one round rounds every
    non-negative term at most n + 4 times, an error shrinks by (1 - alpha) a round, and the
    total flow never exceeds 1 / alpha.
    """
    return (n + 16) * 2.0**-52 / alpha
