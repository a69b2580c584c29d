"""A contest on several data sets, kept cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from edgeveil.cli.output import counting
from edgeveil.evaluation.contest import Contender, RankingScores, Scores, measure_contest
from edgeveil.evaluation.measurements import Result
from edgeveil.graph.datasets import LabelledGraph
from experiments.cells import Cells

__all__ = ["as_json", "from_json", "measure_contests"]


def measure_contests(
    experiment: str,
    contenders: Sequence[Contender],
    datasets: Mapping[str, LabelledGraph],
    settings: dict[str, Any],
    cells: Cells,
) -> list[Result]:
    """Every contender on every data set; of the settings, those of `measure_contest` count."""
    options = {name: settings[name] for name in ("k", "min_degree", "restart", "seed")}

    def keep(cell: str, compute: Callable[[], RankingScores]) -> RankingScores:
        return from_json(cells.get(cell, lambda: as_json(compute())))

    results: list[Result] = []
    for name, data in datasets.items():
        with counting(f"{experiment}, {name}") as progress:
            results += measure_contest(
                name,
                data.graph,
                contenders,
                experiment=experiment,
                keep=keep,
                progress=progress,
                **options,
            )
    return results


def as_json(measured: RankingScores) -> dict[str, Any]:
    """Plain data for a part file."""
    scores = {"/".join(key): values.round(6).tolist() for key, values in measured.scores.items()}
    return {"scores": scores, "shared": measured.shared}


def from_json(part: dict[str, Any]) -> RankingScores:
    """What `as_json` made plain data of."""
    scores: Scores = {}
    for name, values in part["scores"].items():
        metric, scope = name.split("/", 1)
        scores[metric, scope] = np.array(values)
    return RankingScores(scores, bool(part["shared"]))
