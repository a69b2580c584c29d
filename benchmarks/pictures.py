"""Pictures of the figures: bars of exact PageRank per graph, and time against edges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.markdown import number

__all__ = ["STEPS", "draw"]

OURS, PEER, SAME, WEAK, INK = "#0f6b5c", "#9aa5b1", "#5b8fb9", "#d9b8a7", "#26323d"
COLOURS = {"ours": OURS, "peer": PEER, "other method": SAME}
LINES = {"exact": "#0f6b5c", "capped": "#c8553d", "fixed point": "#588bae", "two-hop": "#8a6fb0"}

Figures = dict[str, Any]


def draw(figures: Figures, folder: Path) -> None:
    """Write what the figures have parts for, as SVG, the same bytes from the same figures."""
    import matplotlib as mpl

    mpl.use("svg")
    style = {
        "svg.hashsalt": "edgeveil",
        "font.family": "DejaVu Sans",
        "font.size": 10,
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with mpl.rc_context(style):
        if "exact" in figures["parts"]:
            part = figures["parts"]["exact"]
            for graph, size in zip(part["graphs"], ("small", "large"), strict=False):
                _bars(graph, part["error_wanted"], folder / f"exact-{size}.svg")
        if "scale" in figures["parts"]:
            _scale(figures["parts"]["scale"], folder / "scale.svg")
        if "billion" in figures["parts"]:
            _billion(figures["parts"]["billion"], folder / "billion.svg")
        if "service" in figures["parts"]:
            _service(figures["parts"]["service"], folder / "service.svg")
        if "lists" in figures["parts"]:
            _lists(figures, folder / "lists.svg")


def _bars(graph: Figures, wanted: float, file: Path) -> None:
    from matplotlib import pyplot as plt

    rows = sorted(graph["contenders"], key=lambda c: -c["seconds"]["median"])
    figure, axes = plt.subplots(figsize=(10.4, 0.4 * len(rows) + 1.5), layout="constrained")
    for y, row in enumerate(rows):
        seconds, missed = row["seconds"], row["error"] > wanted
        middle = seconds["median"] * 1e3
        axes.barh(y, middle, color=WEAK if missed else COLOURS[row["kind"]], height=0.68)
        axes.plot([seconds["min"] * 1e3, seconds["max"] * 1e3], [y, y], color=INK, lw=1)
        said = f"{number(middle)} ms"
        if row["name"] != "edgeveil":
            said += f"   {number(row['times_ours']['median'])}×"
        if missed:
            said += f"   error {row['error']:.0e}"
        bold = "bold" if row["kind"] == "ours" else "normal"
        end = max(middle, seconds["max"] * 1e3)
        axes.annotate(said, (end, y), (5, 0), textcoords="offset points", va="center", weight=bold)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_weight("bold" if row["kind"] == "ours" else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set_xscale("log")
    times = [row["seconds"]["median"] * 1e3 for row in rows]
    axes.set_xlim(min(times) / 3, max(times) * 30)
    axes.set_xlabel("CPU ms per source, logarithmic; × = times edgeveil's")
    about = graph["graph"]
    figure.suptitle(
        f"Exact PageRank, L1 error ≤ {wanted:g}: {about['name']}, "
        f"{about['nodes']:,} nodes, {about['edges']:,} edges",
        x=0.01,
        ha="left",
        fontsize=11,
        weight="bold",
    )
    handles = [plt.Rectangle((0, 0), 1, 1, color=c) for c in (OURS, PEER, SAME, WEAK)]
    names = ["edgeveil", "peer", "another method on scipy's product", "peer, misses the error"]
    kinds = {row["kind"] for row in rows}
    misses = any(row["error"] > wanted for row in rows)
    shown = [True, "peer" in kinds, "other method" in kinds, misses]
    axes.legend(
        [h for h, use in zip(handles, shown, strict=True) if use],
        [n for n, use in zip(names, shown, strict=True) if use],
        loc="upper right",
        frameon=False,
        fontsize=9,
    )
    _save(figure, file)


def _scale(part: Figures, file: Path) -> None:
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 4.2), layout="constrained")
    edges = [row["edges"] for row in part["sizes"]]
    for what, colour in LINES.items():
        seconds = [row["calls"][what]["seconds"]["median"] for row in part["sizes"]]
        memory = [row["calls"][what]["peak_bytes"] / 2**30 for row in part["sizes"]]
        name = {"capped": "capped, R = 100", "exact": "exact PageRank"}.get(what, what)
        if "exponents" in part:
            name += f": edges^{part['exponents'][what]:.2f}"
        left.plot(edges, seconds, "o-", color=colour, lw=2, ms=5, label=name)
        right.plot(edges, memory, "o-", color=colour, lw=2, ms=5)
    built = [row["build_seconds"] for row in part["sizes"]]
    left.plot(edges, built, "s--", color=PEER, lw=1.5, ms=4, label="building, in all")
    needed = [row["peak_bytes"] / 2**30 for row in part["sizes"]]
    right.plot(edges, needed, "s--", color=PEER, lw=1.5, ms=4, label="building")
    size = [row["graph_bytes"] / 2**30 for row in part["sizes"]]
    right.plot(edges, size, ":", color=INK, lw=1.5, label="the graph itself")
    for axes, label in ((left, "CPU seconds per source"), (right, "peak memory, GB")):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("edges")
        axes.set_xticks(edges, [_short(count) for count in edges])
        axes.minorticks_off()
        axes.set_title(label, loc="left", fontsize=10.5, weight="bold")
        axes.grid(alpha=0.25, which="major")
        axes.margins(y=0.12)
        axes.legend(frameon=False, fontsize=8.5, loc="upper left")
    _save(figure, file)


def _lists(figures: Figures, file: Path) -> None:
    """Time of one list against the number of nodes, lazily and densely, and the machine's facts."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    part, machine = figures["parts"]["lists"], figures["machine"]
    rows = list(part["sizes"].values())
    nodes = [row["nodes"] for row in rows]
    for name, colour in (
        ("dense, 100 places", PEER), ("lazy, 100 places", OURS), ("lazy, 20 places", SAME)
    ):  # fmt: skip
        times = [row[name]["median"] * 1e3 for row in rows]
        axes.plot(nodes, times, "o-", color=colour, lw=2, ms=5, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(nodes, [_short(count) for count in nodes])
    axes.minorticks_off()
    axes.set_xlabel("nodes")
    axes.set_title(
        "CPU ms of a list, whole mechanism, member of median degree\n"
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, "
        f"Python {machine['python']}, load at start {part['load_at_start']}",
        loc="left",
        fontsize=9.5,
    )
    axes.grid(alpha=0.25, which="major")
    axes.legend(frameon=False, fontsize=8.5)
    _save(figure, file)


def _service(part: Figures, file: Path) -> None:
    """Requests a second, a bar for each round: a bare endpoint, stored lists, first lists."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 2.6), layout="constrained")
    shown = {
        "bare endpoint": (part["bare_per_second"], PEER),
        "stored lists": (part["stored_per_second"], OURS),
        "the same, new tokens": (part.get("stored_new_per_second", ()), OURS),
        "first lists": ([part["first_lists_per_second"]], SAME),
    }
    shown = {name: bars for name, bars in shown.items() if bars[0]}
    for y, (values, colour) in enumerate(shown.values()):
        for i, value in enumerate(values):
            height = 0.8 / len(values)
            axes.barh(y - 0.4 + (i + 0.5) * height, value, height * 0.85, color=colour)
    axes.set_yticks(range(len(shown)), list(shown))
    axes.invert_yaxis()
    axes.set_title(
        f"requests a second, {part['members']:,} members; p99 at half load "
        f"{part['at_half_load']['p99_seconds'] * 1e3:.1f} ms",
        loc="left",
        fontsize=9.5,
    )
    _save(figure, file)


STEPS = {
    "parts read": OURS,
    "pieces counted": SAME,
    "buckets of rows": "#c8553d",
    "folder described": WEAK,
}


def _billion(part: Figures, file: Path) -> None:
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.6), layout="constrained")
    sizes = part["sizes"]
    names = [f"{_short(row['edges'])} edges" for row in sizes]
    for y, row in enumerate(sizes):
        start = 0.0
        for step, colour in STEPS.items():
            width = row["building"]["steps"].get(step, 0.0) / row["edges"] * 1e9
            left.barh(y, width, left=start, color=colour, height=0.6, label=step if not y else None)
            start += width
        said = f"{row['building']['seconds']:.0f} s"
        left.annotate(said, (start, y), (5, 0), textcoords="offset points", va="center")
    left.set_title("building: ns of wall time per edge", loc="left", fontsize=10.5, weight="bold")
    left.legend(frameon=False, fontsize=8.5, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncol=2)
    left.set_yticks(range(len(sizes)), names)
    left.margins(x=0.12)
    shown = {
        "building": [row["building"]["peak_bytes"] for row in sizes],
        "lists": [row["lists"]["peak_bytes"] for row in sizes],
        "the graph folder": [row["building"]["folder_bytes"] for row in sizes],
    }
    for (name, values), colour in zip(shown.items(), (OURS, "#8a6fb0", PEER), strict=True):
        right.plot([row["edges"] for row in sizes], [v / 1e9 for v in values], "o-",
                   color=colour, lw=2, ms=5, label=name)  # fmt: skip
    right.axhline(part["memory"] / 1e9, color=INK, lw=1, ls=":", label="memory allowed")
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xticks([row["edges"] for row in sizes], names)
    right.minorticks_off()
    right.set_title("peak memory, GB", loc="left", fontsize=10.5, weight="bold")
    right.grid(alpha=0.25, which="major")
    right.legend(frameon=False, fontsize=8.5, loc="lower right")
    _save(figure, file)


def _short(count: int) -> str:
    if count >= 1e9:
        return f"{count / 1e9:.3g} billion"
    return f"{count / 1e6:.3g}M" if count >= 1e5 else f"{count:,}"


def _save(figure: Any, file: Path) -> None:
    from matplotlib import pyplot as plt

    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
