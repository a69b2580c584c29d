"""A run that was killed goes on, and ends with what it would have given at once."""

from __future__ import annotations

import json

import numpy as np
import pytest

from experiments.cells import Cells

SETTINGS = {"seed": 1}


def _run(folder, stop_at=None):
    cells, calls = Cells(folder, SETTINGS), []

    def compute(i):
        calls.append(i)
        if i == stop_at:
            raise KeyboardInterrupt
        return {"value": i / 3}

    values = [cells.get(f"cell {i}", lambda i=i: compute(i)) for i in range(6)]
    return values, calls


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        _run(tmp_path / "a", stop_at=3)
    values, calls = _run(tmp_path / "a")
    assert calls == [3, 4, 5]
    assert values == _run(tmp_path / "b")[0]
    assert _run(tmp_path / "a")[1] == []


def test_incomplete_last_line_is_dropped(tmp_path):
    _run(tmp_path)
    path = Cells(tmp_path, SETTINGS).path
    whole = path.read_bytes()
    for cut in (3, 1):
        path.write_bytes(whole[:-cut])
        values, calls = _run(tmp_path)
        assert calls == [5]
        assert [f["value"] for f in values] == [i / 3 for i in range(6)]


def test_other_settings_have_another_file(tmp_path):
    assert Cells(tmp_path, {"seed": 1}).path != Cells(tmp_path, {"seed": 2}).path


def test_part_files_keep_out_of_version_control(tmp_path):
    Cells(tmp_path, SETTINGS)
    assert (tmp_path / ".gitignore").read_text() == "*\n"


def test_a_fresh_value_is_what_a_later_run_reads(tmp_path):
    first = Cells(tmp_path, SETTINGS).get("x", lambda: (1, 2.5))
    assert first == [1, 2.5] == Cells(tmp_path, SETTINGS).get("x", lambda: None)


def test_arrays_are_read_back_unchanged(tmp_path):
    first = Cells(tmp_path, SETTINGS).array("x", lambda: np.arange(4.0))
    again = Cells(tmp_path, SETTINGS)
    assert np.array_equal(again.array("x", lambda: np.zeros(0)), first)
    next(tmp_path.glob("*.npy")).unlink()
    assert again.array("x", lambda: np.ones(2)).tolist() == [1, 1]


def test_seconds_add_up_over_runs(tmp_path):
    _run(tmp_path)
    lines = [json.loads(x) for x in Cells(tmp_path, SETTINGS).path.read_text().splitlines()]
    total = sum(line.get("seconds", 0) for line in lines)
    assert Cells(tmp_path, SETTINGS).seconds == pytest.approx(total)


def test_nothing_is_shown_without_a_terminal(tmp_path, capsys):
    cells = Cells(tmp_path, SETTINGS)
    with cells.progress(2, "title"):
        cells.get("x", lambda: 1)
    assert capsys.readouterr() == ("", "")
