"""Classes of nodes, learnt from the whole graph, beside other methods at the same epsilon.

A share of the nodes shows its class; accuracy is measured on the others. Split r has its own
labelled nodes, listeners and noise, so an interval over splits covers all of them.

Ours, LPGNet and edge flipping are epsilon-private, and all that they give is public. GAP and ProGAP
are (epsilon, delta)-private with delta = 1 / (2 edges). A classifier trained on the paper's joint
embeddings has no guarantee: each embedding is for its own member alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from edgeveil.estimate.classification import (
    ClassificationFit,
    Labels,
    Matrix,
    choose_roles,
    from_features,
)
from edgeveil.estimate.public import NodeData
from edgeveil.evaluation.measurements import Result, estimate
from edgeveil.graph.datasets import LabelledGraph
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms import EdgeFlipping
from edgeveil.mechanisms.node_classes import NodeClasses
from edgeveil.mechanisms.run import shared_part
from edgeveil.privacy.noise import NoiseSource
from experiments import classification_peers as peers
from experiments.baselines import PAPER_FLOW
from experiments.cells import Cells
from experiments.classifier import f1_scores
from experiments.embedding_study import Study
from experiments.figures import BLACK, BLUE, GREEN, GREY, LARGE, ORANGE, PINK, VERMILION, select
from experiments.flipped_walk import all_pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "ALONE",
    "AP",
    "EXACT",
    "METHODS",
    "MICRO",
    "OURS",
    "WITH",
    "WITHOUT",
    "draw",
    "measure",
    "settings",
]

Nodes = npt.NDArray[np.int64]

OURS, ALONE, EXACT = "edgeveil", "features alone", "exact sums (not private)"
SHUFFLED = "edgeveil, shuffled nodes"
NAMING = "LPGNet that names true labels"
OWN_NOISE = ", noise of its own code"
FLIPPED = "edge flipping + InstantEmbedding"
JOINT = "the paper's joint embeddings"
_NEARLY_EXACT = 1000.0  # what the estimator takes for the epsilon of exact sums
METHODS = {  # and what each of them promises
    OURS: "ε, public",
    "LPGNet": "ε, public",
    NAMING: "ε, public",
    "ProGAP": "(ε, δ)",
    "GAP": "(ε, δ)",
    "ProGAP" + OWN_NOISE: "(ε, δ) for an arc, less for an edge",
    "GAP" + OWN_NOISE: "(ε, δ) for an arc, less for an edge",
    FLIPPED: "ε, public",
    JOINT: "none for the classifier",
    SHUFFLED: "ε, public",
}
WITH, WITHOUT, AP, MICRO = "accuracy", "accuracy without features", "average precision", "Micro-F1"


def settings(quick: bool) -> dict[str, Any]:
    """Peers, edge flipping and embeddings on fewer networks: they take most of the time."""
    small, few = ["Amherst", "Reed", "Cora"], [0.25, 1.0, 4.0]
    return {
        "datasets": small[1:] if quick else None,
        "epsilons": [0.25, 1.0, 4.0] if quick else [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0],
        "shares": [0.6] if quick else [0.1, 0.6],
        "splits": 2 if quick else 4,
        "shuffled_epsilons": [1.0] if quick else [1.0, 4.0],
        "peers": {"Reed": [1.0]}
        if quick
        else {**dict.fromkeys(small, few), "Facebook pages": [1.0]},
        "peer_shares": [0.6],
        "peer_splits": 2,
        "embedded": small[1:2] if quick else small,
        "rare": {} if quick else {"Amherst, dormitories": [0.01, 0.02]},
        "half": [0.5],
        "dimension": 256,
        "sigma": 1e-6,
        **PAPER_FLOW,
        "seed": 0,
    }


def measure(
    datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """One network after the other."""
    wanted = settings["datasets"] or list(datasets)
    results: list[Result] = []
    with threadpool_limits(1):
        for name in (name for name in wanted if name in datasets):
            results += _Network(name, datasets[name], settings, cells).results()
    return results


# -- One split -------------------------------------------------------------------------------------


class Task:
    """What all methods are given on one split: labels of some nodes, and features or none.

    `test` are the nodes whose labels are hidden; nodes of unknown class are in neither part.
    """

    def __init__(
        self, nodes: NodeSet, labels: Labels, share: float, features: Any, split: int,
        noise: NoiseSource,
    ) -> None:  # fmt: skip
        labelled = np.flatnonzero(labels.labelled)
        order = np.random.default_rng([split, 0xC1A55]).permutation(labelled)
        cut = round(share * len(labelled))
        self.train, self.test = np.sort(order[:cut]), np.sort(order[cut:])
        hidden = np.ones(labels.n_nodes, dtype=bool)
        hidden[self.train] = False
        self.truth, self.labels = labels, labels.without(hidden)
        self.nodes, self.features, self.split, self.noise = nodes, features, split, noise

    @cached_property
    def data(self) -> NodeData:
        """What `edgeveil.classify` makes of the labels and the features."""
        return NodeData(
            nodes=self.nodes,
            classes=tuple(range(self.labels.n_classes)),
            labels=self.labels,
            roles=choose_roles(self.labels, seed=self.split),
            features=self.features,
        )

    def fit(self, graph: Graph, epsilon: float) -> ClassificationFit:
        """What `edgeveil.classify` gives on a graph; with exact sums if epsilon is infinite."""
        exact = np.isinf(epsilon)
        mechanism = NodeClasses(
            epsilon=_NEARLY_EXACT if exact else epsilon, data=self.data, seed=self.split
        )
        noise = None if exact else self.noise.derive(f"{epsilon:g}")
        fit: ClassificationFit = shared_part(mechanism, graph, noise)
        return fit

    def score(self, logs: Matrix) -> float:
        """Accuracy on the test nodes; for several labels Micro-F1, with as many as a node has."""
        if self.truth.counts.max() <= 1:
            return self.right(logs.argmax(axis=1))
        truth = self.truth.shares(self.test) > 0
        return f1_scores(logs[self.test], truth).micro

    def right(self, guess: Nodes) -> float:
        """Share of the test nodes whose class is guessed."""
        return float(np.mean(guess[self.test] == self.truth.first()[self.test]))

    def precision(self, logs: Matrix) -> float:
        """Average precision for class 1."""
        from sklearn.metrics import average_precision_score

        odds = logs[self.test, 1] - logs[self.test, 0]
        return float(average_precision_score(self.truth.first()[self.test], odds))


class _Network:
    """All measurements on one network, cell by cell."""

    def __init__(
        self, name: str, data: LabelledGraph, settings: dict[str, Any], cells: Cells
    ) -> None:
        self.name, self.data, self.settings, self.cells = name, data, settings, cells
        self.graph = data.graph
        stored = sp.csr_array(data.labels)
        starts, classes = stored.indptr.astype(np.int64), stored.indices.astype(np.int64)
        self.labels = Labels(starts, classes, stored.shape[1])
        self.features = getattr(data, "features", None)
        self.noise = NoiseSource.insecure(settings["seed"]).derive("classification").derive(name)
        order = np.random.default_rng(7).permutation(self.graph.n_nodes)
        u = np.repeat(np.arange(self.graph.n_nodes), self.graph.degrees)
        ends = order[u], order[self.graph.indices]  # the same graph, with other nodes' names
        self.shuffled = Graph.from_edges(*ends, self.graph.nodes)

    def results(self) -> Iterator[Result]:
        """Share by share; for several labels, half labelled."""
        if self.labels.counts.max() > 1:
            for share in self.settings["half"]:
                yield from self._lines(share, MICRO, None)
            return
        for share in self.settings["shares"]:
            if self.name in self.settings["rare"]:
                yield from self._rare(share)
                continue
            if self.features is not None:
                yield from self._lines(share, WITH, self.features)
            yield from self._lines(share, WITHOUT, None)
            if self.features is not None and share in self.settings["peer_shares"]:
                yield from self._others(share)

    def _tasks(self, share: float, features: Any, splits: int) -> list[Task]:
        return [
            Task(
                self.graph.nodes,
                self.labels,
                share,
                features,
                split,
                self.noise.derive("split", split),
            )
            for split in range(splits)
        ]

    def _lines(self, share: float, metric: str, features: Any) -> Iterator[Result]:
        """Ours, beside nothing of the graph, all of it, and another graph."""
        tasks = self._tasks(share, features, self.settings["splits"])

        def ours(graph: Graph, epsilon: float, task: Task) -> float:
            return task.score(task.fit(graph, epsilon).log_probabilities)

        point = partial(self._point, tasks, share, metric)
        yield point(ALONE, 0.0, lambda task: task.score(task.data.log_prior))
        yield point(EXACT, np.inf, partial(ours, self.graph, np.inf))
        for epsilon in self.settings["epsilons"]:
            yield point(OURS, epsilon, partial(ours, self.graph, epsilon))
        for epsilon in self.settings["shuffled_epsilons"]:
            yield point(SHUFFLED, epsilon, partial(ours, self.shuffled, epsilon))

    def _point(
        self,
        tasks: Sequence[Task],
        share: float,
        metric: str,
        label: str,
        epsilon: float,
        score: Callable[[Task], Any],
    ) -> Result:
        """One point of a line: mean and interval over splits. Of several scores the best counts."""
        scores = [
            self.cells.get(
                f"{self.name} / {share:g} / {metric} / {label} {epsilon:g} / split {task.split}",
                partial(score, task),
            )
            for task in tasks
        ]
        return Result.of(
            estimate([np.max(values) for values in scores]),
            experiment="classification",
            dataset=self.name,
            mechanism=label,
            epsilon=epsilon,
            metric=metric,
            scope=f"{share:.0%} labelled",
            n_sources=len(tasks[0].test),
            repeats=len(tasks),
        )

    def _others(self, share: float) -> Iterator[Result]:
        """Other methods, with features."""
        tasks = self._tasks(share, self.features, self.settings["peer_splits"])
        point = partial(self._point, tasks, share, WITH)
        for epsilon in self.settings["peers"].get(self.name, ()):
            for label, method in _peers(self.graph, epsilon):
                yield point(label, epsilon, partial(_best, method))
            if self.name in self.settings["embedded"]:
                for label, columns in (
                    (FLIPPED, partial(self._embeddings.flipped, epsilon)),
                    (JOINT, partial(self._embeddings.joint, epsilon)),
                ):
                    yield point(label, epsilon, partial(_with_columns, columns))

    @cached_property
    def _embeddings(self) -> _Embeddings:
        settings = {**self.settings, "splits": self.settings["peer_splits"]}
        return _Embeddings(self.name, self.data, settings, self.cells)

    def _rare(self, share: float) -> Iterator[Result]:
        """One small class after the other against all other nodes: average precision."""
        least, most = self.settings["rare"][self.name]
        n = self.graph.n_nodes
        counts = np.bincount(self.labels.classes, minlength=self.labels.n_classes)
        small = np.flatnonzero((counts >= least * n) & (counts <= most * n))
        members = [self.labels.first() == class_id for class_id in small]
        tasks = [
            [
                Task(
                    self.graph.nodes, Labels.single(mine.astype(np.int64), 2), share,
                    self.features, split, self.noise.derive(f"class {class_id}", split),
                )
                for class_id, mine in zip(small, members, strict=True)
            ]
            for split in range(self.settings["splits"])
        ]  # fmt: skip

        def line(label: str, epsilon: float, logs: Callable[[Task], Matrix]) -> Result:
            scores = [
                self.cells.get(
                    f"{self.name} / {share:g} / rare / {label} {epsilon:g} / split {split}",
                    partial(_mean_precision, of_split, logs),
                )
                for split, of_split in enumerate(tasks)
            ]
            return Result.of(
                estimate(scores),
                experiment="classification",
                dataset=self.name,
                mechanism=label,
                epsilon=epsilon,
                metric=AP,
                scope=f"{share:.0%} labelled",
                n_sources=len(small),
                repeats=len(scores),
            )

        def ours(epsilon: float, task: Task) -> Matrix:
            return task.fit(self.graph, epsilon).log_probabilities

        yield line(ALONE, 0.0, lambda task: task.data.log_prior)
        yield line(EXACT, np.inf, partial(ours, np.inf))
        for epsilon in self.settings["epsilons"]:
            yield line(OURS, epsilon, partial(ours, epsilon))


def _mean_precision(tasks: Iterable[Task], logs: Callable[[Task], Matrix]) -> float:
    return float(np.mean([task.precision(logs(task)) for task in tasks]))


# -- Other methods ---------------------------------------------------------------------------------

Method = Callable[[Task], Iterable[Nodes]]


def _peers(graph: Graph, epsilon: float) -> Iterator[tuple[str, Method]]:
    """Peers, each a function of the task; predictions for each number of hops."""
    adjacency = graph.adjacency().astype(np.float64)

    def noisy(
        method: Callable[..., Iterable[Nodes]], sensitivity: float, task: Task
    ) -> Iterable[Nodes]:
        return method(adjacency, *_given(task), epsilon, sensitivity, task.split)

    def naming(true_labels: bool, task: Task) -> Iterable[Nodes]:
        return peers.lpgnet(adjacency, *_given(task), epsilon, task.split, true_labels=true_labels)

    for name, method in (("GAP", peers.gap), ("ProGAP", peers.progap)):
        yield name, partial(noisy, method, peers.UNDIRECTED)
        yield name + OWN_NOISE, partial(noisy, method, 1.0)
    yield "LPGNet", partial(naming, False)
    yield NAMING, partial(naming, True)


@lru_cache(maxsize=8)
def _given(task: Task) -> tuple[Any, Nodes, Nodes]:
    """An encoder on features, the classes, and who is labelled."""
    y = task.truth.first()
    return peers.encoder(task.features, y, task.train, task.split), y, task.train


def _best(method: Method, task: Task) -> list[float]:
    return [task.right(guess) for guess in method(task)]


class _Embeddings(Study):
    """Embeddings of all nodes, private or of a flipped graph."""

    experiment = "classification"

    @property
    def size(self) -> int:
        """No cells of its own but the flow's."""
        return len(self.blocks())

    def results(self) -> Iterator[Result]:
        """None of its own."""
        return iter(())

    def joint(self, epsilon: float, split: int) -> Matrix:
        """The paper's, each for its own member."""
        return self.papers_embedding(self.papers_flow(), epsilon, split)

    def flipped(self, epsilon: float, split: int) -> Matrix:
        """Of PageRank on a flipped graph, without own edges: public."""
        mechanism = EdgeFlipping(epsilon=epsilon, restart=self.settings["restart"])
        noise = self.noise.derive("flipping", f"{epsilon:g}").derive("split", split)
        graph = shared_part(mechanism, self.graph, noise.derive("shared"))
        rows = all_pairs(graph, restart=self.settings["restart"]).astype(np.float64)
        return np.asarray(self.hashed(rows)[:, split])


