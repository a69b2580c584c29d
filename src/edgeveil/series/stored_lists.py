"""The lists of a series as of its last refresh, made of what is stored: post-processing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import BudgetError, EdgeveilError, LedgerError, ParameterError
from edgeveil.estimate import lists
from edgeveil.estimate.lists import Candidates, check_k
from edgeveil.graph.exclusions import Exclusion, excluded_pairs
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs.keys import parameters_of
from edgeveil.jobs.request import Progress
from edgeveil.jobs.stored import read_shared
from edgeveil.ledger import Batch, Ledger
from edgeveil.mechanisms.base import local_views
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.privacy.statistic import Noised
from edgeveil.results.provenance import Metadata, Provenance, our_version
from edgeveil.results.suggestions import Suggestions
from edgeveil.series.campaign import (
    Current,
    current_series,
    guarantee_of_series,
    had_series,
    series_campaign,
)
from edgeveil.series.history import History

_FILE = 8192  # lists in a file of a folder
_TRIES = 3  # a refresh that ends meanwhile replaces the files that this reads


class StoredLists:
    """The lists of a series as of its last refresh, of these candidates."""

    def __init__(self, current: Current, shared: lists.Popularity, candidates: Candidates) -> None:
        self._place, self._history, self._mechanism, self._manifest = current
        self._shared, self._candidates = shared, candidates

    @cached_property
    def _have_lists(self) -> npt.NDArray[np.bool_]:
        columns = self._place.columns(len(self._history.nodes), self._manifest)
        return columns.charged & self._history.present

    @property
    def n_lists(self) -> int:
        """Number of members with lists."""
        return int(self._have_lists.sum())

    def suggestions(self, members: Sequence[NodeId] | None = None, k: int = 20) -> Suggestions:
        """Lists of some members, or of everybody in the series."""
        nodes = self._history.nodes
        ids = [v for v in (nodes.named(str(v)) for v in members or ()) if v in nodes]
        indices = np.flatnonzero(self._have_lists) if members is None else nodes.indices(ids)
        if len(ids) < len(members or ()) or not self._have_lists[indices].all():
            raise BudgetError(
                "one of these members is not in the series: the next refresh (edgeveil refresh) "
                "charges members who have joined since the last one, if their budget allows it"
            )
        parts = list(self._parts(indices, k))
        if not parts:
            raise EdgeveilError("nobody is in the series yet")
        return parts[0] if len(parts) == 1 else Suggestions.joined(parts)

    def parts(self, k: int, progress: Progress | None = None) -> Iterator[Suggestions]:
        """Everybody's lists, some thousand at a time."""
        done, everybody = 0, np.flatnonzero(self._have_lists)
        if not len(everybody):
            raise EdgeveilError("nobody is in the series yet")
        for part in self._parts(everybody, k):
            yield part
            done += len(part.members)
            if progress:
                progress(done, len(everybody))

    def _parts(self, members: Any, k: int) -> Iterator[Suggestions]:
        check_k(k)
        if self._place.manifest() != self._manifest:
            raise LedgerError("the series was refreshed since: use the result of that refresh")
        history, mechanism = self._history, self._mechanism
        metadata, claim = self.metadata(len(members)), mechanism.guarantee(1)
        members = np.array(list(dict.fromkeys(members.tolist())))
        for shard in self._place.shards(len(history.nodes), self._manifest, of=members):
            inside = members[(members >= shard.first) & (members < shard.first + len(shard.last))]
            for first in range(0, len(inside), _FILE):
                part = inside[first : first + _FILE]
                rows = part - shard.first
                views = local_views(history.graph, part, claim.model, claim.known_edges)
                if views.followers:  # today's: not those who have stopped
                    views = views._replace(followers=tuple(map(history.followers, part)))
                member_lists = mechanism.lists(
                    shard.evidence.take(rows),
                    self._shared,
                    views,
                    k,
                    self._candidates,
                    windows=shard.windows[rows],
                )
                friends = [len(history.friends(int(i))) for i in part]
                yield Suggestions(
                    members=tuple(history.nodes.take(part)),
                    nodes=history.nodes,
                    lists=member_lists,
                    friends=np.array(friends, dtype=np.int64),
                    k=k,
                    **metadata._asdict(),
                )

    def metadata(self, n_members: int) -> Metadata:
        """Guarantee and provenance of the lists of this many members."""
        guarantee = guarantee_of_series(self._history, self._mechanism, max(n_members, 1))
        snapshot = self._history.snapshots[self._manifest.until - 1]
        provenance = Provenance(
            mechanism="series of lists",
            parameters={**parameters_of(self._mechanism), "snapshot": snapshot.number},
            version=our_version(),
            noise="secure",
            ledger=True,
            created=snapshot.date or "",
        )
        return Metadata(guarantee, provenance)


