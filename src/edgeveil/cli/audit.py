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
    trials: int = 20_000,
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
    trials
        Releases drawn from each of the two graphs.
    confidence
        Of the certified lower bound.
    """
    from edgeveil.audit import audit as run
    from edgeveil.cli.mechanisms import make_mechanism

    if mechanism in ("own-neighbours", "non-private"):
        epsilon = None
    result = run(
        make_mechanism(mechanism, epsilon=epsilon, model=model),
        trials=trials,
        confidence=confidence,
    )
    sys.stdout.write(f"{result}\n")
    if not result.consistent:
        raise EdgeveilError("the audit contradicts the claim")
