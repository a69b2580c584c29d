"""``edgeveil evaluate``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

import edgeveil as ev
from edgeveil.cli import options
from edgeveil.cli.options import default
from edgeveil.cli.output import Format, counting, print_table, say
from edgeveil.errors import ParameterError

if TYPE_CHECKING:
    from edgeveil.evaluation.own_graph import Evaluation
    from edgeveil.mechanisms import Mechanism

_WARNING = "NOT PRIVATE: for the curator only"


def evaluate(
    graph: Annotated[options.GraphPath | None, default("none")] = None,
    /,
    *,
    epsilon: Annotated[
        list[float] | None,
        Parameter(negative=""),
        default("0.5, 1 and 2; for rankings 0.1, 1 and 5; for classification also 0.25"),
    ] = None,
    protocol: Annotated[
        Literal["suggestions", "rankings", "classification"] | None,
        default("what the mechanisms give; classification if there are --labels; suggestions"),
    ] = None,
    labels: Path | None = None,
    features: Path | None = None,
    prior: Path | None = None,
    sources: Annotated[int | None, default("150 of each degree group; for rankings 30")] = None,
    k: Annotated[options.Length | None, default("20; for rankings 100")] = None,
    min_degree: int = 50,
    mechanism: Annotated[
        list[options.AnyMechanism] | None, Parameter(negative=""), default("the recommended ones")
    ] = None,
    over_time: Annotated[Path | None, default("none")] = None,
    plot: Path | None = None,
    overwrite: options.Flag = False,
    parameters: options.Parameters = options.PARAMETERS,
    reading: options.GraphFile = options.GRAPH_FILE,
    format: options.Format = "table",  # noqa: A002  (the option's name)
    config: options.Config = None,
) -> None:
    """Measure on your own graph how good private results are. For the curator only.

    suggestions: the share of hidden friends that private lists find, by members'
    number of friends, beside popularity, scores without privacy and the limit.
    rankings: Recall and NDCG against exact PageRank, beside the paper's mechanism.
    classification: the share of hidden labels that edgeveil classify predicts,
    beside exact sums and features alone; with --labels.
    --over-time: the share that lists of a series find at the last snapshots of a
    history, beside popularity and one list at the start.
    Nothing is charged. The numbers are not private: do not publish them.
    Example: edgeveil evaluate follows.csv --epsilon 0.5 --epsilon 2

    Parameters
    ----------
    epsilon
        Privacy loss to measure; may be given more than once.
    protocol
        What to measure.
    labels
        For classification: the known classes, as for edgeveil classify. A fifth is hidden, four
        times over.
    features
        For classification: what is known of every node, as for edgeveil classify.
    prior
        For classification, instead of features: class probabilities by your own model.
    sources
        How many members get lists, or how many sources get rankings.
    k
        Length of a list or ranking.
    min_degree
        For rankings: the minimum degree of a source.
    mechanism
        Mechanism to measure, at each epsilon; may be given more than once. Your own:
        package.module:Class.
    over_time
        A history, instead of a graph: measure a series of lists at its last five snapshots.
    plot
        File for a figure: .png, .svg or .pdf. Needs edgeveil[plot].
    overwrite
        Replace a figure that exists.
    """
    from edgeveil.cli.reading import check_out, read_and_say
    from edgeveil.evaluation.measurements import load_matplotlib
    from edgeveil.evaluation.own_graph import prepare_evaluation

    place = graph or over_time
    if place is None or (graph is not None and over_time is not None):
        raise ParameterError("give a graph, or a history with --over-time")
    if over_time is not None and reading != options.GRAPH_FILE:
        raise ParameterError("a history knows its nodes and directions: --over-time takes none")
    if plot is not None:  # what is missing for a figure is said before the work
        load_matplotlib()
        check_out(plot, ".png", ".svg", ".pdf", overwrite=overwrite, option="--plot")
    tried = _mechanisms(mechanism, epsilon, parameters)
    job = prepare_evaluation(
        epsilon if tried is None else None,  # a mechanism has its own
        over_time=over_time is not None,
        protocol=protocol,
        labels=labels,
        features=features,
        prior=prior,
        mechanisms=tried,
        sources=sources,
        k=k,
        min_degree=min_degree,
    )
    private: ev.Graph | ev.History
    if over_time is None:
        private = read_and_say(place, reading, counts=True)
    else:
        private = ev.History.open(place)
    with counting("parts") as progress:
        result = job.run(private, progress=progress)
    _print(result, place.name, format)
    if plot is not None:
        result.plot(plot)
        say(f"{plot}: {result.heading}.")
    say(
        "These numbers come from the exact graph: do not publish them. Choosing parameters from "
        "them leaks information that the guarantee does not cover."
    )


def _print(result: Evaluation, name: str, style: Format) -> None:
    """Print what was measured; to people with three digits."""
    rows = result.rows()
    if style == "table":
        rows = [tuple(round(c, 3) if isinstance(c, float) else c for c in row) for row in rows]
    print_table(
        result.columns,
        rows,
        style=style,
        metadata={"graph": name, "says": _WARNING},
        title=f"{name}: {result.heading}",
        warning=_WARNING,
    )


def _mechanisms(
    names: list[str] | None, epsilons: list[float] | None, parameters: options.Parameters
) -> list[Mechanism] | None:
    """Each at every privacy loss to try, with those parameters that it has; None if none is named.

    ParameterError if no mechanism has a parameter that is given.
    """
    from edgeveil.cli.mechanisms import (
        fields_of,
        find_mechanism,
        make_mechanism,
        refuse_parameters,
    )
    from edgeveil.evaluation.own_graph import EPSILONS

    if names is None:
        refuse_parameters(parameters)
        return None
    kinds = {name: find_mechanism(name) for name in names}
    chosen = {option: value for option, value in parameters.given().items() if value is not None}
    settings = chosen.pop("settings", None)
    for option in chosen:
        if not any(option in fields_of(kind) for kind in kinds.values()):
            raise ParameterError(f"none of {', '.join(names)} has --{option.replace('_', '-')}")
    mechanisms: list[Mechanism] = []
    for name, kind in kinds.items():
        fields = fields_of(kind)
        own = {option: value for option, value in chosen.items() if option in fields}
        usual = EPSILONS["suggestions" if kind.output == "lists" else "rankings"]
        make = partial(make_mechanism, name, None, settings=settings, **own)
        losses = (epsilons or usual) if "epsilon" in fields else [None]
        mechanisms += [make(epsilon=loss) for loss in losses]
    return mechanisms
