"""Mechanisms driven through the seam, as the engine does it but without guarantee and price."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from edgeveil.estimate.lists import Evidence
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms import Mechanism
from edgeveil.mechanisms.base import LocalViews, local_views
from edgeveil.mechanisms.run import answer_all, make_rows, rows_of, shared_part
from edgeveil.privacy import _sampler
from edgeveil.privacy.noise import Calibration, NoiseRows, NoiseSource, _split
from edgeveil.privacy.statistic import AnyStatistic, Noised, Statistic, randomise


def run(mechanism: Mechanism, graph: Graph, sources, seed: int | None = 1) -> np.ndarray:
    """Rows of a release with this seed; None: without noise. Evidence as an array of its sums."""
    noise = None if seed is None else NoiseSource.insecure(seed)
    rows = rows_of(mechanism, graph, sources, noise)
    return rows.dense(graph.n_nodes) if isinstance(rows, Evidence) else rows


def run_in_parts(
    mechanism: Mechanism, graph: Graph, sources, seed: int = 1
) -> tuple[Any, np.ndarray, LocalViews]:
    """What everybody learns, the same rows as of `run`, and what the members know."""
    noise = NoiseSource.insecure(seed)
    shared = shared_part(mechanism, graph, noise.derive("shared"))
    rows, views = make_rows(mechanism, graph, shared, sources, noise.derive("rows"))
    return shared, rows, views


def streams_of(noise: NoiseSource, sources) -> NoiseRows:
    """The streams of the sources' rows in a release with this noise, for its first question."""
    return noise.derive("rows").derive("stage", 0).rows(sources)


def noisy_row(values, calibration: Calibration, noises: NoiseRows, i: int) -> np.ndarray:
    """One vector with the noise of one row, word after word."""
    T, a = _split(calibration.scale)
    return _sampler.add_noise(np.array(values), T, a, calibration.step_log2, noises.row(i))


def statistics_of(
    mechanism: Mechanism, graph: Graph, sources, seed: int = 1
) -> list[tuple[AnyStatistic, Noised]]:
    """All that `run` asks of the graph, the shared part first, and what became of it."""
    noise, seen = NoiseSource.insecure(seed), []

    def ask(asked: AnyStatistic, stream: NoiseSource, names=(0,)) -> Noised:
        before = asked
        if isinstance(asked, Statistic):
            before = replace(asked, values=asked.values.copy())
        given = randomise(asked, stream, names)
        seen.append((before, Noised(given.values.copy(), given.scale)))
        return given

    def measured(asked: AnyStatistic, stage: int) -> Noised:
        return ask(asked, noise.derive("rows").derive("stage", stage), sources)

    def shared_round(asked: AnyStatistic, number: int) -> Noised:
        stream = noise.derive("shared")
        return ask(asked, stream.derive("round", number) if number else stream)

    answers = tuple(answer_all(mechanism.shared(graph), shared_round))
    shared = mechanism.fit_shared(answers, graph.nodes)
    views = local_views(graph, sources, mechanism.guarantee(1).model)
    answer_all(mechanism.measure(graph, shared, views), measured)
    return seen


def calibrations_of(mechanism: Mechanism, graph: Graph, sources) -> list[Calibration]:
    """The noise of every row of every statistic, in order."""
    return [
        calibration
        for asked, _ in statistics_of(mechanism, graph, sources)
        for calibration in asked.of_rows()
    ]
