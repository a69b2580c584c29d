"""What rank, embed and suggest have in common: price, pay, make, put out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from edgeveil.cli.budget import print_price, spending
from edgeveil.cli.options import Budget
from edgeveil.cli.output import Format, counted, print_table, say
from edgeveil.cli.progress import counting
from edgeveil.engine import Engine, release, release_to
from edgeveil.graph import Graph
from edgeveil.mechanisms import Mechanism
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.releases import Release
from edgeveil.suggestions import Suggestions

_MADE = {"scores": "rankings", "embeddings": "embeddings", "suggestions": "lists"}


def make_release(
    graph: Graph,
    mechanism: Mechanism,
    sources: list[NodeId] | NodeSet,
    budget: Budget,
    put_out: Callable[[Any], None],
    *,
    out: Path | None,
    style: Format,
    engine: Engine | None = None,
) -> None:
    """Make a release and put it out, or print its price if that is all that was asked for.

    An `out` without a suffix is a folder, written while the rows are made.
    """
    if budget.dry_run:
        print_price(graph, mechanism, sources, budget, style)
        return
    # To the end inside of it, so that Ctrl-C is told what was charged.
    with spending(graph, mechanism, sources, budget) as how:
        with counting(_MADE[mechanism.gives]) as progress:
            how |= {"engine": engine, "progress": progress}
            if out is None or out.suffix:
                made: Any = release(graph, mechanism, sources, **how)
            else:
                made = release_to(out, graph, mechanism, sources, **how)
        put_out(made)
    if style != "json" or out is not None:
        say(str(made.guarantee))


def print_lists(
    made: Release | Suggestions,
    whose: str,
    columns: list[str],
    lines: Callable[[NodeId], Iterable[tuple[Any, ...]]],
    *,
    style: Format,
    title: str,
    about: dict[str, Any] | None = None,
) -> None:
    """Print the list of every source; if there are several, a column named `whose` says whose."""
    several = len(made.sources) > 1
    first = 0 if several else 1
    rows = [(source, *line)[first:] for source in made.sources for line in lines(source)]
    whom = counted(len(made.sources), whose) if several else str(made.sources[0])
    print_table(
        [whose, *columns][first:],
        rows,
        style=style,
        about={
            **({} if several else {whose: made.sources[0]}),
            "guarantee": made.guarantee.as_dict(),
            "says": str(made.guarantee),
            **(about or {}),
        },
        title=f"{title} {whom}",
        warning="" if made.guarantee.protects else "NOT PRIVATE: do not publish",
    )
