"""``edgeveil classify``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from edgeveil._internal.words import counted
from edgeveil.cli import options
from edgeveil.cli.options import default, option
from edgeveil.cli.output import Format, print_table, say
from edgeveil.errors import ParameterError

if TYPE_CHECKING:
    import edgeveil as ev

_SHOWN = 20  # nodes in a table for people


def classify(
    graph: options.GraphPath,
    /,
    *,
    labels: Path,
    epsilon: Annotated[
        float | None,
        option(
            "Privacy loss of everything that comes out, for any edge; smaller is more private. "
            "Required; there is no safe default."
        ),
    ] = None,
    features: Path | None = None,
    prior: Path | None = None,
    targets: Annotated[Path | None, default("everybody without a label")] = None,
    threshold: float = 0.0,
    seed: int = 0,
    out: Path | None = None,
    page: Path | None = None,
    how: options.Releasing = options.RELEASING,
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
        The known classes: .csv, .tsv or .parquet with a column of nodes and one of labels. Several
        rows of a node are several labels.
    features
        What is known of every node, in numbers: a column of nodes and others. Not from the graph.
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
    from edgeveil.cli.reading import TABLES, check_out, check_release, wanted_nodes
    from edgeveil.cli.releasing import Setup, make_release
    from edgeveil.jobs.classifying import classifier, predictions_from

    if epsilon is None:
        raise ParameterError("--epsilon is required (for example --epsilon 1)")
    if not 0 <= threshold <= 1:
        raise ParameterError(f"--threshold must be from 0 to 1, got {threshold:g}")
    if how.skip_exhausted:
        raise ParameterError("--skip-exhausted: predictions are charged to everybody together")
    inputs = (graph, labels, features, prior, targets)
    check_release(how, out, *TABLES, inputs=inputs)
    replaced = how.overwrite or how.dry_run
    check_out(page, ".html", ".htm", overwrite=replaced, inputs=inputs, option="--page")
    setup = Setup.of(how)
    private = setup.read(graph)
    among = None
    if targets is not None:
        among = private.nodes.take(wanted_nodes(private.nodes, None, targets, "--targets"))
    mechanism = classifier(
        private, labels, epsilon=epsilon, features=features, prior=prior, targets=among, seed=seed
    )

    def write_output(made: Any) -> None:
        if out is None:
            _print(made, how.format)
        say(made.summary)
        if page is not None:
            _write_page(made, page, graph.name, _baseline(features, prior))

    one = private.nodes.indices(private.nodes.take([0]))
    make_release(
        private,
        mechanism,
        one,
        setup,
        write_output,
        out=out,
        make_all=lambda request: predictions_from(request).abstain(threshold),
    )


def _baseline(features: Path | None, prior: Path | None) -> str:
    """What accuracy is compared with."""
    if features is not None:
        return "features alone"
    return "class frequencies" if prior is None else "your own model alone"


def _print(made: ev.Predictions, style: Format) -> None:
    """Print all predictions; to people the first ones, without the probability of each class."""
    shown = made.table()
    if style == "table":
        shown = shown.select("node", "class", "probability").head(_SHOWN)
    measured = made.quality
    print_table(
        shown.columns,
        shown.rows(),
        style=style,
        about={
            "classes": list(made.classes),
            "labelled": made.n_labelled,
            "uses_graph": made.uses_graph,
            "accuracy": made.accuracy,
            "accuracy_interval": None if measured is None else measured.accuracy_interval,
            "accuracy_without_graph": made.accuracy_without_graph,
            "by_class": []
            if measured is None
            else [
                {"class": name, "recall": recall, "precision": right, "average_precision": area}
                for name, recall, right, area in zip(
                    made.classes,
                    measured.recall,
                    measured.precision,
                    measured.average_precision,
                    strict=True,
                )
            ],
            "guarantee": made.guarantee.as_dict(),
            "says": str(made.guarantee),
            "summary": made.summary,
        },
        title=f"predicted classes of {counted(len(made.nodes), 'node')}",
        warning="" if made.guarantee.protects else "NOT PRIVATE: do not publish",
    )
    if style == "table" and len(made.nodes) > len(shown):
        say(f"{len(made.nodes) - len(shown):,} more: --out writes all, --format csv prints all.")


def _write_page(made: ev.Predictions, page: Path, name: str, without: str) -> None:
    from edgeveil.report import page_from_predictions, write_page

    write_page(
        page, page_from_predictions(made, title=f"Predicted classes: {name}", without=without)
    )
    sys.stdout.write(f"{page.resolve()}\n")
