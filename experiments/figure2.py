"""Figure 2: node classification from private embeddings against epsilon.

Joint model, sigma = 1e-6, R = 100, prepush, dimension 256, half of the nodes to train on.
Split r has its own training nodes, its own hash and, for the paper's mechanism, its own noise.
Training one classifier on the embeddings of all nodes is a measurement of utility, as in the
paper: it is not a joint-private release of the classifier.

Edge flipping. One flipped graph per epsilon is shared by all sources. PageRank of all sources
on it comes from one Cholesky inverse. In the joint model the source's own edges are true: they
are put into the first step of its walk,

    p_s = restart e_s + (1 - restart) / d_s sum over u in N(s) of p~_u,

where p~_u is the PageRank of u on the shared flipped graph. That is a function of the flipped
graph, which is epsilon-private, and of the edges at s, which the member at s knows: joint
epsilon-private by post-processing, whoever pools rows. It differs from putting the edges
back into the graph (`EdgeFlipping`) only where a walk comes back to s or crosses a changed
degree; the row "edge flipping, first step against exact" says by how much, in L1. The same
flipped graph without any true edge put back (the public model) is measured beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from edgeveil.evaluation.measurements import Result, estimate
from edgeveil.graph.datasets import LabelledGraph
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms import EdgeFlipping
from edgeveil.mechanisms.run import shared_part
from experiments.baselines import PAPER_FLOW
from experiments.cells import Cells
from experiments.classifier import random_embedding
from experiments.embedding_study import (
    Matrix,
    Score,
    Study,
    measure_studies,
    percent,
    unit_length,
)
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
    log_epsilons,
    select,
)
from experiments.flipped_walk import FlippedWalk, all_pairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "measure", "settings", "walk_from_own_edges"]

_PRIVATE, _FLIPPING = "instant-embedding", "edge flipping + InstantEmbedding"
_FLIPPING_PUBLIC = "edge flipping + InstantEmbedding, public"
_CHECK = "edge flipping, first step against exact"
_CURVES = {
    _PRIVATE: (BLUE, "o", "DP InstantEmbedding, joint (the paper's)"),
    _FLIPPING: (VERMILION, "s", "edge flipping + InstantEmbedding, joint"),
    _FLIPPING_PUBLIC: (BLACK, "^", "the same without own edges (public)"),
}
_FLOORS = {
    "non-private": (GREEN, "-"),
    "own list, unit length": (ORANGE, "-."),
    "own list": (ORANGE, ":"),
    "majority labels": (GREY, "--"),
    "random embedding": (SKY, ":"),
}

_PAPER: dict[str, dict[str, dict[float, float]]] = {
    "BlogCatalog": {
        _PRIVATE: {0.01: 16.6939, 0.1: 23.4103, 0.5: 23.5266, 1: 23.5168, 2: 23.5246, 3: 23.5296}
        | {4: 23.5248, 5: 23.6052, 6: 23.5974, 7: 23.6309, 8: 23.5970, 9: 23.5167, 10: 23.5843},
        _FLIPPING: {0.01: 15.4598, 0.1: 15.5202, 1: 14.0937, 2: 12.2169, 3: 11.8794, 4: 12.7143}
        | {5: 14.7460, 6: 18.5687, 7: 22.5679, 8: 26.5911, 9: 29.0269, 10: 30.3027},
        "random embedding": {0: 12.4846},
        "non-private": {np.inf: 30.6802},
    }
}
_PAPER["BlogCatalog"][_FLIPPING_PUBLIC] = _PAPER["BlogCatalog"][_FLIPPING]


def settings(quick: bool) -> dict[str, Any]:
    """Quick: POS only, few epsilons, two splits."""
    return {
        "datasets": ["POS"] if quick else None,
        "epsilons": [0.01, 0.1, 1.0, 10.0]
        if quick
        else [0.01, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0],
        "flipping_epsilons": [1.0, 10.0]
        if quick
        else [0.01, 0.1, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0],
        "splits": 2 if quick else 10,
        "train": 0.5,
        "dimension": 256,
        "sigma": 1e-6,
        **PAPER_FLOW,
        "checked_sources": 32,
        "seed": 0,
    }


def measure(
    datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """Floors, the paper's mechanism and edge flipping on every data set."""
    return measure_studies(_Study, datasets, settings, cells)


