"""Guarantee: what a release protects, from whom, how strongly, and by which theorem."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from edgeveil.errors import ParameterError

__all__ = ["Guarantee", "Model", "Pooling"]

Model = Literal["joint", "public", "none"]
Pooling = Literal["adds up", "shared"]


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The privacy of one release, as plain frozen data. It never depends on the graph.

    Attributes
    ----------
    epsilon : float
        Model ``joint``: what one recipient learns at most about an edge elsewhere.
        Model ``public``: what anybody learns at most about any edge, from all rows together.
        ``inf`` with model ``none``: no protection.
    delta : float
        Probability with which the bound may fail; 0 for every mechanism of the paper.
    model : {"joint", "public", "none"}
        Who may see what; see the threat model.
    pooling : {"adds up", "shared"}
        Model ``joint`` only: whether k recipients who pool their rows learn up to k times
        epsilon, or epsilon in all because the noise was drawn once for everybody.
    n_sources : int
        For how many sources the release was made (public).
    theorem : str
        Where the proof is.
    promise : str
        A public promise about every possible graph on which the guarantee rests, or "".
    private : bool
        False if the noise came from a seeded source: then nothing is protected.
    """

    epsilon: float
    model: Model
    theorem: str
    n_sources: int = 1
    delta: float = 0.0
    pooling: Pooling = "adds up"
    promise: str = ""
    private: bool = True

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise ParameterError(f"epsilon must be a number >= 0, got {self.epsilon}")
        if not 0 <= self.delta < 1:
            raise ParameterError(f"delta must be in [0, 1), got {self.delta}")
        if self.model not in ("joint", "public", "none"):
            raise ParameterError(f"model must be joint, public or none, got {self.model!r}")
        if not isinstance(self.private, bool):
            raise ParameterError(f"private must be True or False, got {self.private!r}")
        if self.pooling not in ("adds up", "shared"):
            raise ParameterError(f"pooling must be 'adds up' or 'shared', got {self.pooling!r}")
        if (self.model == "none") != math.isinf(self.epsilon):
            raise ParameterError("model 'none' and epsilon = inf go together")
        # Plain numbers, whatever numpy made of them: a guarantee is written to files.
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "n_sources", int(self.n_sources))

    @property
    def protects(self) -> bool:
        """Whether anything is protected at all."""
        return self.private and self.model != "none"

    @property
    def pooled_epsilon(self) -> float:
        """What all recipients together learn at most, if they pool what they got."""
        if self.model == "joint" and self.pooling == "adds up":
            return self.epsilon * self.n_sources
        return self.epsilon

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for files."""
        return asdict(self)

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
        return f"{self._what_is_protected()} {self._what_is_not()} Proof: {self.theorem}."

    def _what_is_protected(self) -> str:
        strength = f"epsilon = {self.epsilon:.15g}" + (
            f", delta = {self.delta:g}" * bool(self.delta)
        )
        factor = f"e^{self.epsilon:.15g}" + (
            f" (times about {math.exp(self.epsilon):.3g})" if self.epsilon < 20 else ""
        )
        if self.model == "joint":
            who = "Each row is for the owner of its source alone"
            what = "every edge that does not touch that source"
        else:
            who = "Anyone may see this"
            what = "every edge of the graph"
        if self.epsilon == 0:
            how = "the rows hold only what their owners know already"
        else:
            how = (
                f"with or without the edge, no outcome's probability changes by more than {factor}"
            )
        if self.model == "joint" and self.pooling == "shared" and self.epsilon:
            how += (
                "; recipients who pool their rows learn no more than that about edges that touch "
                "none of them"
            )
        promise = f" This holds under a public promise: {self.promise}." if self.promise else ""
        return f"{who}. Protected: {what}, at {strength}: {how}.{promise}"

    def _what_is_not(self) -> str:
        parts = []
        if self.model == "joint":
            if self.epsilon and self.pooling == "adds up":
                parts.append(
                    f"recipients who pool their rows (k of them: up to k times {self.epsilon:g})"
                )
            parts.append("publishing the rows, or training one model on all of them")
        parts += [
            "further releases from the same graph (they add up)",
            "running time, memory, logs and errors",
        ]
        return f"Not covered: {'; '.join(parts)}."
