"""How good predictions are, on the validation sample: from labels and released values only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.estimate.classification import Indices, Matrix

_BINS = 10
_Z = 1.959964  # of a normal distribution, for 95 %

Measures = tuple[float | None, ...]  # one for each class; None where there is nothing to measure


class CalibrationBin(NamedTuple):
    """Nodes whose predicted class has a probability from `low` to `high`.

    If the probabilities are right, the share of them that are right, `accuracy`, is near
    `probability`, the mean of their probabilities.
    """

    low: float
    high: float
    probability: float
    accuracy: float
    nodes: int


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Measures on the validation sample V, whose labels were never said to anybody.

    A prediction is right if it is one of the node's labels. Everything here may be published: it
    is made of labels and released values.

    Attributes
    ----------
    count : int
        Nodes of V that are measured: with a threshold, those that are not abstained from.
    coverage : float
        Their share of V.
    accuracy, accuracy_without_graph : float
        Share of right predictions, and of what is known without the graph.
    confusion : tuple of tuples
        Nodes by true class (rows) and predicted class (columns). A node with several labels
        counts for each of them in part.
    recall, precision : tuples
        By class; None for a class that V does not have, or that is never predicted.
    average_precision, average_precision_without_graph : tuples
        By class: area under precision and recall of ranking V by the probability of the class.
    calibration : tuple of CalibrationBin
        By the probability of the predicted class; empty bins are left out.
    """

    count: int
    coverage: float
    accuracy: float
    accuracy_without_graph: float
    confusion: tuple[tuple[float, ...], ...]
    recall: Measures
    precision: Measures
    average_precision: Measures
    average_precision_without_graph: Measures
    calibration: tuple[CalibrationBin, ...]

    @property
    def accuracy_interval(self) -> tuple[float, float]:
        """A 95 % interval for the accuracy (Wilson's)."""
        p, n = self.accuracy, self.count
        middle = p + _Z * _Z / (2 * n)
        half = _Z * math.sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n))
        low, high = ((middle + sign * half) / (1 + _Z * _Z / n) for sign in (-1, 1))
        return max(min(low, p), 0.0), min(max(high, p), 1.0)  # but for rounding

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for files."""
        return asdict(self) | {"calibration": list(map(list, self.calibration))}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Quality:
        """From the result of `as_dict`, also if it has been through JSON."""
        measures = {k: _tuples(v) for k, v in data.items()}
        bins = tuple(CalibrationBin(*values) for values in data["calibration"])
        return cls(**measures | {"calibration": bins})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def measure_quality(
    truth: Matrix,
    probabilities: Matrix,
    without_graph: Matrix,
    kept: npt.NDArray[np.bool_] | None = None,
) -> Quality | None:
    """Measure predictions of nodes with known labels; None if there are none.

    Parameters
    ----------
    truth : array of shape (nodes, classes)
        Shares of a node's labels.
    probabilities, without_graph : arrays of that shape
        Predicted with and without the graph.
    kept : array of bool, optional
        Measure only these nodes.
    """
    total = len(truth)
    if kept is not None:
        truth, probabilities, without_graph = truth[kept], probabilities[kept], without_graph[kept]
    if not len(truth):
        return None
    predicted, sure = probabilities.argmax(axis=1), probabilities.max(axis=1)
    right = _right(truth, predicted)
    confusion = np.zeros((truth.shape[1], truth.shape[1]))
    np.add.at(confusion.T, predicted, truth)
    hits = np.diag(confusion)
    return Quality(
        count=len(truth),
        coverage=len(truth) / total,
        accuracy=float(right.mean()),
        accuracy_without_graph=float(_right(truth, without_graph.argmax(axis=1)).mean()),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        recall=_shares(hits, confusion.sum(axis=1)),
        precision=_shares(hits, confusion.sum(axis=0)),
        average_precision=average_precisions(truth, probabilities),
        average_precision_without_graph=average_precisions(truth, without_graph),
        calibration=_calibration(sure, right),
    )


def _right(truth: Matrix, predicted: Indices) -> npt.NDArray[np.bool_]:
    right: npt.NDArray[np.bool_] = truth[np.arange(len(truth)), predicted] > 0
    return right


def _shares(parts: Matrix, of: Matrix) -> Measures:
    return tuple(float(p / w) if w > 0 else None for p, w in zip(parts, of, strict=True))


def _calibration(sure: Matrix, right: npt.NDArray[np.bool_]) -> tuple[CalibrationBin, ...]:
    bins = np.minimum((sure * _BINS).astype(np.int64), _BINS - 1)
    filled = []
    for i in np.unique(bins).tolist():
        inside = bins == i
        measured = float(sure[inside].mean()), float(right[inside].mean()), int(inside.sum())
        filled.append(CalibrationBin(i / _BINS, (i + 1) / _BINS, *measured))
    return tuple(filled)


def average_precisions(truth: Matrix, probabilities: Matrix) -> Measures:
    """Average precision of ranking by each class's probability; None for a class nobody has.

    Ties count as in scikit-learn: those with one score are found together.
    """
    return tuple(
        _average_precision(truth[:, c] > 0, probabilities[:, c]) for c in range(truth.shape[1])
    )


def _average_precision(belongs: npt.NDArray[np.bool_], score: Matrix) -> float | None:
    if not belongs.any():
        return None
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(belongs[order])
    last = np.flatnonzero(np.append(np.diff(score[order]) != 0, True))  # the end of each tie
    precision, recall = hits[last] / (last + 1), hits[last] / hits[-1]
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))


def top_classes(probabilities: Matrix, k: int) -> Sequence[Sequence[int]]:
    """The k most probable classes of each row, best first."""
    order: list[list[int]] = np.argsort(-probabilities, axis=1, kind="stable")[:, :k].tolist()
    return order
