"""The one seam: what every mechanism is, private or not.

guarantee   what is protected; sees no graph, so it cannot depend on the data
prepare     randomness shared by all sources, drawn once
rows        one row per source; each source draws from its own derived stream, so that
            any sharding of the sources gives the same rows
uncertainty  (some) how far the noise may have moved a score; see `KnowsUncertainty`
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.graph import Graph
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.guarantee import Guarantee, Model, Pooling
from edgeveil.privacy.noise import Calibration, NoiseSource

__all__ = [
    "Columns",
    "KnowsUncertainty",
    "Mechanism",
    "RestsOnPromise",
    "Rows",
    "check_model",
    "check_score",
    "laplace_uncertainty",
    "per_source_guarantee",
]

Rows = npt.NDArray[np.float64]
Columns = Literal["nodes", "dimensions"]


@runtime_checkable
class Mechanism(Protocol):
    """A way to make rows of scores or embeddings from a graph, with its price.

    Mechanisms are frozen, keyword-only dataclasses; their fields are public parameters and
    are checked on construction, before any graph is near.
    """

    name: ClassVar[str]
    columns: ClassVar[Columns]

    def guarantee(self, n_sources: int) -> Guarantee:
        """What a release for this many sources protects."""
        ...

    def prepare(self, graph: Graph, noise: NoiseSource) -> Any:
        """What all sources share; `noise` is the release's shared stream."""
        ...

    def rows(self, prepared: Any, sources: Sequence[int], noise: NoiseSource) -> Rows:
        """One row per source index; `noise` is the release's stream for rows."""
        ...


@runtime_checkable
class RestsOnPromise(Protocol):
    """A mechanism whose guarantee needs a public promise about every possible graph."""

    def check_promise(self, graph: Graph) -> None:
        """Refuse a graph that breaks the promise (PromiseError), outside of the guarantee."""
        ...


@runtime_checkable
class KnowsUncertainty(Protocol):
    """A mechanism that can say how far its noise may have moved a score.

    Post-processing: a function of released values and public constants and, in the joint model,
    of the recipient's own list. It reads no edge of anybody else and draws nothing.
    """

    def uncertainty(self, prepared: Any, sources: Sequence[int], rows: Rows) -> Rows:
        """Half-widths of 95 % intervals around the scores in `rows`.

        Parameters
        ----------
        prepared
            What `prepare` gave.
        sources : sequence of int
            The sources of the rows.
        rows : array of shape (sources, nodes)
            What `rows` gave for them.

        Returns
        -------
        array of shape (sources, 1) or (sources, nodes)
            A score without noise lies within this distance of the released one, with
            probability 95 %. The mechanism says what "without noise" means and what the
            probability is over. What the model leaves out (caps, far hops) is not in it.
        """
        ...


def laplace_uncertainty(calibration: Calibration, n_sources: int) -> Rows:
    """Half-widths where the released score is the exact one plus Laplace noise: b ln 20.

    P(|noise| > b ln 20) = 1/20. Rounding to the lattice moves a value by half a step more.
    """
    half = math.log(20) * calibration.noise_scale + 2.0**calibration.step_log2
    return np.full((n_sources, 1), half)


def check_model(model: str) -> str:
    """Refuse anything but the two privacy models."""
    if model not in ("joint", "public"):
        raise ParameterError(f"model must be 'joint' or 'public', got {model!r}")
    return model


def check_score(score: str) -> str:
    """Refuse anything but the two kinds of scores."""
    if score not in ("pagerank", "lift"):
        raise ParameterError(f"score must be 'pagerank' or 'lift', got {score!r}")
    return score


def per_source_guarantee(
    *,
    epsilon: float,
    model: Model,
    n_sources: int,
    theorem: str,
    pooling: Pooling = "adds up",
    promise: str = "",
) -> Guarantee:
    """Guarantee where every source has noise of its own.

    In the public model everybody sees all rows, so their epsilons add up; in the joint model
    a recipient sees one row.
    """
    return Guarantee(
        epsilon=float(exact_epsilon(epsilon) * (n_sources if model == "public" else 1)),
        model=model,
        n_sources=n_sources,
        theorem=theorem,
        pooling=pooling,
        promise=promise,
    )
