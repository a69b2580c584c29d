"""``edgeveil audit``."""

from __future__ import annotations

import sys

from edgeveil.cli.options import (
    Config,
    EmbeddingMechanism,
    Model,
    PromisedMinDegree,
    ScoreMechanism,
)
from edgeveil.cli.output import Format, print_table
from edgeveil.errors import EdgeveilError

__all__ = ["audit"]


def audit(
    mechanism: ScoreMechanism | EmbeddingMechanism = "push-flow-cap",
    /,
    *,
    epsilon: float | None = 1.0,
    model: Model | None = None,
    promised_min_degree: PromisedMinDegree = None,
    trials: int | None = None,
    confidence: float = 0.95,
    format: Format | None = None,  # noqa: A002  (the option's name)
    config: Config = None,
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
        Releases drawn, by default 20,000 (2,000 for the slow edge-flipping).
    confidence
        Of the certified lower bound.
    format
        table, json or csv; a sentence if left out.
    """
    from edgeveil.auditing import audit as run
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.progress import counting

    if mechanism in ("own-neighbours", "non-private"):
        epsilon = None
    chosen = make_mechanism(
        mechanism, None, epsilon=epsilon, model=model, promised_min_degree=promised_min_degree
    )
    default = 2_000 if mechanism == "edge-flipping" else 20_000
    with counting("trials") as progress:
        result = run(
            chosen,
            trials=default if trials is None else trials,
            confidence=confidence,
            progress=progress,
        )
    if format is None:
        sys.stdout.write(f"{result}\n")
    else:
        print_table(
            ["mechanism", "claimed", "lower bound", "confidence", "trials", "consistent"],
            [
                (
                    mechanism,
                    result.claimed,
                    result.lower_bound,
                    result.confidence,
                    result.trials,
                    result.consistent,
                )
            ],
            style=format,
            about={"says": str(result)},
        )
    if not result.consistent:
        raise EdgeveilError("the audit contradicts the claim")
