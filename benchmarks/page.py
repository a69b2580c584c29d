"""The pages of the benchmarks, from the figures in benchmarks/results alone: ``./run bench docs``.

docs/benchmarks.md has a line per part; benchmarks/results/README.md has every figure. There, a
section is a heading, what was measured, and tables: of each, its rows and, for each column, what
stands in a row. A figure that a run did not have is a dash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["committed", "overview", "page", "write_pages"]

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"

Figures = dict[str, Any]
Columns = dict[str, Callable[[Figures], str]]

HEAD = """# Benchmarks in full

<!-- Written by `./run bench docs` from the files beside this page. -->

The [summary](../../docs/benchmarks.md) says how we measure. Figures are CPU seconds of all threads, with one thread per library, unless stated otherwise. *Times ours* is computed per round and given as median (smallest … largest)."""  # noqa: E501  (a paragraph is a line)

OVERVIEW = """# Benchmarks

<!-- Written by `./run bench docs` from benchmarks/results. -->

edgeveil and its peers run in one process and take turns, so other work on the machine affects all alike. Peers run in the setting that is fastest for them: the walk matrix is scaled once, outside the timed part, and the number of rounds is the smallest that reaches the wanted error, found with the exact result at hand. edgeveil must guarantee the error. Figures are CPU time of all threads, with one thread per library, unless the table says otherwise; ratios are medians over rounds. *Version* is the edgeveil that was measured. Every figure, with its spread and its machine: [benchmarks in full](../benchmarks/results/README.md).

"""  # noqa: E501  (a paragraph is a line)

REPEAT = """

To repeat: `./run bench --install-peers`, then `./run bench --data FOLDER --json benchmarks/results/benchmarks.json` with the folder of blogcatalog.mat, then `./run bench docs`. Some parts have their own file: `./run bench PART --json benchmarks/results/PART.json`. Libraries that are not installed are named and left out.
"""  # noqa: E501  (a paragraph is a line)


def write_pages() -> None:
    """Write both pages."""
    parts = committed()
    (ROOT / "docs" / "benchmarks.md").write_text(overview(parts), "utf-8")
    (RESULTS / "README.md").write_text(page(parts), "utf-8")


def committed() -> dict[str, Figures]:
    """Every part by name, with its machine; a file of a part's own name goes before others."""
    parts: dict[str, Figures] = {}
    for file in sorted(RESULTS.glob("*.json"), key=lambda file: file.name != "benchmarks.json"):
        whole = json.loads(file.read_text("utf-8"))
        for name, part in whole["parts"].items():
            if name not in parts or file.stem == name:
                parts[name] = part | {"machine": whole["machine"]}
    return parts


def page(parts: dict[str, Figures]) -> str:
    """The whole page; a part that was not measured is left out."""
    blocks, machine = [HEAD], None
    for name, section in SECTIONS.items():
        if name not in parts:
            continue
        heading, *body = section(parts[name])
        where = parts[name]["machine"]
        named = machine == where
        load = f"Load average at the start: {parts[name]['load_at_start']}."
        said = f"Machine: {'as above' if named else _machine(where)}. {load}"
        blocks += [f"## {heading}", *body, said]
        machine = where
    return "\n\n".join(blocks) + "\n"


def overview(parts: dict[str, Figures]) -> str:
    """A line per part, with what it is compared with."""
    columns: Columns = {
        "what": lambda r: f"[{r['what']}](../benchmarks/results/README.md#{r['section']})",
        "edgeveil": lambda r: r["ours"],
        "beside it": lambda r: r["beside"],
        "version": lambda r: r["version"],
    }
    rows = [
        line | {"version": _packages(parts[name]["machine"])["edgeveil"]}
        for name, lines in LINES.items()
        if name in parts
        for line in lines(parts[name])
    ]
    text = table(rows, columns).replace("---:", "---")
    return OVERVIEW + text + REPEAT


def table(rows: Iterable[Figures], columns: Columns) -> str:
    """A Markdown table; all columns but the first are aligned to the right."""

    def cell(show: Callable[[Figures], str], row: Figures) -> str:
        try:
            return show(row)
        except (KeyError, IndexError):
            return "–"

    lines = ["| " + " | ".join(columns) + " |", "| --- |" + " ---: |" * (len(columns) - 1)]
    lines += ["| " + " | ".join(cell(show, r) for show in columns.values()) + " |" for r in rows]
    return "\n".join(lines)


