"""``edgeveil suggest`` for a label whose lists are a series."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgeveil._internal.words import counted, date_in_words
from edgeveil.cli.output import say
from edgeveil.cli.releasing import Setup, deliver, say_guarantee
from edgeveil.errors import ParameterError
from edgeveil.graph.exclusions import Exclusion
from edgeveil.graph.nodes import NodeId
from edgeveil.mechanisms import Mechanism
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.series.stored_lists import read_series_lists


def write_series_lists(
    setup: Setup,
    mechanism: Mechanism,
    members: list[NodeId] | None,
    write_output: Callable[[Any], None],
    out: Path | None,
    k: int,
    candidates: list[NodeId] | None,
    exclude: list[Exclusion] | None,
) -> None:
    """Print or write lists of a label's series, without a charge; by default of all members."""
    how, name = setup.how, setup.how.label or "this graph"
    if out is not None and not out.suffix:
        raise ParameterError(
            f"the lists of {name} are a series: edgeveil refresh --out writes everybody's to a "
            "folder; name a file here (.parquet, .json or .csv)"
        )
    if not isinstance(mechanism, Suggest):
        raise ParameterError(
            f"the lists of {name} are a series: another mechanism needs another label"
        )
    assert setup.ledger is not None
    made = read_series_lists(
        *(setup.ledger, how.label, mechanism, members),
        k=k,
        candidates=candidates,
        exclude=exclude,
    )
    assert made is not None  # the label has or had a series
    about = made.provenance
    words = (
        f"From the series of {name}, as of its snapshot {about.parameters['snapshot']} "
        f"({date_in_words(about.created)}): nobody is charged for it."
    )
    if how.dry_run:
        say(f"Dry run. {words}")
        return
    deliver(made, out, counted(len(made.members), "list"), write_output)
    say(words)
    say_guarantee(made, out, how)
