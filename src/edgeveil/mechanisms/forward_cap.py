"""DPForwardCap: absorb everything, cap what is passed on, then noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from edgeveil.flow.push_flow import Recursion, forward_recursion
from edgeveil.mechanisms.base import Gives
from edgeveil.mechanisms.capped_flow import NoisedFlow
from edgeveil.mechanisms.hard_pairs import Pair, wedge


@dataclass(frozen=True, kw_only=True)
class DPForwardCap(NoisedFlow):
    """Flow capped on the edges but not where it is absorbed, plus Laplace noise sigma / epsilon.

    For the same noise a node's own value is not cut at its cap, which is what the paper's
    prepush is for, without its bias. Proof: docs/theory/forward-cap.md. Parameters as for
    `CappedFlow`; at least 2 rounds.
    """

    name: ClassVar[str] = "forward-cap"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = "as push-flow-cap, with nodes' own values uncut"
    theorem: ClassVar[str] = "docs/theory/forward-cap.md"

    def recursion(self) -> Recursion:
        """That of `forward_flow`."""
        return forward_recursion(self.sigma, self.model, self.restart, self.rounds)

    @classmethod
    def hardest(cls) -> tuple[DPForwardCap, Pair]:
        """Three rounds of a walk that nearly always restarts."""
        return cls(epsilon=1.0, restart=0.98, rounds=3), wedge()
