"""The ranking protocol: how close a mechanism's rows come to exact PageRank.

One path for every mechanism. Repeat r of a measurement is the release that
``edgeveil.release(graph, mechanism, sources, noise=noise.derive("repeat", r))`` would give;
what those releases have in common without noise is computed once.

Scopes (what is ranked):

all             every node, the source included, as in the paper
non-neighbours  neither the source nor its neighbours: what a recommender would show
lift            non-neighbours of degree >= 20, exact values divided by exact degrees: what is
                left when popularity is taken out. The private side may use released values
                only. If the mechanism released degrees for everybody, scores are divided by
                those: the learnt `degrees`, the flipped graph's degrees for edge flipping, the
                true ones where nothing is protected. If it did not, scores stand as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.evaluation.metrics import top_k_metrics
from edgeveil.evaluation.results import Estimate, estimate
from edgeveil.evaluation.rows import Draw, repeated_rows
from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Mechanism, Rows
from edgeveil.privacy.noise import NoiseSource

__all__ = [
    "LIFT_DEGREE",
    "SCOPES",
    "Measured",
    "choose_sources",
    "measure_ranking",
]

LIFT_DEGREE = 20
SCOPES = ("all", "non-neighbours", "lift")
_BATCH = 20  # repeats scored together

Scores = dict[tuple[str, str], npt.NDArray[np.float64]]


def choose_sources(
    graph: Graph, *, min_degree: int = 50, limit: int | None = None, seed: int = 0
) -> list[int]:
    """Indices of the nodes of degree >= `min_degree`, in random order.

    Parameters
    ----------
    graph : Graph
        The graph.
    min_degree : int
        The paper takes 50.
    limit : int, optional
        The first so many of that order, so that a larger choice begins with a smaller one.
    seed : int
        The same seed gives the same order.
    """
    found = np.flatnonzero(graph.degrees >= min_degree)
    if not len(found):
        raise ParameterError("no node has the degree that a source needs; lower min_degree")
    return [int(v) for v in np.random.default_rng(seed).permutation(found)[:limit]]


@dataclass(frozen=True)
class Measured:
    """Means of one mechanism's metrics, by source and by repeat.

    Attributes
    ----------
    by_source, by_repeat : dict
        From (metric, scope) to one mean per source, or per repeat.
    shared : bool
        Whether a repeat's noise was drawn once for all sources.
    """

    by_source: Scores
    by_repeat: Scores
    shared: bool

    def estimate(self, metric: str, scope: str) -> Estimate:
        """Mean and 95 % interval."""
        key = metric, scope
        return estimate(self.by_source[key], self.by_repeat[key], shared=self.shared)

    def as_json(self) -> dict[str, Any]:
        """Plain data for a part file."""
        rounded = [
            {"/".join(key): [round(float(v), 6) for v in values] for key, values in scores.items()}
            for scores in (self.by_source, self.by_repeat)
        ]
        return {"by_source": rounded[0], "by_repeat": rounded[1], "shared": self.shared}

    @classmethod
    def from_json(cls, parts: Sequence[dict[str, Any]]) -> Measured:
        """Put the blocks of sources of one measurement together again."""
        by_source = {
            _key(name): np.concatenate([part["by_source"][name] for part in parts])
            for name in parts[0]["by_source"]
        }
        sizes = [len(next(iter(part["by_source"].values()))) for part in parts]
        by_repeat = {
            _key(name): np.average([part["by_repeat"][name] for part in parts], 0, weights=sizes)
            for name in parts[0]["by_repeat"]
        }
        return cls(by_source, by_repeat, bool(parts[0]["shared"]))


def _key(name: str) -> tuple[str, str]:
    metric, _, scope = name.partition("/")
    return metric, scope


def measure_ranking(
    graph: Graph,
    mechanism: Mechanism,
    sources: Sequence[int],
    *,
    repeats: int,
    noise: NoiseSource,
    k: int = 100,
    exact: Rows | None = None,
    draw: Draw = repeated_rows,
) -> Measured:
    """Recall@k and NDCG@k of a mechanism in every scope.

    Parameters
    ----------
    graph : Graph
        The private graph.
    mechanism : Mechanism
        What is measured; its columns must be nodes.
    sources : sequence of int
        Indices of the sources.
    repeats : int
        Independent releases.
    noise : NoiseSource
        ``NoiseSource.insecure(seed)``: an experiment should be repeatable, and releases nothing.
    k : int
        How many nodes count.
    exact : array of shape (sources, n), optional
        Exact PageRank of the sources, if it is known already.
    draw : callable
        How the rows of the repeats are made, where there is a faster way for this mechanism.
    """
    if mechanism.gives != "scores":
        raise ParameterError("only a mechanism that gives scores has a ranking")
    if exact is None:
        exact = personalized_pagerank(graph, sources)
    questions = [
        _Question(graph, source, row, k) for source, row in zip(sources, exact, strict=True)
    ]
    cells: dict[tuple[str, str], npt.NDArray[np.float64]] = {
        (metric, scope): np.empty((len(sources), repeats))
        for metric in (f"recall@{k}", f"ndcg@{k}")
        for scope in SCOPES
    }
    shared, done = False, 0
    for batch in _batched(draw(graph, mechanism, sources, repeats, noise)):
        shared = shared or any(known is not None for _, known in batch)
        degrees = [_released_degrees(graph, mechanism, known) for _, known in batch]
        for i, question in enumerate(questions):
            for scope, top in question.score([rows[i] for rows, _ in batch], degrees).items():
                for metric, values in zip((f"recall@{k}", f"ndcg@{k}"), top, strict=True):
                    cells[metric, scope][i, done : done + len(batch)] = values
        done += len(batch)
    return Measured(
        {key: values.mean(axis=1) for key, values in cells.items()},
        {key: values.mean(axis=0) for key, values in cells.items()},
        shared,
    )


def _released_degrees(
    graph: Graph, mechanism: Mechanism, known: Any
) -> npt.NDArray[np.float64] | None:
    """Degrees that a recipient can divide by: in the shared part, all if nothing is protected."""
    if math.isinf(mechanism.guarantee(1).epsilon):
        return graph.degrees.astype(np.float64)
    released = getattr(known, "degrees", None)
    return None if released is None else np.asarray(released, np.float64)


class _Question:
    """What is asked about one source: its candidates in every scope, and their true values."""

    def __init__(self, graph: Graph, source: int, exact: npt.NDArray[np.float64], k: int) -> None:
        other = np.ones(graph.n_nodes, dtype=np.bool_)
        other[source] = False
        other[graph.neighbours(source)] = False
        lift = np.flatnonzero(other & (graph.degrees >= LIFT_DEGREE))
        self._k, self._exact = k, exact
        self._others, self._lift = np.flatnonzero(other), lift
        self._exact_lift = exact[lift] / graph.degrees[lift]

    def score(
        self,
        rows: Sequence[npt.NDArray[np.float64]],
        degrees: Sequence[npt.NDArray[np.float64] | None],
    ) -> dict[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        """Recall and NDCG of several rows for this source, by scope."""
        scores = np.stack(rows)
        # Every candidate is known to have this degree: noise must not go below it.
        weights = [
            np.ones(len(self._lift)) if d is None else np.maximum(d[self._lift], LIFT_DEGREE)
            for d in degrees
        ]
        lifted = scores[:, self._lift] / np.stack(weights)
        return {
            "all": top_k_metrics(self._exact, scores, self._k),
            "non-neighbours": top_k_metrics(
                self._exact[self._others], scores[:, self._others], self._k
            ),
            "lift": top_k_metrics(self._exact_lift, lifted, self._k),
        }


def _batched(repeats: Iterator[tuple[Rows, Any]]) -> Iterator[list[tuple[Rows, Any]]]:
    """Repeats by the handful: enough for fast metrics, few enough for the memory."""
    while batch := list(islice(repeats, _BATCH)):
        yield batch
