"""``edgeveil evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from edgeveil._check import whole
from edgeveil.cli import options
from edgeveil.cli.options import option
from edgeveil.cli.output import counting, print_table, say
from edgeveil.errors import ParameterError

if TYPE_CHECKING:
    from edgeveil.mechanisms import Mechanism

_WARNING = "NOT PRIVATE: for the curator only"


def evaluate(
    graph: options.GraphPath,
    /,
    *,
    epsilon: Annotated[
        list[float] | None,
        Parameter(negative=""),
        option(
            "Privacy loss to try; may be given more than once.",
            "0.5, 1 and 2; for rankings 0.1, 1 and 5",
        ),
    ] = None,
    protocol: Annotated[
        Literal["suggestions", "rankings"] | None,
        option("What is measured.", "what the mechanisms give; suggestions"),
    ] = None,
    mechanism: Annotated[
        list[options.AnyMechanism] | None,
        Parameter(negative=""),
        option(
            "Measure this one, at each epsilon; may be given more than once. One of your own: "
            "package.module:Class.",
            "the recommended ones",
        ),
    ] = None,
    parameters: options.Parameters = options.PARAMETERS,
    sources: Annotated[
        int | None,
        option("How many members are asked for.", "150 of each degree group; for rankings 30"),
    ] = None,
    top: Annotated[
        int | None,
        option("How many suggestions, or places of a ranking, count.", "20; for rankings 100"),
    ] = None,
    min_degree: Annotated[
        int, option("For rankings: neighbours that a node must have to be ranked for.")
    ] = 50,
    plot: Annotated[
        Path | None,
        option("File for a figure of it (.png, .svg or .pdf). Needs edgeveil[plot]."),
    ] = None,
    reading: options.GraphFile = options.GRAPH_FILE,
    directed: options.ArcsAsEdges = False,
    format: options.Format = "table",  # noqa: A002  (the option's name)
    config: options.Config = None,
) -> None:
    """Measure on your own graph what private results are worth. For the curator only.

    suggestions: hidden friends that private lists find, beside popularity, scores without privacy
    and the limit. rankings: Recall and NDCG against exact PageRank, beside the paper's mechanism.
    Nothing is charged: the numbers are not private and must not be published.
    Example: edgeveil evaluate follows.csv --epsilon 0.5 --epsilon 2
    """
    from edgeveil.cli.reading import check_place, read_and_say
    from edgeveil.evaluation.own_graph import evaluate as measure
    from edgeveil.evaluation.results import load_matplotlib

    if top is not None:
        whole("--top", top)
    if plot is not None:  # what is missing for a figure is said before the work
        load_matplotlib()
        check_place(plot, option="--plot")
        if plot.suffix not in (".png", ".svg", ".pdf"):
            raise ParameterError(f"--plot must end in .png, .svg or .pdf, got {plot.name!r}")
    tried = None if mechanism is None else _mechanisms(mechanism, epsilon, top, parameters)
    if tried is None and parameters != options.PARAMETERS:
        raise ParameterError("parameters belong to a mechanism: name it with --mechanism")
    read = read_and_say(graph, reading, directed=directed, counts=True)
    with counting("parts") as progress:
        found = measure(
            read,
            epsilon if tried is None else None,  # a mechanism has its own
            protocol=protocol,
            mechanisms=tried,
            sources=sources,
            k=top,
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
        about={"graph": graph.name, "says": _WARNING},
        title=f"{graph.name}: {found.heading}",
        warning=_WARNING,
    )
    if plot is not None:
        found.plot(plot)
        say(f"{plot}: {found.heading}.")
    say(
        "These numbers come from the exact graph. They are not private: keep them. A parameter "
        "that is chosen by them is a release outside of any guarantee."
    )


def _mechanisms(
    names: list[str],
    epsilon: list[float] | None,
    top: int | None,
    parameters: options.Parameters,
) -> list[Mechanism]:
    """Each at every privacy loss to try, with those parameters that it has."""
    from edgeveil.cli.mechanisms import fields_of, find_mechanism, make_mechanism
    from edgeveil.evaluation.own_graph import EPSILONS

    given = parameters.given()
    settings = given.pop("settings")
    kinds = {name: find_mechanism(name) for name in names}
    known = {name: fields_of(kind) for name, kind in kinds.items()}
    for strange in [o for o, value in given.items() if value is not None]:
        if not any(strange in its for its in known.values()):
            raise ParameterError(f"none of {', '.join(names)} has --{strange.replace('_', '-')}")
    made = []
    for name, kind in kinds.items():
        asked = {"top": top, **given}
        its = {option: value for option, value in asked.items() if option in known[name]}
        usual = EPSILONS["suggestions" if kind.gives == "suggestions" else "rankings"]
        losses = (epsilon or usual) if "epsilon" in known[name] else [None]
        made += [make_mechanism(name, None, settings=settings, epsilon=e, **its) for e in losses]
    return made
