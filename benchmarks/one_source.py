"""One source in a warm process against its share of a batch."""

from __future__ import annotations

from typing import Any

from benchmarks.graphs import described, small_graph, some_sources
from benchmarks.measure import interleaved, ratios, show, summary
from benchmarks.ours import CALLS, call
from benchmarks.settings import Settings

__all__ = ["run"]


def run(settings: Settings) -> dict[str, Any]:
    """Measure on the small graph."""
    name, graph = small_graph(settings)
    sources = some_sources(graph, settings.block)
    print(f"\none warm source against its share of a batch of {len(sources)}, {graph!r}")
    result: dict[str, Any] = {"graph": described(name, graph), "batch": len(sources), "calls": {}}
    for what in CALLS:
        solve = call(what, graph)[0]
        times = interleaved(
            {
                "one": lambda solve=solve: solve(sources[:1]),
                "batch": lambda solve=solve: solve(sources),
            },
            rounds=settings.rounds,
        )
        share = [t / len(sources) for t in times["batch"]]
        row = {
            "one": summary(times["one"]),
            "share": summary(share),
            "one_over_share": ratios(times["one"], share),
        }
        result["calls"][what] = row
        print(
            f"  {what:<12} {row['one']['median'] * 1e3:8.2f} ms against "
            f"{row['share']['median'] * 1e3:8.2f} ms: {show(row['one_over_share'])}"
        )
    return result
