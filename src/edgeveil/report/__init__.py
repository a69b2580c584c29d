"""The HTML page: what was released, and for the curator how good it is."""

from __future__ import annotations

from edgeveil.report.list_page import page_from_releases
from edgeveil.report.page import ListedNode, MemberList, PageData, render_page, write_page
from edgeveil.report.predictions_page import page_from_predictions

__all__ = [
    "ListedNode",
    "MemberList",
    "PageData",
    "page_from_predictions",
    "page_from_releases",
    "render_page",
    "write_page",
]
