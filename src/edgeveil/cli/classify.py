"""``edgeveil classify``."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from edgeveil._internal.checks import check_share
from edgeveil.cli import options
from edgeveil.cli.options import checked, default, option, required_epsilon
from edgeveil.cli.output import say

if TYPE_CHECKING:
    import edgeveil as ev


def classify(
    graph: options.GraphPath,
    /,
    *,
    labels: Path,
    epsilon: Annotated[
        options.Loss,
        option(
            "Privacy loss of everything that comes out, for any edge; smaller is more private. "
            "Required; there is no safe default."
        ),
    ] = None,
    features: Path | None = None,
    prior: Path | None = None,
    targets: Annotated[Path | None, default("everybody without a label")] = None,
    threshold: Annotated[float, checked(partial(check_share, "--threshold"))] = 0.0,
    seed: int = 0,
    out: Path | None = None,
    page: Path | None = None,
    releasing: options.Releasing = options.RELEASING,
) -> None:
    """Predict classes of nodes from the whole graph, privately, for anybody to see.

    Every edge is protected with epsilon in all, whoever sees the result.
    Labels and features are NOT protected: predictions are made from them.
    They must not be computed from the graph (no degrees, no PageRank, no embedding
    of it), and who has a label must not depend on it: otherwise the guarantee does
    not hold.
    Example: edgeveil classify payments.csv --labels flags.csv --epsilon 1 --out predictions.csv

    Parameters
    ----------
    labels
        The known classes: .csv, .tsv or .parquet with a column of nodes (named node or id, or else
        the first) and one of labels. Several rows of a node are several labels.
    features
        What is known of every node, in numbers: a column of nodes, as in --labels, and others. Not
        from the graph.
    prior
        Instead of features: class probabilities by your own model, a column for each class.
    targets
        File with one id per line. Only these nodes are predicted.
    threshold
        Name no class below this probability.
    seed
        Public; chooses which labelled nodes teach the weights, and which measure accuracy.
    out
        File for all predictions: .parquet, .json or .csv.
    page
        Page to write (.html): how often predictions are right, beside features alone, and what is
        protected. It opens offline, and anyone may see it.
    """
    from edgeveil.cli.presentation import print_predictions
    from edgeveil.cli.reading import TABLES, check_out, nodes_in_file
    from edgeveil.cli.runner import Run
    from edgeveil.jobs import prepare
    from edgeveil.jobs.classifying import classifier

    epsilon = required_epsilon(epsilon)
    inputs, replaced = (
        (graph, labels, features, prior, targets),
        releasing.overwrite or releasing.dry_run,
    )
    check_out(page, ".html", ".htm", overwrite=replaced, inputs=inputs, option="--page")
    run = Run.of(releasing, out, *TABLES, inputs=inputs)
    private = run.read(graph)
    asked = nodes_in_file(private.nodes, targets, "--targets")
    mechanism = classifier(
        private, labels, epsilon=epsilon, features=features, prior=prior, targets=asked, seed=seed
    )
    job = prepare(private, mechanism, **run.options)

    def show(predictions: ev.Predictions) -> None:
        if out is None:
            print_predictions(predictions, releasing.format)
        say(predictions.summary)
        if page is not None:
            _write_page(predictions, page, graph.name, _baseline(features, prior))

    run.release(job, out, show, change=lambda predictions: predictions.abstain(threshold))


def _baseline(features: Path | None, prior: Path | None) -> str:
    """What accuracy is compared with."""
    if features is not None:
        return "features alone"
    return "class frequencies" if prior is None else "your own model alone"


def _write_page(predictions: ev.Predictions, page: Path, name: str, without: str) -> None:
    from edgeveil.report import page_from_predictions, write_page

    write_page(
        page,
        page_from_predictions(predictions, title=f"Predicted classes: {name}", without=without),
    )
    sys.stdout.write(f"{page.resolve()}\n")
