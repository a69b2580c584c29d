"""Compiled loops only: arrays in and out, no Python objects.

All state is kept as g = h / d, flow per edge, so that a neighbour's share is one addition and
the cap d(v) T of every node is the one number T. A block holds `LANES` sources side by side;
a lane never looks at another, and sums run over the neighbours in stored order, so a source's
result is the same bits whichever block or thread it is computed in.

n nodes, nnz stored entries, B lanes. IN arrays may be read-only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from edgeveil.flow._lanes import LANES, sum_rows

__all__ = ["LANES", "capped_round", "chebyshev_round"]


@njit(cache=True, nogil=True)
def capped_round(
    indptr: Any,  # IN  (n + 1)
    indices: Any,  # IN  (nnz)
    inverse_degree: Any,  # IN  (n) 1 / d, 0 where d = 0
    special: Any,  # IN  (n) 1 where a lane has start or a cap of its own
    start: Any,  # IN  (n, B) initial residual / d
    cap: Any,  # IN  (n, B) read at special rows only
    edge_cap: float,  # T, the cap of g at all other rows
    beta: float,  # (1 - alpha) / 2 lazy, 1 - restart ordinary
    own: float,  # 1 lazy, 0 ordinary: does a node pass flow to itself?
    g: Any,  # IN  (n, B) flow per edge before the round
    g_next: Any,  # OUT (n, B) after it
) -> None:
    """One synchronous round of g_v <- min(start_v + beta (own g_v + sum_u g_u / d_v), cap_v)."""
    for v in range(len(indptr) - 1):
        sum_rows(g, indices, indptr[v], indptr[v + 1], g_next, v)
        share = inverse_degree[v]
        if special[v]:
            for j in range(LANES):
                inflow = start[v, j] + beta * (own * g[v, j] + g_next[v, j] * share)
                g_next[v, j] = min(inflow, cap[v, j])
        else:
            for j in range(LANES):
                g_next[v, j] = min(beta * (own * g[v, j] + g_next[v, j] * share), edge_cap)


@njit(cache=True, nogil=True)
def chebyshev_round(
    indptr: Any,  # IN  (n + 1)
    indices: Any,  # IN  (nnz)
    degree: Any,  # IN  (n) as float
    inverse_degree: Any,  # IN  (n) 1 / d, 0 where d = 0
    special: Any,  # IN  (n) 1 where a lane starts
    start: Any,  # IN  (n, B) restart * e_s / d
    follow: float,  # 1 - restart
    omega: float,  # the round's Chebyshev weight
    g: Any,  # IN  (n, B) iterate k
    g_other: Any,  # IN  (n, B) iterate k - 1; OUT iterate k + 1
    residual: Any,  # OUT (B) L1 norm of d * (F(g) - g), F one step of the walk
) -> None:
    """One round of Chebyshev semi-iteration for g = start + follow * D^-1 A g."""
    step = np.empty((1, LANES))
    for j in range(LANES):
        residual[j] = 0.0
    for v in range(len(indptr) - 1):
        sum_rows(g, indices, indptr[v], indptr[v + 1], step, 0)
        share = follow * inverse_degree[v]
        if special[v]:
            for j in range(LANES):
                step[0, j] = start[v, j] + step[0, j] * share
        else:
            for j in range(LANES):
                step[0, j] *= share
        d = degree[v]
        for j in range(LANES):
            residual[j] += d * abs(step[0, j] - g[v, j])
            g_other[v, j] += omega * (step[0, j] - g_other[v, j])
