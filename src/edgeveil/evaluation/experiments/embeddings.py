"""Beyond the paper: our private embedding against what a member can embed without any budget.

The protocol of Figure 2: the same splits, classifier and dimension, and the paper's mechanism
with the same noise, so that lines both experiments have are equal to the last digit. Split r has
its own release of every private embedding. As there, one classifier on the embeddings of all
nodes is a measurement of utility and not a joint-private release.

The floor costs nothing: a function of the member's own list alone. There are three: the weights
of InstantEmbedding, the same scaled to unit length, and equal weights scaled to unit length,
which is `TwoHopEmbedding` without its second hop. Scaling is free, so the paper's embedding and
the non-private one are measured with it as well. Scope "above the floor" is the difference to
the best of all floors (by the mean over the splits), split by split: the splits' own spread,
which all contenders share, drops out of its interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from edgeveil.datasets import LabelledGraph
from edgeveil.evaluation.classification import F1, classify, majority_floor
from edgeveil.evaluation.contest import draw_curve, draw_level
from edgeveil.evaluation.figures import BLACK, BLUE, GREEN, GREY, ORANGE, SKY, VERMILION
from edgeveil.evaluation.intervals import estimate
from edgeveil.evaluation.noiseless import noiseless_rows, with_noise
from edgeveil.evaluation.results import Result
from edgeveil.evaluation.runs import Cells
from edgeveil.hashing import hash_nodes, instant_embedding
from edgeveil.mechanisms import DPInstantEmbedding, NonPrivate, OwnNeighbours, TwoHopEmbedding
from edgeveil.mechanisms.protocol import Mechanism
from edgeveil.privacy.noise import NoiseSource

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "measure", "settings"]

Matrix = npt.NDArray[np.float64]

_BLOCK = 512  # sources whose rows are in memory together
_OURS, _PAPER, _PAPER_UNIT = (
    "two-hop-embedding",
    "instant-embedding",
    "instant-embedding, unit length",
)
_CURVES = {
    _OURS: (GREEN, "o", "two-hop embedding (recommended)"),
    _PAPER: (BLUE, "D", "DP InstantEmbedding (the paper's)"),
    _PAPER_UNIT: (SKY, "v", "the paper's, scaled to unit length"),
}
_LEVELS = {
    "own list, equal weights, unit length": (VERMILION, "--"),
    "own list, unit length": (ORANGE, "-."),
    "own list": (ORANGE, ":"),
    "majority labels": (GREY, ":"),
    "non-private": (BLACK, "-"),
    "non-private, unit length": (BLACK, "--"),
}
_ABOVE = "above the floor"


def settings(quick: bool) -> dict[str, Any]:
    """Joint model; the paper's parameters for the paper's mechanism, defaults for ours."""
    return {
        "datasets": ["POS"] if quick else None,
        "epsilons": [0.1, 1.0, 10.0] if quick else [0.1, 0.5, 1.0, 3.0, 5.0, 10.0],
        "splits": 2 if quick else 3,
        "train": 0.5,
        "dimension": 256,
        "sigma": 1e-6,
        "rounds": 100,
        "restart": 0.15,
        "prepush": True,
        "bound": "paper",
        "seed": 0,
    }


def measure(
    datasets: Mapping[str, LabelledGraph], settings: dict[str, Any], cells: Cells
) -> list[Result]:
    """Floors, the non-private embedding, the paper's and ours on every data set."""
    wanted = settings["datasets"] or list(datasets)
    studies = [_Study(name, datasets[name], settings, cells) for name in wanted if name in datasets]
    with cells.progress(sum(study.size for study in studies), "embeddings"):
        return [result for study in studies for result in study.results()]


@dataclass(frozen=True)
class _Line:
    """One embedding at one epsilon, and its F1 on a split."""

    label: str
    epsilon: float
    score: Callable[[int], F1]


