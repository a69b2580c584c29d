"""Series: lists for every snapshot at the price of one, because each edge is paid once."""

from edgeveil.series.price import RefreshPrice, price_refresh
from edgeveil.series.refresh import Refreshed, refresh
from edgeveil.series.rule import WindowRule

__all__ = ["RefreshPrice", "Refreshed", "WindowRule", "price_refresh", "refresh"]
