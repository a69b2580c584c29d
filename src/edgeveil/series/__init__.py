"""Series: lists for every snapshot at the price of one list, because no path is counted twice.

    refreshing                  `refresh`: check, price, merge today's graph, take the steps
    steps                       the steps, and what is kept between two weeks
    joining, rule, windows      who is charged; when a window is due; drawing those that are due
    campaign, state, copies     what is in the ledger, what in the folder; do they belong together
    history and history_*       all edges so far, and when each was first seen
    merging, timed              a history from snapshots, or from an edge list with times
    lost_edges                  whether a snapshot is too small to be a normal week
    stored_lists, refreshed     the lists of a series, and what a refresh did
    suggesting                  `suggest`: lists of the label's series, or of the graph

Whoever is new here begins with `steps`.
"""

from edgeveil.series.campaign import had_series, highest_epsilon, last_series
from edgeveil.series.refreshed import Refreshed
from edgeveil.series.refreshing import RefreshJob, RefreshPrice, prepare_refresh, refresh
from edgeveil.series.rule import WindowRule

__all__ = [
    "RefreshJob",
    "RefreshPrice",
    "Refreshed",
    "WindowRule",
    "had_series",
    "highest_epsilon",
    "last_series",
    "prepare_refresh",
    "refresh",
]
