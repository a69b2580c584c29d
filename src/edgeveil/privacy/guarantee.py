"""Guarantee: what a release protects, from whom, how strongly, and by which theorem."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any, Literal

from edgeveil._internal.checks import check_choice
from edgeveil._internal.notebook import html_card
from edgeveil.errors import InputError, ParameterError
from edgeveil.privacy.epsilon import exact_epsilon

_PLACES = 4  # decimal places of a bound in words

Model = Literal["joint", "public", "none"]
Collusion = Literal["additive", "shared"]
KnownEdges = Literal["incident", "outgoing"]


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The privacy of one release, as plain frozen data. It never depends on the graph.

    Attributes
    ----------
    epsilon : float
        Model ``joint``: privacy loss of an edge that a member does not know (`known_edges`), from
        what that member sees. Model ``public``: privacy loss of any edge, from all rows together.
        ``inf`` with model ``none``: no protection.
    delta : float
        The delta of (epsilon, delta)-differential privacy; 0 for every built-in mechanism.
    model : {"joint", "public", "none"}
        Who may see what; see the threat model.
    collusion : {"additive", "shared"}
        Model ``joint`` only: whether k members who combine their lists learn up to k times
        epsilon (but see `shared_epsilon`), or epsilon in all because the noise was drawn once
        for everybody.
    shared_epsilon : float
        Model ``joint`` with collusion ``additive`` only: the part of epsilon that comes from noise
        drawn once for everybody. k members who combine their lists learn at most
        ``shared_epsilon + k * (epsilon - shared_epsilon)``.
    n_members : int
        For how many sources the release was made (public).
    theorem : str
        Where the proof is.
    promise : str
        A public promise about every possible graph that the guarantee depends on, or "".
    private : bool
        False if the noise came from a seeded source: then nothing is protected.
    known_edges : {"incident", "outgoing"}
        Model ``joint``: the edges that are assumed to be known to the member, and so are not
        protected from it: all edges that touch it or, in a directed graph, only those that start
        at it (whom it follows, not who follows it).
    scope : {"release", "series"}
        What the epsilon is for: this release, or all lists of a series together.
    not_protected : str
        What the release uses that is no edge, and shows: "" if it uses nothing else.
    """

    epsilon: float
    model: Model
    theorem: str
    n_members: int = 1
    delta: float = 0.0
    collusion: Collusion = "additive"
    promise: str = ""
    private: bool = True
    shared_epsilon: float = 0.0
    known_edges: KnownEdges = "incident"
    scope: Literal["release", "series"] = "release"
    not_protected: str = ""

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise ParameterError(f"epsilon must be a number >= 0, got {self.epsilon}")
        if not 0 <= self.delta < 1:
            raise ParameterError(f"delta must be in [0, 1), got {self.delta}")
        check_choice("model", self.model, "joint", "public", "none")
        check_choice("collusion", self.collusion, "additive", "shared")
        check_choice("known_edges", self.known_edges, "incident", "outgoing")
        check_choice("scope", self.scope, "release", "series")
        if not isinstance(self.private, bool):
            raise ParameterError(f"private must be True or False, got {self.private!r}")
        if (self.model == "none") != math.isinf(self.epsilon):
            raise ParameterError("model 'none' and epsilon = inf go together")
        if not 0 <= self.shared_epsilon <= self.epsilon:
            raise ParameterError(
                f"shared_epsilon must be between 0 and epsilon, got {self.shared_epsilon}"
            )
        if self.shared_epsilon and (self.model != "joint" or self.collusion == "shared"):
            raise ParameterError("shared_epsilon is for joint guarantees that add up")
        # Python numbers, not numpy's: a guarantee is written to files.
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "shared_epsilon", float(self.shared_epsilon))
        object.__setattr__(self, "n_members", int(self.n_members))

    @property
    def protects(self) -> bool:
        """Whether anything is protected at all."""
        return self.private and self.model != "none"

    @property
    def pooled_epsilon(self) -> float:
        """The most that all members can learn if they combine their lists."""
        return self.epsilon if math.isinf(self.epsilon) else float(self.pooled(self.n_members))

    def pooled(self, rows: int) -> Fraction:
        """The most that this many members (1 or more) can learn if they combine their lists; exact.

        Only for a private guarantee. Proof: Theorem 2 of docs/theory/composition.md.
        """
        epsilon = exact_epsilon(self.epsilon)
        if self.model != "joint" or self.collusion == "shared":
            return epsilon
        shared = exact_epsilon(self.shared_epsilon)
        return shared + rows * (epsilon - shared)

    @property
    def brief(self) -> str:
        """The guarantee in a few words; `str` gives the full text."""
        if not self.protects:
            return "NOT PRIVATE"
        parts = [self.model, f"epsilon = {self.epsilon:.15g}"]
        parts += [f"delta = {self.delta:g}"] * bool(self.delta)
        parts += ["under a public promise"] * bool(self.promise)
        return ", ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """The guarantee as plain data, for files.

        `known_edges` and `scope` are left out if they have their defaults, which claim less.
        """
        data = asdict(self)
        if self.known_edges == "incident":
            del data["known_edges"]
        if self.scope == "release":
            del data["scope"]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Guarantee:
        """The guarantee from the result of `as_dict`. Infinity is the text "inf", as in JSON files.

        Raises
        ------
        InputError
            If an entry is missing or unknown. Defaults must not fill a gap here: the default of
            `private` is True.
        """
        if {*data, "known_edges", "scope"} != {field.name for field in fields(cls)}:
            raise InputError("part of the guarantee is missing")
        return cls(**{**data, "epsilon": float(data["epsilon"])})

    def _repr_html_(self) -> str:
        return html_card(self.brief, str(self), alarm=not self.protects)

    def __str__(self) -> str:
        if not self.private:
            return (
                "NOT PRIVATE: the noise came from a seeded generator, so anyone who knows the "
                "seed can subtract it. For tests and demonstrations only; do not publish."
            )
        if self.model == "none":
            return (
                "NOT PRIVATE: exact values, no noise. Every edge of the graph may be inferred "
                "from them. For the curator only; do not publish."
            )
        weak = "This promises next to nothing: epsilon is far too large. " * (self.epsilon > 20)
        parts = (self._what_is_protected(), self._if_combined(), self._what_is_not())
        return f"{weak}{' '.join(filter(None, parts))} {self._proof()}"

    def _proof(self) -> str:
        ours = self.theorem.startswith("docs/theory/")  # the package includes these pages
        name = self.theorem.removeprefix("docs/theory/").removesuffix(".md")
        return f"Proof: {self.theorem}{f' (edgeveil theory {name})' if ours else ''}."

    @property
    def _known(self) -> str:
        """What edges do that a member is assumed to know."""
        return "start at" if self.known_edges == "outgoing" else "touch"

    def _what_is_protected(self) -> str:
        strength, factor = f"epsilon = {self.epsilon:.15g}", f"e^{self.epsilon:.15g}"
        if self.delta:
            strength += f", delta = {self.delta:g}"
        if self.epsilon < 20:
            factor += f" (about {math.exp(self.epsilon):.3g})"
        who, what = "Anyone may see this", "every edge of the graph"
        if self.model == "joint":
            who = "Show each list only to the member it was made for"
            what = f"every edge that does not {self._known} that member"
        claim = "with or without the edge, no outcome's probability changes by more than a factor "
        claim += f"of {factor}"
        if self.epsilon == 0:
            claim = (
                "no such edge is used, so this costs nothing; a list holds only what its member "
                "knows already"
            )
        if self.model == "joint" and self.collusion == "shared" and self.epsilon:
            claim += (
                "; members who combine their lists learn no more than that about edges that "
                f"{self._known} none of them"
            )
        promise = f" This holds under a public promise: {self.promise}." if self.promise else ""
        if self.not_protected:
            promise += f" Not protected: {self.not_protected}."
        together = ""
        if self.scope == "series":
            together = (
                " This covers all lists of the series together; since when two people are "
                f"connected is protected at less than epsilon = {2 * self.epsilon:.15g}."
            )
        return f"{who}. Protected: {what}, at {strength}: {claim}.{together}{promise}"

    def _if_combined(self) -> str:
        if self.model != "joint" or self.collusion == "shared" or not self.epsilon:
            return ""
        own = exact_epsilon(self.epsilon) - exact_epsilon(self.shared_epsilon)
        most = "k" if own == 1 else f"{_at_most(own)} k"
        if self.shared_epsilon:
            most = f"{_at_most(exact_epsilon(self.shared_epsilon))} + {most}"
        when = " (since when: less than twice that)" * (self.scope == "series")
        return (
            f"k members who combine their lists can learn up to {most}{when} about edges that "
            f"{self._known} none of them."
        )

    def _what_is_not(self) -> str:
        parts = []
        if self.model == "joint":
            parts.append("publishing the lists, or training one model on all of them")
        others = "outside of the series" if self.scope == "series" else "from the same graph"
        parts.append(f"further releases {others} (they add up)")
        parts.append("running time, memory, logs and errors")
        return f"Not covered: {'; '.join(parts)}."


def _at_most(bound: Fraction) -> str:
    """The bound in words, rounded up: what is said stays true."""
    return f"{math.ceil(bound * 10**_PLACES) / 10**_PLACES:.15g}"
