"""TwoHop: shared noisy degrees, and for each recipient a noisy count of the second hop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from edgeveil._check import one_of
from edgeveil.flow.walk import check_restart
from edgeveil.mechanisms.base import Gives
from edgeveil.mechanisms.hard_pairs import Pair, two_hubs
from edgeveil.mechanisms.released_degrees import TwoHopRelease, split_epsilon


@dataclass(frozen=True, kw_only=True)
class TwoHop(TwoHopRelease):
    """Noisy degrees for everybody, plus each recipient's two-hop sums with noise of their own.

    With public weights w_u = min(1 / d_u, 1 / D0) from the released degrees, the sum of w_u
    over the common neighbours u of s and v is linear in the edges: an edge moves one sum of a
    stranger, or two sums of friends, by at most 1 / D0. So noise of scale 1 / (D0 epsilon) on
    strangers and twice that on friends protects every edge elsewhere. Everything after that is
    post-processing. Joint model only. Proof: docs/theory/two-hop.md. Cost per source: its
    two-hop neighbourhood and n draws.

    Parameters
    ----------
    epsilon : float
        Privacy loss to one recipient, both parts together.
    degree_epsilon : float, optional
        What of it goes to the shared degrees; by default min(epsilon, 0.4 max(1, sqrt epsilon)).
    restart : float
        Restart probability of the ordinary walk.
    score : {"pagerank", "lift"}
        ``lift`` divides by the released degree: closeness beyond popularity.
    """

    name: ClassVar[str] = "two-hop"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = (
        "the default for rankings in the joint model: from epsilon 0.4 on it measures the second "
        "hop, below it is the degree prior"
    )

    epsilon: float
    degree_epsilon: float | None = None
    restart: float = 0.15
    score: Literal["pagerank", "lift"] = "pagerank"

    def __post_init__(self) -> None:
        split_epsilon(self.epsilon, self.degree_epsilon)
        check_restart(self.restart)
        one_of("score", self.score, "pagerank", "lift")

    @classmethod
    def hardest(cls) -> tuple[TwoHop, Pair]:
        """At any epsilon."""
        return cls(epsilon=1.0), two_hubs(1, 4)