class _Study(Study):
    """All measurements on one data set."""

    experiment = "figure2"

    @property
    def size(self) -> int:
        """How many cells."""
        blocks = 2 * len(self.blocks())
        flipping = len(self.settings["flipping_epsilons"])
        lines = len(_FLOORS) + len(self.settings["epsilons"])
        return blocks + lines * len(self.splits) + flipping

    def results(self) -> Iterator[Result]:
        """Floors first, then line by line."""
        yield from self._floors()
        flow = self.papers_flow()
        for epsilon in self.settings["epsilons"]:
            embedding = partial(self.papers_embedding, flow, epsilon)
            yield from self._line(_PRIVATE, epsilon, partial(self.classified, embedding))
        for epsilon in self.settings["flipping_epsilons"]:
            yield from self._flipping(epsilon)

    def _floors(self) -> Iterator[Result]:
        yield from self._line("majority labels", 0.0, self.majority)
        yield from self._line("random embedding", 0.0, partial(self.classified, self._random))
        own, full = self.own_list(), self.exact()
        for label, epsilon, embedding in (
            ("own list", 0.0, own),
            ("own list, unit length", 0.0, unit_length(own)),
            ("non-private", np.inf, full),
        ):
            yield from self._line(label, epsilon, partial(self.classified_as, embedding))

    def _random(self, split: int) -> Matrix:
        return random_embedding(self.graph.n_nodes, self.settings["dimension"], seed=split)

    def _flipping(self, epsilon: float) -> Iterator[Result]:
        """One flipped graph, a cell; how far the first-step walk is from the exact one."""
        cell = f"{self.name} / flipped {epsilon:g} / {len(self.splits)} splits"
        scores = self.cells.get(cell, partial(self._flipped, epsilon))
        for label in (_FLIPPING, _FLIPPING_PUBLIC):
            yield from self._point(label, epsilon, percent(scores[label]))
        yield Result.of(
            estimate(scores[_CHECK]),
            experiment=self.experiment,
            dataset=self.name,
            mechanism=_CHECK,
            epsilon=epsilon,
            metric="L1 distance",
            scope="all",
            n_sources=len(scores[_CHECK]),
            repeats=1,
        )

    def _flipped(self, epsilon: float) -> dict[str, Any]:
        restart = self.settings["restart"]
        mechanism = EdgeFlipping(epsilon=epsilon, restart=restart)
        shared = self.noise.derive("flipping", f"{epsilon:g}").derive("shared")
        flipped = shared_part(mechanism, self.graph, shared)
        public = all_pairs(flipped, restart=restart)
        joint = walk_from_own_edges(self.graph, public, restart=restart)
        few = _spread(self.graph.n_nodes, self.settings["checked_sources"])
        exact = FlippedWalk(self.graph, flipped, restart=restart, tol=mechanism.tol).rows(few)
        return {
            _FLIPPING: self._each_split(joint),
            _FLIPPING_PUBLIC: self._each_split(public),
            _CHECK: np.abs(joint[few] - exact).sum(axis=1).tolist(),
        }

    def _each_split(self, rows: npt.NDArray[np.float32]) -> list[dict[str, float]]:
        parts = [self.hashed(rows[b.start : b.stop].astype(np.float64)) for b in self.blocks()]
        embeddings = np.vstack(parts)
        return [asdict(self.classified_as(embeddings, split)) for split in self.splits]

    def _line(self, label: str, epsilon: float, score: Score) -> Iterator[Result]:
        yield from self._point(label, epsilon, self.scores(label, epsilon, score))

    def _point(self, label: str, epsilon: float, scores: dict[str, Matrix]) -> Iterator[Result]:
        """One point of the figure, beside what the paper prints."""
        paper = _PAPER.get(self.name, {}).get(label, {}).get(epsilon)
        for metric, values in scores.items():
            printed = paper if metric == "micro" else None
            yield self.result(label, epsilon, metric, values, paper_value=printed)


def walk_from_own_edges(
    original: Graph, shared: npt.NDArray[np.float32], *, restart: float = 0.15
) -> npt.NDArray[np.float32]:
    """PageRank of every source with its true first step and the flipped graph from there on.

    `shared` is `all_pairs` of the flipped graph.
    """
    degrees = original.degrees
    follow = (1 - restart) / np.maximum(degrees, 1)
    step = sp.csr_array(sp.diags_array(follow) @ original.adjacency()).astype(np.float32)
    rows = np.asarray(step @ shared)
    everybody = np.arange(original.n_nodes)
    rows[everybody, everybody] += np.where(degrees > 0, restart, 1.0).astype(np.float32)
    return rows


def _spread(n: int, count: int) -> list[int]:
    """Some nodes, evenly spread over the node set."""
    return [int(v) for v in np.unique(np.linspace(0, n - 1, min(n, count)).astype(np.int64))]


def draw(results: list[Result]) -> Figure:
    """One panel per data set, epsilon on a logarithmic axis as in the paper."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(r.dataset for r in results))
    figure = Figure(figsize=(5.2 * len(datasets), 3.8))
    grid = figure.subplots(1, len(datasets), squeeze=False)[0]
    for axes, dataset in zip(grid, datasets, strict=True):
        draw_panel(
            axes,
            select(results, dataset=dataset, metric="micro-F1 x 100"),
            _CURVES,
            _FLOORS,
        )
        log_epsilons(axes)
        axes.set_title(f"{dataset}: Micro-F1 x 100")
    legend_below(figure, grid, columns=2)
    return figure
