"""The mechanisms that noise capped flows: what they share, then each of them.

`DPPushFlowCap`, `DPSparsePPR`, `DPInstantEmbedding` and `DPEmbeddingSparse`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from edgeveil.estimate.hashing import embedding_float_error, hash_nodes, instant_embedding
from edgeveil.flow.bounds import Bound, flow_error_bound
from edgeveil.flow.push_rounds import Recursion, capped_recursion, capped_rows
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.base import (
    LocalViews,
    Mechanism,
    Rows,
    Statistics,
    laplace_uncertainty,
)
from edgeveil.mechanisms.hard_pairs import Pair, capped_flow_pairs, wedge, wedge_with_leaves
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.guarantee import Model
from edgeveil.privacy.noise import Calibration, calibrate
from edgeveil.privacy.statistic import Noised, Statistic


class CappedFlow(Mechanism):
    """Parameters of the paper's capped push flow, and the flow itself.

    One edge moves a row of flow by at most `sigma` in L1: docs/theory/push-flow-cap.md.
    Neighbouring graphs differ in one edge (joint: not at the source). Cost per source: `rounds`
    passes over the edges (fixed point: at most 137 at the defaults, about 20 in practice).

    Parameters
    ----------
    epsilon : float
        Privacy loss of one row.
    sigma : float
        L1 sensitivity that the flow is capped to; smaller means less noise and more bias.
    model : {"joint", "public"}
        Who may see a row: only the member at its source, or anyone.
    restart : float
        Restart probability of the ordinary walk.
    rounds : int or None
        Rounds of pushing. None: the fixed point, which allows a tenth more flow for the same
        sigma and restart 0.15 (docs/theory/tight-bounds.md).
    prepush : bool
        The paper's extra start (Section 6); joint model only.
    bound : {"tight", "paper"}
        Which sensitivity theorem sets the cap. The paper's allows less flow for the same
        sigma; it is kept for reproduction.
    """

    epsilon: float
    sigma: float = 1e-6
    model: Model = "joint"
    restart: float = 0.15
    rounds: int | None = 100
    prepush: bool = False
    bound: Bound = "tight"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.recursion()  # refuses wrong parameters

    @classmethod
    def paper(cls, epsilon: float, *, model: Model = "joint", **others: Any) -> Self:
        """The paper's own configuration (its Section 6), for comparison.

        sigma = 1e-6, R = 100, its own bound on the sensitivity, restart 0.15, embeddings of 256
        numbers, and in the joint model its extra start. `others` replace any of them.
        """
        defaults = {"sigma": 1e-6, "rounds": 100, "bound": "paper", "prepush": model == "joint"}
        return cls(epsilon=epsilon, model=model, **{**defaults, **others})

    def recursion(self) -> Recursion:
        """The recursion of `push_flow_cap`."""
        return capped_recursion(
            self.sigma,
            self.model,
            self.restart,
            self.rounds,
            prepush=self.prepush,
            bound=self.bound,
        )

    def flow(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """One row of flow for each source, without noise."""
        return capped_rows(graph, sources, self.recursion())

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The rows that are noised: the flow."""
        return self.flow(graph, sources)

    def calibration(self, n_nodes: int) -> Calibration:
        """Their noise, for all of epsilon."""
        return flow_noise(self, n_nodes, exact_epsilon(self.epsilon))

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate once before the charge, so that it cannot fail after it."""
        self.calibration(len(nodes))

    def measure(self, graph: Graph, shared: Any, views: LocalViews) -> Statistics:
        """The rows, before their noise."""
        yield Statistic(self.exact_rows(graph, views.sources), self.calibration(graph.n_nodes))

    @property
    def half_epsilon(self) -> Fraction:
        """What each part of a two-part mechanism gets: the choice of coordinates, the values."""
        return exact_epsilon(self.epsilon) / 2

    def is_large(self, noised: Rows) -> npt.NDArray[np.bool_]:
        """Which noised coordinates reach the paper's threshold 3 sigma ln(n) / half epsilon."""
        return noised >= 3 * self.sigma * math.log(noised.shape[1]) / float(self.half_epsilon)

    def hard_pairs(self) -> Iterator[Pair]:
        """The shapes on which capped flows change most.

        For embeddings also with isolated nodes, which raise n: an embedding takes max(n p, 1).
        """
        return capped_flow_pairs(self.model, isolated=self.output == "embeddings")


