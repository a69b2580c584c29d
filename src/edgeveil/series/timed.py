"""An edge list with a column of times -> a graph with `first_seen`, a snapshot for each period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import is_number
from edgeveil.errors import InputError, ParameterError
from edgeveil.graph.columns import Columns, ReadOptions, are_seconds, refuse_two_kinds
from edgeveil.graph.edges import Chunk, RowError, endpoints_of
from edgeveil.graph.graph import MOST_SNAPSHOTS, Directed, Graph, check_directed
from edgeveil.graph.node_lists import Nodes, read_nodes
from edgeveil.graph.nodes import Ids, check_ids
from edgeveil.graph.read import check_edge_list, chunks_of

if TYPE_CHECKING:
    import polars as pl

Periods = Literal["weekly", "monthly"] | int | Sequence[str | date | datetime | float]

_FORMATS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"),
    *("%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M:%S%.f%#z"),
)
_SECOND = 1_000_000  # times are in microseconds since 1970
_MONDAY = 4 * 86_400 * _SECOND  # the first one in 1970
_WEEK = 7 * 86_400 * _SECOND


@dataclass(frozen=True)
class _Times:
    """Times of all rows: microseconds since 1970, or plain numbers."""

    values: npt.NDArray[Any]
    are_dates: bool


def read_timed(
    path: Path,
    *,
    time: str | int,
    periods: Periods,
    nodes: Nodes | None,
    directed: Directed,
    header: bool | None,
    columns: Columns | None,
    delimiter: str | None,
    ids: Ids,
    one_kind: bool,
) -> tuple[Graph, list[str | None]]:
    """Read an edge list with times; see `History.from_edges`.

    Gives a graph with `first_seen`, and the dates of its snapshots; None if times are mere numbers.
    """
    check_edge_list(path)
    keep = check_directed(directed) == "keep"
    node_set = read_nodes(nodes, ids=ids)
    options = ReadOptions(
        nodes=node_set,
        header=header,
        columns=columns,
        delimiter=delimiter,
        time=time,
        text=check_ids(ids),
        one_kind=one_kind,
    )
    piece = next(chunks_of(path, options), None)
    if piece is None:
        raise InputError(f"{path} holds no edge")
    seen_at, dates = _number(_read_times(piece), periods)
    found, u, v = endpoints_of(piece, node_set)
    if not one_kind:
        refuse_two_kinds(str(path), len(found), lambda: [(u, v)])
    graph = Graph.from_edges(
        u, v, found, weighted=piece.weighted, nodes_from_edges=node_set is None, directed=keep
    )
    return replace(graph, first_seen=_first_seen_of(graph, u, v, seen_at)), dates


def _first_seen_of(
    graph: Graph, u: npt.NDArray[Any], v: npt.NDArray[Any], seen_at: npt.NDArray[np.uint16]
) -> npt.NDArray[np.uint16]:
    """For every entry of a graph, the earliest row of the list that it comes from."""
    bits = max(1, (graph.n_nodes - 1).bit_length())
    rows = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    keys = rows << bits | graph.indices
    first_seen = np.full(len(keys), MOST_SNAPSHOTS, dtype=np.uint16)
    edge = u != v
    ends = u[edge].astype(np.int64), v[edge].astype(np.int64)
    for a, b in [ends] if graph.directed else [ends, ends[::-1]]:
        np.minimum.at(first_seen, np.searchsorted(keys, a << bits | b), seen_at[edge])
    return first_seen


# -- times --------------------------------------------------------------------------------


def _read_times(piece: Chunk) -> _Times:
    """Read the column of times of a list of edges."""
    import polars as pl

    column = piece.times
    assert column is not None
    if column.dtype == pl.String:
        column = _parse(column.str.strip_chars(" \t\r"))
    if isinstance(column.dtype, pl.Datetime) and column.dtype.time_zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    are_dates = column.dtype.is_temporal() and column.dtype not in (pl.Time, pl.Duration)
    if not (are_dates or column.dtype.is_numeric()):
        raise piece.explain(RowError("the times are neither dates nor numbers", 0))
    missing = column.is_null()
    if column.dtype.is_float():
        missing |= ~column.is_finite().fill_null(False)
    if missing.any():
        reason = "the time is missing, or not of the same kind as the others: a date like "
        reason += "2026-11-16, one with a time like 2026-11-16 09:30:00, or a number"
        raise piece.explain(RowError(reason, int(missing.arg_max() or 0)))
    if are_dates:
        return _Times(column.cast(pl.Datetime("us")).cast(pl.Int64).to_numpy(), True)
    return _Times(column.to_numpy(), False)


def _parse(text: pl.Series) -> pl.Series:
    """Read texts as numbers or dates, whichever fits most of the first ones."""
    import polars as pl

    def read(some: pl.Series, way: Any) -> pl.Series:
        if isinstance(way, str):
            return some.str.to_datetime(way, strict=False, time_unit="us")
        return some.cast(way, strict=False)

    ways = (pl.Int64, pl.Float64, *_FORMATS)
    head = text.head(100)
    return read(text, min(ways, key=lambda way: read(head, way).null_count()))


def _number(times: _Times, periods: Periods) -> tuple[npt.NDArray[np.uint16], list[str | None]]:
    """The number of the period of every time, and the dates at which periods end."""
    values, are_dates = times.values, times.are_dates
    if isinstance(periods, str):
        if periods not in ("weekly", "monthly"):
            raise ParameterError(
                f"periods must be weekly, monthly, a number or cut points, got {periods!r}"
            )
        number, ends = _by_calendar(_as_microseconds(times, f"{periods} periods"), periods)
    elif isinstance(periods, int | np.integer):
        count = int(periods)
        if not 1 <= count <= MOST_SNAPSHOTS:
            raise ParameterError(f"periods must be from 1 to {MOST_SNAPSHOTS:,}, got {count}")
        low, high = float(values.min()), float(values.max())
        cuts = low + (high - low) * np.arange(1, count) / count
        number = np.searchsorted(cuts, values, side="left")
        ends = [*cuts.tolist(), high] if are_dates else [None] * count
    else:
        listed = list(periods)
        if not are_dates and any(isinstance(cut, str | date) for cut in listed):
            values, are_dates = _as_microseconds(times, "cut points that are dates"), True
        cuts = np.array([_cut(cut, are_dates) for cut in listed])
        if not len(cuts) or np.any(cuts[1:] <= cuts[:-1]):
            raise ParameterError("give at least one cut point, in strictly increasing order")
        number = np.searchsorted(cuts, values, side="left")
        ends = [*cuts.tolist(), None] if are_dates else [None] * (len(cuts) + 1)
    if len(ends) > MOST_SNAPSHOTS:
        raise ParameterError(f"{len(ends):,} periods: a history has at most {MOST_SNAPSHOTS:,}")
    return (number + 1).astype(np.uint16), [None if end is None else _said(end) for end in ends]


def _by_calendar(
    values: npt.NDArray[np.int64], periods: str
) -> tuple[npt.NDArray[np.int64], list[float | None]]:
    if periods == "weekly":
        weeks = (values - _MONDAY) // _WEEK
        first, last = int(weeks.min()), int(weeks.max())
        return weeks - first, [_MONDAY + (w + 1) * _WEEK for w in range(first, last + 1)]
    months = values.view("datetime64[us]").astype("datetime64[M]").astype(np.int64)
    first, last = int(months.min()), int(months.max())
    ends = np.arange(first + 1, last + 2).view("datetime64[M]").astype("datetime64[us]")
    return months - first, [float(end) for end in ends.astype(np.int64)]


def _as_microseconds(times: _Times, what: str) -> npt.NDArray[np.int64]:
    """Times as microseconds since 1970; the size of numbers tells seconds from milliseconds."""
    if times.are_dates:
        return times.values
    low, high = float(times.values.min()), float(times.values.max())
    for factor in (1, 1000):
        if are_seconds([int(low), int(high)], factor):
            return np.asarray(times.values * (_SECOND // factor)).astype(np.int64)
    raise ParameterError(
        f"{what} need times that are dates, or seconds or milliseconds since 1970; these are "
        "other numbers: give the number of periods, or numbers as cut points"
    )


def _cut(cut: object, are_dates: bool) -> float:
    """A cut point in the unit of the times; a date means the midnight at its start."""
    if is_number(cut) and not are_dates:
        return float(cut)  # type: ignore[arg-type]
    if isinstance(cut, str | date) and are_dates:
        try:
            read = datetime.fromisoformat(cut if isinstance(cut, str) else cut.isoformat())
        except ValueError:
            raise ParameterError(f"a cut point must be like 2026-11-16, got {cut!r}") from None
        read = read.replace(tzinfo=UTC) if read.tzinfo is None else read
        return (read - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1)
    kind = "dates, like 2026-11-16" if are_dates else "numbers, as the times are"
    raise ParameterError(f"cut points must be {kind}, got {cut!r}")


def _said(microseconds: float) -> str:
    """A time as ISO 8601, a midnight as its date."""
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    if when.hour == when.minute == when.second == when.microsecond == 0:
        return when.date().isoformat()
    return when.isoformat(timespec="seconds")
