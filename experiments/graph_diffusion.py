"""GraphDiffusion: noisy, clipped power iteration, after Wei, Chien and Li (NeurIPS 2024)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import check_int, positive
from edgeveil.flow.bounds import Bound
from edgeveil.flow.walk import lazy_restart
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.base import (
    LocalViews,
    Mechanism,
    Rows,
    Statistics,
)
from edgeveil.mechanisms.hard_pairs import Pair, capped_flow_pairs, wedge
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.noise import Calibration, calibrate
from edgeveil.privacy.statistic import Noised, Statistic


class GraphDiffusion(Mechanism):
    """A baseline: power iteration with noise and degree clipping in every step.

    x <- clip((1-b) s + b W x + noise) on the lazy walk W, clipped to [0, eta d(v)], and to
    [0, 1] at the source; the last step is not clipped. Its authors' projection to the simplex
    is left out, because their guarantee does not cover it. Joint model only. The guarantee is
    derived in docs/theory/graph-diffusion.md; it needs the last step's noise alone, and without
    the rest this is `forward-cap`. Cost per source: `steps` passes over the edges, and n draws
    for each.

    Parameters
    ----------
    epsilon : float
        Privacy loss of one row.
    eta : float
        Cap on the flow over one edge, before the factor b; the noise is proportional to it.
    restart : float
        Restart probability of the ordinary walk; 1/3 is the authors' b = 0.8.
    steps : int
        Steps of the iteration, at least 2.
    bound : {"tight", "paper"}
        ``tight``: one draw per step, scale 2 b eta / (1-b) / epsilon, which is enough.
        ``paper``: as its authors draw, twice per step with twice that scale.
    """

    name = "graph-diffusion"
    when_to_use = "to compare with noisy diffusion"
    theorem = "docs/theory/graph-diffusion.md"

    epsilon: float
    eta: float = 1e-8
    restart: float = 1 / 3
    steps: int = 100
    bound: Bound = "tight"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("eta", self.eta)
        check_int("steps", self.steps, 2, 100_000)

    @property
    def sensitivity(self) -> float:
        """Largest L1 change of the last step by one edge (rounded up)."""
        alpha = lazy_restart(self.restart)
        if self.bound == "paper":
            return 4 * (1 - alpha) * float(self.eta) / alpha * (1 + 2**-48)
        spread = -math.expm1((self.steps - 1) * math.log1p(-alpha))
        return 2 * (1 - alpha) * float(self.eta) / alpha * spread * (1 + 2**-48)

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate once before the charge, so that it cannot fail after it."""
        self._noise(len(nodes))

    def measure(self, graph: Graph, shared: Any, views: LocalViews) -> Statistics:
        """Noise for every step but the last, then the last step."""
        n, m, draws = graph.n_nodes, len(views.sources), self._draws
        alpha = lazy_restart(self.restart)
        step, calibration = _lazy_walk(graph, alpha), self._noise(n)
        caps = np.tile(self.eta * graph.degrees, (m, 1))
        x = np.zeros((m, n))
        at = np.arange(m), views.sources
        caps[at] = x[at] = 1.0
        largest_noise = np.zeros(m)
        for _ in range(1, self.steps):
            y = step(x, views.sources)
            # Drawn separately from y: the proof couples both graphs by the same noise.
            for _draw in range(draws):
                z = (yield Statistic(np.zeros((m, n)), calibration, noise_only=True)).values
                largest_noise = np.maximum(largest_noise, draws * np.abs(z).sum(axis=1))
                y += z
            x = np.clip(y, 0.0, caps)
        # The noise so far does not depend on the graph, so the last scale may depend on it.
        last = tuple(
            self._noise(n, (n + 16) * 2.0**-52 * (1 + float(noise)) / alpha**2)
            for noise in largest_noise
        )
        yield Statistic(step(x, views.sources), last)
        if draws == 2:
            yield Statistic(np.zeros((m, n)), last, noise_only=True)

    def estimate(self, noised: tuple[Noised, ...], shared: Any, views: LocalViews) -> Rows:
        """The last step; for bound "paper" with a second draw of noise, as its authors do."""
        last = noised[-self._draws].values
        return last + noised[-1].values if self._draws == 2 else last

    def hard_pairs(self) -> Iterator[Pair]:
        """The shapes on which capped flows change most."""
        return capped_flow_pairs("joint")

    @classmethod
    def tight_case(cls) -> tuple[GraphDiffusion, Pair]:
        """Two steps on a wedge."""
        return cls(epsilon=1.0, steps=2, eta=1e-3), wedge()

    @property
    def _draws(self) -> int:
        return 2 if self.bound == "paper" else 1

    def _noise(self, n_nodes: int, error: float = 0.0) -> Calibration:
        return calibrate(
            coordinates=n_nodes,
            sensitivity=self.sensitivity,
            epsilon=exact_epsilon(self.epsilon),
            error=error,
        )


def _lazy_walk(graph: Graph, alpha: float) -> Callable[[Rows, npt.NDArray[np.int64]], Rows]:
    """The step y = alpha e_s + (1 - alpha) W x, one row for each source s."""
    adjacency: Any = graph.adjacency()
    inverse = 1 / np.maximum(graph.degrees, 1)

    def step(x: Rows, sources: npt.NDArray[np.int64]) -> Rows:
        y = np.stack([row + adjacency @ (row * inverse) for row in x])
        at = np.arange(len(x)), sources
        # The walk stays at a source without edges; all other nodes without edges hold 0.
        y[at] += np.where(graph.degrees[sources] == 0, x[at], 0.0)
        y *= (1 - alpha) / 2
        y[at] += alpha
        return y

    return step
