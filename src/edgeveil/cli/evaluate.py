"""``edgeveil evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

import edgeveil as ev
from edgeveil._internal.checks import check_int
from edgeveil.cli import options
from edgeveil.cli.options import default
from edgeveil.cli.output import counting, print_table, say
from edgeveil.errors import ParameterError

_WARNING = "NOT PRIVATE: for the curator only"
_MEASURED = {"suggestions": "suggestions", "rankings": "scores", "classification": "predictions"}


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
    from edgeveil.evaluation.results import load_matplotlib
    from edgeveil.privacy.epsilon import check_epsilon

    for option, value in (("-k", k), ("--sources", sources)):
        if value is not None:
            check_int(option, value)
    check_int("--min-degree", min_degree, 0)
    for loss in epsilon or ():
        check_epsilon(loss)
    place = graph or over_time
    if place is None or (graph is not None and over_time is not None):
        raise ParameterError("give a graph, or a history with --over-time")
    if protocol == "classification" and labels is None:
        raise ParameterError("--protocol classification is measured on known labels: --labels FILE")
    if over_time is not None and (protocol == "rankings" or mechanism is not None):
        raise ParameterError("--over-time measures lists of a series: no rankings, no --mechanism")
    if over_time is not None and reading != options.GRAPH_FILE:
        raise ParameterError("a history knows its nodes and directions: --over-time takes none")
    if plot is not None:  # what is missing for a figure is said before the work
        load_matplotlib()
        check_out(plot, ".png", ".svg", ".pdf", overwrite=overwrite, option="--plot")
    if mechanism is None and parameters != options.PARAMETERS:
        raise ParameterError("parameters belong to a mechanism: name it with --mechanism")
    tried = _mechanisms(mechanism, epsilon, parameters) if mechanism else None
    wanted = _MEASURED.get(protocol or "")
    for one in tried or ():
        if wanted not in (None, one.output):
            raise ParameterError(f"--protocol {protocol}: {one.name} gives {one.output}")
    read: ev.Graph | ev.History
    if over_time is not None:
        read = ev.History.open(place)
    else:
        read = read_and_say(place, reading, counts=True)
    with counting("parts") as progress:
        found = ev.evaluate(
            read,
            epsilon if tried is None else None,  # a mechanism has its own
            protocol=protocol,
            labels=labels,
            features=features,
            prior=prior,
            mechanisms=tried,
            sources=sources,
            k=k,
            min_degree=min_degree,
            progress=progress,
        )
    rows = found.rows()
    if format == "table":
        rows = [tuple(round(c, 3) if isinstance(c, float) else c for c in row) for row in rows]
    print_table(
        found.columns,
        rows,
        style=format,
        about={"graph": place.name, "says": _WARNING},
        title=f"{place.name}: {found.heading}",
        warning=_WARNING,
    )
    if plot is not None:
        found.plot(plot)
        say(f"{plot}: {found.heading}.")
    say(
        "These numbers come from the exact graph: do not publish them. Choosing parameters from "
        "them leaks information that the guarantee does not cover."
    )


def _mechanisms(
    names: list[str], epsilons: list[float] | None, parameters: options.Parameters
) -> list[ev.mechanisms.Mechanism]:
    """Each at every privacy loss to try, with those parameters that it has."""
    from edgeveil.cli.mechanisms import fields_of, find_mechanism, make_mechanism
    from edgeveil.evaluation.own_graph import EPSILONS

    kinds = {name: find_mechanism(name) for name in names}
    known = {name: fields_of(kind) for name, kind in kinds.items()}
    given = {option: value for option, value in parameters.given().items() if value is not None}
    settings = given.pop("settings", None)
    for option in given:
        if not any(option in its for its in known.values()):
            raise ParameterError(f"none of {', '.join(names)} has --{option.replace('_', '-')}")
    made = []
    for name, kind in kinds.items():
        its = {option: value for option, value in given.items() if option in known[name]}
        usual = EPSILONS["suggestions" if kind.output == "suggestions" else "rankings"]
        losses = (epsilons or usual) if "epsilon" in known[name] else [None]
        made += [make_mechanism(name, None, settings=settings, epsilon=e, **its) for e in losses]
    return made
