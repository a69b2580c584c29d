"""`evaluate`: how well private rankings do on one's own graph. For the curator only."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from edgeveil.errors import ParameterError
from edgeveil.evaluation.ranking import SCOPES
from edgeveil.evaluation.results import Result
from edgeveil.evaluation.runs import Cells
from edgeveil.evaluation.showcase import ranking_results
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Mechanism
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
    losses = [check_epsilon(e) for e in (given if isinstance(given, Iterable) else [given])]
    with tempfile.TemporaryDirectory() as folder:
        results = ranking_results(
            "graph",
            graph,
            list(dict.fromkeys(losses)),
            sources,
            Cells(folder, {}),
            mechanisms=None if mechanisms is None else list(mechanisms),
            k=k,
            min_degree=min_degree,
        )
    return Evaluation(tuple(results), k)
