"""``edgeveil audit``."""

from __future__ import annotations

import sys
from typing import Annotated

from edgeveil.cli.options import (
    Config,
    EmbeddingMechanism,
    Model,
    PromisedMinDegree,
    ScoreMechanism,
    default,
)
from edgeveil.cli.output import Format, print_table
from edgeveil.errors import EdgeveilError

__all__ = ["audit"]

# Releases drawn unless said otherwise: those that can be drawn many at a time, and the others,
# so many as take some ten seconds.
_TRIALS = 20_000
_SLOW_TRIALS = {
    "two-hop": 5_000,
    "two-hop-embedding": 5_000,
    "degree-prior": 5_000,
    "edge-flipping": 2_000,
    "graph-diffusion": 1_000,
}


def audit(
    mechanism: ScoreMechanism | EmbeddingMechanism = "push-flow-cap",
    /,
    *,
    epsilon: float | None = 1.0,
    model: Model = None,
    promised_min_degree: PromisedMinDegree = None,
    trials: Annotated[
        int | None, default("20000, or so many as take ten seconds: 1000 to 5000")
    ] = None,
    confidence: float = 0.95,
    format: Annotated[Format | None, default("a sentence")] = None,  # noqa: A002  (the option's name)
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
        Releases drawn from each of the two graphs, on average; more give a better bound.
    confidence
        Of the certified lower bound.
    format
        table, json or csv.
    """
    from edgeveil.auditing import audit as run
    from edgeveil.cli.mechanisms import make_mechanism
    from edgeveil.cli.progress import counting

    if mechanism in ("own-neighbours", "non-private"):
        epsilon = None
    chosen = make_mechanism(
        mechanism, None, epsilon=epsilon, model=model, promised_min_degree=promised_min_degree
    )
    with counting("releases", lines=True) as progress:
        result = run(
            chosen,
            trials=_SLOW_TRIALS.get(mechanism, _TRIALS) if trials is None else trials,
            confidence=confidence,
            progress=progress,
        )
    if format is None:
        sys.stdout.write(f"{result}\n")
    else:
        print_table(
            ["mechanism", "claimed", "lower_bound", "confidence", "trials", "consistent"],
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
