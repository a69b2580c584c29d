"""The random walk's parameters: restart probabilities, rounds, tolerances.

Users speak of the ordinary walk's restart probability (``restart``, 0.15). The paper's
algorithms use the lazy walk W = (I + D^-1 A) / 2, whose restart probability alpha is smaller;
it stays inside this package.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import check_int, is_number
from edgeveil.errors import ParameterError

SMALLEST_TOL = 1e-13


def check_restart(restart: float) -> float:
    """Refuse a restart probability outside of (0, 1)."""
    if not isinstance(restart, (int, float, np.number)) or not 0 < restart < 1:
        raise ParameterError(f"restart must be a probability between 0 and 1, got {restart!r}")
    return float(restart)


def check_rounds(rounds: int) -> int:
    """Refuse a number of rounds that is not a positive integer (of a size the proofs cover)."""
    return check_int("rounds", rounds, 1, 100_000)


def check_tol(tol: float) -> float:
    """Refuse a tolerance that is not a finite number, or that double precision cannot reach."""
    if not is_number(tol) or not SMALLEST_TOL <= tol < math.inf:
        raise ParameterError(f"tol must be a number >= {SMALLEST_TOL:g}, got {tol!r}")
    return float(tol)


def check_sources(sources: Iterable[int], n: int) -> npt.NDArray[np.int64]:
    """Give source indices as an array; refuse any outside of the public node set."""
    array = np.atleast_1d(np.asarray(sources))
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ParameterError("sources must be a list of node indices")
    if array.size and not (array.min() >= 0 and array.max() < n):
        raise ParameterError(f"a source index is outside of 0 .. {n - 1}")
    return array.astype(np.int64)


def lazy_restart(restart: float) -> float:
    """Restart probability of the lazy walk with the same Personalized PageRank.

    Examples
    --------
    >>> round(lazy_restart(0.15), 4)
    0.0811
    """
    restart = check_restart(restart)
    return restart / (2 - restart)


def rounds_for(xi: float, restart: float = 0.15) -> int:
    """Rounds of a push flow after which no residual exceeds xi: the paper's R.

    Examples
    --------
    >>> rounds_for(3e-4)
    101
    """
    if not is_number(xi) or not 0 < xi < 1:
        raise ParameterError(f"xi must be a number between 0 and 1, got {xi!r}")
    return check_rounds(math.ceil(math.log(1 / xi) / lazy_restart(restart)))
