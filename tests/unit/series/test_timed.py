"""Edge lists with a column of times."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from edgeveil.errors import InputError, ParameterError
from edgeveil.graph.graph import Graph
from edgeveil.series.history import History

DATES = ["2026-01-30", "2026-02-11", "2026-03-01", "2026-02-01"]
SECONDS = [int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) for day in DATES]
ENDS = [("ann", "bob"), ("bob", "cem"), ("ann", "bob"), ("cem", "dan")]
MONTHS = {"ann bob": 1, "bob cem": 2, "cem dan": 2}
WEEKS = {"ann bob": 1, "bob cem": 3, "cem dan": 1}


def first_seen(history: History) -> dict[str, int]:
    graph = history.graph
    rows = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    names = zip(graph.nodes.take(rows), graph.nodes.take(graph.indices), strict=True)
    births = zip(names, graph.first_seen.tolist(), strict=True)
    return {f"{a} {b}": birth for (a, b), birth in births if str(a) < str(b)}


def write(file: Path, times: list[object], head: str = "a,b,since") -> Path:
    lines = [f"{a},{b},{time}" for (a, b), time in zip(ENDS, times, strict=True)]
    file.write_text("\n".join([head, *lines] if head else lines) + "\n")
    return file


@pytest.mark.parametrize(
    "times",
    [
        DATES,
        [day.replace("-", "/") for day in DATES],
        [f"{day} 10:30:00" for day in DATES],
        [f"{day}T10:30:00.25Z" for day in DATES],
        [f"{day}T23:30:00-00:15" for day in DATES],
        [f" {seconds}" for seconds in SECONDS],
        [seconds * 1000 + 5 for seconds in SECONDS],
        [seconds + 0.5 for seconds in SECONDS],
    ],
)
def test_times_in_many_forms(tmp_path, times):
    file = write(tmp_path / "friends.csv", times)
    monthly = History.from_edges(tmp_path / "months", file, time="since", periods="monthly")
    assert first_seen(monthly) == MONTHS
    assert [snapshot.date for snapshot in monthly.snapshots] == [
        "2026-02-01",
        "2026-03-01",
        "2026-04-01",
    ]
    weekly = History.from_edges(tmp_path / "weeks", file, time="since")
    assert first_seen(weekly) == WEEKS
    dates = [date.fromisoformat(snapshot.date) for snapshot in weekly.snapshots]
    assert dates[0] == date(2026, 2, 2)
    assert {day.weekday() for day in dates} == {0}
    assert len(dates) == 5
    assert weekly.current.all()
    assert weekly.present.all()
    assert weekly.graph.read_report.nodes_from_edges


@pytest.mark.parametrize(
    "times",
    [
        pl.Series(DATES).str.to_date(),
        pl.Series(DATES).str.to_datetime("%Y-%m-%d"),
        pl.Series(DATES).str.to_datetime("%Y-%m-%d").dt.replace_time_zone("Asia/Tokyo"),
        pl.Series(SECONDS),
        pl.Series(DATES),
    ],
)
def test_parquet_has_times_of_its_own(tmp_path, times):
    table = pl.DataFrame({"when": times, "a": [a for a, _ in ENDS], "b": [b for _, b in ENDS]})
    table.write_parquet(tmp_path / "friends.parquet")
    history = History.from_edges(
        *(tmp_path / "history", tmp_path / "friends.parquet"),
        time="when",
        periods=["2026-01-31", date(2026, 2, 28)],
        nodes=["eve", "dan", "cem", "bob", "ann"],
    )
    assert first_seen(history) == {"ann bob": 1, "bob cem": 2, "cem dan": 2}
    assert [snapshot.date for snapshot in history.snapshots] == ["2026-01-31", "2026-02-28", None]
    assert [snapshot.n_nodes for snapshot in history.snapshots] == [5, 5, 5]
    assert not history.graph.read_report.nodes_from_edges


def test_any_numbers_will_do_for_equal_periods_and_cut_points(tmp_path):
    file = write(tmp_path / "friends.csv", [2004, 2007.5, 2001, 2010], head="")
    history = History.from_edges(tmp_path / "three", file, time=2, periods=3)
    assert first_seen(history) == {"ann bob": 1, "bob cem": 3, "cem dan": 3}
    assert [snapshot.date for snapshot in history.snapshots] == [None] * 3
    cut = History.from_edges(tmp_path / "cut", file, time=2, periods=[2000, 2001, 2009])
    assert first_seen(cut) == {"ann bob": 2, "bob cem": 3, "cem dan": 4}
    snapshot = History.from_edges(tmp_path / "one", file, time=2, periods=1)
    assert first_seen(snapshot) == {"ann bob": 1, "bob cem": 1, "cem dan": 1}
    with pytest.raises(ParameterError, match="weekly periods need times that are dates"):
        History.from_edges(tmp_path / "weeks", file, time=2)


def test_from_edges_takes_time_from_any_column_and_directed(tmp_path):
    (tmp_path / "f.txt").write_text("5 1 2 x\n3 2 1 x\n9 1 3 y\n")
    history = History.from_edges(
        *(tmp_path / "history", tmp_path / "f.txt"),
        time=0, columns=(1, 2), periods=[4, 6], directed="keep",
    )  # fmt: skip
    assert history.graph.indices.tolist() == [1, 2, 0]
    assert history.graph.first_seen.tolist() == [2, 3, 1]
    (tmp_path / "g.csv").write_text("1,10,2\n2,20,1\n")
    middle = History.from_edges(tmp_path / "middle", tmp_path / "g.csv", time=1, periods=2)
    assert middle.graph.first_seen.tolist() == [1, 1]


def test_a_history_from_a_list_goes_on_with_snapshots(tmp_path):
    file = write(tmp_path / "friends.csv", DATES)
    history = History.from_edges(tmp_path / "history", file, time="since", periods="monthly")
    with pytest.raises(ParameterError, match="snapshot 3 is of 2026-04-01: give a later date"):
        history.add(Graph.from_edges([0], [3], history.nodes), "2026-03-31")
    assert history.add(Graph.from_edges([0], [3], history.nodes), "2026-05-01") == 4
    assert first_seen(history) == MONTHS | {"ann dan": 4}
    assert history.current_edges == 1


@pytest.mark.parametrize(
    ("times", "options", "reason"),
    [
        (["2026-01-30", "", "2026-03-01", "2026-03-01"], {}, "line 3: the time is missing"),
        (["2026-01-30", "soon", *DATES[2:]], {}, "line 3: the time is missing, or not of"),
        (["x", "y", "z", ""], {}, "line 2: the time is missing, or not of"),
        (["nan", 1.5, 2, 3], {"periods": 2}, "line 2: the time is missing"),
        (DATES, {"time": "when"}, "has no column 'when'; its columns are: a, b, since"),
        (DATES, {"time": 7}, "has no column 7"),
    ],
)
def test_what_is_no_time_is_told_by_its_line(tmp_path, times, options, reason):
    file = write(tmp_path / "friends.csv", times)
    with pytest.raises(InputError, match=reason):
        History.from_edges(tmp_path / "history", file, **({"time": "since"} | options))
    assert not (tmp_path / "history").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"periods": "daily"}, "weekly, monthly, a number or cut points, got 'daily'"),
        ({"periods": 0}, "periods must be from 1 to 65,534, got 0"),
        ({"periods": 65_536}, "periods must be from 1 to"),
        ({"periods": []}, "strictly increasing"),
        ({"periods": ["2026-03-01", "2026-02-01"]}, "strictly increasing"),
        ({"periods": ["March"]}, "a cut point must be like 2026-11-16, got 'March'"),
        ({"periods": [3.5]}, "cut points must be dates, like 2026-11-16, got 3.5"),
        ({"columns": ("a", "since")}, "the times cannot be in a column of ids"),
        ({"header": False}, "columns by name need a header"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, reason):
    file = write(tmp_path / "friends.csv", DATES)
    with pytest.raises(ParameterError, match=reason):
        History.from_edges(tmp_path / "history", file, **({"time": "since"} | options))
    assert not (tmp_path / "history").exists()


def test_files_without_edges_or_of_other_formats_are_refused(tmp_path):
    for name, reason in (("a.mtx", "no list of edges"), ("b.csv", "holds no edge")):
        (tmp_path / name).write_text("# nothing\n")
        with pytest.raises(InputError, match=reason):
            History.from_edges(tmp_path / "history", tmp_path / name, time=2)
    with pytest.raises(InputError, match="there is no file"):
        History.from_edges(tmp_path / "history", tmp_path / "none.csv", time=2)
