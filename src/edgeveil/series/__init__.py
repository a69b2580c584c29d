"""Series: lists for every snapshot at the price of one list, because no path is counted twice."""

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
