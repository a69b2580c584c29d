"""Node classification from embeddings: what Figure 2 and its sequel measure in the same way.

Split r of a study has its own half of the nodes to train on, its own hash and its own release of
every private embedding, so the splits differ in all that is random, and an interval over them
covers it. Lines that two experiments both have are equal to the last digit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from edgeveil.estimate.hashing import hash_nodes
from edgeveil.evaluation.measurements import Result, estimate
from edgeveil.graph.datasets import LabelledGraph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms import DPInstantEmbedding, NonPrivate, OwnNeighbours
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.run import rows_of
from edgeveil.privacy.noise import NoiseSource
from experiments.baselines import PAPER_FLOW
from experiments.cells import Cells
from experiments.classifier import F1, classify, majority_floor
from experiments.rows import with_noise

__all__ = [
    "METRICS",
    "Embeddings",
    "Matrix",
    "Score",
    "Study",
    "hash_key",
    "measure_studies",
    "percent",
    "sign_matrix",
    "unit_length",
]

Matrix = npt.NDArray[np.float64]
Embedding = Matrix | sp.csr_array
Embeddings = Matrix  # of shape (nodes, splits, dimension)
Score = Callable[[int], F1]  # of a split

METRICS = ("micro", "macro")
_BLOCK = 512  # sources whose rows are in memory together


class Study(ABC):
    """All measurements of one experiment on one data set."""

    experiment: str

    def __init__(
        self, name: str, data: LabelledGraph, settings: dict[str, Any], cells: Cells
    ) -> None:
        self.name, self.settings, self.cells = name, settings, cells
        self.graph, self.labels = data.graph, data.labels
        self.noise = NoiseSource.insecure(settings["seed"]).derive(name)
        self.splits = range(settings["splits"])

    @property
    @abstractmethod
    def size(self) -> int:
        """How many cells."""

    @abstractmethod
    def results(self) -> Iterator[Result]:
        """Everything that is measured."""

    def blocks(self) -> list[range]:
        """All nodes, as many at a time as are in memory together."""
        everybody = range(self.graph.n_nodes)
        return [everybody[start : start + _BLOCK] for start in everybody[::_BLOCK]]

    def hashed(self, rows: Matrix) -> Embeddings:
        """InstantEmbedding of rows of scores, by the hash of every split."""
        weights = np.log(np.maximum(rows * self.graph.n_nodes, 1.0))
        embedded = np.asarray((self._signs @ weights.T).T)
        return embedded.reshape(len(rows), len(self.splits), -1)

    @cached_property
    def _signs(self) -> sp.csr_array:
        """The hashes of all splits, one below the other: the sign of a node in its dimension."""
        nodes, dimension = self.graph.nodes, self.settings["dimension"]
        return sp.csr_array(
            sp.vstack([sign_matrix(nodes, dimension, split).T for split in self.splits])
        )

    def exact(self) -> Embeddings:
        """InstantEmbedding of exact PageRank: not private."""
        mechanism = NonPrivate(restart=self.settings["restart"], tol=1e-6)
        return self._kept("exact", partial(self._rows, mechanism))

    def own_list(self) -> Embeddings:
        """InstantEmbedding of what everybody knows of themselves."""
        mechanism = OwnNeighbours(restart=self.settings["restart"])
        return np.vstack([self.hashed(self._rows(mechanism, block)) for block in self.blocks()])

    def papers_flow(self) -> Embeddings:
        """The paper's embedding before its noise, the same at every epsilon."""
        return self._kept("capped flow", self._capped_flow)

    def papers_embedding(self, flow: Embeddings, epsilon: float, split: int) -> Matrix:
        """The paper's private embedding, a release for each split."""
        rows = self.noise.derive(f"{epsilon:g}").derive("repeat", split).derive("rows")
        everybody = range(self.graph.n_nodes)
        return with_noise(self.graph, self._papers(epsilon), flow[:, split], everybody, rows)

    def majority(self, split: int) -> F1:
        """F1 without any embedding."""
        return majority_floor(self.labels, train=self.settings["train"], seed=split)

    def classified(self, embedding: Callable[[int], Embedding], split: int) -> F1:
        """F1 of an embedding that is another one for each split."""
        return classify(embedding(split), self.labels, train=self.settings["train"], seed=split)

    def classified_as(self, embeddings: Embeddings, split: int) -> F1:
        """F1 of what is the same for all splits, but for the hash."""
        return self.classified(lambda r: embeddings[:, r], split)

    def scores(self, label: str, epsilon: float, score: Score) -> dict[str, Matrix]:
        """Micro-F1 and Macro-F1 x 100 on all splits, a cell each."""
        scores = [
            self.cells.get(
                f"{self.name} / {label} {epsilon:g} / split {split}",
                partial(_as_json, score, split),
            )
            for split in self.splits
        ]
        return percent(scores)

    def result(
        self,
        label: str,
        epsilon: float,
        metric: str,
        values: Matrix,
        *,
        scope: str = "all",
        paper_value: float | None = None,
    ) -> Result:
        """One point of a figure: mean and interval over the splits."""
        return Result.of(
            estimate(values),
            experiment=self.experiment,
            dataset=self.name,
            mechanism=label,
            epsilon=epsilon,
            metric=f"{metric}-F1 x 100",
            scope=scope,
            n_sources=self.graph.n_nodes,
            repeats=len(values),
            paper_value=paper_value,
        )

    def _papers(self, epsilon: float) -> DPInstantEmbedding:
        names = ("dimension", "sigma", *PAPER_FLOW)
        return DPInstantEmbedding(epsilon=epsilon, **{n: self.settings[n] for n in names})

    def _rows(self, mechanism: Mechanism, sources: Sequence[int]) -> Matrix:
        """Scores that need no noise."""
        rows: Matrix = rows_of(mechanism, self.graph, sources, self.noise)
        return rows

    def _capped_flow(self, sources: Sequence[int]) -> Matrix:
        return self._papers(1.0).flow(self.graph, np.asarray(sources, dtype=np.int64))

    def _kept(self, what: str, rows: Callable[[Sequence[int]], Matrix]) -> Embeddings:
        """Embeddings of all nodes, kept block by block."""

        def compute(block: range) -> Embeddings:
            return self.hashed(rows(block))

        hashes = len(self.splits)
        return np.vstack(
            [
                self.cells.array(
                    f"{self.name} / {what}, {hashes} hashes / {block.start}",
                    partial(compute, block),
                )
                for block in self.blocks()
            ]
        )


