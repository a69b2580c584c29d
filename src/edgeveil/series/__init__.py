"""Series: lists for every snapshot at the price of one list, because no path is counted twice."""

from edgeveil.series.campaign import had_series, is_series, last_series
from edgeveil.series.price import RefreshPrice, price_refresh
from edgeveil.series.refresh import Refreshed, refresh
from edgeveil.series.rule import WindowRule

__all__ = [
    "RefreshPrice",
    "Refreshed",
    "WindowRule",
    "had_series",
    "is_series",
    "last_series",
    "price_refresh",
    "refresh",
]
