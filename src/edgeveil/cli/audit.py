"""``edgeveil audit``."""

from __future__ import annotations

import sys
from typing import Annotated

import edgeveil as ev
from edgeveil.cli import options
from edgeveil.cli.options import WHICH_MECHANISM, option
from edgeveil.cli.output import counting, print_table
from edgeveil.errors import EdgeveilError, ParameterError

_COLUMNS = ("claimed", "exact_loss", "lower_bound", "confidence", "verdict_bound", "trials")


def audit(
    mechanism: Annotated[options.AnyMechanism, option(WHICH_MECHANISM)] = "push-flow-cap",
    /,
    *,
    epsilon: Annotated[float | None, options.default("1.0")] = None,
    parameters: options.Parameters = options.PARAMETERS,
    trials: int = 5_000,
    confidence: float = 0.95,
    format: Annotated[options.Format | None, options.default("a sentence")] = None,  # noqa: A002  (the option's name)
    config: options.Config = None,
) -> None:
    """Attack a mechanism on its worst pair of graphs, and compare with its claim.

    Example: edgeveil audit push-flow-cap --epsilon 1 --trials 100000

    Parameters
    ----------
    epsilon
        Privacy loss that the mechanism claims.
    trials
        Releases from each of the two graphs, on average. More give a better bound.
    confidence
        Confidence of the lower bound that is reported. The verdict has its own: a right mechanism
        is accused once in a million audits at most.
    """
    from edgeveil.cli.mechanisms import fields_of, find_mechanism, make_mechanism
    from edgeveil.mechanisms import DATA_MECHANISMS, Mechanism, NodeClasses

    kind = find_mechanism(mechanism)
    if epsilon is None and "epsilon" in fields_of(kind):
        epsilon = 1.0
    if kind in DATA_MECHANISMS:
        if parameters != options.PARAMETERS:
            raise ParameterError(f"{kind.name} is audited on an example: give --epsilon alone")
        chosen: Mechanism = NodeClasses.example(epsilon=1.0 if epsilon is None else epsilon)
    else:
        chosen = make_mechanism(mechanism, None, epsilon=epsilon, **parameters.given())
    with counting("releases", lines=True) as progress:
        result = ev.audit(chosen, trials=trials, confidence=confidence, progress=progress)
    if format is None:
        sys.stdout.write(f"{result}\n")
    else:
        rows = [case for case in (result, result.tight_case) if case is not None]
        print_table(
            ["mechanism", *_COLUMNS],
            [(mechanism, *(getattr(case, name) for name in _COLUMNS)) for case in rows],
            style=format,
            metadata={"consistent": result.consistent, "says": str(result)},
        )
    if not result.consistent:
        raise EdgeveilError("the audit contradicts the claim")
