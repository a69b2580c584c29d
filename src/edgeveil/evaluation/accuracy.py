"""How right predicted classes are on a graph whose labels are known. For the curator only.

A part of the labels is hidden, the others are used as `edgeveil.classify` uses them, and the
predictions for the hidden ones are compared: at each epsilon, with exact sums, and without the
graph. The noise is seeded, and exact sums are exact: nothing here is a release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.estimate.classification import ClassificationFit, choose_roles, message_rounds
from edgeveil.estimate.quality import Quality, measure_quality
from edgeveil.evaluation.measurements import Result, estimate
from edgeveil.flow.neighbour_sums import neighbour_sums
from edgeveil.graph.graph import Graph
from edgeveil.jobs import prepare
from edgeveil.jobs.classifying import classifier
from edgeveil.mechanisms.node_classes import NodeClasses
from edgeveil.privacy.noise import NoiseSource
from edgeveil.results.predictions import Predictions

HIDDEN = 0.2  # share of the labelled nodes whose labels are hidden
SPLITS = 4
_LEAST = 50  # hidden labels, to measure anything

PRIVATE, EXACT = "node-classes", "exact sums"
ACCURACY, PRECISION = "accuracy", "average precision"
ALL = "hidden labels"


class _Split(NamedTuple):
    """Labels of which some are hidden."""

    mechanism: NodeClasses
    hidden: npt.NDArray[np.int64]
    truth: npt.NDArray[np.float64]


def measure_classification(
    name: str,
    graph: Graph,
    labels: Any,
    epsilons: Sequence[float],
    *,
    features: Any = None,
    prior: Any = None,
    splits: int = SPLITS,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Result]:
    """Accuracy and average precision by epsilon, for exact sums, and without the graph.

    Average precision is that of each class, the rarest first.

    Parameters
    ----------
    name : str
        The graph's name in the results.
    graph : Graph
        The private graph.
    labels, features, prior
        As for `edgeveil.classify`.
    epsilons : sequence of float
        Privacy losses to try.
    splits : int
        How many times labels are hidden; intervals are over these.
    seed : int
        Determines the hidden labels and the noise.
    """
    whole = classifier(
        graph, labels, epsilon=1.0, features=features, prior=prior, targets=None, seed=seed
    )
    labelled = np.flatnonzero(whole.data.labels.labelled)
    if int(HIDDEN * len(labelled)) < _LEAST:
        raise ParameterError(
            f"a fifth of the labels is hidden, which must be at least {_LEAST}: got "
            f"{len(labelled):,} labelled nodes"
        )
    without = "features alone" if features is not None else "class frequencies"
    without = "prior alone" if prior is not None else without
    qualities: dict[tuple[str, float | None], list[Quality]] = {}
    done, total = 0, splits * (len(epsilons) + 1)
    for number in range(splits):
        split = _hide(whole, labelled, seed + number)
        for epsilon in epsilons:
            quality = _private(graph, split, epsilon, seed + number)
            qualities.setdefault((PRIVATE, epsilon), []).append(quality)
            done += 1
            progress(done, total)
        fit = _exact(graph, split.mechanism)
        quality = _quality(split, fit.log_probabilities, fit.log_prior)
        qualities.setdefault((EXACT, None), []).append(quality)
        alone = _quality(split, fit.log_prior, fit.log_prior)
        qualities.setdefault((without, None), []).append(alone)
        done += 1
        progress(done, total)
    classes = list(map(str, whole.data.classes))
    counts = np.bincount(whole.data.labels.classes, minlength=len(classes))
    rare_first = np.argsort(counts, kind="stable").tolist()
    return [
        result
        for (mechanism, epsilon), measured in qualities.items()
        for result in _results(name, mechanism, epsilon, measured, classes, rare_first)
    ]


def _hide(whole: NodeClasses, labelled: npt.NDArray[np.int64], seed: int) -> _Split:
    """Hide a fifth of the labels, drawn from a seed."""
    rng = np.random.default_rng([0x41DE, seed])
    hidden = np.sort(rng.choice(labelled, int(HIDDEN * len(labelled)), replace=False))
    mask = np.zeros(len(whole.data.nodes), dtype=np.bool_)
    mask[hidden] = True
    labels = whole.data.labels.without(mask)
    data = replace(whole.data, labels=labels, roles=choose_roles(labels, seed=seed))
    mechanism = replace(whole, data=data, seed=seed)
    return _Split(mechanism, hidden, whole.data.labels.shares(hidden))


def _private(graph: Graph, split: _Split, epsilon: float, seed: int) -> Quality:
    mechanism = replace(split.mechanism, epsilon=epsilon)
    predictions = prepare(graph, mechanism, noise=NoiseSource.insecure(seed)).run()
    assert isinstance(predictions, Predictions)  # of what the mechanism gives
    rows = predictions.nodes.indices(graph.nodes.take(split.hidden))
    quality = measure_quality(
        split.truth, predictions.probabilities[rows], predictions.without_graph[rows]
    )
    assert quality is not None  # there are hidden labels
    return quality


def _exact(graph: Graph, mechanism: NodeClasses) -> ClassificationFit:
    """The same rounds with exact sums."""
    data = mechanism.data
    listens, classes = data.roles.listens, len(data.classes)
    rounds = message_rounds(
        data.labels, data.roles, data.log_prior, 0.0, blocks=mechanism.blocks, seed=mechanism.seed
    )
    messages = next(rounds)
    while True:
        sums = neighbour_sums(graph, *messages, classes, listens)
        try:
            messages = rounds.send(np.asarray(sums, dtype=np.float64))
        except StopIteration as end:
            fit: ClassificationFit = end.value
            return fit


def _quality(
    split: _Split, logs: npt.NDArray[np.float64], log_prior: npt.NDArray[np.float64]
) -> Quality:
    quality = measure_quality(
        split.truth, np.exp(logs[split.hidden]), np.exp(log_prior[split.hidden])
    )
    assert quality is not None  # there are hidden labels
    return quality


def _results(
    name: str,
    mechanism: str,
    epsilon: float | None,
    measured: list[Quality],
    classes: list[str],
    order: list[int],
) -> list[Result]:
    """Accuracy, then the average precision of each class in this order."""
    line: dict[str, Any] = {
        "experiment": "classification",
        "dataset": name,
        "mechanism": mechanism,
        "epsilon": epsilon,
        "n_sources": sum(quality.count for quality in measured),
        "repeats": len(measured),
    }
    right = [quality.accuracy for quality in measured]
    results = [Result.of(estimate(right), metric=ACCURACY, scope=ALL, **line)]
    for c in order:
        values = [quality.average_precision[c] for quality in measured]
        defined = [value for value in values if value is not None]
        if defined:
            results.append(Result.of(estimate(defined), metric=PRECISION, scope=classes[c], **line))
    return results
