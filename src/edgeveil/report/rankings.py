"""`page_from_releases`: rankings as they were released, the true ones beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from edgeveil.errors import ParameterError
from edgeveil.evaluation.results import Result
from edgeveil.flow import personalized_pagerank
from edgeveil.graph import Graph
from edgeveil.nodes import NodeId
from edgeveil.releases import Release
from edgeveil.report.page_data import (
    GuaranteeText,
    PageData,
    RankedNode,
    RankingExample,
    ResultRow,
)

__all__ = ["page_from_releases", "ranking_examples", "result_rows"]

_TOP = 20


def page_from_releases(
    releases: Sequence[Release],
    graph: Graph,
    *,
    title: str,
    name: str = "graph",
    results: Sequence[Result] = (),
    summary: Sequence[str] = (),
    facts: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> PageData:
    """What the report page shows of some releases of rankings. A curator's page.

    Parameters
    ----------
    releases : sequence of Release
        Rankings that were released, of any sources.
    graph : Graph
        The private graph: the true ranking stands beside every released one.
    title : str
        Heading of the page.
    name : str
        The graph's name on the page.
    results : sequence of Result
        Measured accuracy, for example ``edgeveil.evaluate(graph).results``.
    summary, facts, notes
        As for `PageData`.

    Examples
    --------
    >>> import edgeveil as ev
    >>> graph = ev.datasets.social_network(200, average_degree=10).graph
    >>> page = page_from_releases([ev.rank(graph, 7, 1.0)], graph, title="For member 7")
    >>> [ranking.mechanism for ranking in page.rankings]
    ['non-private', 'two-hop', 'non-private', 'two-hop']
    """
    rankings, guarantees = ranking_examples(releases, graph, name)
    return PageData(
        title=title,
        summary=summary,
        facts=facts or {},
        results=result_rows(results),
        rankings=rankings,
        guarantees=guarantees,
        notes=notes,
    )


def ranking_examples(
    releases: Sequence[Release], graph: Graph, name: str
) -> tuple[list[RankingExample], list[GuaranteeText]]:
    """The heads of released rankings, the true ones, and what is promised.

    Every ranking is shown twice: without the source's neighbours first, for whom a member does
    not know is what a ranking is for, and at the head of the other one there are hardly any.
    """
    if any(release.gives != "scores" for release in releases):
        raise ParameterError("only a release of scores has a ranking")
    strangers: list[RankingExample] = []
    everybody: list[RankingExample] = []
    texts: dict[tuple[str, float | None], str] = {}
    for source in dict.fromkeys(s for release in releases for s in release.sources):
        index = graph.nodes.index(source)
        exact = personalized_pagerank(graph, [index])[0]
        friends = set(graph.nodes.take(graph.neighbours(index)))
        for view, hidden, shown in (
            ("friends left out", friends | {source}, strangers),
            ("everybody", {source}, everybody),
        ):
            truth = _Truth(graph, exact, hidden)
            dataset = f"{name}, {view}"
            rows = truth.ranked(truth.head(_TOP), friends)
            shown.append(_example(dataset, source, "non-private", None, False, rows))
            for release in (r for r in releases if source in r.sources):
                mechanism, epsilon = release.provenance.mechanism, _finite(release)
                rows = truth.ranked(release.top(_TOP, source, without=hidden), friends)
                private = release.guarantee.private
                shown.append(_example(dataset, source, mechanism, epsilon, private, rows))
                texts[mechanism, epsilon] = str(release.guarantee)
    guarantees = [
        GuaranteeText(mechanism=mechanism, epsilon=epsilon, text=text)
        for (mechanism, epsilon), text in texts.items()
    ]
    return strangers + everybody, guarantees


class _Truth:
    """The true order of all nodes but some that are hidden."""

    def __init__(self, graph: Graph, exact: np.ndarray, hidden: set[NodeId]) -> None:
        self._nodes, self._exact = graph.nodes, exact
        order = np.argsort(-exact, kind="stable")
        self._order = order[~np.isin(order, graph.nodes.indices(hidden))]
        self._place = np.zeros(graph.n_nodes, dtype=np.int64)
        self._place[self._order] = np.arange(1, len(self._order) + 1)

    def head(self, k: int) -> list[tuple[NodeId, float]]:
        """The first k and their exact scores."""
        return [(self._nodes[int(v)], float(self._exact[v])) for v in self._order[:k]]

    def ranked(
        self, pairs: Sequence[tuple[NodeId, float]], friends: set[NodeId]
    ) -> list[RankedNode]:
        """A ranking with the true place of each node."""
        return [
            RankedNode(
                rank=i,
                node=node,
                score=score,
                true_rank=int(self._place[self._nodes.index(node)]),
                is_neighbour=node in friends,
            )
            for i, (node, score) in enumerate(pairs, 1)
        ]


def _example(
    dataset: str,
    source: NodeId,
    mechanism: str,
    epsilon: float | None,
    private: bool,
    rows: list[RankedNode],
) -> RankingExample:
    return RankingExample(
        dataset=dataset,
        source=source,
        mechanism=mechanism,
        epsilon=epsilon,
        private=private,
        rows=rows,
    )


def _finite(release: Release) -> float | None:
    """The privacy loss; without protection there is none to show."""
    return None if math.isinf(release.guarantee.epsilon) else release.guarantee.epsilon


def result_rows(results: Sequence[Result]) -> list[ResultRow]:
    """Results as the page takes them: without protection there is no epsilon."""
    rows = []
    for result in results:
        protected = result.epsilon is not None and math.isfinite(result.epsilon)
        rows.append(
            ResultRow(**{**asdict(result), "epsilon": result.epsilon if protected else None})
        )
    return rows
