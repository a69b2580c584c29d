"""What the windows of a series add up to, and the lists made of it: post-processing.

A refresh and the simulation of one (`edgeveil.evaluation.over_time`) both use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.estimate import lists
from edgeveil.estimate.lists import Candidates, Evidence, Lists, Popularity
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms.base import local_views
from edgeveil.mechanisms.member_lists import Suggest

Indices = npt.NDArray[np.int64]


def merge_windows(
    mechanism: Suggest,
    shared: Popularity,
    graph: Graph,
    members: Indices,
    evidence: Evidence,
    rows: Indices,
    drawn: Evidence,
) -> Evidence:
    """The evidence after windows of some members were drawn.

    Parameters
    ----------
    members, rows
        Whose windows they are, and which rows of `evidence` are theirs.
    drawn : Evidence
        One row for each of `members`.
    """
    claim = mechanism.guarantee(1)
    views = local_views(graph, members, claim.model, claim.known_edges)
    merged = lists.merge(shared, views, evidence.take(rows), drawn)
    order = np.arange(len(evidence))
    order[rows] = len(evidence) + np.arange(len(rows))
    return Evidence.joined([evidence, merged]).take(order)


def lists_from(
    mechanism: Suggest,
    shared: Popularity,
    graph: Graph,
    members: Indices,
    evidence: Evidence,
    windows: npt.NDArray[Any],
    k: int,
    candidates: Candidates | None,
    followers: Callable[[int], npt.NDArray[Any]] | None = None,
) -> Lists:
    """The lists of some members, each from its row of evidence and its number of windows.

    `followers` gives whom a member knows to follow it, where members know that, in place of those
    in the graph, which may be a history's.
    """
    claim, rate = mechanism.guarantee(1), float(mechanism.split[1])
    views = local_views(graph, members, claim.model, claim.known_edges)
    if views.followers and followers is not None:
        views = views._replace(followers=tuple(map(followers, members)))
    times = np.maximum(windows.astype(np.int64), 1)
    return lists.make_lists(shared, views, evidence, rate, k, candidates, times)