class _Study:
    """All measurements on one data set."""

    def __init__(
        self, name: str, data: LabelledGraph, settings: dict[str, Any], cells: Cells
    ) -> None:
        self._name, self._data, self._settings, self._cells = name, data, settings, cells
        self._graph, self._dimension = data.graph, int(settings["dimension"])
        self._noise = NoiseSource.insecure(settings["seed"]).derive(name)
        self._splits = range(settings["splits"])

    @property
    def size(self) -> int:
        """How many cells."""
        lines = len(_LEVELS) + len(_CURVES) * len(self._settings["epsilons"])
        return 2 * len(self._blocks()) + lines * len(self._splits)

    def results(self) -> Iterator[Result]:
        """Every line, then every line that is no floor against the best floor."""
        lines = list(self._lines())
        found = {(line.label, line.epsilon): self._scores(line) for line in lines}
        for (label, epsilon), scores in found.items():
            for metric, values in scores.items():
                yield self._result(label, epsilon, metric, "all", values)
        for metric in ("micro", "macro"):
            floors = [s[metric] for (_, epsilon), s in found.items() if epsilon == 0]
            best = max(floors, key=lambda values: float(values.mean()))
            for (label, epsilon), scores in found.items():
                if epsilon > 0:
                    yield self._result(label, epsilon, metric, _ABOVE, scores[metric] - best)

    def _lines(self) -> Iterator[_Line]:
        """What needs no budget first."""
        s, graph = self._settings, self._graph
        labels, alone = self._data.labels, OwnNeighbours(restart=s["restart"])
        own = np.vstack([self._hashed(alone, block) for block in self._blocks()])
        exact = NonPrivate(restart=s["restart"], tol=1e-6)
        full = self._in_blocks("exact", partial(self._hashed, exact))
        flow = self._in_blocks(
            "capped flow", partial(noiseless_rows, graph, self._of_the_paper(1.0))
        )
        yield _Line(
            "majority labels",
            0.0,
            lambda split: majority_floor(labels, train=s["train"], seed=split),
        )
        for label, epsilon, fixed in (
            ("own list", 0.0, own),
            ("own list, unit length", 0.0, _unit(own)),
            ("own list, equal weights, unit length", 0.0, _unit(self._friends_hashed())),
            ("non-private", np.inf, full),
            ("non-private, unit length", np.inf, _unit(full)),
        ):
            yield _Line(label, epsilon, partial(self._classified_as, fixed))
        for epsilon in s["epsilons"]:
            for label, embedding in (
                (_PAPER, partial(self._paper, flow, epsilon)),
                (_PAPER_UNIT, partial(self._paper_unit, flow, epsilon)),
                (_OURS, partial(self._ours, epsilon)),
            ):
                yield _Line(label, epsilon, partial(self._classified, embedding))

    def _of_the_paper(self, epsilon: float) -> DPInstantEmbedding:
        names = ("dimension", "sigma", "rounds", "restart", "prepush", "bound")
        return DPInstantEmbedding(epsilon=epsilon, **{n: self._settings[n] for n in names})

    def _paper(self, flow: Matrix, epsilon: float, split: int) -> Matrix:
        # Figure 2's stream: the same release.
        rows = self._noise.derive(f"{epsilon:g}").derive("repeat", split).derive("rows")
        mechanism, everybody = self._of_the_paper(epsilon), range(self._graph.n_nodes)
        return with_noise(self._graph, mechanism, flow, everybody, rows)

    def _paper_unit(self, flow: Matrix, epsilon: float, split: int) -> Matrix:
        return _unit(self._paper(flow, epsilon, split))

    def _ours(self, epsilon: float, split: int) -> Matrix:
        mechanism = TwoHopEmbedding(
            epsilon=epsilon,
            dimension=self._dimension,
            restart=self._settings["restart"],
        )
        stream = self._noise.derive(_OURS, f"{epsilon:g}").derive("repeat", split)
        prepared = mechanism.prepare(self._graph, stream.derive("shared"))
        return mechanism.rows(prepared, range(self._graph.n_nodes), stream.derive("rows"))

    def _friends_hashed(self) -> Matrix:
        """Every friend with weight 1, in its dimension with its sign."""
        n, node_hash = self._graph.n_nodes, hash_nodes(self._graph.nodes, self._dimension)
        place = (node_hash.sign, (np.arange(n), node_hash.bucket))
        signs = sp.csr_array(place, shape=(n, self._dimension))
        return np.asarray((self._graph.adjacency() @ signs).toarray(), dtype=np.float64)

    def _hashed(self, mechanism: Mechanism, sources: Sequence[int]) -> Matrix:
        """InstantEmbedding of what needs no noise."""
        rows = mechanism.rows(self._graph, sources, self._noise)
        return instant_embedding(rows, hash_nodes(self._graph.nodes, self._dimension))

    def _blocks(self) -> list[range]:
        everybody = range(self._graph.n_nodes)
        return [everybody[start : start + _BLOCK] for start in everybody[::_BLOCK]]

    def _in_blocks(self, what: str, rows: Callable[[Sequence[int]], Matrix]) -> Matrix:
        """Embeddings of all nodes, kept block by block."""
        return np.vstack(
            [
                self._cells.array(f"{self._name} / {what} / {block.start}", partial(rows, block))
                for block in self._blocks()
            ]
        )

    def _classified(self, embedding: Callable[[int], Matrix], split: int) -> F1:
        return classify(
            embedding(split), self._data.labels, train=self._settings["train"], seed=split
        )

    def _classified_as(self, embedding: Matrix, split: int) -> F1:
        return self._classified(lambda _: embedding, split)

    def _scores(self, line: _Line) -> dict[str, Matrix]:
        """Micro-F1 and Macro-F1 x 100 on all splits, a cell each."""
        found = [
            self._cells.get(
                f"{self._name} / {line.label} {line.epsilon:g} / split {split}",
                partial(_as_json, line.score, split),
            )
            for split in self._splits
        ]
        return {metric: np.array([100 * f[metric] for f in found]) for metric in ("micro", "macro")}

    def _result(
        self, label: str, epsilon: float, metric: str, scope: str, values: Matrix
    ) -> Result:
        return Result.of(
            estimate(values),
            experiment="embeddings",
            dataset=self._name,
            mechanism=label,
            epsilon=epsilon,
            metric=f"{metric}-F1 x 100",
            scope=scope,
            n_sources=self._graph.n_nodes,
            repeats=len(values),
        )