def flow_error(flow: CappedFlow, n: int) -> float:
    """Bound on the L1 distance between a computed row and its definition, on any graph."""
    return flow_error_bound(n, sigma=flow.sigma, restart=flow.restart, rounds=flow.rounds)


def flow_noise(flow: CappedFlow, n: int, epsilon: Fraction) -> Calibration:
    """One edge moves a row by at most sigma in L1."""
    error = flow_error(flow, n)
    return calibrate(coordinates=n, sensitivity=flow.sigma, epsilon=epsilon, error=error)


class DPPushFlowCap(CappedFlow):
    """Capped push flow plus Laplace noise of scale sigma / epsilon on every node.

    Proof: docs/theory/dp-push-flow-cap.md. Parameters as for `CappedFlow`.
    """

    name = "push-flow-cap"
    when_to_use = "to compare with the paper, or where a bound on the L1 error is wanted"
    theorem = "docs/theory/dp-push-flow-cap.md"

    def uncertainty(self, rows: Rows, shared: Any, views: LocalViews) -> Rows:
        """Around the row without noise; what caps cut off is not covered."""
        return laplace_uncertainty(rows, self.calibration(rows.shape[1]))

    @classmethod
    def tight_case(cls) -> tuple[DPPushFlowCap, Pair]:
        """With one round and prepush a wedge attains the bound."""
        return cls(epsilon=1.0, rounds=1, prepush=True, sigma=1e-3), wedge()


