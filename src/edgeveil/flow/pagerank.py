"""Exact Personalized PageRank, to a stated tolerance.

The ordinary walk's PageRank p = restart * s + (1 - restart) * p D^-1 A, in the form x = p / d:
x = restart * e_s / d + (1 - restart) D^-1 A x. D - (1 - restart) A is positive definite, so
successive over-relaxation converges. After each sweep the constant on the source's component
that gives the exact total mass is added: it is known, and it is the slowest part of the error.
Both lessen the same energy. The answer carries a certificate: one step of the walk contracts
the L1 norm by 1 - restart, so the error is at most residual / restart. Near the end of double
precision the residual may never get there; then a lane ends when it has stopped falling.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from edgeveil.flow._kernels import Kernels, blocks, unload_exact
from edgeveil.flow._layout import Layout, block_zeros, layout_of
from edgeveil.flow.walk import check_restart, check_sources, check_tol
from edgeveil.graph import Graph

__all__ = ["personalized_pagerank"]

_OPTIMISTIC = 16  # sweeps
_FLOOR, _IDLE = 2.0**-44, 16  # double precision is at its end: no better for so many sweeps


def personalized_pagerank(
    graph: Graph, sources: Iterable[int], *, restart: float = 0.15, tol: float = 1e-9
) -> npt.NDArray[np.float64]:
    """Personalized PageRank of every source, within `tol` in L1. Not private.

    Parameters
    ----------
    graph : Graph
        The graph.
    sources : iterable of int
        Indices of the source nodes.
    restart : float
        Restart probability of the ordinary walk.
    tol : float
        L1 error that no row exceeds; at least 1e-13.

    Returns
    -------
    array of shape (number of sources, n)
        Non-negative rows. An isolated source keeps all of its mass.
    """
    restart = check_restart(restart)
    tol = check_tol(tol)
    listed = check_sources(sources, graph.n_nodes)
    layout = layout_of(graph)
    rows = np.empty((len(listed), graph.n_nodes))
    memory: dict[int, npt.NDArray[np.float64]] = {}
    for part, loops in blocks(len(listed)):
        if loops.lanes not in memory:
            memory[loops.lanes] = block_zeros(graph.n_nodes, loops.lanes)
        solve = _Solve(layout, loops, layout.row_of[listed[part]], restart, memory[loops.lanes])
        solve.run(tol * restart, rows[part])
    isolated = np.flatnonzero(graph.degrees[listed] == 0)
    rows[isolated, listed[isolated]] = 1.0
    return rows


class _Solve:
    """One block of sources; every lane stops by its own certificate."""

    def __init__(
        self,
        layout: Layout,
        loops: Kernels,
        sources: npt.NDArray[np.int64],
        restart: float,
        g: npt.NDArray[np.float64],
    ) -> None:
        n, lanes = g.shape
        self._layout, self._loops = layout, loops
        self._restart = restart
        self._g = g
        self._columns = np.arange(len(sources))
        own_rows, slots = np.unique(sources, return_inverse=True)
        self._slot = np.zeros(n, dtype=np.int32)
        self._slot[own_rows] = np.arange(1, len(own_rows) + 1)
        self._start = block_zeros(len(own_rows) + 1, lanes)
        self._start[slots + 1, self._columns] = restart * layout.inverse_degree[sources]
        self._component, volumes = layout.components()
        self._components = self._component[sources]
        self._volume = np.maximum(volumes[self._components], 1.0)
        present, rows = np.unique(self._components, return_inverse=True)
        self._drift_row = np.zeros(len(volumes), dtype=np.int32)
        self._drift_row[present] = np.arange(1, len(present) + 1)
        self._lane_row = rows + 1
        self._drift = block_zeros(len(present) + 1, lanes)

    def run(self, enough: float, out: npt.NDArray[np.float64]) -> None:
        """Sweep until every lane's residual is `enough`; write rows of PageRank."""
        layout, follow = self._layout, 1 - self._restart
        self._g[:] = 0.0
        residual, mass = np.empty((1, self._loops.lanes)), np.empty((1, self._loops.lanes))
        # The start is absorbed at the source; all that follows has mass 1 - restart.
        level = follow / self._volume
        waiting = self._columns
        least = np.full(len(waiting), math.inf)
        idle = np.zeros(len(waiting), dtype=np.int64)
        done = 0
        while len(waiting):
            done += 1
            self._drift[self._lane_row, self._columns] = -self._restart * level
            self._loops.exact_sweep(
                layout.indptr,
                layout.indices,
                layout.degree,
                layout.inverse_degree,
                self._component,
                self._slot,
                self._start,
                self._drift,
                self._drift_row,
                follow,
                _relaxation(follow, done),
                self._g,
                residual,
                mass,
            )
            now = residual[0, : len(level)]
            idle = np.where(now < least, 0, idle + 1)
            least = np.minimum(now, least)
            ends = (now <= enough) | ((least <= _FLOOR) & (idle >= _IDLE))
            for lane in waiting[ends[waiting]]:
                unload_exact(
                    self._g,
                    lane,
                    layout.degree,
                    layout.node_at,
                    self._component,
                    self._components[lane],
                    level[lane],
                    out[lane],
                )
            waiting = waiting[~ends[waiting]]
            level = (1 - mass[0, : len(level)]) / self._volume


def _relaxation(follow: float, sweep: int) -> float:
    """The over-relaxation of a sweep, the same for all sources.

    The slowest error, mass that is missing everywhere, is taken off exactly after each sweep;
    of what is left eigenvalues are seldom above 0.65. Where they are, the classical
    choice for eigenvalues up to 1 takes over.
    """
    radius = follow * (0.65 if sweep <= _OPTIMISTIC else 1.0)
    return 2 / (1 + math.sqrt(1 - radius * radius))
