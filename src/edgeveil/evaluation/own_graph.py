"""`evaluate`: how accurate private results are on a graph. For the curator only."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from edgeveil import mechanisms as private
from edgeveil._internal.checks import check_choice, check_int
from edgeveil._internal.notebook import html_card, html_table
from edgeveil.errors import ParameterError
from edgeveil.evaluation.accuracy import ACCURACY, ALL, PRECISION, measure_classification
from edgeveil.evaluation.contest import SCOPES, Contender, RandomOrder, measure_contest
from edgeveil.evaluation.hits import (
    ALIKE,
    ALL_GROUPS,
    POPULAR,
    SIZE,
    default_mechanisms,
    measure_suggestions,
)
from edgeveil.evaluation.measurements import Result, draw_panels
from edgeveil.evaluation.over_time import measure_history
from edgeveil.graph.graph import Graph
from edgeveil.jobs.request import graph_of
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.requirements import check_mechanism
from edgeveil.privacy.epsilon import check_epsilon
from edgeveil.series.history import History

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.figure import Figure

Row = tuple[str | float | None, ...]

_WARNING = (
    "FOR THE CURATOR ONLY, NOT PRIVATE: these numbers come from the exact graph. Do not publish "
    "them."
)
EPSILONS = {
    "suggestions": (0.5, 1.0, 2.0),
    "rankings": (0.1, 1.0, 5.0),
    "classification": (0.25, 0.5, 1.0, 2.0),
}
_NOT_RESULTS = ("experiment", "dataset", "paper_value")


@dataclass(frozen=True)
class Evaluation:
    """How accurate private results are on one graph; printing it gives a table.

    Attributes
    ----------
    results : tuple of Result
        One number each: mechanism, epsilon, metric, scope, mean and 95 % interval.
    heading : str
        What was measured.
    columns : list of str
        Names of the columns of `rows`.
    lines : tuple
        The rows themselves.
    panels : tuple of (metric, scope)
        What `plot` shows.
    """

    results: tuple[Result, ...]
    heading: str
    columns: list[str]
    lines: tuple[Row, ...]
    panels: tuple[tuple[str, str], ...]

    def rows(self) -> list[Row]:
        """One row per mechanism and epsilon; see `columns`.

        For suggestions also one per measure; over time also one per degree group. Epsilon is None
        where there is none (exact values, floors); an accuracy is None where any order is right.
        """
        return list(self.lines)

    def to_polars(self) -> pl.DataFrame:
        """All results, one per line, intervals included."""
        import polars as pl

        return pl.DataFrame(self._records(), infer_schema_length=None)

    def to_pandas(self) -> pd.DataFrame:
        """The table of `to_polars` for pandas; the warning is in ``attrs["edgeveil"]``."""
        from edgeveil.results.tabular import KEY, load_library

        frame = load_library("pandas", "to_pandas").DataFrame(self._records())
        frame.attrs[KEY] = {"statement": _WARNING}
        return frame

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw accuracy against epsilon; for rankings, the paper's Figure 1 for this graph.

        Parameters
        ----------
        path : path, optional
            Write the figure there as well: .png, .svg or .pdf.

        Raises
        ------
        EdgeveilError
            If matplotlib is not installed (``edgeveil[plot]``).
        """
        figure = draw_panels(self.results, self.panels, self.heading)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def _records(self) -> list[dict[str, Any]]:
        return [
            {name: value for name, value in asdict(result).items() if name not in _NOT_RESULTS}
            for result in self.results
        ]

    def _shown(self) -> list[list[str]]:
        return [
            ["-" if c is None else f"{c:.3g}" if isinstance(c, float) else str(c) for c in row]
            for row in self.lines
        ]

    def __str__(self) -> str:
        lines = [self.columns, *self._shown()]
        first, *others = (max(map(len, column)) for column in zip(*lines, strict=True))
        table = [
            "  ".join([name.ljust(first), *map(str.rjust, cells, others)]) for name, *cells in lines
        ]
        return "\n".join([*table, _WARNING])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table = html_table(self.columns, self._shown())
        return html_card(self.heading, _WARNING, alarm=True, table=table)