class DPSparsePPR(CappedFlow):
    """Choose the large coordinates privately, then noise those; all others are 0.

    Half of epsilon goes to the choice (DPSparsification), half to the values. Proof:
    docs/theory/sparse.md. Parameters as for `CappedFlow`.
    """

    name = "sparse-ppr"
    when_to_use = "a short list of large scores is all that is needed"
    theorem = "docs/theory/sparse.md"

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate once before the charge, so that it cannot fail after it."""
        flow_noise(self, len(nodes), self.half_epsilon)

    def measure(self, graph: Graph, shared: Any, views: LocalViews) -> Statistics:
        """The flow twice: to choose coordinates, and for their values."""
        rows = self.flow(graph, views.sources)
        noise = flow_noise(self, graph.n_nodes, self.half_epsilon)
        yield Statistic(rows.copy(), noise)
        yield Statistic(rows, noise)

    def estimate(self, noised: tuple[Noised, ...], shared: Any, views: LocalViews) -> Rows:
        """The noised values of the chosen coordinates (the choice is the paper's algorithm 6)."""
        choice, values = (part.values for part in noised)
        return np.where(self.is_large(choice), values, 0.0)

    @classmethod
    def tight_case(cls) -> tuple[DPSparsePPR, Pair]:
        """With one round and prepush a wedge attains the bound of the flow."""
        return cls(epsilon=1.0, rounds=1, prepush=True, sigma=1e-3), wedge()


def _embedded(mechanism: DPInstantEmbedding | DPEmbeddingSparse, graph: Graph, rows: Rows) -> Rows:
    """The embedding of each row, without noise."""
    hashed = hash_nodes(graph.nodes, mechanism.dimension, mechanism.hash_key)
    return instant_embedding(rows, hashed)


def embedding_noise(
    mechanism: DPInstantEmbedding | DPEmbeddingSparse, n: int, coordinates: int, epsilon: Fraction
) -> Calibration:
    """If m coordinates move by sigma in total, an embedding moves by m log(1 + sigma n / m)."""
    moved = coordinates * math.log1p(mechanism.sigma * (n / coordinates))
    return calibrate(
        coordinates=mechanism.dimension,
        sensitivity=moved * (1 + 2**-48),  # rounded up
        epsilon=epsilon,
        error=embedding_float_error(n, flow_error(mechanism, n)),
    )


class DPInstantEmbedding(CappedFlow):
    """InstantEmbedding of the capped flow plus Laplace noise of scale n log(1+sigma) / epsilon.

    Proof: docs/theory/instant-embedding.md.

    Parameters
    ----------
    dimension : int
        Length k of an embedding.
    hash_key : str
        Chooses the public hash of nodes to dimensions.
    epsilon, sigma, model, restart, rounds, prepush, bound
        As for `CappedFlow`.
    """

    name = "instant-embedding"
    output = "embeddings"
    when_to_use = (
        "to compare with the paper's embeddings, or a few public ones; n public ones cost n times "
        "epsilon; aggregation costs epsilon for all"
    )
    theorem = "docs/theory/instant-embedding.md"

    dimension: int = 256
    hash_key: str = "edgeveil"

    def exact_rows(self, graph: Graph, sources: npt.NDArray[np.int64]) -> Rows:
        """The embedding of the capped flow."""
        return _embedded(self, graph, self.flow(graph, sources))

    def calibration(self, n_nodes: int) -> Calibration:
        """All n coordinates may move: n log(1 + sigma) in L1."""
        return embedding_noise(self, n_nodes, max(n_nodes, 1), exact_epsilon(self.epsilon))

    @classmethod
    def tight_case(cls) -> tuple[DPInstantEmbedding, Pair]:
        """A cap at which two values just reach 1 / n, below which an embedding does not look."""
        sigma = 2 / 210 * (1 + 1e-9)
        mechanism = cls(epsilon=1.0, dimension=64, restart=0.6, rounds=None, sigma=sigma)
        return mechanism, wedge_with_leaves(9)


class DPEmbeddingSparse(CappedFlow):
    """Choose the large coordinates privately, embed those, noise the embedding.

    Half of epsilon goes to the choice S, half to Laplace noise of scale m log(1 + sigma n / m)
    over epsilon / 2, m = max(|S|, 1). Proof: docs/theory/sparse.md, which also covers an empty S.
    Parameters as for `DPInstantEmbedding`.
    """

    name = "embedding-sparse"
    output = "embeddings"
    when_to_use = "to compare with the paper's sparse embeddings"
    theorem = "docs/theory/sparse.md"

    dimension: int = 256
    hash_key: str = "edgeveil"

    def check_nodes(self, nodes: NodeSet) -> None:
        """Calibrate once before the charge, so that it cannot fail after it."""
        flow_noise(self, len(nodes), self.half_epsilon)
        for chosen in (1, max(len(nodes), 1)):
            embedding_noise(self, len(nodes), chosen, self.half_epsilon)

    def measure(self, graph: Graph, shared: Any, views: LocalViews) -> Statistics:
        """The flow, to choose coordinates; then the embedding of those that were chosen."""
        n, rows = graph.n_nodes, self.flow(graph, views.sources)
        choice = yield Statistic(rows.copy(), flow_noise(self, n, self.half_epsilon))
        chosen = self.is_large(choice.values)
        # A function of the private choice only: S empty leaves w = 0, and m = 1 noises it
        # like any other.
        sizes = np.maximum(chosen.sum(axis=1), 1)
        noises = tuple(embedding_noise(self, n, int(m), self.half_epsilon) for m in sizes)
        yield Statistic(_embedded(self, graph, np.where(chosen, rows, 0.0)), noises)

    @classmethod
    def tight_case(cls) -> tuple[DPEmbeddingSparse, Pair]:
        """A cap at which two values just reach 1 / n, below which an embedding does not look."""
        sigma = 2 / 50 * (1 + 1e-9)
        mechanism = cls(epsilon=1.0, dimension=64, restart=0.6, rounds=None, sigma=sigma)
        return mechanism, wedge(50)