def _with_columns(columns: Callable[[int], Matrix], task: Task) -> float:
    """A logistic regression on features and an embedding side by side."""
    both = sp.csr_array(sp.hstack([task.features, sp.csr_array(columns(task.split))]))
    return task.score(from_features(both, task.labels))


# -- The figure ------------------------------------------------------------------------------------

_CURVES = {
    OURS: (BLUE, "o", "edgeveil: ε for every edge, result public"),
    NAMING: (GREEN, "v", "LPGNet naming true labels: the same"),
    "LPGNet": (ORANGE, "^", "LPGNet: the same"),
    "ProGAP": (PINK, "D", "ProGAP: weaker, (ε, δ)"),
    "GAP": (VERMILION, "s", "GAP: weaker, (ε, δ)"),
}
_LEVELS = {
    EXACT: (BLACK, "-", "all edges, exactly: not private"),
    ALONE: (GREY, ":", "features alone: no edges"),
}
_PANELS = {
    "Amherst": "University: class year\n(81 friends each)",
    "Facebook pages": "Facebook pages: kind\n(15 links each)",
    "Cora": "Papers: topic\n(4 citations each)",
}


def draw(results: list[Result]) -> Figure:
    """Accuracy against epsilon, where most nodes show their label."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(r.dataset for r in results))
    shown = [name for name in _PANELS if name in names] or names[:1]
    figure = Figure(figsize=(3.7 * len(shown), 5.0), layout="constrained")
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for axes, name in zip(panels, shown, strict=True):
        here = select(results, dataset=name)
        of_metric = select(here, metric=here[0].metric)
        scope = of_metric[-1].scope
        _draw_network(axes, select(of_metric, scope=scope))
        axes.set_title(_PANELS.get(name, name), loc="left", fontsize=LARGE)
        axes.set_xlabel("ε (smaller is more private)", fontsize=LARGE)
        axes.tick_params(labelsize=LARGE - 1)
    panels[0].set_ylabel(f"hidden labels predicted right\n({scope})", fontsize=LARGE)
    handles, words = panels[0].get_legend_handles_labels()
    figure.legend(handles, words, loc="outside lower center", ncol=2, fontsize=LARGE)
    return figure


def _draw_network(axes: Axes, results: Sequence[Result]) -> None:
    epsilons = sorted({r.epsilon for r in results if r.mechanism == OURS and r.epsilon})
    for label, (colour, style, words) in _LEVELS.items():
        [level] = select(results, mechanism=label)
        axes.axhline(level.mean, color=colour, linestyle=style, linewidth=2, label=words)
    for label, (colour, mark, words) in _CURVES.items():
        line = sorted(
            (r.epsilon or 0, r.mean, r.low, r.high) for r in results if r.mechanism == label
        )
        if line:
            x, mean, low, high = np.array(line).T
            wide = 3.0 if label == OURS else 1.5
            axes.plot(x, mean, color=colour, marker=mark, markersize=5, linewidth=wide, label=words)
            if label == OURS:
                axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
