"""`open_windows`: who is drawn for, whatever is said to be due."""

from __future__ import annotations

import dataclasses

import numpy as np

import edgeveil as ev
from edgeveil.estimate.lists import Evidence, fit_popularity
from edgeveil.jobs.tasks import Task
from edgeveil.mechanisms import Suggest
from edgeveil.series.state import Shard
from edgeveil.series.windows import next_window, open_windows

UNTIL = 3
GRAPH = ev.Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], ev.NodeSet.range(6))


def test_only_the_charged_without_this_window_are_drawn_for():
    """A second window up to one snapshot, or one that nobody was charged for, is never drawn."""
    charged = np.array([True, True, False, True, True, True])
    last = np.array([0, UNTIL, 0, UNTIL - 1, UNTIL - 1, 0], dtype=np.uint16)
    due = np.array([True, True, True, True, False, True])
    graph = dataclasses.replace(GRAPH, first_seen=np.ones(len(GRAPH.indices), dtype=np.uint16))
    before = dataclasses.replace(Shard.empty(0, 6), charged=charged, last=last)
    window = next_window(Suggest(epsilon=1.0), last, UNTIL)
    shared = fit_popularity(graph.degrees.astype(np.float64), 1.0)
    asked = []

    def draw(task, members):
        asked.append(members.tolist())
        return [(members, Evidence.none(len(members)))]

    after = open_windows(before, due, Task(mechanism=window, graph=graph, shared=shared), draw)
    assert asked == [[0, 3, 5]]
    assert after.last.tolist() == [UNTIL, UNTIL, 0, UNTIL, UNTIL - 1, UNTIL]
    assert after.windows.tolist() == [1, 0, 0, 1, 0, 1]
