"""The goals that were set before anything was measured, and what the figures say to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.settings import ERROR, SINGLE

__all__ = ["Outcome", "best_peer", "outcomes"]

Figures = dict[str, Any]
Measured = float | dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A goal, and the median of what was measured with its extremes; None: not measured."""

    part: str
    goal: str
    limit: float
    at_least: bool
    unit: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def verdict(self) -> str:
        """Met or not, by the median."""
        if self.value is None:
            return "not measured"
        met = self.value >= self.limit if self.at_least else self.value <= self.limit
        return "met" if met else "**not met**"


def best_peer(graph: Figures, single: bool = False) -> Figures:
    """The fastest peer, in double or single precision, of those that reached the wanted error."""
    peers = [
        c
        for c in graph["contenders"]
        if c["kind"] == "peer" and c["error"] <= ERROR and c["name"].endswith(SINGLE) == single
    ]
    return min(peers, key=lambda c: c["times_ours"]["median"])


def outcomes(parts: Figures) -> list[Outcome]:
    """Every goal, measured or not."""
    return [_judged(parts, *goal) for goal in _goals()]


def _judged(
    parts: Figures,
    part: str,
    goal: str,
    limit: float,
    at_least: bool,
    unit: str,
    find: Callable[[Figures], Measured],
) -> Outcome:
    about: dict[str, Any] = {
        "part": part,
        "goal": goal,
        "limit": limit,
        "at_least": at_least,
        "unit": unit,
    }
    try:
        found = find(parts[part])
    except (KeyError, IndexError, StopIteration, ValueError):
        return Outcome(**about)  # this part, size or library was not measured
    if isinstance(found, dict):
        return Outcome(**about, value=found["median"], low=found["min"], high=found["max"])
    return Outcome(**about, value=found)


def _goals() -> Iterator[tuple[str, str, float, bool, str, Callable[[Figures], Measured]]]:
    for i, (where, limit) in enumerate((("BlogCatalog", 4.0), ("10M edges", 2.5))):
        for key, single, how in (
            ("times_ours", False, "at a promised error"),
            ("times_tuned", False, "at equal error"),
            ("times_tuned", True, "at equal error, the peer in single precision"),
        ):
            goal = f"exact PageRank of all sources, {where}, times faster than the best peer, {how}"
            yield (
                *("exact", goal, limit, True, "x"),
                lambda p, i=i, key=key, single=single: best_peer(p["graphs"][i], single)[key],
            )
    for how in ("one source", "block"):
        yield (
            *("capped", f"capped flow, R = 100, times faster than scipy, {how}", 10.0, True, "x"),
            lambda p, how=how: _contender(p, f"scipy, {how}")["times_ours"],
        )
    for row, how in enumerate(("a matrix row per node", "a dictionary of lists")):
        goal = f"capped flow, R = 100, times faster than plain Python with {how}"
        yield (
            *("capped", goal, 10_000.0, True, "x"),
            lambda p, row=row: p["graphs"][0]["plain_python"][row]["times_ours"],
        )
    yield (
        *("capped", "fixed point, times faster than our R = 100", 3.0, True, "x"),
        lambda p: _contender(p, "edgeveil, R = 100")["times_fixed_point"],
    )
    for call in ("exact", "capped", "fixed point", "two-hop"):
        yield (
            *("one-source", f"one warm source over its share of a batch, {call}", 2.0, False, "x"),
            lambda p, call=call: p["calls"][call]["one_over_share"],
        )
    for name in ("discrete_laplace", "add_laplace"):
        yield (
            *("noise", f"speed of {name} over numpy's, a million values", 1.0, True, "x"),
            lambda p, name=name: p["sizes"]["1000000"][name]["speed_to_numpy"],
        )
    for call in ("exact", "capped", "fixed point", "two-hop"):
        yield (
            *("threads", f"two threads over one, {call}", 1.7, True, "x"),
            lambda p, call=call: p["calls"][call]["speedup"],
        )
    for what in ("integers", "strings"):
        yield (
            *("reading", f"reading text over polars' parse, {what}", 3.0, False, "x"),
            lambda p, what=what: next(
                f["cpu"]["ratio"]
                for f in p["files"]
                if f["what"] == what and f["polars_threads"] == "1"
            ),
        )
    for command, limit in (
        ("edgeveil --help", 0.3),
        ("import edgeveil", 0.5),
        ("first private ranking, 5,000 nodes", 2.0),
    ):
        yield (
            *("startup", f"fresh process, {command}", limit, False, " s"),
            lambda p, command=command: p["commands"][command]["wall"]["min"],
        )
    for call in ("exact", "capped", "fixed point", "two-hop"):
        yield (
            *("scale", f"exponent of time against edges, {call}", 1.1, False, ""),
            lambda p, call=call: p["exponents"][call],
        )
    yield (
        *("scale", "peak memory of the largest graph", 20.0, False, " GB"),
        lambda p: max(
            row["peak_bytes"] / 2**30 for row in (p["sizes"][-1], *p["sizes"][-1]["calls"].values())
        ),
    )


def _contender(part: Figures, name: str) -> Figures:
    found: Figures = next(c for c in part["graphs"][0]["contenders"] if c["name"] == name)
    return found
