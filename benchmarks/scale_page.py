"""What docs/scale.md says of a cluster, of a billion edges, and of more on paper: from figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.markdown import table

__all__ = ["draw_and_write", "written"]

Figures = dict[str, Any]

END = "<!-- up to here -->\n"
PLANNED = (10_000_000, 100_000_000, 1_000_000_000)  # nodes
EMPTY = 0.2e9  # bytes of a process with all libraries and a tiny graph


def written(page: str, figures: Figures) -> str:
    """The page with what these figures say, between the marks of their parts."""
    for part, lines in (("billion", _billion), ("cluster", _cluster)):
        if part in figures["parts"]:
            begin = f"<!-- from here on by ./run bench pictures --json .../{part}.json -->\n"
            before, rest = page.split(begin)
            text = "\n".join(lines(figures["parts"][part], figures["machine"]))
            page = before + begin + "\n" + text + "\n\n" + END + rest.split(END, 1)[1]
    return page


def _on(machine: Figures, part: Figures) -> str:
    return (
        f"Measured on {machine['cores']} cores ({machine['processor']}) and {machine['memory_gb']} "
        f"GB, with a load of {part['load_at_start']} from other work at the start"
    )


def _cluster(part: Figures, machine: Figures) -> Iterator[str]:
    """Two workers against one, and what they cost."""
    memory = part["memory"]
    yield (
        f"{_on(machine, part)}: lists of 20 for all {part['members']:,} members of a generated "
        f"graph ({part['graph']['edges']:,} edges), from the graph to Parquet files:"
    )
    yield ""
    speedup = part["speedup"]
    against = f"{speedup['median']:.2f} ({speedup['min']:.2f} … {speedup['max']:.2f})"
    cells = [
        ["one Ray worker", _time(part["one"]["median"]), ""],
        ["two Ray workers", _time(part["two"]["median"]), against],
        ["two threads", _time(part["threads"]["median"]), ""],
    ]
    yield from table(["", "wall time", "against one"], cells)
    yield ""
    yield (
        f"A part costs the cluster {_time(part['part_seconds'])} of its own. Starting it and its "
        f"workers takes {_time(part['start_seconds'])}. A worker's own memory on a graph of "
        f"{memory['graph']['edges']:,} edges: {_bytes(memory['worker_private_bytes'])}, the "
        f"libraries included; the graph's {_bytes(memory['graph_bytes'])} are in the store once."
    )


def _billion(part: Figures, machine: Figures) -> Iterator[str]:
    """What was measured, and the plan from it."""
    sizes = part["sizes"]
    smallest, largest = sizes[0], sizes[-1]
    dropped = largest["edges"] - largest["building"]["n_edges"]
    yield (
        f"{_on(machine, part)}. Building was allowed {_bytes(part['memory'])}. {dropped:,} of "
        f"{_short(largest['edges'])} edges are loops or repeats, and dropped. Lists are those of "
        f"`edgeveil.suggest` for {part['members']:,} random members in one thread, at epsilon 1."
    )
    yield ""
    yield from _measured(sizes)
    yield ""
    yield (
        f"While the graph grows {largest['nodes'] // smallest['nodes']} times, the CPU time of a "
        f"list goes from {_time(smallest['lists']['list_cpu'])} to "
        f"{_time(largest['lists']['list_cpu'])}."
    )
    yield ""
    yield "On paper, each number from the largest size above, in proportion to edges or nodes:"
    yield ""
    yield from _planned(largest)


def _measured(sizes: list[Figures]) -> Iterator[str]:
    rows: dict[str, Callable[[Figures], str]] = {
        "nodes": lambda r: f"{r['nodes']:,}",
        "entries stored (both directions)": lambda r: f"{2 * r['building']['n_edges']:,}",
        "edges of the most connected node": lambda r: f"{r['building']['largest_degree']:,}",
        "parts, Parquet": lambda r: _bytes(r["drawing"]["bytes"]),
        "building, wall time": lambda r: _time(r["building"]["seconds"]),
        "building, CPU time": lambda r: _time(r["building"]["cpu_seconds"]),
        "building, peak memory": lambda r: _bytes(r["building"]["peak_bytes"]),
        "building, disk beside the parts": lambda r: _bytes(r["building"]["disk_bytes"]),
        "the folder": lambda r: _bytes(r["building"]["folder_bytes"]),
        "opening, nothing of it in memory": lambda r: _time(r["opening"]["seconds"]["median"]),
        "before the first list, CPU time": lambda r: _time(r["lists"]["shared_cpu"]),
        "a list of 20, CPU time": lambda r: _time(r["lists"]["list_cpu"]),
        "a list of 20, wall time": lambda r: _time(r["lists"]["list_seconds"]),
        "lists, peak memory, mapped pages included": lambda r: _bytes(r["lists"]["peak_bytes"]),
    }
    return _table(rows, sizes, [f"{_short(row['edges'])} edges" for row in sizes])


def _planned(largest: Figures) -> Iterator[str]:
    built, lists = largest["building"], largest["lists"]
    per_edge, per_node = 1 / largest["edges"], 1 / largest["nodes"]
    degree = largest["edges"] / largest["nodes"]
    every = lists["list_cpu"] / 3600
    rows: dict[str, Callable[[int], str]] = {
        "edges": lambda n: _short(round(n * degree)),
        "parts, Parquet": lambda n: _bytes(largest["drawing"]["bytes"] * per_edge * n * degree),
        "disk while building, beside the parts": lambda n: _bytes(
            built["disk_bytes"] * per_edge * n * degree
        ),
        "building, wall time on such a machine": lambda n: _time(
            built["seconds"] * per_edge * n * degree
        ),
        "the folder": lambda n: _bytes(_folder(n, round(2 * n * degree))),
        "before the first list, CPU time": lambda n: _time(lists["shared_cpu"] * per_node * n),
        "memory of a process that makes lists": lambda n: _bytes(
            EMPTY + (lists["peak_bytes"] - EMPTY) * per_node * n
        ),
        "a list of 20, CPU time": lambda n: _time(lists["list_cpu"]),
        "lists for all, core hours": lambda n: f"{every * n:,.0f}",
    }
    return _table(rows, PLANNED, [f"{_short(n)} nodes" for n in PLANNED])


def _folder(nodes: int, entries: int) -> int:
    """Bytes of indices and row starts; these are 64-bit integers where they have to be."""
    return 4 * entries + (4 if entries < 2**31 else 8) * nodes


def _table(rows: dict[str, Callable[[Any], str]], columns: Any, names: list[str]) -> Iterator[str]:
    cells = ([name, *(cell(column) for column in columns)] for name, cell in rows.items())
    return table(["", *names], cells)


def _short(count: int) -> str:
    return f"{count / 1e9:.3g} billion" if count >= 1e9 else f"{count / 1e6:.3g} million"


def _bytes(count: float) -> str:
    return f"{count / 1e9:.3g} GB" if count >= 1e9 else f"{count / 1e6:.3g} MB"


def _time(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.2g} hours"
    if seconds >= 120:
        return f"{seconds / 60:.2g} minutes"
    if seconds >= 1:
        return f"{seconds:.2g} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.1 else f"{seconds * 1e3:.2g} ms"


def draw_and_write(file: Path, root: Path) -> None:
    """Draw the picture of a file of figures, and write into docs/scale.md what they say."""
    from benchmarks.pictures import draw

    figures = json.loads(file.read_text())
    draw(figures, root / "benchmarks" / "results")
    page = root / "docs" / "scale.md"
    page.write_text(written(page.read_text(), figures))
