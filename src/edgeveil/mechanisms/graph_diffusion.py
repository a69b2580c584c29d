"""GraphDiffusion: noisy, clipped power iteration, after Wei, Chien and Li (NeurIPS 2024)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.flow.bounds import Bound, check_bound
from edgeveil.flow.walk import check_restart, check_rounds, lazy_restart
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Columns, Rows, per_source_guarantee
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource, add_laplace, calibrate

__all__ = ["GraphDiffusion"]


@dataclass(frozen=True, kw_only=True)
class GraphDiffusion:
    """A rival to measure against: power iteration with noise and degree clipping in every step.

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
        Most that a node passes on over one edge, before b; the noise grows with it.
    restart : float
        Restart probability of the ordinary walk; 1/3 is the authors' b = 0.8.
    steps : int
        Steps of the iteration, at least 2.
    bound : {"tight", "paper"}
        ``tight``: one draw per step, scale 2 b eta / (1-b) / epsilon, which is enough.
        ``paper``: as its authors draw, twice per step with twice that scale.
    """

    name: ClassVar[str] = "graph-diffusion"
    columns: ClassVar[Columns] = "nodes"

    epsilon: float
    eta: float = 1e-8
    restart: float = 1 / 3
    steps: int = 100
    bound: Bound = "tight"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        _check_eta(self.eta)
        check_restart(self.restart)
        _check_steps(self.steps)
        check_bound(self.bound)

    @property
    def sensitivity(self) -> float:
        """L1 change of the last step by one edge, at most (rounded up)."""
        alpha = lazy_restart(self.restart)
        if self.bound == "paper":
            return 4 * (1 - alpha) * float(self.eta) / alpha * (1 + 2**-48)
        spread = -math.expm1((self.steps - 1) * math.log1p(-alpha))
        return 2 * (1 - alpha) * float(self.eta) / alpha * spread * (1 + 2**-48)

    def guarantee(self, n_sources: int) -> Guarantee:
        """Give epsilon per recipient."""
        return per_source_guarantee(
            epsilon=self.epsilon,
            model="joint",
            n_sources=n_sources,
            theorem="docs/theory/graph-diffusion.md",
        )

    def prepare(self, graph: Graph, noise: NoiseSource) -> Graph:
        """Nothing is shared between sources."""
        return graph

    def rows(self, prepared: Graph, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """Iterate source by source."""
        walk = _LazyWalk(prepared)
        rows = np.empty((len(sources), prepared.n_nodes))
        for row, source in zip(rows, sources, strict=True):
            row[:] = self._row(walk, int(source), noise.derive("row", int(source)))
        return rows

    def _row(self, walk: _LazyWalk, source: int, stream: NoiseSource) -> npt.NDArray[np.float64]:
        n, alpha = len(walk.degree), lazy_restart(self.restart)
        epsilon, draws = exact_epsilon(self.epsilon), 2 if self.bound == "paper" else 1
        usual = calibrate(coordinates=n, sensitivity=self.sensitivity, epsilon=epsilon)
        nothing = np.zeros(n)
        caps = self.eta * walk.degree
        caps[source] = 1.0
        x = np.zeros(n)
        x[source] = 1.0
        most_noise = 0.0
        for step in range(1, self.steps):
            y = walk.step(x, source, alpha)
            # Drawn apart from y: in the proof it is the same noise on both graphs.
            for draw in range(draws):
                z = add_laplace(nothing, usual, stream.derive("step", step, draw))
                most_noise = max(most_noise, draws * float(np.abs(z).sum()))
                y += z
            x = np.clip(y, 0.0, caps)
        # The noise so far does not depend on the graph: the last scale may look at it.
        last = calibrate(
            coordinates=n,
            sensitivity=self.sensitivity,
            epsilon=epsilon,
            error=(n + 16) * 2.0**-52 * (1 + most_noise) / alpha**2,
        )
        y = walk.step(x, source, alpha)
        released = add_laplace(y, last, stream.derive("step", self.steps, 0))
        if draws == 2:  # post-processing
            released = released + add_laplace(nothing, last, stream.derive("step", self.steps, 1))
        return released


class _LazyWalk:
    """y = alpha e_s + (1 - alpha) W x."""

    def __init__(self, graph: Graph) -> None:
        self.degree = graph.degrees.astype(np.float64)
        self._adjacency: Any = graph.adjacency()
        self._inverse = np.divide(
            1.0, self.degree, out=np.zeros(graph.n_nodes), where=self.degree > 0
        )

    def step(
        self, x: npt.NDArray[np.float64], source: int, alpha: float
    ) -> npt.NDArray[np.float64]:
        y = x + self._adjacency @ (x * self._inverse)
        if self.degree[source] == 0:
            y[source] += x[source]  # the walk stays; all other nodes without edges hold 0
        y *= (1 - alpha) / 2
        y[source] += alpha
        return np.asarray(y, dtype=np.float64)


def _check_eta(eta: float) -> None:
    plain = eta.item() if isinstance(eta, np.generic) else eta
    number = isinstance(plain, (int, float)) and not isinstance(plain, bool)
    if not number or not 1e-200 < plain < 1e200:
        raise ParameterError(f"eta must be a positive number, got {eta!r}")


def _check_steps(steps: int) -> None:
    try:
        check_rounds(steps)
    except ParameterError:
        raise ParameterError(f"steps must be an integer from 2 to 100,000, got {steps!r}") from None
    if steps < 2:
        raise ParameterError(f"steps must be an integer from 2 to 100,000, got {steps!r}")
