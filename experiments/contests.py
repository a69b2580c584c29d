"""A contest on several data sets, kept cell by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgeveil.cli.progress import counting
from edgeveil.datasets import LabelledGraph
from edgeveil.evaluation.contest import Contender, measure_contest
from edgeveil.evaluation.results import Result
from experiments.cells import Cells

__all__ = ["measure_contests"]


def measure_contests(
    experiment: str,
    contenders: Sequence[Contender],
    datasets: Mapping[str, LabelledGraph],
    settings: dict[str, Any],
    cells: Cells,
) -> list[Result]:
    """Every contender on every data set; of the settings, those of `measure_contest` count."""
    options = {name: settings[name] for name in ("k", "min_degree", "restart", "seed")}
    results: list[Result] = []
    for name, data in datasets.items():
        with counting(f"{experiment}, {name}") as progress:
            results += measure_contest(
                name,
                data.graph,
                contenders,
                experiment=experiment,
                keep=cells.get,
                progress=progress,
                **options,
            )
    return results
