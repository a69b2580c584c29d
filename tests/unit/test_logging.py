"""What the library logs: under its own name, only if asked for, and never whom it is about."""

from __future__ import annotations

import logging
import subprocess
import sys

import edgeveil as ev
from edgeveil._internal import loops as _loops


def test_no_record_names_a_member(caplog, tmp_path, monkeypatch):
    monkeypatch.setattr(_loops, "_told", set())
    monkeypatch.setattr(
        _loops, "loop_folder", lambda: _loops.LoopFolder(None, "nobody can write here")
    )
    caplog.set_level(logging.DEBUG, logger="edgeveil")
    people = [f"person-{i}" for i in range(30)]
    lines = [f"{people[i]},{people[j]}\n" for i in range(30) for j in range(i) if (i * j) % 7 < 2]
    (tmp_path / "friends.csv").write_text("".join(lines))
    graph = ev.read_graph(tmp_path / "friends.csv")
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=5)
    ev.suggest(graph, people[:3], epsilon=1, ledger=ledger)
    ev.rank(graph, people[3], epsilon=1, ledger=ledger)
    _loops.tell("edgeveil.flow._kernels", "reorder", ready=False)
    ours = [record for record in caplog.records if record.name.split(".")[0] == "edgeveil"]
    assert ours  # of the loop, at least
    assert not [record for record in ours if "person" in record.getMessage()]


def test_nothing_is_printed_unless_somebody_asks_for_it():
    code = (
        "from edgeveil._internal import loops as _loops;"
        "_loops.loop_folder = lambda: _loops.LoopFolder(None, 'nobody can write here');"
        "_loops.tell('edgeveil.flow._kernels', 'reorder', ready=False)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""