def hash_key(split: int) -> str:
    """The key of a split's hash."""
    return f"split {split}"


def sign_matrix(nodes: NodeSet, dimension: int, split: int) -> sp.csr_array:
    """The hash of a split as a matrix: a node's row holds its sign in its dimension."""
    own = hash_nodes(nodes, dimension, hash_key(split))
    return sp.csr_array((own.sign, (np.arange(len(nodes)), own.bucket)), (len(nodes), dimension))


def percent(scores: Sequence[Mapping[str, float]]) -> dict[str, Matrix]:
    """F1 of several splits, x 100."""
    return {metric: np.array([100 * f[metric] for f in scores]) for metric in METRICS}


def measure_studies(
    kind: type[Study], datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """One study for every data set that is wanted and there."""
    wanted = settings["datasets"] or list(datasets)
    studies = [kind(name, datasets[name], settings, cells) for name in wanted if name in datasets]
    with cells.progress(sum(study.size for study in studies), kind.experiment):
        return [result for study in studies for result in study.results()]


def unit_length(embedding: Matrix) -> Matrix:
    """Embeddings (along the last axis) of length 1; zeros stay."""
    return np.asarray(
        embedding / np.maximum(np.linalg.norm(embedding, axis=-1, keepdims=True), 1e-300)
    )


def _as_json(score: Score, split: int) -> dict[str, float]:
    return asdict(score(split))
