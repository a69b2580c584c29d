"""DPPushFlowCap: the paper's main mechanism (algorithm 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from edgeveil.mechanisms.base import Gives
from edgeveil.mechanisms.capped_flow import NoisedFlow, PaperFlow
from edgeveil.mechanisms.hard_pairs import Pair, wedge


@dataclass(frozen=True, kw_only=True)
class DPPushFlowCap(PaperFlow, NoisedFlow):
    """Capped push flow plus Laplace noise of scale sigma / epsilon on every node.

    Proof: docs/theory/dp-push-flow-cap.md. Parameters as for `PaperFlow`.
    """

    name: ClassVar[str] = "push-flow-cap"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = (
        "to compare with the paper, or where a bound on the L1 error is wanted"
    )
    theorem: ClassVar[str] = "docs/theory/dp-push-flow-cap.md"

    @classmethod
    def hardest(cls) -> tuple[DPPushFlowCap, Pair]:
        """With one round and prepush a wedge attains the bound."""
        return cls(epsilon=1.0, rounds=1, prepush=True, sigma=1e-3), wedge()
