"""``edgeveil audit``."""

from __future__ import annotations

import sys
from typing import Literal

from edgeveil.errors import EdgeveilError

__all__ = ["audit"]


def audit(
    mechanism: str = "push-flow-cap",
    /,
    *,
    epsilon: float | None = 1.0,
    model: Literal["joint", "public"] | None = None,
    promised_min_degree: int | None = None,
    trials: int | None = None,
    confidence: float = 0.95,
) -> None:
    """Attack a mechanism on its worst pair of graphs and compare with what it claims.

    Example: edgeveil audit push-flow-cap --epsilon 1 --trials 100000

    Parameters
    ----------
    mechanism
        What to attack; `edgeveil mechanisms` lists them.
    epsilon
        The claim.
    model
        joint or public.
    promised_min_degree
        For push-flow: the promise its claim rests on.
    trials
        Releases drawn, by default 20,000 (2,000 for the slow edge-flipping).
    confidence
        Of the certified lower bound.
    """
    from edgeveil.auditing import audit as run
    from edgeveil.cli.mechanisms import make_mechanism

    if mechanism in ("own-neighbours", "non-private"):
        epsilon = None
    options = {"epsilon": epsilon, "model": model, "promised_min_degree": promised_min_degree}
    result = run(
        make_mechanism(mechanism, None, **options),
        trials=trials or (2_000 if mechanism == "edge-flipping" else 20_000),
        confidence=confidence,
    )
    sys.stdout.write(f"{result}\n")
    if not result.consistent:
        raise EdgeveilError("the audit contradicts the claim")
