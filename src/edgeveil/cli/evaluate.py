"""``edgeveil evaluate``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from edgeveil._check import whole
from edgeveil.cli.options import (
    GRAPH_FILE,
    PARAMETERS,
    AnyMechanism,
    ArcsAsEdges,
    Config,
    GraphFile,
    Parameters,
    default,
)
from edgeveil.cli.output import Format, print_table, say
from edgeveil.cli.progress import counting
from edgeveil.errors import ParameterError

if TYPE_CHECKING:
    from edgeveil.evaluation.own_graph import Evaluation
    from edgeveil.mechanisms import Mechanism


def evaluate(
    graph: Path,
    /,
    *,
    epsilon: Annotated[
        list[float] | None,
        Parameter(negative=""),
        default("0.5, 1 and 2; for rankings 0.1, 1 and 5"),
    ] = None,
    protocol: Annotated[
        Literal["suggestions", "rankings"] | None, default("what the mechanisms give; suggestions")
    ] = None,
    mechanism: Annotated[
        list[AnyMechanism] | None, Parameter(negative=""), default("the recommended ones")
    ] = None,
    parameters: Parameters = PARAMETERS,
    sources: Annotated[int | None, default("150 of each degree group; for rankings 30")] = None,
    top: Annotated[int | None, default("20; for rankings 100")] = None,
    min_degree: int = 50,
    plot: Path | None = None,
    reading: GraphFile = GRAPH_FILE,
    directed: ArcsAsEdges = False,
    format: Format = "table",  # noqa: A002  (the option's name)
    config: Config = None,
) -> None:
    """Measure on your own graph what private results are worth. For the curator only.

    suggestions: hidden friends that private lists find, beside popularity, scores without privacy
    and the limit. rankings: Recall and NDCG against exact PageRank, beside the paper's mechanism.
    Nothing is charged: the numbers are not private and must not be published.
    Example: edgeveil evaluate follows.csv --epsilon 0.5 --epsilon 2

    Parameters
    ----------
    graph
        Edge list, Parquet, .mat, MatrixMarket or a graph folder.
    epsilon
        Privacy loss to try; may be given more than once.
    protocol
        What is measured.
    mechanism
        Measure this one, at each epsilon; may be given more than once. One of your own:
        package.module:Class.
    sources
        How many members are asked for.
    top
        How many suggestions, or places of a ranking, count.
    min_degree
        For rankings: neighbours that a node must have to be ranked for.
    plot
        File for a figure (.png, .svg or .pdf): accuracy against epsilon. Needs edgeveil[plot].
    format
        table, json or csv.
    """
    from edgeveil.cli.reading import read_and_say
    from edgeveil.evaluation.own_graph import evaluate as measure

    if top is not None:
        whole("--top", top)
    if plot is not None:
        _check_figure(plot)
    tried = None if mechanism is None else _mechanisms(mechanism, epsilon, top, parameters)
    if mechanism is None and parameters != PARAMETERS:
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
    _show(found, graph.name, format)
    if plot is not None:
        found.plot(plot)
        say(f"{plot}: {found.heading}.")
    say(
        "These numbers come from the exact graph. They are not private: keep them. A parameter "
        "that is chosen by them is a release outside of any guarantee."
    )


def _show(found: Evaluation, name: str, style: Format) -> None:
    """Print the numbers."""
    warning, rows = "NOT PRIVATE: for the curator only", found.rows()
    if style == "table":
        rows = [tuple(round(c, 3) if isinstance(c, float) else c for c in row) for row in rows]
    print_table(
        found.columns,
        rows,
        style=style,
        about={"graph": name, "says": warning},
        title=f"{name}: {found.heading}",
        warning=warning,
    )


def _check_figure(plot: Path) -> None:
    """Say what is missing for a figure before the work."""
    from edgeveil.cli.reading import check_place
    from edgeveil.evaluation.plot import load_matplotlib

    load_matplotlib()
    check_place(plot, option="--plot")
    if plot.suffix not in (".png", ".svg", ".pdf"):
        raise ParameterError(f"--plot must end in .png, .svg or .pdf, got {plot.name!r}")


def _mechanisms(
    names: list[str], epsilon: list[float] | None, top: int | None, parameters: Parameters
) -> list[Mechanism]:
    """Each at every privacy loss to try, with those parameters that it has."""
    from edgeveil.cli.mechanisms import find_mechanism, make_mechanism, takes
    from edgeveil.evaluation.own_graph import EPSILONS

    asked = {"top": top, **parameters.given()}
    settings = asked.pop("settings") or ()
    kinds = {name: find_mechanism(name) for name in names}
    for option in [o for o, value in asked.items() if value is not None and o != "top"]:
        if not any(takes(kind, option) for kind in kinds.values()):
            raise ParameterError(f"none of {', '.join(names)} has --{option.replace('_', '-')}")
    made: list[Mechanism] = []
    for name, kind in kinds.items():
        its = {option: value for option, value in asked.items() if takes(kind, option)}
        usual = EPSILONS["suggestions" if kind.gives == "suggestions" else "rankings"]
        losses = (epsilon or usual) if takes(kind, "epsilon") else [None]
        make = partial(make_mechanism, name, None, settings=settings, **its)
        made += [make(epsilon=loss) for loss in losses]
    return made
