"""A series' next windows, and what all of its windows add up to.

A refresh and the simulation of one (`edgeveil.evaluation.over_time`) both use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from edgeveil.estimate import lists
from edgeveil.estimate.lists import Evidence, Popularity
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms.base import local_views
from edgeveil.mechanisms.member_lists import Suggest, SuggestWindow
from edgeveil.series.state import Shard

Indices = npt.NDArray[np.int64]


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


def with_windows(
    shard: Shard,
    drawn: Sequence[tuple[Indices, Evidence]],
    window: SuggestWindow,
    shared: Popularity,
    graph: Graph,
) -> Shard:
    """The state after windows of some members were drawn: post-processing.

    Parameters
    ----------
    drawn : sequence of (members, evidence)
        Indices of members of the shard, and a row of evidence for each.
    """
    if not drawn:
        return shard
    members = np.concatenate([some for some, _ in drawn])
    order, claim = np.argsort(members), window.guarantee(1)
    members, new = members[order], Evidence.joined([rows for _, rows in drawn]).take(order)
    views = local_views(graph, members, claim.model, claim.known_edges)
    rows = members - shard.first
    merged = lists.merge(shared, views, shard.evidence.take(rows), new)
    places = np.arange(len(shard.evidence))
    places[rows] = len(places) + np.arange(len(rows))
    last, windows = shard.last.copy(), shard.windows.copy()
    last[rows] = window.until
    windows[rows] += 1
    evidence = Evidence.joined([shard.evidence, merged]).take(places)
    return replace(shard, last=last, windows=windows, evidence=evidence)
