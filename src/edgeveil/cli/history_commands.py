"""``edgeveil history create | add | show | forget``."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import App

import edgeveil as ev
from edgeveil._internal.words import counted
from edgeveil.cli import options
from edgeveil.cli.options import Flag, Format, GraphPath, default, option
from edgeveil.cli.output import print_table, say
from edgeveil.errors import ParameterError

history = App(
    name="history",
    help="Keep all snapshots of a graph as one: every edge, and when it was first seen.\n\n"
    "Example: edgeveil history create friends.history",
    help_format="plaintext",
)

HistoryPlace = Annotated[Path, option("The folder of the history.")]


@history.command
def create(
    location: Annotated[Path, option("A new folder. It will hold private edges.")],
    edges: Annotated[Path | None, default("no snapshot yet")] = None,
    /,
    *,
    time: Annotated[str | None, default("none")] = None,
    periods: str = "weekly",
    reading: options.GraphFile = options.GRAPH_FILE,
) -> None:
    """Create a history, empty or from an edge list with a column of times.

    Example: edgeveil history create friends.history
    Example: edgeveil history create f.history friends.csv --time since --periods monthly

    Parameters
    ----------
    edges
        Edge list, text or Parquet, with the time at which each edge began.
    time
        Column with the times: its name in the first line, or its position from 0. It holds dates,
        dates with a time of day, seconds since 1970, or any numbers.
    periods
        Periods that become snapshots: weekly, monthly, a number of equal periods, or cut points
        (2026-01-01,2026-04-01). Unless you give cut points, the first and the last time of all
        edges become public.
    """
    if (edges is None) != (time is None):
        raise ParameterError("an edge list and --time, its column with times, go together")
    if edges is None or time is None:
        ev.History.create(location)
        say(f"{location}: no snapshot yet; add one with edgeveil history add {location} GRAPH")
        return
    created = ev.History.from_edges(
        location,
        edges,
        time=int(time) if time.isdecimal() else time,
        periods=_periods(periods),
        **reading.of_edge_lists,
    )
    if reading.nodes is None:
        say("No node list was given (--nodes): who appears at all is taken to be public.")
    _say_counts(created)


def _periods(words: str) -> str | int | list[str | float]:
    """Read --periods as `History.from_edges` takes it."""
    if words in ("weekly", "monthly"):
        return words
    if words.isdecimal():
        return int(words)
    return [_number_or_date(word.strip()) for word in words.split(",")]


def _number_or_date(word: str) -> str | float:
    try:
        return float(word)
    except ValueError:
        pass
    try:
        datetime.fromisoformat(word)
    except ValueError:
        raise ParameterError(
            f"--periods is weekly, monthly, a number, or cut points like 2026-01-01, got {word!r}"
        ) from None
    return word


@history.command
def add(
    location: HistoryPlace,
    graph: GraphPath,
    /,
    *,
    date: Annotated[options.Day | None, default("now")] = None,
    again: Flag = False,
    nodes_from_edges: Flag = False,
    reading: options.GraphFile = options.GRAPH_FILE,
) -> None:
    """Add today's graph as the next snapshot, and print its number.

    The graph holds all edges and all members of today. Members who stayed must
    have kept their id. If the command is interrupted, nothing was added.
    Example: edgeveil history add friends.history friends.csv --nodes members.txt

    Parameters
    ----------
    date
        Date of the snapshot, such as 2026-11-16 or 2026-11-16T04:00 (UTC). It must be later than
        that of the last one.
    again
        Add a graph that is the same as the last snapshot, too.
    nodes_from_edges
        Needed without --nodes: who has any friend at all, and when, is then public.
    """
    from edgeveil.cli.reading import read_and_say

    opened = ev.History.open(location)
    read = read_and_say(graph, reading, counts=True)
    before = len(opened)
    number = opened.add(read, date, again=again, nodes_from_edges=nodes_from_edges)
    sys.stdout.write(f"{number}\n")
    if number == before:
        say(f"{location}: snapshot {number} is this graph, of this date: nothing was added")
    else:
        _say_counts(opened)


@history.command
def show(
    location: HistoryPlace,
    /,
    *,
    counts: Flag = False,
    format: Format = "table",  # noqa: A002  (the option's name)
) -> None:
    """Show the snapshots of a history: their dates and how many members they had.

    Example: edgeveil history show friends.history

    Parameters
    ----------
    counts
        Show also how many edges were first seen in each. The counts are exact: for the curator
        only.
    """
    opened = ev.History.open(location)
    columns, warning = ["snapshot", "date", "members"], ""
    rows: list[tuple[int | str | None, ...]]
    rows = [(snapshot.number, snapshot.date, snapshot.n_nodes) for snapshot in opened.snapshots]
    metadata = {
        "history": str(location),
        "nodes": len(opened.nodes),
        "forgotten": len(opened.forgotten),
        "directed": opened.directed,
    }
    if counts:
        warning = metadata["warning"] = "FOR THE CURATOR ONLY, NOT PRIVATE: exact numbers of edges"
        columns.append("new_edges")
        rows = [(*row, n) for row, n in zip(rows, opened.new_edges().tolist(), strict=True)]
    print_table(
        columns, rows, style=format, metadata=metadata, title=str(location), warning=warning
    )
    if format == "table":
        forgotten = f", {len(opened.forgotten):,} of them forgotten" * bool(len(opened.forgotten))
        say(f"{counted(len(opened.nodes), 'member')} in all{forgotten}")


@history.command
def forget(
    location: HistoryPlace,
    /,
    *members: Annotated[str, option("Ids of the members to forget.")],
) -> None:
    """Erase the ids and all edges of members who have left.

    Members of the latest snapshot cannot be forgotten. A member who comes back is
    a new member, and is charged again; its edges do not count for others until the
    series is renewed. What stays: the id in the ledger, in lists, in the
    files that snapshots were read from, and in backups; and in the history a keyed
    hash of it until the renewal, by which somebody who comes back is known.
    Example: edgeveil history forget friends.history alice
    """
    if not members:
        raise ParameterError("name at least one member to forget")
    ev.History.open(location).forget(members)
    say(f"{location}: {counted(len(set(members)), 'member')} forgotten; their edges are erased")


def _say_counts(opened: ev.History) -> None:
    """Print the size of a history: only for commands whose output the curator alone sees."""
    latest = opened.snapshots[-1]
    new, now = opened.new_edges(), opened.current_edges
    say(
        f"{opened.path}: snapshot {latest.number}, {counted(latest.n_nodes, 'member')}; "
        f"{counted(int(new[-1]), 'new edge')}, {now:,} now, {int(new.sum()):,} ever "
        "(exact counts, for the curator only)"
    )
