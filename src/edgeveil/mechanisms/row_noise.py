"""Shared by mechanisms whose rows are a bounded statistic plus Laplace noise on each value.

Not a mechanism itself. Sensitivity and float error stay with the mechanism, beside its theorem.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgeveil.mechanisms.protocol import Rows
from edgeveil.privacy.noise import Calibration, NoiseSource, add_laplace

__all__ = ["add_row_noise"]


def add_row_noise(
    rows: Rows, sources: Sequence[int], calibration: Calibration, noise: NoiseSource
) -> Rows:
    """Put noise on every row, in place, from its source's own stream.

    Any sharding of the sources gives the same rows.
    """
    for row, source in zip(rows, sources, strict=True):
        row[:] = add_laplace(row, calibration, noise.derive("row", int(source)))
    return np.asarray(rows)
