"""Beyond the paper: what a member can embed without any budget, and how much of it a hash loses.

The protocol of Figure 2: the same splits and classifier, and the paper's mechanism with the same
noise, so that lines both experiments have are equal to the last digit. Split r has its own hash and
its own release of every private embedding. As there, one classifier on the embeddings of all nodes
is a measurement of utility and not a joint-private release.

The own list costs nothing (`OwnListEmbedding`): equal weights, unit length, at several widths and
without a hash. Scaling to unit length is free, so the paper's embedding and the non-private one are
measured with it as well. The generated network is sparse, which is where a hash loses most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from edgeveil.evaluation.measurements import Result
from edgeveil.graph.datasets import LabelledGraph, social_network
from edgeveil.mechanisms import OwnListEmbedding
from edgeveil.mechanisms.run import rows_of
from experiments.baselines import PAPER_FLOW
from experiments.cells import Cells
from experiments.embedding_study import (
    Embeddings,
    Matrix,
    Score,
    Study,
    hash_key,
    measure_studies,
    unit_length,
)
from experiments.figures import BLACK, GREEN, GREY, ORANGE, legend_below, select

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "measure", "own_list_of", "settings"]

_PAPER, _PAPER_UNIT = "instant-embedding", "instant-embedding, unit length"
_EXACT, _EXACT_UNIT, _MAJORITY = "non-private", "non-private, unit length", "majority labels"
_LEVELS = {  # name, colour, style
    _EXACT_UNIT: ("InstantEmbedding without privacy, unit length", BLACK, "--"),
    _PAPER_UNIT: ("DP InstantEmbedding (the paper's), unit length", ORANGE, "-."),
    _MAJORITY: ("majority labels", GREY, ":"),
}
_GENERATED = "generated, sparse"


def settings(quick: bool) -> dict[str, Any]:
    """Joint model; the paper's parameters for the paper's mechanism."""
    return {
        "datasets": ["POS", _GENERATED] if quick else None,
        "generated": {"n": 1000 if quick else 5000, "average_degree": 12.0, "seed": 7},
        "epsilons": [0.1, 10.0] if quick else [1.0, 10.0],
        "splits": 2 if quick else 5,
        "train": 0.5,
        "dimension": 256,
        "widths": [256, 1024, 4096],
        "sigma": 1e-6,
        **PAPER_FLOW,
        "seed": 0,
    }


def measure(
    datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """The own list at every width, the non-private embedding and the paper's, on every data set."""
    if settings["generated"] is not None:
        datasets = {**datasets, _GENERATED: social_network(**settings["generated"])}
    return measure_studies(_Study, datasets, settings, cells)


def own_list_of(width: int | None) -> str:
    """What results call the own list at this width; None is without a hash."""
    return "own list, no hash" if width is None else f"own list, {width:,} dimensions"


_Line = tuple[str, float, Score]  # one embedding at one epsilon, and its F1 on a split


class _Study(Study):
    """All measurements on one data set."""

    experiment = "embeddings"

    @property
    def size(self) -> int:
        """How many cells."""
        lines = 3 + len(self._widths) + 2 * len(self.settings["epsilons"])
        return 2 * len(self.blocks()) + lines * len(self.splits)

    @property
    def _widths(self) -> list[int | None]:
        return [*self.settings["widths"], None]

    def results(self) -> Iterator[Result]:
        """Every line."""
        for label, epsilon, score in self._lines():
            for metric, values in self.scores(label, epsilon, score).items():
                yield self.result(label, epsilon, metric, values)

    def _lines(self) -> Iterator[_Line]:
        """What needs no budget first."""
        yield _MAJORITY, 0.0, self.majority
        for width in self._widths:
            score = partial(self.classified, partial(self._own_list, width))
            yield own_list_of(width), 0.0, score
        full, flow = self.exact(), self.papers_flow()
        yield _EXACT, np.inf, partial(self.classified_as, full)
        yield _EXACT_UNIT, np.inf, partial(self.classified_as, unit_length(full))
        for epsilon in self.settings["epsilons"]:
            for label, embedding in (
                (_PAPER, partial(self.papers_embedding, flow, epsilon)),
                (_PAPER_UNIT, partial(self._paper_unit, flow, epsilon)),
            ):
                yield label, epsilon, partial(self.classified, embedding)

    def _paper_unit(self, flow: Embeddings, epsilon: float, split: int) -> Matrix:
        return unit_length(self.papers_embedding(flow, epsilon, split))

    def _own_list(self, width: int | None, split: int) -> sp.csr_array:
        mechanism = OwnListEmbedding.unhashed(self.graph.n_nodes)
        if width is not None:
            mechanism = OwnListEmbedding(dimension=width, hash_key=hash_key(split))
        rows = [sp.csr_array(rows_of(mechanism, self.graph, b, None)) for b in self.blocks()]
        return sp.csr_array(sp.vstack(rows))


def draw(results: list[Result]) -> Figure:
    """Micro-F1 against the dimensions of the own list; private and exact embeddings as levels."""
    from matplotlib.figure import Figure

    results = select(results, metric="micro-F1 x 100")
    datasets = list(dict.fromkeys(r.dataset for r in results))
    labels = list(dict.fromkeys(r.mechanism for r in results if r.mechanism.startswith("own list")))
    ticks = [label.removeprefix("own list, ").removesuffix(" dimensions") for label in labels]
    largest = max(r.epsilon or 0.0 for r in results if r.mechanism == _PAPER_UNIT)
    figure = Figure(figsize=(3.6 * len(datasets), 3.6))
    grid = figure.subplots(1, len(datasets), squeeze=False)[0]
    for axes, dataset in zip(grid, datasets, strict=True):
        here = select(results, dataset=dataset)
        line = [next(r for r in here if r.mechanism == label) for label in labels]
        mean, low, high = np.array([(r.mean, r.low, r.high) for r in line]).T
        name = "own list: epsilon = 0"
        axes.plot(range(len(line)), mean, color=GREEN, marker="o", label=name)
        axes.fill_between(range(len(line)), low, high, color=GREEN, alpha=0.2, linewidth=0)
        for mechanism, (name, colour, style) in _LEVELS.items():
            measured = [r for r in here if r.mechanism == mechanism]
            level = max(measured, key=lambda r: r.epsilon or 0.0)
            more = f", epsilon = {largest:g}" * (mechanism == _PAPER_UNIT)
            axes.axhline(level.mean, color=colour, linestyle=style, label=f"{name}{more}")
        axes.set_xticks(range(len(line)), ticks)
        axes.set_xlabel("dimensions of the own list")
        axes.set_title(f"{dataset}: Micro-F1 x 100")
    title = "Both InstantEmbeddings have 256 dimensions. Shaded: 95 % intervals over the splits."
    legend_below(figure, grid, columns=2, title=title)
    return figure
