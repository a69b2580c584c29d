"""``edgeveil audit``."""

from __future__ import annotations

import sys
from typing import Annotated

from edgeveil.cli.options import PARAMETERS, AnyMechanism, Config, Parameters, default
from edgeveil.cli.output import Format, print_table
from edgeveil.errors import EdgeveilError


def audit(
    mechanism: AnyMechanism = "push-flow-cap",
    /,
    *,
    epsilon: Annotated[float | None, default("1.0")] = None,
    parameters: Parameters = PARAMETERS,
    trials: Annotated[int | None, default("so many as take ten seconds: 1000 to 20000")] = None,
    confidence: float = 0.95,
    format: Annotated[Format | None, default("a sentence")] = None,  # noqa: A002  (the option's name)
    config: Config = None,
) -> None:
    """Attack a mechanism on its worst pair of graphs and compare with what it claims.

    Example: edgeveil audit push-flow-cap --epsilon 1 --trials 100000

    Parameters
    ----------
    mechanism
        What to attack; `edgeveil mechanisms` lists them. One of your own: package.module:Class.
    epsilon
        The claim.
    trials
        Releases drawn from each of the two graphs, on average; more give a better bound.
    confidence
        Of the certified lower bound.
    format
        table, json or csv.
    """
    from edgeveil.auditing import audit as run
    from edgeveil.cli.mechanisms import find_mechanism, make_mechanism, takes
    from edgeveil.cli.progress import counting

    if epsilon is None and takes(find_mechanism(mechanism), "epsilon"):
        epsilon = 1.0
    chosen = make_mechanism(mechanism, None, epsilon=epsilon, **parameters.given())
    with counting("releases", lines=True) as progress:
        result = run(chosen, trials=trials, confidence=confidence, progress=progress)
    if format is None:
        sys.stdout.write(f"{result}\n")
    else:
        print_table(
            ["mechanism", "claimed", "exact_loss", "lower_bound", "confidence", "trials"],
            [
                (mechanism, r.claimed, r.exact_loss, r.lower_bound, r.confidence, r.trials)
                for r in (result, result.hardest)
                if r is not None
            ],
            style=format,
            about={"consistent": result.consistent, "says": str(result)},
        )
    if not result.consistent:
        raise EdgeveilError("the audit contradicts the claim")
