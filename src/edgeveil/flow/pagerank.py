"""Exact Personalized PageRank, to a stated tolerance.

The ordinary walk's PageRank p = restart * s + (1 - restart) * p D^-1 A, in the form x = p / d:
x = restart * e_s / d + (1 - restart) D^-1 A x. D - (1 - restart) A is positive definite, so
successive over-relaxation (SOR) converges. After each sweep a constant is added on the source's
component so that the total mass, which is known, is right: this removes the slowest part of the
error. Both steps decrease the same energy. One step of the walk contracts the L1 norm by
1 - restart, so the error is at most residual / restart: that is the stopping criterion. Near the
end of double precision the residual may not reach it; then a lane ends when it has stalled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._internal.paper_names import with_paper_names
from edgeveil.flow._blocks import Block, Lanes, block_zeros, components_of, layout_of, solve
from edgeveil.flow._kernels import Kernels, unload_exact
from edgeveil.flow.walk import check_restart, check_sources, check_tol
from edgeveil.graph.graph import Graph
from edgeveil.graph.objects import as_graph

_OPTIMISTIC_SWEEPS = 16


@with_paper_names
def personalized_pagerank(
    graph: Any, sources: Iterable[int], *, restart: float = 0.15, tol: float = 1e-9
) -> npt.NDArray[np.float64]:
    """Personalized PageRank of every source, within `tol` in L1. Not private.

    Parameters
    ----------
    graph : Graph
        The graph, or anything that `edgeveil.as_graph` takes.
    sources : iterable of int
        Indices of the source nodes: their places in ``graph.nodes``.
    restart : float
        Restart probability of the ordinary walk.
    tol : float
        L1 error that no row exceeds; at least 1e-13.

    Returns
    -------
    array of shape (number of sources, n)
        Non-negative rows. An isolated source keeps all of its mass.
    """
    graph = as_graph(graph)
    restart = check_restart(restart)
    tol = check_tol(tol)
    listed = check_sources(sources, graph.n_nodes)
    rows = np.empty((len(listed), graph.n_nodes))
    starts = layout_of(graph).row_of[listed]
    for part, block, lanes in solve(
        lambda loops, kind: _ExactBlock(graph, loops, restart, kind),
        len(listed),
        lambda block, part: block.load(starts[part]),
        tol * restart,
    ):
        block.unload(lanes, rows[part])
    isolated = np.flatnonzero(graph.degrees[listed] == 0)
    rows[isolated, listed[isolated]] = 1.0
    return rows


class _ExactBlock(Block):
    """A block of PageRank: g, and for each lane a constant `_level` on its source's component."""

    stall_below = 2.0**-44  # near the end of double precision

    def __init__(self, graph: Graph, loops: Kernels, restart: float, kind: npt.DTypeLike) -> None:
        super().__init__(layout_of(graph), loops, restart, kind)
        self._component, self._volumes = components_of(graph)
        self._residual, self._mass = np.empty((1, loops.lanes)), np.empty((1, loops.lanes))

    def load(self, sources: npt.NDArray[np.int64]) -> None:
        """Set the start for the lanes' sources, given as layout rows."""
        self.clear(len(sources), sources)
        inverse = self.layout.inverse_degree
        self.start[self.slot[sources], self.columns] = self.restart * inverse[sources]
        self._components = self._component[sources]
        self._volume = np.maximum(self._volumes[self._components], 1.0)
        present, rows = np.unique(self._components, return_inverse=True)
        self._drift_row = np.zeros(len(self._volumes), dtype=np.int32)
        self._drift_row[present] = np.arange(1, len(present) + 1)
        self._lane_row = rows + 1
        self._drift = block_zeros(len(present) + 1, self.loops.lanes, self.g.dtype)
        # The start is absorbed at the source; all that follows has mass 1 - restart.
        self._level = (1 - self.restart) / self._volume

    def continue_from(self, other: Any, lanes: Lanes, places: Lanes) -> None:
        """Copy the lanes and their constants."""
        super().continue_from(other, lanes, places)
        self._level[places] = other._level[lanes]

    def unload(self, lanes: Lanes, out: npt.NDArray[np.float64]) -> None:
        """Write rows of PageRank."""
        unload_exact(
            self.g, lanes, self.layout, self._component, self._components, self._level, out
        )

    def sweep_once(self, number: int) -> npt.NDArray[np.float64]:
        """Add the missing mass as a constant on the component, then one sweep of SOR."""
        follow = 1 - self.restart
        if number > 1:
            self._level = (1 - self._mass[0, self.columns]) / self._volume
        self._drift[self._lane_row, self.columns] = -self.restart * self._level
        self.loops.exact_sweep(
            self.layout,
            self._component,
            self.slot,
            self.start,
            self._drift,
            self._drift_row,
            follow,
            _relaxation(follow, number),
            self.g,
            self._residual,
            self._mass,
        )
        return np.asarray(self._residual[0])


def _relaxation(follow: float, sweep: int) -> float:
    """Relaxation factor of a sweep, the same for all sources.

    The slowest error, missing mass everywhere, is removed exactly after each sweep; the other
    eigenvalues are seldom above 0.65. Where they are, the classical choice for eigenvalues up to
    1 takes over after some sweeps.
    """
    radius = follow * (0.65 if sweep <= _OPTIMISTIC_SWEEPS else 1.0)
    return 2 / (1 + math.sqrt(1 - radius * radius))
