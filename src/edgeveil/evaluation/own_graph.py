"""`evaluate`: how well private rankings do on one's own graph. For the curator only."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from edgeveil.errors import ParameterError
from edgeveil.evaluation.baselines import RandomOrder
from edgeveil.evaluation.contest import Contender, measure_contest
from edgeveil.evaluation.ranking import SCOPES
from edgeveil.evaluation.results import Result
from edgeveil.graph import Graph
from edgeveil.mechanisms import (
    DegreePrior,
    DPPushFlowCap,
    EdgeFlipping,
    Mechanism,
    NonPrivate,
    OwnNeighbours,
    TwoHop,
)
from edgeveil.notebook import html_card, html_table
from edgeveil.privacy.epsilon import check_epsilon

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["Evaluation", "evaluate"]

_WARNING = (
    "FOR THE CURATOR, NOT PRIVATE: these numbers come from the exact graph. Keep them; what is "
    "published has to be a release."
)
_EPSILONS = (0.1, 1.0, 5.0)
_NOT_RESULTS = ("experiment", "dataset", "paper_value")


@dataclass(frozen=True)
class Evaluation:
    """Accuracy of private rankings on one graph; printing it gives a table.

    Attributes
    ----------
    results : tuple of Result
        One number each: mechanism, epsilon, metric, scope, mean and 95 % interval.
    k : int
        How many nodes counted.
    """

    results: tuple[Result, ...]
    k: int

    def rows(self) -> list[tuple[str | float | None, ...]]:
        """One row per mechanism and epsilon, as named by `columns`.

        None stands for an epsilon where there is none to choose (the truth, the floors), and for
        accuracy where there were no more than k nodes to choose from, so that any order is right.
        """
        found = {(r.mechanism, r.epsilon, r.metric, r.scope): r.mean for r in self.results}
        asked = [(f"recall@{self.k}", scope) for scope in SCOPES] + [(f"ndcg@{self.k}", "all")]
        told = {key[2:] for key, mean in found.items() if key[0] == "random" and mean < 1}
        return [
            (
                name,
                loss if loss and not math.isinf(loss) else None,
                *(found[name, loss, *key] if key in told else None for key in asked),
            )
            for name, loss in dict.fromkeys((r.mechanism, r.epsilon) for r in self.results)
        ]

    @property
    def columns(self) -> list[str]:
        """Names of what `rows` gives."""
        scopes = ["", *(f" {scope}" for scope in SCOPES[1:])]
        recalls = [f"recall@{self.k}{scope}" for scope in scopes]
        return ["mechanism", "epsilon", *recalls, f"ndcg@{self.k}"]

    def to_polars(self) -> pl.DataFrame:
        """All results, one per line, intervals included."""
        import polars as pl

        return pl.DataFrame(self._records(), infer_schema_length=None)

    def to_pandas(self) -> pd.DataFrame:
        """The table of `to_polars` for pandas; ``attrs["edgeveil"]`` says whom it is for."""
        from edgeveil.io.exports import KEY, load_library

        frame = load_library("pandas", "to_pandas").DataFrame(self._records())
        frame.attrs[KEY] = {"statement": _WARNING}
        return frame

    def _records(self) -> list[dict[str, Any]]:
        records = [asdict(result) for result in self.results]
        return [{k: v for k, v in r.items() if k not in _NOT_RESULTS} for r in records]

    def _shown(self) -> list[list[str]]:
        return [
            ["-" if c is None else f"{c:.3g}" if isinstance(c, float) else c for c in row]
            for row in self.rows()
        ]

    def __str__(self) -> str:
        lines = [self.columns, *self._shown()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = [
            "  ".join(
                cell.rjust(width) if i else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        return "\n".join([*table, _WARNING])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table = html_table(self.columns, self._shown())
        return html_card(f"Private rankings, top {self.k}", _WARNING, alarm=True, table=table)


def evaluate(
    graph: Graph,
    epsilons: float | Iterable[float] | None = None,
    *,
    mechanisms: Iterable[Mechanism] | None = None,
    sources: int = 30,
    k: int = 100,
    min_degree: int = 50,
    name: str = "graph",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Evaluation:
    """Measure on a graph how well private rankings do. For the curator only.

    Recall@k and NDCG@k against exact PageRank, in three scopes (see
    `edgeveil.evaluation.ranking`), beside two floors: a random order, and what a member's own
    list gives without any budget. Nothing is charged and nothing is protected: the numbers come
    from the exact graph.

    Parameters
    ----------
    graph : Graph
        The private graph.
    epsilons : float or iterable of float, optional
        Privacy losses at which the recommended mechanisms, the paper's and edge flipping are
        tried; 0.1, 1 and 5 if left out.
    mechanisms : iterable of Mechanism, optional
        Try these instead, each at its own epsilon.
    sources : int
        How many nodes are ranked for, drawn from those with `min_degree` neighbours. Always
        the same ones, with the same (seeded) noise: the result can be repeated.
    k : int
        How many nodes of a ranking count.
    min_degree : int
        Neighbours that a source must have; the paper's 50 is much for a small graph.
    name : str
        The graph's name in the results.
    progress : callable
        Is told how many parts of the measurement are done, of how many.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from edgeveil.datasets import social_network
    >>> from edgeveil.mechanisms import TwoHop
    >>> graph = social_network(300, average_degree=12).graph
    >>> found = evaluate(graph, mechanisms=[TwoHop(epsilon=1)], sources=3, k=10, min_degree=12)
    >>> [row[0] for row in found.rows()]
    ['non-private', 'own neighbours', 'random', 'two-hop']
    """
    for name, value in (("sources", sources), ("k", k)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError(f"{name} must be a whole number from 1 on, got {value!r}")
    if k >= graph.n_nodes:
        raise ParameterError(f"k must be less than the number of nodes, {graph.n_nodes}, got {k}")
    if mechanisms is not None and epsilons is not None:
        raise ParameterError("give epsilons or mechanisms; a mechanism brings its own epsilon")
    given = _EPSILONS if epsilons is None else epsilons
    losses = dict.fromkeys(
        check_epsilon(e) for e in (given if isinstance(given, Iterable) else [given])
    )
    tried = _recommended(losses, sources) if mechanisms is None else _own(list(mechanisms), sources)
    results = measure_contest(
        name,
        graph,
        [*_floors(sources), *tried],
        k=k,
        min_degree=min_degree,
        progress=progress,
    )
    return Evaluation(tuple(results), k)


def _floors(sources: int) -> Iterator[Contender]:
    levels: dict[str, Mechanism] = {
        "non-private": NonPrivate(),
        "own neighbours": OwnNeighbours(),
        "random": RandomOrder(),
    }
    for label, fixed in levels.items():
        yield Contender(label, fixed, fixed.guarantee(1).epsilon, sources, 1)


def _own(mechanisms: Sequence[Mechanism], sources: int) -> Iterator[Contender]:
    losses = [mechanism.guarantee(1).epsilon for mechanism in mechanisms]
    named = Counter(zip((m.name for m in mechanisms), losses, strict=True))
    for mechanism, loss in zip(mechanisms, losses, strict=True):
        # A cell is known by its label: two of one name and epsilon need more than that.
        label = mechanism.name if named[mechanism.name, loss] == 1 else repr(mechanism)
        yield Contender(label, mechanism, loss, sources, 3)


def _recommended(epsilons: Iterable[float], sources: int) -> Iterator[Contender]:
    for epsilon in epsilons:
        for mechanism in (TwoHop(epsilon=epsilon), DegreePrior(epsilon=epsilon)):
            yield Contender(mechanism.name, mechanism, epsilon, sources, 3)
        paper = DPPushFlowCap(epsilon=epsilon, rounds=100, prepush=True, bound="paper")
        yield Contender("push-flow-cap (paper)", paper, epsilon, sources, 3)
        if epsilon >= 1:  # below, the flipped graph is dense and slow
            flipping = EdgeFlipping(epsilon=epsilon)
            yield Contender("edge-flipping", flipping, epsilon, min(sources, 8), 1)
