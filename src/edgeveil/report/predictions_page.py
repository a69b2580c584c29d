"""`page_from_predictions`: predicted classes, how good they are, and what is protected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from edgeveil.estimate.quality import Quality
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.report.charges import factor
from edgeveil.report.page import PageData
from edgeveil.results.predictions import Predictions

_EXAMPLES = 20  # nodes shown of each class
_MOST_EXAMPLES = 600  # in all: a page stays small with many classes
WITHOUT_GRAPH = "without the graph"
_MEASURES = ("count", "coverage", "accuracy", "recall", "precision", "average_precision")


def page_from_predictions(
    predictions: Predictions,
    *,
    title: str,
    summary: Sequence[str] = (),
    without: str = WITHOUT_GRAPH,
) -> PageData:
    """What the page shows of predictions: only what was released, so anyone may see it.

    Parameters
    ----------
    predictions : Predictions
        From `edgeveil.classify`.
    title : str
        Heading of the page.
    summary : sequence of str
        Paragraphs below the heading.
    without : str
        What accuracy is compared with: "features alone", for example.

    Examples
    --------
    >>> import edgeveil as ev
    >>> network = ev.datasets.social_network(300, average_degree=12)
    >>> labels = dict(enumerate(network.labels.toarray().argmax(axis=1)[:150]))
    >>> page = page_from_predictions(ev.classify(network.graph, labels, epsilon=1), title="Groups")
    >>> page.predictions["n_labelled"]
    150
    """
    loss = predictions.guarantee.epsilon
    return PageData(
        title=title,
        summary=summary,
        predictions={  # report-page/src/data.ts says what each is
            "classes": [str(name) for name in predictions.classes],
            "predicted": _counts(predictions),
            "n_nodes": len(predictions.nodes),
            "n_labelled": predictions.n_labelled,
            "n_abstained": predictions.n_abstained,
            "threshold": predictions.threshold,
            "epsilon": loss if math.isfinite(loss) else None,
            "private": predictions.guarantee.protects,
            "promise": str(predictions.guarantee),
            "in_short": _in_short(predictions.guarantee),
            "uses_graph": predictions.uses_graph,
            "without": without,
            "noise": predictions.noise_scale,
            "quality": None if predictions.quality is None else _quality(predictions.quality),
            "examples": _examples(predictions),
        },
    )


def _in_short(claim: Guarantee) -> str:
    """What is protected, in everyday words; "" if only the exact statement will do."""
    if not claim.protects or claim.model != "public" or claim.delta or not 0 < claim.epsilon <= 10:
        return ""
    return (
        "Anyone may see this page. Noise protects every single connection from everybody: with or "
        f"without it, nothing here is more than {factor(claim.epsilon):,.2f} times as likely. Not "
        "protected: labels, features, and who has a label; the predictions are made from them."
    )


def _counts(predictions: Predictions) -> list[int]:
    best = predictions.probabilities.argmax(axis=1)[predictions.decided]
    return [int(count) for count in np.bincount(best, minlength=len(predictions.classes))]


def _quality(measured: Quality) -> dict[str, Any]:
    low, high = measured.accuracy_interval
    return {
        **{name: getattr(measured, name) for name in _MEASURES},
        "low": low,
        "high": high,
        "without": measured.accuracy_without_graph,
        "confusion": [[round(value, 3) for value in row] for row in measured.confusion],
        "average_precision_without": measured.average_precision_without_graph,
        "calibration": [(b.probability, b.accuracy, b.nodes) for b in measured.calibration],
    }


def _examples(predictions: Predictions) -> list[dict[str, Any]]:
    """Of each class, the nodes for which it is most probable, with what their neighbours named."""
    best, decided = predictions.probabilities.argmax(axis=1), predictions.decided
    each = max(1, min(_EXAMPLES, _MOST_EXAMPLES // len(predictions.classes)))
    examples = []
    for c in range(len(predictions.classes)):
        of_class = np.flatnonzero((best == c) & decided)
        chosen = of_class[np.argsort(-predictions.probabilities[of_class, c], kind="stable")[:each]]
        examples += [
            {
                "node": str(predictions.nodes[i]),
                "predicted": c,
                "probability": float(predictions.probabilities[i, c]),
                "without": float(predictions.without_graph[i, c]),
                "heard": [round(float(value), 1) for value in predictions.sums[i, :, c]],
            }
            for i in chosen.tolist()
        ]
    return examples
