"""Predictions: a class for every node, with its guarantee, quality and reasons. Immutable."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import check_share
from edgeveil._internal.files import filled_folder, write_atomically
from edgeveil._internal.notebook import html_table
from edgeveil._internal.words import counted
from edgeveil.errors import InputError, ParameterError, UnknownNodeError
from edgeveil.estimate.classification import Matrix, Weights
from edgeveil.estimate.quality import Quality, measure_quality, top_classes
from edgeveil.graph.nodes import NodeId, NodeSet
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.results.provenance import OutputKind, Provenance, metadata_of, output_of
from edgeveil.results.tabular import Tabular, load_library, read_only

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 10  # lines in a notebook
_EXPLAINED = 5  # classes in the words of an explanation

ByClass = dict[NodeId, float | None]


class ExplanationLine(NamedTuple):
    """One class of an explanation.

    Attributes
    ----------
    class_ : id
        The class.
    without_graph : float
        Its probability by what is known without the graph.
    heard : tuple of float
        The released noisy sum for each of the `blocks`: about how many neighbours named it, those
        who listen counted half.
    from_graph : float
        By how much these sums change the log probability of the class.
    probability : float
        Its probability.
    """

    class_: NodeId
    without_graph: float
    heard: tuple[float, ...]
    from_graph: float
    probability: float


class LabelledListeners(NamedTuple):
    """Labelled nodes that listen, with their released sums: for an estimator of your own.

    It may be fitted to them and applied to `Predictions.sums`: post-processing, at no price.

    Attributes
    ----------
    nodes : NodeSet
        The nodes, one row each.
    labels : array of shape (nodes, classes)
        Shares of their labels.
    without_graph : array of that shape
        What is known without the graph, from a model that did not see the label.
    sums : array of shape (nodes, blocks, classes)
        As `Predictions.sums`.
    validates : array of bool of shape (nodes,)
        Who is kept for validation: never learn from these. The others' own words may come back to
        them in round 2, so a measure on them is flattered.
    """

    nodes: NodeSet
    labels: Matrix
    without_graph: Matrix
    sums: Matrix
    validates: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Explanation:
    """Why a node got its class, from released values and public data only.

    Attributes
    ----------
    node, class_ : id
        The node and its most probable class.
    probability : float
        Of this class.
    blocks : tuple of str
        What the sums are of.
    noise_scale : float
        Mean absolute value of the noise in a sum.
    lines : list of ExplanationLine
        All classes, the most probable first.
    """

    node: NodeId
    class_: NodeId
    probability: float
    blocks: tuple[str, ...]
    noise_scale: float
    lines: list[ExplanationLine]

    def __str__(self) -> str:
        words = [f"{self.node}: {self.class_} ({self.probability:.0%})"]
        for line in self.lines[:_EXPLAINED]:
            heard = ", ".join(f"{value:+.1f}" for value in line.heard)
            words.append(
                f"  {line.class_}: {line.without_graph:.0%} without the graph; neighbours named "
                f"it {heard} (noise about {self.noise_scale:.2g}); {line.probability:.0%} with it"
            )
        if (others := len(self.lines) - _EXPLAINED) > 0:
            words.append(f"  and {others:,} less probable class{'es' if others > 1 else ''}")
        return "\n".join(words)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Predictions(Tabular):
    """A class for every node that was asked for. Anyone may see all of it.

    Attributes
    ----------
    nodes : NodeSet
        Who is predicted, one row each.
    classes : tuple of ids
        The classes, sorted.
    probabilities : array of shape (nodes, classes), read-only
        Class probabilities.
    without_graph : array of that shape, read-only
        What is known without the graph: by features, by `prior`, or the classes' shares.
    sums : array of shape (nodes, blocks, classes), read-only
        The released noisy sums: about how many neighbours named a class, those who listen counted
        half.
    blocks : tuple of str
        Names of the blocks of `sums`: rounds, and in directed graphs the direction.
    noise_scale : float
        Mean absolute value of the noise in a sum.
    weights : Weights or None
        What the model makes of the sums; None if it does not use them.
    n_labelled, n_trained, n_validated : int
        How many nodes have a label; how many of them the weights are learnt from; how many are
        kept for validation (0 with too few labels).
    validation : tuple of three arrays of shape (n_validated, classes), or None
        Shares of labels, probabilities, and probabilities without the graph of the nodes kept for
        validation; None after reading from a file.
    labelled_listeners : LabelledListeners or None
        Released sums of labelled nodes, for an estimator of your own; None after reading from a
        file.
    quality : Quality or None
        Measures by the nodes kept for validation, with confusion, calibration and the interval of
        the accuracy; None if there are none.
    threshold : float
        Below this probability no class is predicted; see `abstain`.
    guarantee : Guarantee
        What is protected.
    provenance : Provenance
        How it was made.
    """

    nodes: NodeSet
    classes: tuple[NodeId, ...]
    probabilities: Matrix
    without_graph: Matrix
    sums: Matrix
    blocks: tuple[str, ...]
    noise_scale: float
    weights: Weights | None
    n_labelled: int
    n_trained: int
    n_validated: int
    guarantee: Guarantee
    provenance: Provenance
    validation: tuple[Matrix, Matrix, Matrix] | None = None
    labelled_listeners: LabelledListeners | None = None
    quality: Quality | None = None
    threshold: float = 0.0

    def __post_init__(self) -> None:
        rows, classes = len(self.nodes), len(self.classes)
        shapes = dict.fromkeys(("probabilities", "without_graph"), (rows, classes))
        for name, shape in (*shapes.items(), ("sums", (rows, len(self.blocks), classes))):
            array = read_only(getattr(self, name), np.float64)
            if array.shape != shape:
                raise ParameterError(f"{name} must have shape {shape}, got {array.shape}")
            object.__setattr__(self, name, array)

    @property
    def sources(self) -> tuple[NodeId, ...]:  # type: ignore[override]
        """The nodes, under the name that other releases use."""
        return tuple(self.nodes)

    @property
    def output(self) -> OutputKind:  # type: ignore[override]
        """What this release holds: "predictions"."""
        return "predictions"

    # -- predictions ---------------------------------------------------------------------------

    @cached_property
    def _best(self) -> tuple[npt.NDArray[np.int64], Matrix]:
        best = self.probabilities.argmax(axis=1)
        return best, self.probabilities[np.arange(len(best)), best]

    @property
    def decided(self) -> npt.NDArray[np.bool_]:
        """For which nodes a class is predicted; see `abstain`."""
        return read_only(self._best[1] >= self.threshold)

    @property
    def classified(self) -> tuple[NodeId | None, ...]:
        """The most probable class of each node; None where none is predicted; see `abstain`."""
        rows = zip(self._best[0].tolist(), self.decided.tolist(), strict=True)
        return tuple(self.classes[best] if decided else None for best, decided in rows)

    def _at(self, node: NodeId) -> int:
        """The row of a node."""
        if node not in self._rows:
            raise UnknownNodeError(
                f"there is no prediction for {node!r}: only targets have one, by default the nodes "
                "of the graph without a label"
            )
        return self._rows[node]

    def class_of(self, node: NodeId) -> NodeId | None:
        """The most probable class of a node; None where none is predicted; see `abstain`."""
        i = self._at(node)
        return self.classes[int(self._best[0][i])] if self.decided[i] else None

    def top(self, node: NodeId, k: int = 3) -> list[tuple[NodeId, float]]:
        """The k most probable classes of a node, and their probabilities."""
        row = self.probabilities[self._at(node)]
        return [(self.classes[c], float(row[c])) for c in top_classes(row[None], k)[0]]

    @property
    def uses_graph(self) -> bool:
        """Whether the graph helped; if not, predictions are what is known without it."""
        return self.weights is not None

    def abstain(self, threshold: float) -> Predictions:
        """Predict no class where the highest probability is below the threshold.

        Post-processing, free at any time. Measures are then of the nodes for which a class is
        predicted; `Quality.coverage` is their share.
        """
        check_share("threshold", threshold)
        if self.validation is None:
            if self.n_validated:
                raise ParameterError(
                    "predictions that were read from a file cannot measure another threshold: "
                    "abstain before writing"
                )
            return replace(self, threshold=float(threshold))
        _, probabilities, _ = self.validation
        kept = probabilities.max(axis=1) >= threshold
        return replace(
            self, threshold=float(threshold), quality=measure_quality(*self.validation, kept=kept)
        )

    @property
    def n_abstained(self) -> int:
        """For how many nodes no class is predicted."""
        return int((~self.decided).sum())

    def explain(self, node: NodeId) -> Explanation:
        """Why a node got its class: what its neighbours named, with noise, and what that changed.

        Made of released values and public data only, so anyone may see it.
        """
        i = self._at(node)
        log_prior = np.log(np.maximum(self.without_graph[i : i + 1], 1e-300))
        heard = [self.sums[i : i + 1, block] for block in range(len(self.blocks))]
        from_graph = np.zeros(len(self.classes))
        if self.weights is not None:
            nothing = [np.zeros_like(part) for part in heard]
            with_sums = self.weights.log_probabilities(log_prior, heard)
            from_graph = (with_sums - self.weights.log_probabilities(log_prior, nothing))[0]
        order = np.argsort(-self.probabilities[i], kind="stable").tolist()
        lines = [
            ExplanationLine(
                class_=self.classes[c],
                without_graph=float(self.without_graph[i, c]),
                heard=tuple(float(part[0, c]) for part in heard),
                from_graph=float(from_graph[c]),
                probability=float(self.probabilities[i, c]),
            )
            for c in order
        ]
        first = lines[0]
        return Explanation(
            node, first.class_, first.probability, self.blocks, self.noise_scale, lines
        )

    @property
    def summary(self) -> str:
        """How many nodes and classes, from how many labels, and how right, in words."""
        return self._headline()

    # -- quality -------------------------------------------------------------------------------

    @property
    def accuracy(self) -> float | None:
        """Share of right predictions in the validation sample; None with too few labels for one.

        It may be published, and is what to expect for nodes without a label, if those with a label
        are like them.
        """
        return None if self.quality is None else self.quality.accuracy

    @property
    def accuracy_without_graph(self) -> float | None:
        """The same for what is known without the graph."""
        return None if self.quality is None else self.quality.accuracy_without_graph

    @property
    def recall(self) -> ByClass | None:
        """By class: the share of its nodes that are found."""
        return self._by_class("recall")

    @property
    def precision(self) -> ByClass | None:
        """By class: the share of right ones among the nodes for which it is predicted."""
        return self._by_class("precision")

    @property
    def average_precision(self) -> ByClass | None:
        """By class: the area under precision and recall of ranking nodes by its probability."""
        return self._by_class("average_precision")

    def _by_class(self, name: str) -> ByClass | None:
        if self.quality is None:
            return None
        return dict(zip(self.classes, getattr(self.quality, name), strict=True))

    # -- tables and files ----------------------------------------------------------------------

    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        """One line per node: node, class, probability, and the probability of each class."""
        best, highest = self._best
        kind = object if any(isinstance(name, str) for name in self.classes) else np.int64
        named = np.array(self.classes, dtype=kind)[best]
        if self.n_abstained:
            named = np.where(self.decided, named.astype(str).astype(object), "")
        columns = {"node": self.nodes.ids, "class": named, "probability": highest}
        return columns | {
            f"p_{name}": np.ascontiguousarray(self.probabilities[:, c])
            for c, name in enumerate(self.classes)
        }

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The table of a file, and its label."""
        table: dict[str, Any] = dict(self._columns())
        for c, name in enumerate(self.classes):
            table[f"without_graph_{name}"] = np.ascontiguousarray(self.without_graph[:, c])
        for b, block in enumerate(self.blocks):
            for c, name in enumerate(self.classes):
                table[f"{block}: {name}"] = np.ascontiguousarray(self.sums[:, b, c])
        weights = self.weights
        label = {
            "classes": list(self.classes),
            "blocks": list(self.blocks),
            "noise_scale": self.noise_scale,
            "weights": None
            if weights is None
            else {k: _plain(v) for k, v in vars(weights).items()},
            **{name: getattr(self, name) for name in _COUNTS},
            "quality": None if self.quality is None else self.quality.as_dict(),
            **self._label(),
        }
        return table, label

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write to .parquet, .json or .csv, or to a folder; the guarantee is beside the values.

        .parquet and .json keep everything, and `read` reads them back. A .csv file has the table
        of `to_polars`, with the guarantee in a few words in its last column. Any other name
        is that of a folder: predictions.csv, predictions.parquet and guarantee.txt, which appear
        when all are complete.
        """
        target = Path(path)
        if target.suffix in (".csv", ".parquet", ".json") and not target.is_dir():
            super().write(target)
            return
        with filled_folder(target) as folder:
            for name in ("predictions.csv", "predictions.parquet"):
                super().write(folder / name)
            text = f"{self._headline()}\n\n{self.guarantee}\n"
            write_atomically(
                folder / "guarantee.txt", lambda part: part.write_text(text, encoding="utf-8")
            )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Predictions:
        """Read what `write` wrote to .parquet, .json or a folder."""
        source = Path(path)
        return super().read(source / "predictions.parquet" if source.is_dir() else source)

    @classmethod
    def _from_parts(cls, table: Mapping[str, Any], label: Mapping[str, Any]) -> Predictions:
        """The inverse of `to_parts`."""
        if output_of(label) != "predictions":
            raise InputError("a release of another kind")
        classes, blocks = tuple(NodeSet.of(label["classes"])), tuple(label["blocks"])
        nodes = NodeSet.of(table["node"])

        def columns(prefix: str) -> Matrix:
            by_class = [np.asarray(table[f"{prefix}{name}"], dtype=np.float64) for name in classes]
            return np.stack(by_class, axis=1)

        weights, quality = label["weights"], label["quality"]
        return cls(
            nodes=nodes,
            classes=classes,
            probabilities=columns("p_"),
            without_graph=columns("without_graph_"),
            sums=np.stack([columns(f"{block}: ") for block in blocks], axis=1),
            blocks=blocks,
            noise_scale=float(label["noise_scale"]),
            weights=None
            if weights is None
            else Weights(**{k: _array(v) for k, v in weights.items()}),
            **{name: label[name] for name in _COUNTS},
            quality=None if quality is None else Quality.from_dict(quality),
            **metadata_of(label)._asdict(),
        )

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Plot accuracy with and without the graph, confusion and calibration; write it to a file.

        Without a validation sample: how many nodes have which class and probability.
        """
        load_library("matplotlib", "plot")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 3.6), layout="constrained")
        if self.quality is None:
            self._plot_predicted(figure.subplots(1, 2))
        else:
            self._plot_quality(figure.subplots(1, 3), self.quality)
        figure.suptitle(self.guarantee.brief, fontsize="small")
        if path is not None:
            write_atomically(
                Path(path), lambda part: figure.savefig(part, format=Path(path).suffix[1:] or "png")
            )
        return figure

    def _plot_predicted(self, axes: Any) -> None:
        left, right = axes
        counts = np.bincount(self._best[0], minlength=len(self.classes))
        left.bar([str(name) for name in self.classes], counts)
        left.set_ylabel("nodes predicted")
        right.hist(self._best[1], bins=20, range=(0, 1))
        right.set_xlabel("probability of the predicted class")
        right.set_ylabel("nodes")

    def _plot_quality(self, axes: Any, quality: Quality) -> None:
        bars, grid, line = axes
        shown = [quality.accuracy_without_graph, quality.accuracy]
        low, high = quality.accuracy_interval
        bars.bar(["without the graph", "with it"], shown, color=["tab:gray", "tab:blue"])
        error = [[quality.accuracy - low], [high - quality.accuracy]]
        bars.errorbar([1], [quality.accuracy], yerr=error, color="black", capsize=4)
        bars.set_ylim(0, 1)
        bars.set_ylabel(f"accuracy on {quality.count:,} nodes set aside")
        grid.imshow(np.array(quality.confusion), cmap="Blues")
        grid.set_xlabel("predicted")
        grid.set_ylabel("true")
        if len(self.classes) <= 20:
            names = [str(name) for name in self.classes]
            grid.set_xticks(range(len(names)), names, rotation=90)
            grid.set_yticks(range(len(names)), names)
        line.plot([0, 1], [0, 1], color="tab:gray", linewidth=1)
        points = [(part.probability, part.accuracy) for part in quality.calibration]
        line.plot(*zip(*points, strict=True), marker="o")
        line.set_xlabel("predicted probability")
        line.set_ylabel("share that is right")

    # -- display -------------------------------------------------------------------------------

    def _headline(self) -> str:
        words = (
            f"classes of {counted(len(self.nodes), 'node')}, {len(self.classes)} classes, learnt "
            f"from {counted(self.n_labelled, 'label')}"
        )
        if self.quality is None:
            why = (
                "too few labels to say how accurate"
                if not self.n_validated
                else "none is predicted"
            )
            words += f" ({why})"
        else:
            low, high = self.quality.accuracy_interval
            words += (
                f": accuracy {self.quality.accuracy:.1%} ({low:.1%} to {high:.1%}), "
                f"{self.quality.accuracy_without_graph:.1%} without the graph"
            )
        if not self.uses_graph:
            words += "; the graph did not help, so it is not used"
        if self.threshold:
            words += f"; no class is predicted for {self.n_abstained:,} below {self.threshold:g}"
        return f"{self.provenance.mechanism}: {words}."

    def _preview(self) -> str:
        first = range(min(len(self.nodes), _SHOWN))
        classified, highest = self.classified, self._best[1]
        rows = [(self.nodes[i], classified[i] or "", f"{highest[i]:.0%}") for i in first]
        return html_table(("node", "class", "probability"), rows)


_COUNTS = ("n_labelled", "n_trained", "n_validated", "threshold")


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _array(value: Any) -> Any:
    return np.array(value, dtype=np.float64) if isinstance(value, list) else value
