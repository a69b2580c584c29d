"""The HTML page: what was released, and for the curator how good it is."""

from __future__ import annotations

from edgeveil.report.page import render_page, write_page
from edgeveil.report.page_data import (
    GuaranteeText,
    PageData,
    RankedNode,
    RankingExample,
    ResultRow,
)
from edgeveil.report.rankings import page_from_releases

__all__ = [
    "GuaranteeText",
    "PageData",
    "RankedNode",
    "RankingExample",
    "ResultRow",
    "page_from_releases",
    "render_page",
    "write_page",
]