def _as_json(score: Callable[[int], F1], split: int) -> dict[str, float]:
    return asdict(score(split))


def _unit(embedding: Matrix) -> Matrix:
    """Rows of length 1; a row of zeros stays."""
    return np.asarray(
        embedding / np.maximum(np.linalg.norm(embedding, axis=1, keepdims=True), 1e-300)
    )


def draw(results: list[Result]) -> Figure:
    """Columns are data sets; above Micro-F1, below what of it the budget has bought."""
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(r.dataset for r in results))
    figure = Figure(figsize=(5.2 * len(datasets), 6.6))
    grid = figure.subplots(2, len(datasets), squeeze=False, sharex=True)
    for i, scope in enumerate(("all", _ABOVE)):
        for axes, dataset in zip(grid[i], datasets, strict=True):
            here = [
                r
                for r in results
                if (r.dataset, r.metric, r.scope) == (dataset, "micro-F1 x 100", scope)
            ]
            for label, (colour, mark, name) in _CURVES.items():
                draw_curve(axes, here, label, colour, mark, name)
            if scope == "all":
                for label, (colour, style) in _LEVELS.items():
                    draw_level(axes, here, label, colour, style)
                axes.set_title(f"{dataset}: Micro-F1 x 100")
            else:
                axes.axhline(0, color=GREY, linewidth=1)
                axes.set_title(f"{dataset}: the same, above the best floor (epsilon = 0)")
                axes.set_xlabel("epsilon")
            axes.set_xscale("log")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="upper center",
        ncol=2,
        bbox_to_anchor=(0.5, 0.0),
        title="Shaded: 95 % intervals over the splits; below, of the difference on each split.",
    )
    figure.tight_layout()
    return figure
