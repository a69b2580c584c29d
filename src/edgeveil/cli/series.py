"""What ``edgeveil suggest`` does where the lists of a label are a series."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgeveil._words import counted
from edgeveil.cli.output import say
from edgeveil.cli.releasing import Setup
from edgeveil.errors import ParameterError
from edgeveil.mechanisms import Mechanism
from edgeveil.mechanisms.suggest import Suggest
from edgeveil.nodes import NodeId
from edgeveil.series import is_series
from edgeveil.series.suggesting import lists_of_series


def put_out_series(
    setup: Setup,
    mechanism: Mechanism,
    members: list[NodeId] | None,
    put_out: Callable[[Any], None],
    out: Path | None,
    k: int,
    candidates: list[NodeId] | None,
) -> bool:
    """Put out lists of the series of a label, which cost nothing; False if it has none.

    `members` are None for all who are in the series.
    """
    ledger, how = setup.ledger, setup.how
    if ledger is None or not is_series(ledger, how.label):
        return False
    if out is not None and not out.suffix:
        raise ParameterError(
            f"the lists of {how.label or 'this graph'} are a series: edgeveil refresh --out writes "
            "everybody's to a folder; name a file here (.parquet, .json or .csv)"
        )
    if not isinstance(mechanism, Suggest):
        raise ParameterError(
            f"the lists of {how.label or 'this graph'} are a series: another mechanism needs "
            "another label"
        )
    made = lists_of_series(ledger, how.label, mechanism, members, k=k, candidates=candidates)
    if made is None:
        return False
    about = made.provenance
    words = (
        f"From the series of {how.label or 'this graph'}, as of its snapshot "
        f"{about.parameters['snapshot']} ({about.created}): nobody is charged for it."
    )
    if how.dry_run:
        say(f"Dry run. {words}")
        return True
    if out is not None:
        made.write(out)
        say(f"{out}: {counted(len(made.members), 'list')}.")
    put_out(made)
    say(words)
    if how.format != "json" or out is not None:
        say(str(made.guarantee))
    return True
