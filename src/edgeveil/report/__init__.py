"""Pictures and the HTML page."""

from __future__ import annotations

from edgeveil.report.page import render_page, write_page
from edgeveil.report.page_data import (
    GuaranteeText,
    PageData,
    RankedNode,
    RankingExample,
    ResultRow,
)

__all__ = [
    "GuaranteeText",
    "PageData",
    "RankedNode",
    "RankingExample",
    "ResultRow",
    "render_page",
    "write_page",
]
