"""Beyond the paper: our private embedding against what a member can embed without any budget.

The protocol of Figure 2: the same splits, classifier and, but for ours and its floor, dimension,
and the paper's mechanism with the same noise, so that lines both experiments have are equal to
the last digit. Width costs no budget: ours has its default. Split r has
its own release of every private embedding. As there, one classifier on the embeddings of all
nodes is a measurement of utility and not a joint-private release.

The floor costs nothing: a function of the member's own list alone. There are three: the weights
of InstantEmbedding, the same scaled to unit length, and equal weights scaled to unit length,
which is `TwoHopEmbedding` without its second hop. Scaling is free, so the paper's embedding and
the non-private one are measured with it as well. Scope "above the floor" is the difference to
the best of all floors (by the mean over the splits), split by split: the splits' own spread,
which all contenders share, drops out of its interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from edgeveil.datasets import LabelledGraph
from edgeveil.evaluation.results import Result
from edgeveil.mechanisms import TwoHopEmbedding
from edgeveil.mechanisms.run import rows_of
from experiments._classification import (
    METRICS,
    Embeddings,
    Matrix,
    Score,
    Study,
    hash_key,
    measure_studies,
    sign_matrix,
    unit_length,
)
from experiments.cells import Cells
from experiments.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    VERMILION,
    draw_panel,
    legend_below,
    select,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "measure", "settings"]

_OURS, _PAPER, _PAPER_UNIT = (
    "two-hop-embedding",
    "instant-embedding",
    "instant-embedding, unit length",
)
_CURVES = {
    _OURS: (GREEN, "o", "two-hop embedding (recommended)"),
    _PAPER: (BLUE, "D", "DP InstantEmbedding (the paper's)"),
    _PAPER_UNIT: (SKY, "v", "the paper's, scaled to unit length"),
}
_LEVELS = {
    "own list, equal weights, unit length": (VERMILION, "--"),
    "own list, unit length": (ORANGE, "-."),
    "own list": (ORANGE, ":"),
    "majority labels": (GREY, ":"),
    "non-private": (BLACK, "-"),
    "non-private, unit length": (BLACK, "--"),
}
_ABOVE = "above the floor"


def settings(quick: bool) -> dict[str, Any]:
    """Joint model; the paper's parameters for the paper's mechanism, defaults for ours."""
    return {
        "datasets": ["POS"] if quick else None,
        "epsilons": [0.1, 1.0, 10.0] if quick else [0.1, 0.5, 1.0, 3.0, 5.0, 10.0],
        "splits": 2 if quick else 5,
        "train": 0.5,
        "dimension": 256,
        "own_dimension": TwoHopEmbedding(epsilon=1.0).dimension,
        "sigma": 1e-6,
        "rounds": 100,
        "restart": 0.15,
        "prepush": True,
        "bound": "paper",
        "seed": 0,
    }


def measure(
    datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """Floors, the non-private embedding, the paper's and ours on every data set."""
    return measure_studies(_Study, datasets, settings, cells)


_Line = tuple[str, float, Score]  # one embedding at one epsilon, and its F1 on a split


class _Study(Study):
    """All measurements on one data set."""

    experiment = "embeddings"

    @property
    def size(self) -> int:
        """How many cells."""
        lines = len(_LEVELS) + len(_CURVES) * len(self.settings["epsilons"])
        return 2 * len(self.blocks()) + lines * len(self.splits)

    def results(self) -> Iterator[Result]:
        """Every line, then every line that is no floor against the best floor."""
        found = {
            (label, epsilon): self.scores(label, epsilon, score)
            for label, epsilon, score in self._lines()
        }
        for (label, epsilon), scores in found.items():
            for metric, values in scores.items():
                yield self.result(label, epsilon, metric, values)
        for metric in METRICS:
            floors = [s[metric] for (_, epsilon), s in found.items() if epsilon == 0]
            best = max(floors, key=lambda values: float(values.mean()))
            for (label, epsilon), scores in found.items():
                if epsilon > 0:
                    above = scores[metric] - best
                    yield self.result(label, epsilon, metric, above, scope=_ABOVE)

    def _lines(self) -> Iterator[_Line]:
        """What needs no budget first."""
        own, full, flow = self.own_list(), self.exact(), self.papers_flow()
        yield "majority labels", 0.0, self.majority
        for label, epsilon, fixed in (
            ("own list", 0.0, own),
            ("own list, unit length", 0.0, unit_length(own)),
            ("non-private", np.inf, full),
            ("non-private, unit length", np.inf, unit_length(full)),
        ):
            yield label, epsilon, partial(self.classified_as, fixed)
        friends = partial(self.classified, self._friends_hashed)
        yield "own list, equal weights, unit length", 0.0, friends
        for epsilon in self.settings["epsilons"]:
            for label, embedding in (
                (_PAPER, partial(self.papers_embedding, flow, epsilon)),
                (_PAPER_UNIT, partial(self._paper_unit, flow, epsilon)),
                (_OURS, partial(self._ours, epsilon)),
            ):
                yield label, epsilon, partial(self.classified, embedding)

    def _paper_unit(self, flow: Embeddings, epsilon: float, split: int) -> Matrix:
        return unit_length(self.papers_embedding(flow, epsilon, split))

    def _ours(self, epsilon: float, split: int) -> sp.csr_array:
        mechanism = TwoHopEmbedding(
            epsilon=epsilon,
            dimension=self.settings["own_dimension"],
            hash_key=hash_key(split),
        )
        stream = self.noise.derive(_OURS, f"{epsilon:g}").derive("repeat", split)
        return sp.csr_array(rows_of(mechanism, self.graph, range(self.graph.n_nodes), stream))

    def _friends_hashed(self, split: int) -> sp.csr_array:
        """Every friend with weight 1, in its dimension with its sign; rows of unit length."""
        signs = sign_matrix(self.graph.nodes, self.settings["own_dimension"], split)
        return sp.csr_array(unit_length((self.graph.adjacency() @ signs).toarray()))


def draw(results: list[Result]) -> Figure:
    """Columns are data sets; above Micro-F1, below what of it the budget has bought."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(r.dataset for r in results))
    figure = Figure(figsize=(5.2 * len(datasets), 6.6))
    grid = figure.subplots(2, len(datasets), squeeze=False, sharex=True)
    for i, scope in enumerate(("all", _ABOVE)):
        for axes, dataset in zip(grid[i], datasets, strict=True):
            here = select(results, dataset=dataset, metric="micro-F1 x 100", scope=scope)
            draw_panel(axes, here, _CURVES, _LEVELS if scope == "all" else {})
            if scope == "all":
                axes.set_title(f"{dataset}: Micro-F1 x 100")
            else:
                axes.axhline(0, color=GREY, linewidth=1)
                axes.set_title(f"{dataset}: the same, above the best floor (epsilon = 0)")
                axes.set_xlabel("epsilon")
            axes.set_xscale("log")
    legend_below(
        figure,
        grid[0],
        columns=2,
        title="Shaded: 95 % intervals over the splits; below, of the difference on each split.",
    )
    return figure
