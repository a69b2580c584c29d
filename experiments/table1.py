"""Table 1: sizes of the data sets, recounted beside what the paper prints."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from edgeveil.evaluation.measurements import Result
from edgeveil.graph.datasets import LabelledGraph
from experiments.cells import Cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "measure", "settings"]

_PAPER = {
    "POS": {
        "nodes": 5_000,
        "edges": 185_000,
        "labels": 40,
        "average degree": 38.7,
        "density": 8.1e-3,
    },
    "BlogCatalog": {
        "nodes": 10_000,
        "edges": 334_000,
        "labels": 39,
        "average degree": 64.8,
        "density": 6.3e-3,
    },
}


def settings(quick: bool) -> dict[str, Any]:
    """There is nothing to choose."""
    return {}


def measure(
    datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """Count."""
    results = []
    for name, data in datasets.items():
        counts = cells.get(name, partial(_counts, data))
        results += [
            Result.of(
                value,
                experiment="table1",
                dataset=name,
                mechanism="none",
                epsilon=None,
                metric=metric,
                scope="all",
                n_sources=data.graph.n_nodes,
                repeats=1,
                paper_value=_PAPER.get(name, {}).get(metric),
            )
            for metric, value in counts.items()
        ]
    return results


def _counts(data: LabelledGraph) -> dict[str, float]:
    n, edges = data.graph.n_nodes, data.graph.n_edges
    return {
        "nodes": n,
        "edges": edges,
        "entries read": data.graph.read_report.entries,
        "self-loops dropped": data.graph.read_report.self_loops,
        "labels": len(data.label_names),
        "average degree": 2 * edges / n,
        "density": 2 * edges / (n * (n - 1)),
        "isolated nodes": int((data.graph.degrees == 0).sum()),
        "nodes of degree >= 50": int((data.graph.degrees >= 50).sum()),
    }


def draw(results: list[Result]) -> Figure:
    """The table as a picture."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(r.dataset for r in results))
    metrics = list(dict.fromkeys(r.metric for r in results))
    value = {(r.dataset, r.metric): r for r in results}
    header = ["", *(f"{d}, {who}" for d in datasets for who in ("ours", "paper"))]
    body = []
    for metric in metrics:
        line = [metric]
        for dataset in datasets:
            result = value[dataset, metric]
            paper = "" if result.paper_value is None else _number(result.paper_value)
            line += [_number(result.mean), paper]
        body.append(line)
    figure = Figure(figsize=(1.9 * len(header), 0.3 * (len(body) + 1)))
    axes = figure.add_subplot()
    axes.axis("off")
    table = axes.table(cellText=body, colLabels=header, loc="center", edges="horizontal")
    for column in range(len(header)):
        table[0, column].set_text_props(horizontalalignment="right")
    table.scale(1, 1.4)
    return figure


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
