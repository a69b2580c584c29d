"""DegreePrior: everybody's noisy degrees, once, and each recipient's own list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from edgeveil._check import one_of
from edgeveil.flow.walk import check_restart
from edgeveil.mechanisms.base import Gives, OnceForAll, check_model
from edgeveil.mechanisms.hard_pairs import Pair, two_hubs
from edgeveil.mechanisms.released_degrees import TwoHopRelease
from edgeveil.privacy.epsilon import check_epsilon, exact_epsilon
from edgeveil.privacy.guarantee import Model


@dataclass(frozen=True, kw_only=True)
class DegreePrior(OnceForAll, TwoHopRelease):
    """One shared release of all degrees with Laplace noise of scale 2 / epsilon.

    Each recipient combines it with its own neighbour list: hops 0 and 1 of the walk exactly,
    all further hops by degree. The noise is drawn once for everybody and the rest is the
    recipient's own data, so any coalition learns at most epsilon about the edges of others.
    In the public model the own list is left out. Neighbouring graphs differ in one edge (joint:
    not at the source). Proof: docs/theory/degree-prior.md. Cost: n draws once, then
    O(n) per source.

    Parameters
    ----------
    epsilon : float
        Privacy loss of the whole release, for any number of sources.
    model : {"joint", "public"}
        Who sees a row: its source's owner alone, or anyone.
    restart : float
        Restart probability of the ordinary walk.
    score : {"pagerank", "lift"}
        ``lift`` divides by the released degree: closeness beyond popularity.
    """

    name: ClassVar[str] = "degree-prior"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = (
        "many recipients who may collude, epsilon below 0.4, or the public model: one release for "
        "everybody"
    )
    theorem: ClassVar[str] = "docs/theory/degree-prior.md"

    epsilon: float
    model: Model = "joint"
    restart: float = 0.15
    score: Literal["pagerank", "lift"] = "pagerank"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_model(self.model)
        check_restart(self.restart)
        one_of("score", self.score, "pagerank", "lift")

    @property
    def split(self) -> tuple[Fraction, Fraction]:
        """All of epsilon for the degrees, nothing for a second hop."""
        return exact_epsilon(self.epsilon), Fraction(0)

    @property
    def known_hops(self) -> int:
        """In the public model the own list is not used."""
        return int(self.model == "joint")

    def hard_pairs(self) -> Iterator[Pair]:
        """Two hubs get joined: an edge moves two degrees by one each, whatever the graph."""
        yield two_hubs(4, 10)

    @classmethod
    def hardest(cls) -> tuple[DegreePrior, Pair]:
        """At any epsilon."""
        return cls(epsilon=1.0), two_hubs(4, 10)