# -- numbers ------------------------------------------------------------------------------


def number(value: float) -> str:
    """Three significant digits; whole thousands with commas."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def spread(ratio: Figures) -> str:
    """Median and extremes."""
    return f"{number(ratio['median'])} ({number(ratio['min'])} … {number(ratio['max'])})"


def ms(seconds: Figures | float) -> str:
    """Milliseconds, of the median if there were several runs."""
    return number((seconds["median"] if isinstance(seconds, dict) else seconds) * 1e3)


def seconds(value: Figures | float) -> str:
    """Seconds, of the median if there were several runs."""
    return number(value["median"] if isinstance(value, dict) else value)


def gigabytes(count: float) -> str:
    """Gigabytes."""
    return number(count / 1e9)


def named(rows: dict[str, Figures]) -> list[Figures]:
    """Rows with their names among the figures."""
    return [{"name": name, **row} for name, row in rows.items()]


def _bold(row: Figures) -> str:
    return f"**{row['name']}**" if row["kind"] == "ours" else str(row["name"])


def _sized(graph: Figures) -> str:
    return f"### {graph['name']} ({graph['nodes']:,} nodes, {graph['edges']:,} edges)"


def _machine(machine: Figures) -> str:
    caches = ", ".join(f"{level} {size}" for level, size in machine["caches"].items())
    listed = ", ".join(f"{name} {version}" for name, version in _packages(machine).items())
    return (
        f"{machine['processor']}, {machine['cores']} cores, {caches}, {machine['memory_gb']} GB, "
        f"{machine['system']}; Python {machine['python']}, {listed}"
    )


def _packages(machine: Figures) -> dict[str, str]:
    """The versions that were measured."""
    return {"edgeveil": "0.2 (development)"} | machine["packages"]  # earlier runs do not say


# -- sections -----------------------------------------------------------------------------


def _exact(part: Figures) -> Iterator[str]:
    yield "Exact PageRank"
    yield (
        f"One row of PageRank, restart 0.15, with an L1 error of at most {part['error_wanted']:g}, "
        "measured against power iteration that has converged to double precision. *Times ours* is "
        "how many times longer a method takes per source than edgeveil: first edgeveil with a "
        "guaranteed error, then edgeveil tuned like the peers. *Chebyshev* is a faster iteration "
        "with scipy's product. edgeveil's early sweeps run in single precision; the last ones, "
        "which prove the error, in double precision. Peers run in double precision, and also in "
        "single precision if that makes their product faster; at this error, single precision is "
        "just enough, but nothing proves it."
    )
    columns: Columns = {
        "method": _bold,
        "sources per call": lambda r: str(r["sources_per_call"]),
        "setting": lambda r: r["setting"],
        "L1 error": lambda r: f"{r['error']:.1e}",
        "ms per source": lambda r: ms(r["seconds"]),
        "times ours, guaranteed": lambda r: spread(r["times_ours"]),
        "times ours, tuned": lambda r: spread(r["times_tuned"]),
    }
    for graph in part["graphs"]:
        yield _sized(graph["graph"])
        rows = sorted(graph["contenders"], key=lambda r: r["seconds"]["median"])
        yield table(rows, columns)
        yield from _left_out(graph)


def _left_out(graph: Figures) -> Iterator[str]:
    said = {"Not installed": "absent", "Not run, because this graph is too large": "left_out"}
    if words := [f"{w}: {', '.join(graph[key])}." for w, key in said.items() if graph.get(key)]:
        yield " ".join(words)


def _capped(part: Figures) -> Iterator[str]:
    yield "Capped flow"
    yield (
        f"PushFlowCap, sigma = {part['sigma']:g}, joint model. No other library has it, so the "
        f"peers run the same recursion, R = {part['rounds']}, with their own sparse product. The "
        "paper's pseudo-code in plain Python runs only a few rounds; the time for all rounds is "
        "extrapolated in proportion to the nodes, or edges, that send flow, which are counted "
        "exactly."
    )
    columns: Columns = {
        "method": _bold,
        "sources per call": lambda r: str(r["sources_per_call"]),
        "ms per source": lambda r: ms(r["seconds"]),
        "times our R = 100": lambda r: spread(r["times_ours"]),
        "times our fixed point": lambda r: spread(r["times_fixed_point"]),
        "L1 from ours": lambda r: f"{r['l1_from_ours']:.0e}",
    }
    plain: Columns = {
        "plain Python": lambda r: r["name"],
        "measured": lambda r: f"{r['rounds_run']} rounds, {number(r['measured_seconds'])} s",
        "sending flow": lambda r: f"{r['pushes_measured']:,} {r['unit']}",
        "in all rounds": lambda r: f"{r['pushes_of_all_rounds']:,} {r['unit']}",
        "s for all rounds": lambda r: number(r["seconds_of_all_rounds"]),
        "times ours": lambda r: number(r["times_ours"]),
    }
    for graph in part["graphs"]:
        yield _sized(graph["graph"]) + ": capped"
        yield table(graph["contenders"], columns)
        yield from _left_out(graph)
        if "plain_python" in graph:
            yield table(graph["plain_python"], plain)


def _one_source(part: Figures) -> Iterator[str]:
    yield "One source"
    yield f"One source in a warm process, compared with its share of a batch of {part['batch']}."
    columns: Columns = {
        "call": lambda r: r["name"],
        "ms alone": lambda r: ms(r["one"]),
        "ms, share of a batch": lambda r: ms(r["share"]),
        "ratio": lambda r: spread(r["one_over_share"]),
    }
    yield table(named(part["calls"]), columns)


def _two_hop(part: Figures) -> Iterator[str]:
    yield "Two-hop"
    columns: Columns = {
        "method": _bold,
        "ms per source": lambda r: ms(r["seconds"]),
        "times our sums": lambda r: spread(r["times_ours"]),
    }
    for graph in part["graphs"]:
        yield _sized(graph["graph"]) + ": two-hop"
        yield table(graph["contenders"], columns)


def _threads(part: Figures) -> Iterator[str]:
    yield "Threads"
    yield f"{part['blocks']} blocks of sources with one thread and with two, wall time."
    columns: Columns = {
        "call": lambda r: r["name"],
        "s, one thread": lambda r: seconds(r["one"]),
        "s, two threads": lambda r: seconds(r["two"]),
        "speedup": lambda r: spread(r["speedup"]),
    }
    yield table(named(part["calls"]), columns)


def _noise(part: Figures) -> Iterator[str]:
    yield "Noise"
    yield (
        "Our exact discrete sampler with a secure key stream, compared with numpy's floating-point "
        "Laplace noise."
    )
    columns: Columns = {
        "task": lambda r: r["name"],
        "values": lambda r: f"{int(r['size']):,}",
        "ms": lambda r: ms(r["seconds"]),
        "speed over numpy": lambda r: spread(r["speed_to_numpy"]),
    }
    sizes = part["sizes"].items()
    yield table([{"size": size, **row} for size, rows in sizes for row in named(rows)], columns)
    if part.get("opendp_10000"):
        yield f"OpenDP's discrete Laplace, 10,000 values: {ms(part['opendp_10000'])} ms."


def _reading(part: Figures) -> Iterator[str]:
    yield "Reading"
    yield (
        f"From a file with {part['edges']:,} edges in random order to a `Graph`, compared with "
        "polars, which only parses the file. A saved folder opens in "
        f"{ms(part['folder']['seconds'])} ms."
    )
    columns: Columns = {
        "file": lambda r: r["what"],
        "polars' threads": lambda r: str(r["polars_threads"]),
        "CPU s": lambda r: seconds(r["cpu"]["edgeveil"]),
        "CPU ratio": lambda r: spread(r["cpu"]["ratio"]),
        "wall s": lambda r: seconds(r["wall"]["edgeveil"]),
        "wall ratio": lambda r: spread(r["wall"]["ratio"]),
        "peak GB": lambda r: gigabytes(r["peak_bytes"]),
    }
    yield table(part["files"], columns)


def _startup(part: Figures) -> Iterator[str]:
    yield "Start"
    yield "New processes; files and compiled loops are cached."
    columns: Columns = {
        "command": lambda r: f"`{r['name']}`",
        "best wall s": lambda r: number(r["wall"]["min"]),
        "median wall s": lambda r: seconds(r["wall"]),
        "best CPU s": lambda r: number(r["cpu"]["min"]),
    }
    yield table(named(part["commands"]), columns)


def _scale(part: Figures) -> Iterator[str]:
    yield "Scale"
    yield (
        "Generated power-law graphs of average degree 20, saved and opened memory-mapped: CPU "
        "milliseconds per source in a full block, and the peak memory of a process that does only "
        "this (including mapped pages of the graph). *Bare reading* is the limit set by memory: "
        "it reads one cache line for every stored entry, as a sweep must, and does nothing else. "
        "It grows faster than the number of edges because the small graph fits into a cache."
    )

    def both(call: str) -> Callable[[Figures], str]:
        return lambda r: (
            f"{ms(r['calls'][call]['seconds'])} ms, {gigabytes(r['calls'][call]['peak_bytes'])} GB"
        )

    columns: Columns = {
        "edges": lambda r: f"{r['edges']:,}",
        "building": lambda r: f"{number(r['build_seconds'])} s, {gigabytes(r['peak_bytes'])} GB",
        **{call: both(call) for call in part["sizes"][0]["calls"]},
        "bare reading": lambda r: f"{number(r['bare']['seconds_per_row'] * 1e9)} ns per row",
    }
    yield table(part["sizes"], columns)
    if "exponents" in part:
        grows = ", ".join(f"{name} {number(value)}" for name, value in part["exponents"].items())
        yield f"Time grows with the number of edges to the power: {grows}."


def _lists(part: Figures) -> Iterator[str]:
    yield "Lists of suggestions"
    yield (
        "Lists of `Suggest` at epsilon 1 on generated graphs of average degree 20, from the graph "
        "to the names, compared with lists whose noise is drawn for all nodes. A list: CPU time "
        "for members of median degree with about 2,000 friends of friends. All members: wall time "
        "on two threads (above a million members, extrapolated from a million)."
    )
    columns: Columns = {
        "nodes": lambda r: f"{r['nodes']:,}",
        "list of 20, ms": lambda r: ms(r["lazy, 20 places"]),
        "list of 100, ms": lambda r: ms(r["lazy, 100 places"]),
        "times its sums alone": lambda r: spread(r["times_its_sums"]),
        "list of 100, all noise drawn, ms": lambda r: ms(r["dense, 100 places"]),
        "all members, s": lambda r: number(60 * r["all"]["all_members_minutes"]),
        "two threads": lambda r: f"{number(r['all']['two_threads_times_one'])}x",
        "MB beside the graph": lambda r: number(r["all"]["memory_mb_beside_graph_and_degrees"]),
    }
    yield table(part["sizes"].values(), columns)
    small = part["small"]
    yield (
        f"{small['name']} ({small['nodes']:,} nodes, {small['edges']:,} edges): a list of 20 takes "
        f"{ms(small['whole'])} ms, {spread(small['times_its_sums'])} times its sums alone."
    )


def _tail(part: Figures) -> Iterator[str]:
    yield "Noise where it is seen"
    yield (
        "Noise for a row with 2,000 non-zero values; at 250 others, on average, noise alone "
        "exceeds the threshold. CPU ms."
    )
    columns: Columns = {
        "nodes": lambda r: f"{int(r['name']):,}",
        "drawn only where it is seen": lambda r: ms(r["lazy"]),
        "drawn everywhere": lambda r: ms(r["dense"]),
        "numpy's, not private": lambda r: ms(r["numpy, not private"]),
    }
    yield table(named(part["sizes"]), columns)


def _billion(part: Figures) -> Iterator[str]:
    yield "A billion edges"
    yield (
        "A power-law graph with exponent 2.5 and average degree 40, drawn in parts and built with "
        f"{gigabytes(part['memory'])} GB of memory. Lists are those of `edgeveil.suggest` for "
        f"{part['members']:,} random members in one thread, epsilon 1."
    )
    columns: Columns = {
        "edges": lambda r: f"{r['edges']:,}",
        "nodes": lambda r: f"{r['nodes']:,}",
        "building, wall s": lambda r: number(r["building"]["seconds"]),
        "CPU s": lambda r: number(r["building"]["cpu_seconds"]),
        "peak GB": lambda r: gigabytes(r["building"]["peak_bytes"]),
        "disk GB": lambda r: gigabytes(r["building"]["disk_bytes"]),
        "folder GB": lambda r: gigabytes(r["building"]["folder_bytes"]),
        "before the first list, CPU s": lambda r: number(r["lists"]["shared_cpu"]),
        "a list of 20, CPU ms": lambda r: ms(r["lists"]["list_cpu"]),
        "lists, peak GB": lambda r: gigabytes(r["lists"]["peak_bytes"]),
    }
    yield table(part["sizes"], columns)


def _cluster(part: Figures) -> Iterator[str]:
    yield "Ray cluster"
    memory = part["memory"]
    yield (
        f"Lists of 20 for all {part['members']:,} members of a generated graph "
        f"({part['graph']['edges']:,} edges), from the graph to Parquet files, wall time. The "
        f"overhead of a part is {ms(part['part_seconds'])} ms; starting the cluster takes "
        f"{seconds(part['start_seconds'])} s. With {memory['graph']['edges']:,} edges, a worker "
        f"needs {gigabytes(memory['worker_private_bytes'])} GB of its own; the graph, "
        f"{gigabytes(memory['graph_bytes'])} GB, is in the object store once."
    )
    names = {"one": "one Ray worker", "two": "two Ray workers", "threads": "two threads"}
    rows = [{"name": name, "seconds": part[key]} for key, name in names.items()]
    rows[1]["against"] = part["speedup"]
    columns: Columns = {
        "engine": lambda r: r["name"],
        "s": lambda r: seconds(r["seconds"]),
        "times one worker": lambda r: spread(r["against"]),
    }
    yield table(rows, columns)


def _series(part: Figures) -> Iterator[str]:
    yield "Series"
    yield (
        f"Lists of 20 for {part['members']:,} members with {part['edges']:,} edges, written to a "
        "folder; a week later the same, with 1 % new edges and 1 % new members. Peak memory: "
        f"{gigabytes(part['peak_bytes'])} GB."
    )
    names = {"first": "first week", "second": "a week later"}
    rows = [{"name": name, "key": key} for key, name in names.items()]
    columns: Columns = {
        "refresh": lambda r: r["name"],
        "wall s": lambda r: number(part[f"{r['key']}_seconds"]),
        "CPU s": lambda r: number(part[f"{r['key']}_cpu_seconds"]),
        "without writing, CPU s": lambda r: number(part[f"{r['key']}_refresh_cpu_seconds"]),
        "windows": lambda r: f"{part[r['key'] + '_windows']:,}",
        "newcomers": lambda r: f"{part[r['key'] + '_newcomers']:,}",
    }
    yield table(rows, columns)


def _ledger(part: Figures) -> Iterator[str]:
    yield "Ledger"
    yield (
        "All members of a campaign are charged in batches of 8,192; in the second campaign, "
        "everybody was charged before. The process was killed at "
        f"{part['kills']['rounds']} random moments, and the ledger verified each time."
    )
    columns: Columns = {
        "store": lambda r: r["store"],
        "members": lambda r: f"{r['members']:,}",
        "first, wall s": lambda r: number(r["first"]["wall_seconds"]),
        "CPU s": lambda r: number(r["first"]["cpu_seconds"]),
        "MB": lambda r: number(r["first"]["bytes"] / 1e6),
        "second, wall s": lambda r: number(r["second"]["wall_seconds"]),
        "CPU s ": lambda r: number(r["second"]["cpu_seconds"]),
        "one balance, ms": lambda r: ms(r["balance_seconds"]),
    }
    rows = [{"store": store, **row} for store, sizes in part["stores"].items() for row in sizes]
    yield table(rows, columns)


def _history(part: Figures) -> Iterator[str]:
    yield "History"
    yield (
        "A snapshot is merged into a history with the same number of edges, from graph folder to "
        "history folder; 1 % of its edges and of its members are new, and ids are in another order."
    )
    columns: Columns = {
        "edges": lambda r: f"{r['edges']:,}",
        "merging, wall s": lambda r: number(r["second_seconds"]),
        "CPU s": lambda r: number(r["second_cpu_seconds"]),
        "own memory, GB": lambda r: gigabytes(r["own_bytes"]),
        "folder, GB": lambda r: gigabytes(r["folder_bytes"]),
        "forgetting a member, wall s": lambda r: number(r["forget_seconds"]),
    }
    yield table(part["sizes"], columns)


def _classify(part: Figures) -> Iterator[str]:
    yield "Classification"
    yield (
        f"`classify` with {part['classes']} classes, {part['labelled']:.0%} of the nodes labelled, "
        "no features, two rounds with their fit, from labels to predictions. Arrays: the peak "
        "without the graph and without Python, in tables of nodes x classes. Sums: one thread "
        "beside scipy's product of the same rows of the adjacency matrix with a dense table, in "
        "CPU time; two threads give the same values. Noise: beside the bare sampler."
    )
    columns: Columns = {
        "edges": lambda r: f"{r['edges']:,}",
        "nodes": lambda r: f"{r['nodes']:,}",
        "wall s": lambda r: seconds(r["wall"]),
        "CPU s": lambda r: seconds(r["cpu"]),
        "peak, GB": lambda r: gigabytes(r["peak_bytes"]),
        "arrays": lambda r: number(r["arrays"]),
        **{
            name: lambda r, key=key: spread(r["parts"]["ratios"][key])
            for name, key in {
                "sums, times scipy": "sums: times scipy's product",
                "noise, times the sampler": "noise: times the bare sampler",
                "two threads, times one": "two threads: times faster than one",
            }.items()
        },
    }
    yield table(part["sizes"], columns)
    if "exponent" in part:
        yield f"CPU time grows like edges^{part['exponent']:.2f}."


def _service(part: Figures) -> Iterator[str]:
    yield "Service"
    late, bare = part["at_half_load"], part["bare_at_half_load"]
    yield (
        f"{part['members']:,} members, on loopback, compared with an endpoint of the same "
        "framework that does nothing. At half the maximal load with new "
        f"tokens, 99 % of the answers took at most {ms(late['p99_seconds'])} ms (bare endpoint: "
        f"{ms(bare['p99_seconds'])} ms)."
    )
    kinds = {
        "bare endpoint": ("bare", "bare_per_second"),
        "stored lists, known tokens": ("known", "stored_per_second"),
        "stored lists, new tokens, HS256": ("new", "stored_new_per_second"),
        "stored lists, new tokens, EdDSA": ("new_eddsa", "stored_new_eddsa_per_second"),
    }
    rows = [
        {"name": name, "rate": sorted(part[rate]), "cpu": part["cpu_microseconds"][kind]}
        for name, (kind, rate) in kinds.items()
    ]
    columns: Columns = {
        "answer": lambda r: r["name"],
        "per second": lambda r: number(r["rate"][len(r["rate"]) // 2]),
        "µs of CPU": lambda r: number(r["cpu"]),
    }
    yield table(rows, columns)


SECTIONS: dict[str, Callable[[Figures], Iterator[str]]] = {
    "exact": _exact,
    "capped": _capped,
    "one-source": _one_source,
    "two-hop": _two_hop,
    "threads": _threads,
    "noise": _noise,
    "tail": _tail,
    "lists": _lists,
    "reading": _reading,
    "startup": _startup,
    "scale": _scale,
    "billion": _billion,
    "cluster": _cluster,
    "history": _history,
    "series": _series,
    "classify": _classify,
    "ledger": _ledger,
    "service": _service,
}


# -- the overview -------------------------------------------------------------------------


def _line(section: str, what: str, ours: str, beside: str = "") -> Figures:
    return {"section": section, "what": what, "ours": ours, "beside": beside}


def _times(graph: Figures, names: Iterable[str], key: str = "times_ours") -> str:
    """How many times longer the named contenders take, as far as they were run."""
    by_name = {c["name"]: c for c in graph["contenders"]}
    times = [f"{name} {number(by_name[name][key]['median'])}" for name in names if name in by_name]
    return "; ".join(times)


def _exact_lines(part: Figures) -> Iterator[Figures]:
    peers = ("MKL, block, single precision", "scipy, block", "scikit-network, power iteration")
    peers += ("igraph (PRPACK)", "networkx")
    for graph in part["graphs"]:
        ours = next(c for c in graph["contenders"] if c["name"] == "edgeveil")
        what = f"exact PageRank, one row of 64, {graph['graph']['name']}"
        said = f"times as long: {_times(graph, peers)}"
        yield _line("exact-pagerank", what, f"{ms(ours['seconds'])} ms", said)


def _capped_lines(part: Figures) -> Iterator[Figures]:
    for graph in part["graphs"]:
        ours, fixed = graph["contenders"][:2]
        said = f"times as long: {_times(graph, ('MKL, block', 'scipy, block'))}"
        if "plain_python" in graph:
            fastest = min(r["times_ours"] for r in graph["plain_python"])
            said += f"; plain Python {number(fastest)}"
        what = f"capped flow, 100 rounds, {graph['graph']['name']}"
        took = f"{ms(ours['seconds'])} ms; fixed point {ms(fixed['seconds'])} ms"
        yield _line("capped-flow", what, took, said)


def _noise_lines(part: Figures) -> Iterator[Figures]:
    size, rows = list(part["sizes"].items())[-1]
    ours = rows["discrete_laplace"]
    said = f"times as long: numpy, not exact, {number(ours['speed_to_numpy']['median'])}"
    what = f"exact Laplace noise, {int(size):,} values"
    yield _line("noise", what, f"{ms(ours['seconds'])} ms", said)


def _lists_lines(part: Figures) -> Iterator[Figures]:
    for row in part["sizes"].values():
        took = f"{ms(row['lazy, 20 places'])} ms"
        everybody = (
            f"all members on two threads: {number(60 * row['all']['all_members_minutes'])} s"
        )
        what = f"a list of 20, {row['nodes']:,} nodes"
        yield _line("lists-of-suggestions", what, took, everybody)


def _reading_lines(part: Figures) -> Iterator[Figures]:
    for row in part["files"]:
        if row["polars_threads"] != "all":
            said = (
                f"times as long: polars, parsing only, {number(1 / row['cpu']['ratio']['median'])}"
            )
            what = f"reading {part['edges']:,} edges, {row['what']}"
            yield _line("reading", what, f"{seconds(row['cpu']['edgeveil'])} s", said)


def _startup_lines(part: Figures) -> Iterator[Figures]:
    for row in named(part["commands"]):
        if row["name"].startswith("edgeveil"):
            yield _line("start", f"`{row['name']}`, wall time", f"{seconds(row['wall'])} s")


def _billion_lines(part: Figures) -> Iterator[Figures]:
    row = part["sizes"][-1]
    took = f"{number(row['building']['seconds'])} s, {gigabytes(row['building']['peak_bytes'])} GB"
    said = f"then a list: {ms(row['lists']['list_cpu'])} ms"
    yield _line("a-billion-edges", f"building {row['edges']:,} edges, wall time", took, said)


def _cluster_lines(part: Figures) -> Iterator[Figures]:
    said = f"times as long: one worker {number(part['speedup']['median'])}"
    took = f"{seconds(part['two'])} s"
    yield _line("ray-cluster", f"{part['members']:,} lists, two Ray workers, wall time", took, said)


def _series_lines(part: Figures) -> Iterator[Figures]:
    took = f"{number(part['second_seconds'])} s"
    said = f"the first week: {number(part['first_seconds'])} s"
    yield _line("series", f"weekly refresh, {part['members']:,} members, wall time", took, said)


def _classify_lines(part: Figures) -> Iterator[Figures]:
    for row in part["sizes"]:
        took = f"{seconds(row['wall'])} s, {gigabytes(row['peak_bytes'])} GB"
        ratio = row["parts"]["ratios"]["sums: times scipy's product"]
        said = f"its sums, times scipy's product: {number(ratio['median'])}"
        what = f"classes of {row['nodes']:,} nodes, {row['edges']:,} edges, wall time"
        yield _line("classification", what, took, said)


def _ledger_lines(part: Figures) -> Iterator[Figures]:
    row = part["stores"]["SQLite"][-1]
    took = f"{number(row['first']['wall_seconds'])} s"
    said = f"a balance: {ms(row['balance_seconds'])} ms"
    yield _line("ledger", f"charging {row['members']:,} members, wall time", took, said)


def _service_lines(part: Figures) -> Iterator[Figures]:
    rates = {key: sorted(part[key])[len(part[key]) // 2] for key in
             ("stored_per_second", "bare_per_second")}  # fmt: skip
    ours, bare = (f"{number(rate)} a second" for rate in rates.values())
    yield _line("service", "stored lists over HTTP", ours, f"bare endpoint: {bare}")


LINES: dict[str, Callable[[Figures], Iterator[Figures]]] = {
    "exact": _exact_lines,
    "capped": _capped_lines,
    "noise": _noise_lines,
    "lists": _lists_lines,
    "reading": _reading_lines,
    "startup": _startup_lines,
    "billion": _billion_lines,
    "cluster": _cluster_lines,
    "series": _series_lines,
    "classify": _classify_lines,
    "ledger": _ledger_lines,
    "service": _service_lines,
}
