"""The step of a series: draw the windows that are due, and put them into the state.

A refresh and the simulation of one (`edgeveil.evaluation.over_time`) both take it. They differ in
how they draw: a refresh records the windows in the ledger first, a simulation has seeded noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.estimate import lists
from edgeveil.estimate.lists import Evidence
from edgeveil.jobs.tasks import Task
from edgeveil.mechanisms.base import local_views
from edgeveil.mechanisms.member_lists import Suggest, SuggestWindow
from edgeveil.series.state import Shard

Indices = npt.NDArray[np.int64]
Drawn = Sequence[tuple[Indices, Evidence]]
"""Members, and a row of evidence for each; in any order."""


def next_window(
    mechanism: Suggest, last: npt.NDArray[np.unsignedinteger], until: int
) -> SuggestWindow:
    """What to draw at snapshot `until`, for members whose last windows ended at `last`."""
    return SuggestWindow(
        epsilon=mechanism.epsilon,
        directed=mechanism.directed,
        knows_followers=mechanism.knows_followers,
        since=last,
        until=until,
    )


def open_windows(
    shard: Shard,
    due: npt.NDArray[np.bool_],
    task: Task,
    draw: Callable[[Task, Indices], Drawn],
) -> Shard:
    """The state after the windows that are due were drawn: the rest is post-processing.

    Windows are drawn for members who were charged, and never twice up to one snapshot.

    Parameters
    ----------
    shard : Shard
        The state before.
    due : array of bool
        For every node of the graph, whether its window is due (see `WindowRule.due`).
    task : Task
        The window (see `next_window`), the graph, and the popularity of its nodes.
    draw : callable
        Draws the windows of some members.
    """
    window: Any = task.mechanism
    here = slice(shard.first, shard.first + len(shard.last))
    members = np.flatnonzero(shard.charged & due[here] & (shard.last < window.until)) + shard.first
    if not len(members):
        return shard
    drawn = draw(task, members)
    members = np.concatenate([some for some, _ in drawn])
    order, claim = np.argsort(members), window.guarantee(1)
    members, new = members[order], Evidence.joined([rows for _, rows in drawn]).take(order)
    views = local_views(task.graph, members, claim.model, claim.known_edges)
    rows = members - shard.first
    merged = lists.merge_evidence(task.shared, views, shard.evidence.take(rows), new)
    places = np.arange(len(shard.evidence))
    places[rows] = len(places) + np.arange(len(rows))
    last, windows = shard.last.copy(), shard.windows.copy()
    last[rows] = window.until
    windows[rows] += 1
    evidence = Evidence.joined([shard.evidence, merged]).take(places)
    return replace(shard, last=last, windows=windows, evidence=evidence)
