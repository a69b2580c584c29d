"""Shared by the mechanisms that noise capped flows. Not a mechanism itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from edgeveil.flow.bounds import Bound, flow_error_bound
from edgeveil.flow.push_flow import Recursion, capped_recursion, capped_rows
from edgeveil.graph import Graph
from edgeveil.hashing import (
    check_dimension,
    check_hash_key,
    embedding_float_error,
    hash_nodes,
    instant_embedding,
)
from edgeveil.mechanisms.base import NoiseLast, PerSource, Rows
from edgeveil.mechanisms.hard_pairs import Pair, capped_flow_pairs
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Model
from edgeveil.privacy.noise import Calibration, calibrate


@dataclass(frozen=True, kw_only=True)
class CappedFlow(PerSource):
    """The parameters of a flow that one edge moves by at most `sigma` in L1, and its noise.

    Neighbouring graphs differ in one edge (joint: not at the source). Cost per source: `rounds`
    passes over the edges (fixed point: at most 137 at the defaults, about 20 in practice).

    Parameters
    ----------
    epsilon : float
        Privacy loss of one row.
    sigma : float
        L1 sensitivity that the flow is capped to; smaller means less noise and more bias.
    model : {"joint", "public"}
        Who sees a row: its source's owner alone, or anyone.
    restart : float
        Restart probability of the ordinary walk.
    rounds : int or None
        Rounds of pushing; None for the fixed point, which allows most flow
        (docs/theory/tight-bounds.md).
    """

    epsilon: float
    sigma: float = 1e-6
    model: Model = "joint"
    restart: float = 0.15
    rounds: int | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        self.recursion()

    def recursion(self) -> Recursion:
        """What is computed; refuses wrong parameters."""
        raise NotImplementedError

    def flow(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """One row of flow for each source, without noise."""
        return capped_rows(graph, sources, self.recursion())

    def flow_error(self, n: int) -> float:
        """L1 distance of a computed row from the defined one, at most, on any graph."""
        return flow_error_bound(n, sigma=self.sigma, restart=self.restart, rounds=self.rounds)

    def flow_noise(self, n: int, epsilon: Fraction) -> Calibration:
        """One edge moves a row by at most sigma in L1."""
        error = self.flow_error(n)
        return calibrate(coordinates=n, sensitivity=self.sigma, epsilon=epsilon, error=error)

    def hard_pairs(self) -> Iterator[Pair]:
        """The shapes on which capped flows change most."""
        return capped_flow_pairs(self.model)


class NoisedFlow(CappedFlow, NoiseLast):
    """A flow plus its noise, and nothing else."""

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The flow."""
        return self.flow(graph, sources)

    def calibration(self, n_nodes: int) -> Calibration:
        """The noise of the flow, for all of epsilon."""
        return self.flow_noise(n_nodes, exact_epsilon(self.epsilon))


@dataclass(frozen=True, kw_only=True)
class PaperFlow(CappedFlow):
    """The paper's capped push flow: docs/theory/push-flow-cap.md.

    Parameters
    ----------
    epsilon, sigma, model, restart
        As for `CappedFlow`.
    rounds : int or None
        Rounds of pushing. None: the fixed point, which allows a tenth more flow for the same
        sigma and restart 0.15 (docs/theory/tight-bounds.md).
    prepush : bool
        The paper's extra start (Section 6); joint model only.
    bound : {"tight", "paper"}
        Which sensitivity theorem sets the cap. The paper's allows less flow for the same
        sigma; it is kept for reproduction.
    """

    rounds: int | None = 100
    prepush: bool = False
    bound: Bound = "tight"

    @classmethod
    def paper(cls, epsilon: float, *, model: Model = "joint", **others: Any) -> Self:
        """The paper's own configuration (its Section 6), for comparison.

        sigma = 1e-6, R = 100, its own bound on the sensitivity, restart 0.15, embeddings of 256
        numbers, and in the joint model its extra start. `others` replace any of them.
        """
        how: dict[str, Any] = {"sigma": 1e-6, "rounds": 100, "bound": "paper", **others}
        return cls(epsilon=epsilon, model=model, **{"prepush": model == "joint"} | how)

    def recursion(self) -> Recursion:
        """That of `push_flow_cap`."""
        return capped_recursion(
            self.sigma, self.model, self.restart, self.rounds, self.prepush, self.bound
        )

    @property
    def half(self) -> Fraction:
        """Half of epsilon, for a mechanism of two parts: first it chooses large coordinates."""
        return exact_epsilon(self.epsilon) / 2

    def is_large(self, noised: Rows) -> npt.NDArray[np.bool_]:
        """Which noised coordinates count as large: from the paper's 3 sigma ln(n) / half on."""
        return noised >= 3 * self.sigma * math.log(noised.shape[1]) / float(self.half)


@dataclass(frozen=True, kw_only=True)
class FlowEmbedding(PaperFlow):
    """InstantEmbedding of the capped flow, or of some of its coordinates.

    Parameters
    ----------
    dimension : int
        Length k of an embedding.
    hash_key : str
        Chooses the public hash of nodes to dimensions.
    epsilon, sigma, model, restart, rounds, prepush, bound
        As for `PaperFlow`.
    """

    dimension: int = 256
    hash_key: str = "edgeveil"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dimension(self.dimension)
        check_hash_key(self.hash_key)

    def embedded(self, graph: Graph, rows: Rows) -> Rows:
        """The embedding of each row, without noise."""
        return instant_embedding(rows, hash_nodes(graph.nodes, self.dimension, self.hash_key))

    def hard_pairs(self) -> Iterator[Pair]:
        """Those of the flow; the embedding looks at n p and not below 1: lone nodes raise n."""
        return capped_flow_pairs(self.model, lone=True)


@lru_cache(maxsize=256)  # exact arithmetic, the same for all rows with as many coordinates
def embedding_noise(
    mechanism: FlowEmbedding, n: int, coordinates: int, epsilon: Fraction
) -> Calibration:
    """If so many coordinates move by sigma in all, an embedding moves by m log(1 + sigma n / m)."""
    moved = coordinates * math.log1p(mechanism.sigma * (n / coordinates))
    return calibrate(
        coordinates=mechanism.dimension,
        sensitivity=moved * (1 + 2**-48),  # rounded up
        epsilon=epsilon,
        error=embedding_float_error(n, mechanism.flow_error(n)),
    )
