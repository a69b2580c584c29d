"""`page_from_releases`: lists as released, and for the curator only, their accuracy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from edgeveil.errors import ParameterError
from edgeveil.evaluation.hits import (
    Scorer,
    group_of,
    pagerank,
    popularity,
    resource_allocation,
)
from edgeveil.evaluation.measurements import Result
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeId
from edgeveil.ledger import Ledger
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.report.charges import charges_of, factor
from edgeveil.report.page import ListedNode, MemberList, PageData
from edgeveil.results.nouns import FRIENDS, Nouns, singular
from edgeveil.results.release import Release
from edgeveil.results.suggestions import Suggestions

_TOP = 20
_LINES = {"suggest": "private lists", "resource allocation": "without privacy"}
_OTHERS = ("common neighbours", "pagerank")  # one line without privacy is enough
_NOTE = (
    "A tenth of the {edges} was hidden, and lists were made from the others. {metric}: the share "
    "of each {member}'s hidden {neighbours} that is on a list of {k}. Popularity gives nearly "
    "the same list to everybody. Without privacy, strangers are ordered by resource allocation, a "
    "usual score of common {neighbours}. No private list finds more than the limit on average, as "
    "long as popularity is the best guide beside common {neighbours} (docs/theory/limits.md)."
)


def page_from_releases(
    releases: Sequence[Release | Suggestions],
    graph: Graph | None = None,
    *,
    title: str,
    name: str = "graph",
    hidden: Graph | None = None,
    results: Iterable[Result] = (),
    ledger: Ledger | None = None,
    summary: Sequence[str] = (),
) -> PageData:
    """What the report page shows of some releases.

    Suggestions speak the words that `Suggestions.in_words` gave them, and so does the page.
    Without `graph`, `results` and `ledger`, the page is made only from what was released, so
    anyone who may see all of `releases` may see the page.

    Parameters
    ----------
    releases : sequence of Release or Suggestions
        Suggestions and rankings that were released, for any members.
    graph : Graph, optional
        The private graph. The page is then for the curator only: it shows every list beside one
        without privacy and one by popularity, and rankings leave out the member's friends.
    title : str
        Heading of the page.
    name : str
        The graph's name on the page.
    hidden : Graph, optional
        With `graph`: edges that were hidden from the releases. Friends by these edges are marked;
        without `hidden`, names that are also on the list without privacy are.
    results : iterable of Result
        Measured accuracy, for the curator only: ``edgeveil.evaluate(graph).results``.
    ledger : Ledger, optional
        The ledger whose charges are shown, for the curator only.
    summary : sequence of str
        Paragraphs below the heading.

    Examples
    --------
    >>> import edgeveil as ev
    >>> graph = ev.datasets.social_network(200, average_degree=10).graph
    >>> lists = ev.suggest(graph, 7, 1.0)
    >>> [shown.mechanism for shown in page_from_releases([lists], title="For member 7").lists]
    ['suggest']
    >>> page = page_from_releases([lists], graph, title="For the curator")
    >>> [shown.mechanism for shown in page.lists]
    ['suggest', 'without privacy', 'popularity']
    """
    nouns = _nouns_of(releases)
    # Of the results for suggestions, show only hits, and only one line without privacy.
    shown = [
        replace(
            r,
            mechanism=_LINES.get(r.mechanism, r.mechanism),
            scope=_in_words(r.scope, nouns),
        )
        for r in results
        if r.experiment != "suggestions"
        or (r.metric.startswith("hits@") and r.mechanism not in _OTHERS)
    ]
    metrics = dict.fromkeys(r.metric for r in shown if r.experiment == "suggestions")
    return PageData(
        title=title,
        summary=summary,
        lists=member_lists(releases, graph, name, hidden),
        results=shown,
        notes=[_note(metric, nouns) for metric in metrics],
        charges=None if ledger is None else charges_of(ledger),
    )


def _nouns_of(releases: Sequence[Release | Suggestions]) -> Nouns:
    """The words of the first suggestions; friends, if there are none."""
    return next((r.nouns for r in releases if isinstance(r, Suggestions)), FRIENDS)


def _in_words(scope: str, nouns: Nouns) -> str:
    """The name of a degree group, such as "20-50 friends"; results are saved with that of friends.

    >>> _in_words("20-50 friends", Nouns.of("numbers,calls,contacts"))
    '20-50 contacts'
    """
    return scope.replace(FRIENDS.neighbours, nouns.neighbours).replace(
        FRIENDS.members, nouns.members
    )


def _note(metric: str, nouns: Nouns) -> str:
    return _NOTE.format(
        metric=metric,
        k=metric.removeprefix("hits@"),
        edges="edges" if nouns == FRIENDS else nouns.edges,
        member=nouns.member,
        neighbours=nouns.neighbours,
    )


def member_lists(
    releases: Sequence[Release | Suggestions],
    graph: Graph | None = None,
    name: str = "graph",
    hidden: Graph | None = None,
) -> list[MemberList]:
    """Released lists; with the graph also lists without privacy, and marks of right names."""
    kinds = {release.output for release in releases}
    if not kinds <= {"scores", "lists"}:
        raise ParameterError("a page shows suggestions and rankings: embeddings have no order")
    members = dict.fromkeys(m for release in releases for m in release.sources)
    if graph is None:
        return [_released(r, name, m) for m in members for r in releases if m in r.sources]
    exact = resource_allocation(graph) if kinds == {"lists"} else pagerank(graph)
    popular, nouns = popularity(graph), _nouns_of(releases)
    lists = []
    for member in members:
        own = [release for release in releases if member in release.sources]
        index = graph.nodes.index(member)
        # In a public ranking, leaving out whom the member knows would reveal them to all readers.
        public = any(release.guarantee.model == "public" for release in own)
        excluded = [] if public else [index, *graph.neighbours(index).tolist()]
        left_out = graph.nodes.take(excluded)
        shown = [_released(release, name, member, left_out) for release in own]
        longest = max(len(entry.rows) for entry in shown)
        best, common = (_best(graph, index, score, excluded, longest) for score in (exact, popular))
        shown += [
            MemberList(dataset=name, member=member, mechanism=mechanism, rows=rows)
            for mechanism, rows in (("without privacy", best), ("popularity", common))
        ]
        if hidden is None:
            right, truth = {row.node for row in best}, "also on the list without privacy"
        else:
            right = set(graph.nodes.take(hidden.neighbours(index)))
            truth = f"one of {len(right)} hidden {nouns.neighbours}"
            if len(right) == 1:
                truth = f"the hidden {singular(nouns.neighbours)}"
        friends = graph.degrees[index] + (0 if hidden is None else hidden.degrees[index])
        group = _in_words(group_of(int(friends)), nouns)
        for entry in shown:
            rows = [replace(row, right=row.node in right) for row in entry.rows]
            lists.append(replace(entry, rows=rows, truth=truth, group=group))
    return lists


def _released(
    release: Release | Suggestions, name: str, member: NodeId, left_out: Sequence[NodeId] = ()
) -> MemberList:
    """One list as it was released."""
    remark = in_short = ""
    if isinstance(release, Suggestions):
        rows = [
            ListedNode(node=s.node, score=s.score, chance=s.chance, why=s.why, strength=s.strength)
            for s in release.for_member(member)
        ]
        if words := release.remark(member):
            remark = f"{words[0].upper()}{words[1:]}."
        in_short = _in_short(release.guarantee, release.nouns)
    else:
        without = set(left_out) & set(release.columns)
        rows = [
            ListedNode(node=ranked.node, score=ranked.score, first=ranked.first, last=ranked.last)
            for ranked in release.ranking(_TOP, member, without=without)
        ]
    loss = release.guarantee.epsilon
    return MemberList(
        dataset=name,
        member=member,
        mechanism=release.provenance.mechanism,
        epsilon=loss if math.isfinite(loss) else None,
        private=release.guarantee.protects,
        alone=release.guarantee.model == "joint",
        rows=rows,
        promise=str(release.guarantee),
        in_short=in_short,
        remark=remark,
    )


def _in_short(claim: Guarantee, nouns: Nouns = FRIENDS) -> str:
    """What is protected, in everyday words for a member; "" if only the exact statement will do."""
    if not claim.protects or claim.model != "joint" or claim.delta or not 0 < claim.epsilon <= 10:
        return ""
    protected = "between other people" if nouns == FRIENDS else f"between other {nouns.members}"
    if claim.known_edges == "outgoing":
        protected = f"that the {nouns.member} has not made itself"
    words = (
        f"Show this list only to the {nouns.member} it was made for. Noise protects every "
        f"connection {protected}: with or without it, no list is more than "
        f"{factor(claim.epsilon):,.2f} times as likely."
    )
    if claim.promise:
        words += " This holds under a public promise, which the exact guarantee names."
    return words


def _best(
    graph: Graph, member: int, score: Scorer, left_out: Sequence[int], k: int
) -> list[ListedNode]:
    """The k nodes with the highest scores for a member."""
    scores = score(member).copy()
    scores[left_out] = -np.inf
    order = np.argsort(-scores, kind="stable")[:k]
    return [
        ListedNode(node=graph.nodes[int(v)], score=float(scores[v]))
        for v in order
        if np.isfinite(scores[v])
    ]