def open_series(
    current: Current, ledger: Ledger, label: str, candidates: Candidates
) -> StoredLists:
    """The lists of a series as of its last refresh, of these candidates."""
    shared = ledger.shared(series_campaign(current.mechanism, current.history, label, {}))
    if not current.manifest.state or shared is None or not shared.stored:
        raise LedgerError(
            f"the first refresh of {current.place.path} was interrupted: run the same command again"
        )
    degrees = popularity(released_degrees(shared), len(current.history.nodes))
    return StoredLists(current, degrees, candidates)


def read_series_lists(
    ledger: Ledger,
    label: str,
    asked: Suggest,
    members: Sequence[NodeId] | None = None,
    *,
    k: int | None = None,
    candidates: Sequence[NodeId] | None = None,
    exclude: Sequence[Exclusion] | None = None,
) -> Suggestions | None:
    """The lists of a label's series, as of its last refresh; None if it has no series.

    Raises
    ------
    ParameterError
        If the parameters differ from those of the series.
    BudgetError
        If one of the members is not in the series.
    LedgerError
        If the series has no list yet.
    """
    length = check_k(k)
    for tries_left in reversed(range(_TRIES)):
        current = current_series(ledger, label)
        if current is None:
            if had_series(ledger, label):
                raise LedgerError(
                    f"the series of {label or 'this graph'} has no list yet: it was begun or "
                    "renewed, and not refreshed since. Run edgeveil refresh; nobody was charged"
                )
            return None
        if current.mechanism != asked:
            raise ParameterError(
                f"the lists of {label or 'this graph'} are a series with epsilon "
                f"{current.mechanism.epsilon:g}: use the same parameters, or another label, where "
                "lists are charged separately"
            )
        nodes = current.history.nodes
        nodes.indices([nodes.named(str(v)) for v in candidates or ()])  # refuses unknown ids
        try:
            among = candidates_in(current.history, candidates, exclude)
            return open_series(current, ledger, label, among).suggestions(members, length)
        except LedgerError:
            if not tries_left or current.place.manifest() == current.manifest:
                raise
    raise AssertionError  # the last try returns or raises


def candidates_in(
    history: History, candidates: Iterable[NodeId] | None, exclude: Iterable[Exclusion] | None
) -> Candidates:
    """Who may be suggested of those who are members now; unknown ids have no effect."""
    nodes, among = history.nodes, np.flatnonzero(history.present)
    if candidates is not None:
        # Ids as in a graph of today, which may have had another kind when the history began.
        indices = (nodes.find(nodes.named(str(v))) for v in candidates)
        among = np.intersect1d(among, [i for i in indices if i is not None])
    pairs, _ = excluded_pairs(exclude or (), nodes)
    return Candidates(among.astype(np.int64), pairs)


def released_degrees(stored: Batch) -> Noised:
    """The released degrees of a series."""
    (numbers,) = read_shared(stored.artifact)
    return numbers


def popularity(numbers: Noised, n_nodes: int) -> lists.Popularity:
    """The popularity of the nodes, from the released degrees of a series."""
    degrees = np.zeros(n_nodes)  # 0 for nodes that joined later
    degrees[: len(numbers.values[0])] = numbers.values[0]
    return lists.fit_popularity(degrees, numbers.scale)
