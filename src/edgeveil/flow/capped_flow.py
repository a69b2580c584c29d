"""CappedFlow: the checked parameters of a capped push flow, shared by four mechanisms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._check import one_of
from edgeveil.errors import ParameterError
from edgeveil.flow.bounds import (
    check_bound,
    check_flow_rounds,
    check_sigma,
    flow_error_bound,
)
from edgeveil.flow.push_flow import push_flow_cap
from edgeveil.flow.walk import check_restart
from edgeveil.graph import Graph

__all__ = ["CappedFlow", "paper_threshold"]


@dataclass(frozen=True, kw_only=True)
class CappedFlow:
    """Parameters of `push_flow_cap`, checked before any graph is near.

    One edge moves a row by at most `sigma` in L1: docs/theory/tight-bounds.md, or for
    ``bound="paper"`` docs/theory/push-flow-cap.md.
    """

    sigma: float
    model: str
    restart: float
    rounds: int | None
    prepush: bool
    bound: str

    def __post_init__(self) -> None:
        check_sigma(self.sigma)
        check_restart(self.restart)
        check_flow_rounds(self.rounds, sigma=self.sigma, restart=self.restart)
        check_bound(self.bound)
        one_of("model", self.model, "joint", "public")
        if not isinstance(self.prepush, bool):
            raise ParameterError(f"prepush must be True or False, got {self.prepush!r}")
        if self.prepush and self.model != "joint":
            raise ParameterError("prepush shows the source's own edges: it needs model='joint'")

    @classmethod
    def of(cls, mechanism: Any) -> CappedFlow:
        """Take the parameters from a mechanism's fields of the same names."""
        return cls(**{field.name: getattr(mechanism, field.name) for field in fields(cls)})

    def rows(self, graph: Graph, sources: Iterable[int]) -> npt.NDArray[np.float64]:
        """One row of flow per source."""
        return push_flow_cap(
            graph,
            sources,
            sigma=self.sigma,
            model=self.model,
            restart=self.restart,
            rounds=self.rounds,
            prepush=self.prepush,
            bound=self.bound,
        )

    def error(self, n: int) -> float:
        """L1 distance of a computed row from the defined one, at most, on any graph."""
        return flow_error_bound(n, sigma=self.sigma, restart=self.restart, rounds=self.rounds)


def paper_threshold(n: int, sigma: float, epsilon: Fraction) -> float:
    """The gamma = 3 sigma ln(n) / epsilon above which a noised coordinate counts as large."""
    return 3 * sigma * math.log(n) / float(epsilon)
