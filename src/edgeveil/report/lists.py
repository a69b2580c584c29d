"""`page_from_releases`: lists as they were released, beside what the curator could give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from edgeveil.errors import ParameterError
from edgeveil.evaluation.hits import Scorer, pagerank, popularity, resource_allocation
from edgeveil.evaluation.results import Result
from edgeveil.graph import Graph
from edgeveil.nodes import NodeId
from edgeveil.releases import Release
from edgeveil.report.page_data import ListedNode, MemberList, PageData
from edgeveil.suggestions import Suggestions

__all__ = ["member_lists", "page_from_releases"]

_TOP = 20


def page_from_releases(
    releases: Sequence[Release | Suggestions],
    graph: Graph,
    *,
    title: str,
    name: str = "graph",
    hidden: Graph | None = None,
    results: Sequence[Result] = (),
    summary: Sequence[str] = (),
    facts: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> PageData:
    """What the report page shows of some releases. A curator's page.

    Parameters
    ----------
    releases : sequence of Release or Suggestions
        Suggestions and rankings that were released, for any members.
    graph : Graph
        The private graph: beside every list stands one without privacy, and popularity.
    title : str
        Heading of the page.
    name : str
        The graph's name on the page.
    hidden : Graph, optional
        Edges that were hidden from the releases: whoever is joined to the member by one of them
        is marked. Otherwise those are marked whom the list without privacy names.
    results : sequence of Result
        Measured accuracy, for example ``edgeveil.evaluate(graph).results``.
    summary, facts, notes
        As for `PageData`.

    Examples
    --------
    >>> import edgeveil as ev
    >>> graph = ev.datasets.social_network(200, average_degree=10).graph
    >>> page = page_from_releases([ev.suggest(graph, 7, 1.0)], graph, title="For member 7")
    >>> [one.mechanism for one in page.lists]
    ['suggest', 'without privacy', 'popularity']
    """
    return PageData(
        title=title,
        summary=summary,
        facts=facts or {},
        results=results,
        lists=member_lists(releases, graph, name, hidden),
        notes=notes,
    )


def member_lists(
    releases: Sequence[Release | Suggestions], graph: Graph, name: str, hidden: Graph | None = None
) -> list[MemberList]:
    """Released lists without the member's friends, and the same without privacy."""
    kinds = {release.gives for release in releases}
    if not kinds <= {"scores", "suggestions"}:
        raise ParameterError("a page shows suggestions and rankings: embeddings have no order")
    exact = resource_allocation(graph) if kinds == {"suggestions"} else pagerank(graph)
    popular = popularity(graph)
    lists = []
    for member in dict.fromkeys(m for release in releases for m in release.sources):
        at = graph.nodes.index(member)
        known = {member, *graph.nodes.take(graph.neighbours(at))}
        made = [_released(r, name, member, known) for r in releases if member in r.sources]
        longest = max(len(one.rows) for one in made)
        best, common = (_best(graph, at, score, longest) for score in (exact, popular))
        made += [
            MemberList(dataset=name, member=member, mechanism=mechanism, rows=rows)
            for mechanism, rows in (("without privacy", best), ("popularity", common))
        ]
        if hidden is None:
            right, truth = {row.node for row in best}, f"one of the {len(best)} without privacy"
        else:
            right = set(graph.nodes.take(hidden.neighbours(at)))
            count = len(right)
            truth = f"one of {count} hidden friends" if count != 1 else "the hidden friend"
        for one in made:
            rows = [replace(row, right=row.node in right) for row in one.rows]
            lists.append(replace(one, rows=rows, truth=truth))
    return lists


def _released(
    release: Release | Suggestions, name: str, member: NodeId, known: set[NodeId]
) -> MemberList:
    """One list as it was released. The member alone gets suggestions: it may read its degree."""
    if isinstance(release, Suggestions):
        rows = [
            ListedNode(node=s.node, score=s.score, first=s.first, last=s.last, why=s.why)
            for s in release.for_member(member)
        ]
        words = release.remark(member) or f"made for a member with {len(known) - 1} friends"
        remark = f"{words[0].upper()}{words[1:]}."
    else:
        pairs = release.top(_TOP, member, without=known & set(release.columns))
        rows, remark = [ListedNode(node=node, score=score) for node, score in pairs], ""
    loss = release.guarantee.epsilon
    return MemberList(
        dataset=name,
        member=member,
        mechanism=release.provenance.mechanism,
        epsilon=loss if math.isfinite(loss) else None,
        private=release.guarantee.protects,
        rows=rows,
        promise=str(release.guarantee),
        remark=remark,
    )


def _best(graph: Graph, member: int, score: Scorer, k: int) -> list[ListedNode]:
    """The k strangers of a member with the highest scores."""
    scores = score(member).copy()
    scores[member] = scores[graph.neighbours(member)] = -np.inf
    order = np.argsort(-scores, kind="stable")[:k]
    return [
        ListedNode(node=graph.nodes[int(v)], score=float(scores[v]))
        for v in order
        if np.isfinite(scores[v])
    ]
