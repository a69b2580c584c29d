"""docs/benchmarks.md and its pictures, from the figures alone: ``./run bench docs``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.goals import best_peer, outcomes
from benchmarks.markdown import milliseconds, number, sized, spread, table

__all__ = ["committed", "page", "write_page"]

ROOT = Path(__file__).resolve().parents[1]
PICTURES = "../benchmarks/results"

Figures = dict[str, Any]


def write_page(file: Path) -> None:
    """Write the page, and the pictures beside the figures."""
    from benchmarks.pictures import draw

    figures = committed(file)
    draw(figures, ROOT / "benchmarks" / "results")
    (ROOT / "docs" / "benchmarks.md").write_text(page(figures))


def committed(file: Path) -> Figures:
    """The figures, and those of a part that was measured apart, in a file of its name beside."""
    figures: Figures = json.loads(file.read_text())
    apart = file.with_name("reading.json")
    if apart.exists():
        later = json.loads(apart.read_text())
        figures["parts"]["reading"] = later["parts"]["reading"] | {"machine": later["machine"]}
    return figures


def page(figures: Figures) -> str:
    """The whole page; a part that was not measured is left out."""
    parts = figures["parts"]
    sections = {
        "exact": _exact,
        "capped": _capped,
        "one-source": _one_source,
        "two-hop": _two_hop,
        "threads": _threads,
        "noise": _noise,
        "reading": _reading,
        "startup": _startup,
        "scale": _scale,
    }
    lines = [*_head(figures), *_goals(parts)]
    for name, write in sections.items():
        if name in parts:
            lines += ["", *write(parts[name])]
    return "\n".join(lines) + "\n"


# -- sections -----------------------------------------------------------------------------


def _head(figures: Figures) -> Iterator[str]:
    machine = figures["machine"]
    caches = ", ".join(f"{level} {size}" for level, size in machine["caches"].items())
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    here = [part for part in figures["parts"].values() if "machine" not in part]
    loads = [part["load_at_start"] for part in here]
    known = [load for load in loads if load is not None]
    yield "# Benchmarks"
    yield ""
    yield "<!-- Written by `./run bench docs` from benchmarks/results/benchmarks.json. -->"
    yield ""
    if "note" in figures:
        yield f"**{figures['note']}**"
        yield ""
    yield (
        "All contenders run in one process and in turns: every round measures each of them "
        "once, so that a busy moment hits all. Figures are CPU seconds of all threads, with one "
        "thread per library, unless said otherwise; ratios are taken round by round and given "
        "as median (smallest … largest). Peers get what makes them fastest: the walk matrix is "
        "scaled once, outside of what is timed, products run on 32-bit indices, and the number "
        "of rounds is the smallest that reaches the wanted error, found with the true answer in "
        "hand. edgeveil is asked for a promised error, which costs it some rounds more; what it "
        "takes when tuned like the peers stands beside it."
    )
    yield ""
    yield (
        f"Machine: {machine['processor']}, {machine['cores']} cores, {caches}, "
        f"{machine['memory_gb']} GB, {machine['system']}. Python {machine['python']}; {packages}."
        + (f" Load when a part began: {min(known)} to {max(known)}." if known else "")
    )
    yield ""
    yield (
        "To repeat: `./run bench --install-peers`, then "
        "`./run bench --data FOLDER --json benchmarks/results/benchmarks.json` with the folder "
        "of blogcatalog.mat, then `./run bench docs`. Libraries that are not installed are left "
        "out and named."
    )


def _goals(parts: Figures) -> Iterator[str]:
    found = outcomes(parts)
    met = sum(o.verdict == "met" for o in found)
    missed = sum(o.verdict == "**not met**" for o in found)
    yield ""
    yield "## Goals"
    yield ""
    yield (
        f"Set before the measuring. {met} met, {missed} not met, "
        f"{len(found) - met - missed} not measured."
    )
    yield ""
    rows = []
    for o in found:
        value = "–" if o.value is None else f"{number(o.value)}{o.unit}"
        if o.low is not None and o.high is not None:
            value += f" ({number(o.low)} … {number(o.high)})"
        sign = "≥" if o.at_least else "≤"
        rows.append([o.goal, f"{sign} {number(o.limit)}{o.unit}", value, o.verdict])
    yield from table(["goal", "limit", "measured", "verdict"], rows)
    graph = parts.get("exact", parts.get("capped", {})).get("graphs", [{}])[0].get("graph", {})
    if graph and graph["name"] != "BlogCatalog":
        yield ""
        yield f"BlogCatalog was not at hand; in its place: {sized(graph)}."


def _exact(part: Figures) -> Iterator[str]:
    yield "## Exact PageRank"
    yield ""
    yield (
        f"One row of PageRank, restart 0.15, at a true L1 error of at most "
        f"{part['error_wanted']:g}, measured against power iteration run to the end of double "
        "precision. *Times ours* is how many times longer a contender takes per source than "
        "edgeveil when asked for this error as a promise, and when tuned to it like the peers. "
        "*Chebyshev* is scipy's product under a faster method. edgeveil's early sweeps are in "
        "single precision and its last ones, which prove the error, in double; peers stand here "
        "in double precision, and those whose product is fast in single precision in that too: "
        "at this error it is just enough, with nothing to prove it."
    )
    for i, graph in enumerate(part["graphs"]):
        best = best_peer(graph)
        head = ["contender", "sources a call", "setting", "L1 error", "ms a source"]
        yield ""
        yield f"### {sized(graph['graph'])}"
        yield ""
        yield f"![CPU time per source]({PICTURES}/exact-{('small', 'large')[i]}.svg)"
        yield ""
        yield from table(
            [*head, "times ours, promised", "times ours, tuned"],
            [
                [
                    f"**{c['name']}**" if c["kind"] == "ours" else c["name"],
                    str(c["sources_per_call"]),
                    c["setting"],
                    f"{c['error']:.1e}",
                    milliseconds(c["seconds"]),
                    spread(c["times_ours"]),
                    spread(c["times_tuned"]),
                ]
                for c in sorted(graph["contenders"], key=lambda c: c["seconds"]["median"])
            ],
        )
        yield ""
        behind = best["times_ours"]["median"] < 1
        yield (
            f"Best peer at this error, in double precision: {best['name']}, "
            f"{number(best['times_ours']['median'])} times our time"
            + (": it is faster than we are." if behind else ".")
            + _without(graph)
        )


def _without(graph: Figures) -> str:
    said = ""
    if graph["absent"]:
        said += f" Not installed: {', '.join(graph['absent'])}."
    if graph.get("left_out"):
        said += f" Not run on this graph, for its size: {', '.join(graph['left_out'])}."
    return said


def _capped(part: Figures) -> Iterator[str]:
    yield "## Capped flow"
    yield ""
    yield (
        f"PushFlowCap, sigma = {part['sigma']:g}, joint model. No library has it, so the peers "
        f"run the same recursion, R = {part['rounds']}, on their own sparse product."
    )
    for graph in part["graphs"]:
        yield ""
        yield f"### {sized(graph['graph'])}: capped"
        yield ""
        head = ["contender", "sources a call", "ms a source", "times our R = 100"]
        yield from table(
            [*head, "times our fixed point", "L1 from ours"],
            [
                [
                    f"**{c['name']}**" if c["kind"] == "ours" else c["name"],
                    str(c["sources_per_call"]),
                    milliseconds(c["seconds"]),
                    spread(c["times_ours"]),
                    spread(c["times_fixed_point"]),
                    f"{c['l1_from_ours']:.0e}" if "l1_from_ours" in c else "–",
                ]
                for c in graph["contenders"]
            ],
        )
        if _without(graph):
            yield ""
            yield _without(graph).strip()
        if "plain_python" in graph:
            yield ""
            yield from _plain_python(graph["plain_python"], part["rounds"])


def _plain_python(rows: list[Figures], rounds: int) -> Iterator[str]:
    yield (
        "The paper's pseudo-code in plain Python, one source. "
        + (
            "All rounds were run."
            if rows[0]["rounds_run"] == rounds
            else f"Only the first {rows[0]['rounds_run']} rounds were run; the time of "
            f"all {rounds} is extrapolated in proportion to the nodes, or edges, that send flow "
            "in them, which are counted exactly."
        )
    )
    yield ""
    yield from table(
        ["form", "measured", "sending flow", "in all rounds", "s for all rounds", "times ours"],
        [
            [
                row["name"],
                f"{row['rounds_run']} rounds, {number(row['measured_seconds'])} s",
                f"{row['pushes_measured']:,} {row['unit']}",
                f"{row['pushes_of_all_rounds']:,} {row['unit']}",
                number(row["seconds_of_all_rounds"]),
                number(row["times_ours"]),
            ]
            for row in rows
        ],
    )


def _one_source(part: Figures) -> Iterator[str]:
    yield "## One source"
    yield ""
    yield f"In a warm process, against its share of a batch of {part['batch']}."
    yield ""
    yield from table(
        ["call", "ms alone", "ms as a share", "ratio"],
        [
            [
                what,
                milliseconds(row["one"]),
                milliseconds(row["share"]),
                spread(row["one_over_share"]),
            ]
            for what, row in part["calls"].items()
        ],
    )


def _two_hop(part: Figures) -> Iterator[str]:
    yield "## Two-hop"
    for graph in part["graphs"]:
        yield ""
        yield f"### {sized(graph['graph'])}: two-hop"
        yield ""
        yield from table(
            ["contender", "ms a source", "times our sums"],
            [
                [
                    f"**{c['name']}**" if c["kind"] == "ours" else c["name"],
                    milliseconds(c["seconds"]),
                    spread(c["times_ours"]),
                ]
                for c in graph["contenders"]
            ],
        )


def _threads(part: Figures) -> Iterator[str]:
    yield "## Threads"
    yield ""
    yield (
        f"{part['blocks']} blocks of sources through a pool of one and of two threads, wall time."
    )
    yield ""
    yield from table(
        ["call", "s, one thread", "s, two threads", "speedup"],
        [
            [
                what,
                number(row["one"]["median"]),
                number(row["two"]["median"]),
                spread(row["speedup"]),
            ]
            for what, row in part["calls"].items()
        ],
    )


def _noise(part: Figures) -> Iterator[str]:
    yield "## Noise"
    yield ""
    yield "Our exact discrete sampler on a secure key stream, and numpy's floating-point Laplace."
    yield ""
    yield from table(
        ["task", "values", "ms", "speed over numpy"],
        [
            [name, f"{int(size):,}", milliseconds(row["seconds"]), spread(row["speed_to_numpy"])]
            for size, rows in part["sizes"].items()
            for name, row in rows.items()
        ],
    )
    if part.get("opendp_10000"):
        yield ""
        yield (
            f"OpenDP's discrete Laplace, 10,000 values: {milliseconds(part['opendp_10000'])} ms."
        )


def _reading(part: Figures) -> Iterator[str]:
    yield "## Reading"
    yield ""
    yield (
        f"{part['edges']:,} edges in random order, file to `Graph`, against what polars takes to "
        "parse the file and no more. A saved folder opens in "
        f"{milliseconds(part['folder']['seconds'])} ms."
    )
    if "machine" in part:
        yield ""
        yield (
            f"Measured apart from the rest, on {part['machine']['processor']}, with a load of "
            f"{part['load_at_start']} at the start (`benchmarks/results/reading.json`)."
        )
    yield ""
    yield from table(
        ["file", "polars' threads", "CPU s", "CPU ratio", "wall s", "wall ratio", "peak GB"],
        [
            [
                row["what"],
                str(row["polars_threads"]),
                number(row["cpu"]["edgeveil"]["median"]),
                spread(row["cpu"]["ratio"]),
                number(row["wall"]["edgeveil"]["median"]),
                spread(row["wall"]["ratio"]),
                number(row["peak_bytes"] / 2**30),
            ]
            for row in part["files"]
        ],
    )


def _startup(part: Figures) -> Iterator[str]:
    yield "## Start"
    yield ""
    yield "Fresh processes with warm file and kernel caches."
    yield ""
    yield from table(
        ["command", "best wall s", "median wall s", "best CPU s"],
        [
            [
                f"`{name}`",
                number(row["wall"]["min"]),
                number(row["wall"]["median"]),
                number(row["cpu"]["min"]),
            ]
            for name, row in part["commands"].items()
        ],
    )


def _scale(part: Figures) -> Iterator[str]:
    calls = list(part["sizes"][0]["calls"])
    yield "## Scale"
    yield ""
    yield (
        "Generated power-law graphs of average degree 20, saved and opened memory-mapped; CPU "
        "milliseconds per source in a full block, and the peak memory (mapped pages of the graph "
        "included) of a process that does only this. *Bare reading* is what the memory gives: one "
        "cache line for every stored entry, as a sweep needs it, and nothing else. Its exponent "
        "is above 1 because the lines of the small graph are in a cache and those of the large "
        "one are not; what comes on top of it is ours."
    )
    yield ""
    yield f"![Time against edges]({PICTURES}/scale.svg)"
    yield ""
    rows = []
    for row in part["sizes"]:
        cells = [
            f"{milliseconds(row['calls'][c]['seconds'])} ms, "
            f"{number(row['calls'][c]['peak_bytes'] / 2**30)} GB"
            for c in calls
        ]
        built = f"{number(row['build_seconds'])} s, {number(row['peak_bytes'] / 2**30)} GB"
        bare = f"{number(row['bare']['seconds_per_row'] * 1e9)} ns a row"
        rows.append([f"{row['edges']:,}", built, *cells, bare])
    if "exponents" in part:
        values = [number(part["exponents"][c]) for c in ("building", *calls, "bare reading")]
        rows.append(["exponent", *values])
    yield from table(["edges", "building", *calls, "bare reading"], rows)
