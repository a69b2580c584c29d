"""Numbers and tables as the page writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["milliseconds", "number", "sized", "spread", "table"]

Figures = dict[str, Any]


def number(value: float) -> str:
    """Three significant digits; whole thousands with commas."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def spread(ratio: dict[str, float]) -> str:
    """Median and extremes."""
    return f"{number(ratio['median'])} ({number(ratio['min'])} … {number(ratio['max'])})"


def milliseconds(seconds: dict[str, float]) -> str:
    """The median in milliseconds."""
    return number(seconds["median"] * 1e3)


def table(head: list[str], rows: Iterator[list[str]] | list[list[str]]) -> Iterator[str]:
    """A Markdown table; all columns but the first to the right."""
    yield "| " + " | ".join(head) + " |"
    yield "| --- |" + " ---: |" * (len(head) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def sized(graph: Figures) -> str:
    """A graph's name with its sizes."""
    return f"{graph['name']} ({graph['nodes']:,} nodes, {graph['edges']:,} edges)"