def evaluate(
    graph: Graph | History,
    epsilons: float | Iterable[float] | None = None,
    *,
    protocol: Literal["suggestions", "rankings", "classification"] | None = None,
    labels: Any = None,
    features: Any = None,
    prior: Any = None,
    mechanisms: Mechanism | Iterable[Mechanism] | None = None,
    sources: int | None = None,
    k: int | None = None,
    min_degree: int = 50,
    name: str = "graph",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Evaluation:
    """Measure how accurate private results are on a graph. For the curator only.

    Nothing is charged and nothing is protected: the numbers come from the exact graph.

    ``suggestions``: hide a tenth of the edges, make lists without them, and count how many hidden
    friends the lists find (hits@k), by degree group and for all members. For comparison:
    popularity, scores without privacy, and the limit of lists made from common friends and
    popularity (docs/theory/limits.md). Also the number of members in each degree group, and the
    share of lists that are mostly popular names.

    ``rankings``, the protocol of the paper: Recall@k and NDCG@k against exact PageRank, in three
    scopes (see `edgeveil.evaluation.contest`). For comparison: two floors.

    ``classification``: hide a fifth of the labels, four times over, and count how many of them
    `edgeveil.classify` predicts. For comparison: the same with exact sums, and without the graph.

    For a history: suggestions over time. What the lists of a series (`edgeveil.refresh` with its
    default rule) find at the last five snapshots. For comparison: popularity, and "base only", one
    list with all of epsilon at the first snapshot, from which only new friends are removed.

    Parameters
    ----------
    graph : Graph or History
        The private graph (anything that `edgeveil.release` takes), or its history.
    epsilons : float or iterable of float, optional
        Values of epsilon to try; by default 0.5, 1 and 2 for suggestions, 0.1, 1 and 5 for
        rankings, and 0.25, 0.5, 1 and 2 for classification.
    protocol : {"suggestions", "rankings", "classification"}
        What to measure; by default what `mechanisms` give, classification if there are labels, or
        else suggestions.
    labels, features, prior : optional
        Classification: as for `edgeveil.classify`.
    mechanisms : Mechanism or iterable of them, optional
        Measure these instead of the recommended ones, each at its own epsilon.
    sources : int, optional
        Number of members in each degree group (150 by default), or of sources of rankings (30).
        The choice and the noise are seeded: the result can be repeated.
    k : int, optional
        Length of the lists (20 by default) or of the rankings (100) that are compared.
    min_degree : int
        Rankings: the lowest degree of a source. The paper's value of 50 may be too high for a
        small graph.
    name : str
        The graph's name in the results.
    progress : callable
        Called with the number of parts of the measurement that are done, and of all parts.

    Examples
    --------
    >>> from edgeveil.graph.datasets import social_network
    >>> graph = social_network(300, average_degree=12).graph
    >>> rows = evaluate(graph, 1.0, sources=5, k=10).rows()
    >>> rows[0][0], [row[0] for row in rows[-2:]]
    ('graph', ['suggest', 'limit'])
    """
    over_time = isinstance(graph, History)
    job = prepare_evaluation(
        epsilons,
        over_time=over_time,
        protocol=protocol,
        labels=labels,
        features=features,
        prior=prior,
        mechanisms=mechanisms,
        sources=sources,
        k=k,
        min_degree=min_degree,
    )
    return job.run(graph if over_time else graph_of(graph), name=name, progress=progress)


def prepare_evaluation(
    epsilons: float | Iterable[float] | None = None,
    *,
    over_time: bool = False,
    protocol: Literal["suggestions", "rankings", "classification"] | None = None,
    labels: Any = None,
    features: Any = None,
    prior: Any = None,
    mechanisms: Mechanism | Iterable[Mechanism] | None = None,
    sources: int | None = None,
    k: int | None = None,
    min_degree: int = 50,
) -> EvaluationJob:
    """Check what is to be measured, before there is a graph; parameters as for `evaluate`.

    With `over_time` it is to be measured on a history.
    """
    listed = None if mechanisms is None else _checked(mechanisms)
    data = {"labels": labels, "features": features, "prior": prior}
    if over_time:
        if protocol in ("rankings", "classification") or labels is not None:
            raise ParameterError("only suggestions are measured over time: give a graph")
        if listed is not None:
            raise ParameterError("a history is measured with a series of lists: no mechanisms")
    if protocol is None:
        scores = any(mechanism.output == "scores" for mechanism in listed or ())
        protocol = "rankings" if scores else "suggestions"
        protocol = protocol if labels is None else "classification"
    check_choice("protocol", protocol, *EPSILONS)
    if protocol == "classification":
        if labels is None:
            raise ParameterError(
                "classification is measured on known labels: give labels (--labels FILE)"
            )
        if listed is not None or sources is not None or k is not None:
            raise ParameterError(
                "classification takes epsilons and labels: no mechanisms, sources, k"
            )
    else:
        if any(value is not None for value in data.values()):
            raise ParameterError(f"labels and features are for classification, not {protocol}")
        output = "lists" if protocol == "suggestions" else "scores"
        if other := [m.name for m in listed or () if m.output != output]:
            raise ParameterError(f"{other[0]} gives no {output}, which {protocol} are measured by")
    if listed is not None and epsilons is not None:
        raise ParameterError("give epsilons or mechanisms; a mechanism has its own epsilon")
    n_sources, length = (30, 100) if protocol == "rankings" else (150, 20)
    return EvaluationJob(
        protocol=protocol,
        epsilons=_losses(epsilons, protocol),
        mechanisms=listed,
        data=data,
        sources=check_int("sources", n_sources if sources is None else sources),
        k=check_int("k", length if k is None else k),
        min_degree=check_int("min_degree", min_degree, 0),
    )


@dataclass(frozen=True, kw_only=True)
class EvaluationJob:
    """A measurement that was checked, of whatever graph or history it is run on."""

    protocol: str
    epsilons: list[float]
    mechanisms: list[Mechanism] | None
    data: dict[str, Any]  # labels, features and prior
    sources: int
    k: int
    min_degree: int

    def run(
        self,
        graph: Graph | History,
        *,
        name: str = "graph",
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Evaluation:
        """Measure; name and progress as for `evaluate`."""
        if self.protocol == "classification":
            assert isinstance(graph, Graph)
            results = measure_classification(
                name, graph, epsilons=self.epsilons, **self.data, progress=progress
            )
            return _of_classes(results)
        if self.k >= len(graph.nodes):
            raise ParameterError(
                f"k must be less than the number of nodes, {len(graph.nodes)}, got {self.k}"
            )
        if isinstance(graph, History):
            results = measure_history(
                name, graph, self.epsilons, k=self.k, per_group=self.sources, progress=progress
            )
            return _over_time(results, self.k)
        if self.protocol == "suggestions":
            lists = self.mechanisms
            if lists is None:
                lists = default_mechanisms(self.epsilons, directed=graph.directed)
            results = measure_suggestions(
                name, graph, lists, k=self.k, groups=ALL_GROUPS, per_group=self.sources,
                progress=progress,
            )  # fmt: skip
            return _of_lists(results, self.k)
        results = measure_contest(
            name, graph, self._contenders(), k=self.k, min_degree=self.min_degree,
            progress=progress,
        )  # fmt: skip
        return _of_rankings(results, self.k)

    def _contenders(self) -> list[Contender]:
        """What rankings are compared: the mechanisms, exact PageRank and two floors."""
        sources, own = self.sources, self.mechanisms
        return [
            Contender("non-private", private.NonPrivate(), math.inf, sources, 1),
            Contender("own neighbours", private.OwnNeighbours(), 0.0, sources, 1),
            Contender("random", RandomOrder(), math.inf, sources, 1),
            *(_recommended(self.epsilons, sources) if own is None else _own(own, sources)),
        ]


def _checked(mechanisms: Any) -> list[Mechanism]:
    """A mechanism, or several."""
    single = isinstance(mechanisms, str) or not isinstance(mechanisms, Iterable)
    return [check_mechanism(each) for each in ([mechanisms] if single else mechanisms)]


def _losses(epsilons: float | Iterable[float] | None, protocol: str) -> list[float]:
    """Each privacy loss to try, once."""
    tried = EPSILONS[protocol] if epsilons is None else epsilons
    every = tried if isinstance(tried, Iterable) else [tried]
    return list(dict.fromkeys(check_epsilon(epsilon) for epsilon in every))


def _over_time(results: list[Result], k: int) -> Evaluation:
    """One line per degree group, mechanism and epsilon; a column for each snapshot."""
    hits = [r for r in results if r.metric != SIZE]
    by_key = {(r.scope, r.mechanism, r.epsilon, r.metric): r.mean for r in hits}
    scopes = list(dict.fromkeys(r.scope for r in hits))
    mechanisms = list(dict.fromkeys((r.mechanism, r.epsilon) for r in hits))
    metrics = list(dict.fromkeys(r.metric for r in hits))
    lines: list[Row] = []
    for scope in scopes:
        for name, loss in mechanisms:
            cells = [by_key[scope, name, loss, metric] for metric in metrics]
            friends = scope.removesuffix(" friends").removesuffix(" members")
            lines.append((friends, name, loss, *cells))
    snapshots = [f"at {metric.rpartition(' ')[2]}" for metric in metrics]  # a terminal is narrow
    columns = ["friends", "mechanism", "epsilon", *snapshots]
    panels = tuple((metrics[-1], scope) for scope in scopes)
    heading = f"Private suggestions over time, hits@{k} at the last snapshots"
    return Evaluation(tuple(results), heading, columns, tuple(lines), panels)


def _of_lists(results: list[Result], k: int) -> Evaluation:
    """One line per mechanism, epsilon and measure; a column for each degree group."""
    hits = f"hits@{k}"
    names = {SIZE: SIZE, hits: hits, POPULAR: "mostly popular", ALIKE: "most suggested"}
    by_key = {(r.mechanism, r.epsilon, r.metric, r.scope): r.mean for r in results}
    scopes = list(dict.fromkeys(r.scope for r in results))
    lines: list[Row] = []
    for name, loss, metric in dict.fromkeys((r.mechanism, r.epsilon, r.metric) for r in results):
        if metric in names:
            cells = [by_key[name, loss, metric, scope] for scope in scopes]
            shown = [int(cell) for cell in cells] if metric == SIZE else cells
            lines.append((name, loss, names[metric], *shown))
    columns = ["mechanism", "epsilon", "measure", *(s.removesuffix(" friends") for s in scopes)]
    panels = tuple((hits, scope) for scope in scopes)
    heading = f"Private suggestions, top {k}, by friends of the member"
    return Evaluation(tuple(results), heading, columns, tuple(lines), panels)


def _of_rankings(results: list[Result], k: int) -> Evaluation:
    """One line per mechanism and epsilon: recall in every scope, and NDCG."""
    by_key = {(r.mechanism, r.epsilon, r.metric, r.scope): r.mean for r in results}
    measures = [(f"recall@{k}", scope) for scope in SCOPES] + [(f"ndcg@{k}", "all")]
    telling = {key[2:] for key, mean in by_key.items() if key[0] == "random" and mean < 1}
    lines = tuple(
        (
            name,
            loss if loss and not math.isinf(loss) else None,
            *(by_key[name, loss, *key] if key in telling else None for key in measures),
        )
        for name, loss in dict.fromkeys((r.mechanism, r.epsilon) for r in results)
    )
    recalls = [f"recall@{k}{scope}" for scope in ("", *(f" {scope}" for scope in SCOPES[1:]))]
    columns = ["mechanism", "epsilon", *recalls, f"ndcg@{k}"]
    panels = ((f"recall@{k}", "all"), (f"ndcg@{k}", "all"), (f"recall@{k}", "non-neighbours"))
    return Evaluation(tuple(results), f"Private rankings, top {k}", columns, lines, panels)


def _of_classes(results: list[Result]) -> Evaluation:
    """One line per mechanism and epsilon: accuracy, and average precision where it is hardest."""
    by_key = {(r.mechanism, r.epsilon, r.metric, r.scope): r for r in results}
    classes = list(dict.fromkeys(r.scope for r in results if r.metric == PRECISION))
    lines: list[Row] = []
    for key in dict.fromkeys((r.mechanism, r.epsilon) for r in results):
        right = by_key[*key, ACCURACY, ALL]
        precisions = [r.mean for name in classes if (r := by_key.get((*key, PRECISION, name)))]
        rarest = by_key.get((*key, PRECISION, classes[0]))
        by_class = sum(precisions) / len(precisions), None if rarest is None else rarest.mean
        lines.append((*key, right.mean, right.low, right.high, *by_class))
    columns = ["mechanism", "epsilon", ACCURACY, "low", "high", PRECISION]
    columns.append(f"{PRECISION}, {classes[0]}")
    panels = ((ACCURACY, ALL), (PRECISION, classes[0]))
    heading = "Predicted classes of hidden labels; the last column is for the rarest class"
    return Evaluation(tuple(results), heading, columns, tuple(lines), panels)


def _own(mechanisms: list[Mechanism], sources: int) -> Iterator[Contender]:
    named = Counter((m.name, m.guarantee(1).epsilon) for m in mechanisms)
    for mechanism in mechanisms:
        name, loss = mechanism.name, mechanism.guarantee(1).epsilon
        # Labels must differ: mechanisms of one name and epsilon are told apart by parameters.
        label = name if named[name, loss] == 1 else repr(mechanism)
        yield Contender(label, mechanism, loss, sources, 3)


def _recommended(epsilons: Iterable[float], sources: int) -> Iterator[Contender]:
    for epsilon in epsilons:
        for kind in (private.TwoHop, private.DegreePrior):
            yield Contender(kind.name, kind(epsilon=epsilon), epsilon, sources, 3)
        paper = private.DPPushFlowCap.paper(epsilon)
        yield Contender("push-flow-cap (paper)", paper, epsilon, sources, 3)
        if epsilon >= 1:  # below 1, the flipped graph is dense and slow
            flipping = private.EdgeFlipping(epsilon=epsilon)
            yield Contender("edge-flipping", flipping, epsilon, min(sources, 8), 1)
