"""Weighted counts of common neighbours: the second hop, in units that one edge moves by 1."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._internal.compiled import compiled, inner
from edgeveil.graph.graph import Graph

Vector = npt.NDArray[np.float64]


def two_hop_sums_of_lists(
    graph: Graph,
    lists: npt.NDArray[np.integer],
    starts: npt.NDArray[np.int64],
    weights: Vector,
) -> npt.NDArray[np.float64]:
    """Sums of the weights of the common neighbours of a source and each node; friends' halved.

    One edge that does not touch a source moves its row by at most 1 in L1, exactly, if the weights
    come from `edgeveil.estimate.rows.exact_weights` (docs/theory/two-hop.md).

    Parameters
    ----------
    graph : Graph
        The graph.
    lists : array of int
        The neighbours of the first source, then of the next.
    starts : array of shape (m + 1,)
        Those of source i are ``lists[starts[i] : starts[i + 1]]``.
    weights : array
        The weight of each neighbour in `lists`, in [0, 1], the same for all graphs.

    Returns
    -------
    array of shape (m, n)
        The sums, freshly made.
    """
    out = np.empty((len(starts) - 1, graph.n_nodes))
    _spread_lists(graph.indptr, graph.indices, lists, starts, weights, out)
    return out


class Windows(NamedTuple):
    """Which paths source - friend - stranger count, by `first_seen` of both edges.

    A path is born when its later edge is. Source i counts those born in (since[i], until].
    """

    own_first_seen: npt.NDArray[np.uint16]  # of the edge from the source to each friend in `lists`
    since: npt.NDArray[np.int64]  # (m)
    until: int


def two_hop_tail_of_lists(
    graph: Graph,
    sources: npt.NDArray[np.integer],
    lists: npt.NDArray[np.integer],
    starts: npt.NDArray[np.int64],
    weights: Vector,
    windows: Windows | None = None,
) -> tuple[npt.NDArray[np.integer], Vector, npt.NDArray[np.int64]]:
    """Sums of the weights of common neighbours, for strangers that have one and only for them.

    Directed: of nodes that the source follows and that follow the stranger. Time and memory grow
    with the number of friends' friends, not with that of all nodes.

    Parameters
    ----------
    graph, lists, starts, weights
        As for `two_hop_sums_of_lists`; each list is sorted.
    sources : array of shape (m,)
        The sources themselves. They and their friends are left out.
    windows : Windows, optional
        For a graph with `first_seen`: count only paths that are born in these windows.

    Returns
    -------
    places : array of int
        Strangers at distance two of the first source, rising, then of the next.
    sums : array of float64
        The sum for each of them.
    starts : array of int64 of shape (m + 1,)
        Those of source i are at ``starts[i] : starts[i + 1]``.
    """
    own, sources = lists.astype(graph.indices.dtype), np.asarray(sources, dtype=np.int64)
    first_seen = own_first_seen = since = until = None
    if windows is not None:
        first_seen, (own_first_seen, since, until) = graph.first_seen, windows
    return _tails(  # type: ignore[no-any-return]
        *(graph.indptr, graph.indices, graph.n_nodes, sources, own, starts, weights),
        *(first_seen, own_first_seen, since, until),
    )


@compiled
def _spread_lists(
    indptr: Any,  # IN  (n + 1)
    indices: Any,  # IN  (nnz)
    lists: Any,  # IN
    starts: Any,  # IN  (m + 1)
    weights: Any,  # IN  as long as `lists`
    out: Any,  # OUT (m, n)
) -> None:
    """Add the weight of each friend to all of its neighbours, then halve the friends' sums."""
    for i in range(len(out)):
        sums, friends = out[i], range(starts[i], starts[i + 1])
        sums[:] = 0.0
        # The sums are exact, so their order does not matter.
        for k in friends:
            weight, theirs = weights[k], indices[indptr[lists[k]] : indptr[lists[k] + 1]]
            for j in range(len(theirs)):
                sums[np.uint64(theirs[j])] += weight  # unsigned: no test for indices from the end
        # An edge between two friends moves both of their sums; an edge to a stranger only one.
        for k in friends:
            sums[lists[k]] /= 2


_ROOM = 1 << 22  # for all rows, to begin with, at most


@compiled
def _tails(
    indptr: Any,  # IN  (n + 1)
    indices: Any,  # IN  (nnz)
    n: Any,
    sources: Any,  # IN  (m)
    lists: Any,  # IN, of the type of indices
    starts: Any,  # IN  (m + 1)
    weights: Any,  # IN  as long as `lists`
    first_seen: Any,  # IN  (nnz), or None: then all paths count, and the next three are None
    own_first_seen: Any,  # IN  as long as `lists`
    since: Any,  # IN  (m)
    until: Any,
) -> Any:
    """Collect friends of friends and leave out the source and its friends, row by row."""
    m, used, room = len(sources), 0, 0
    for k in range(len(lists)):
        room += indptr[lists[k] + 1] - indptr[lists[k]]
    room = min(room, _ROOM)
    begins = np.zeros(m + 1, dtype=np.int64)
    places, sums = np.empty(room, dtype=indices.dtype), np.empty(room)
    by_node = np.zeros(0)  # (n), made when first needed
    for i in range(m):
        friends = slice(starts[i], starts[i + 1])
        own, theirs, paths = lists[friends], weights[friends], np.int64(0)
        for k in range(len(own)):
            paths += indptr[own[k] + 1] - indptr[own[k]]
        if first_seen is not None:
            window = first_seen, own_first_seen[friends], since[i], until
            keys, totals = _collect(indptr, indices, own, theirs, paths, n, window)
        elif paths < n:
            keys, totals = _collect(indptr, indices, own, theirs, paths, n, None)
        else:
            if len(by_node) == 0:
                by_node = np.full(n, -1.0)
            keys, totals = _collect_many(indptr, indices, own, theirs, by_node)
        if used + len(keys) > len(places):
            room = 2 * (used + len(keys))
            more_places, more_sums = np.empty(room, dtype=indices.dtype), np.empty(room)
            for k in range(used):  # assigning a slice would take seconds to compile
                more_places[k], more_sums[k] = places[k], sums[k]
            places, sums = more_places, more_sums
        at = 0
        for k in range(len(keys)):
            key = keys[k]
            while at < len(own) and own[at] < key:
                at += 1
            if key != sources[i] and not (at < len(own) and own[at] == key):
                places[used], sums[used] = key, totals[k]
                used += 1
        begins[i + 1] = used
    return places[:used], sums[:used], begins


@inner
def _collect(
    indptr: Any, indices: Any, own: Any, weights: Any, paths: Any, n: Any, window: Any
) -> Any:
    """Friends of friends, rising, and their sums: sort the ends of all paths, then add up.

    `window`: None, or `first_seen`, that of the edges to `own`, since and until.
    """
    keys, sums, count = np.empty(paths, dtype=indices.dtype), np.empty(paths), 0
    for i in range(len(own)):
        for j in range(indptr[own[i]], indptr[own[i] + 1]):
            if window is not None:
                first_seen, own_first_seen, since, until = window
                born = max(own_first_seen[i], first_seen[j])
                if born <= since or born > until:
                    continue
            keys[count], sums[count] = indices[j], weights[i]
            count += 1
    return _added_up(*_sorted_pairs(keys[:count], sums[:count], n))


@inner
def _collect_many(indptr: Any, indices: Any, own: Any, weights: Any, by_node: Any) -> Any:
    """The same where paths are more than nodes, in half the time: add up in an array of all nodes.

    `by_node` (n) is -1 everywhere before and after.
    """
    count = 0
    for i in range(len(own)):
        for j in range(indptr[own[i]], indptr[own[i] + 1]):
            place = np.uint64(indices[j])
            if by_node[place] < 0.0:
                by_node[place] = 0.0
                count += 1
            by_node[place] += weights[i]
    keys, sums, filled = np.empty(count, dtype=indices.dtype), np.empty(count), 0
    for v in range(len(by_node)):
        if by_node[v] >= 0.0:
            keys[filled], sums[filled] = v, by_node[v]
            by_node[v] = -1.0
            filled += 1
    return keys, sums


@inner
def _added_up(keys: Any, sums: Any) -> Any:
    """Every sorted key once, with the sum of its values."""
    count = 0
    for j in range(len(keys)):
        if count > 0 and keys[count - 1] == keys[j]:
            sums[count - 1] += sums[j]  # exact, so the order does not matter
        else:
            keys[count], sums[count] = keys[j], sums[j]
            count += 1
    return keys[:count], sums[:count]


@inner
def _sorted_pairs(keys: Any, values: Any, n: Any) -> Any:
    """Sort by keys, all below n: radix sort, the lowest digit first."""
    bits = 1
    while (np.int64(1) << bits) < n:
        bits += 1
    rounds = (bits + 10) // 11
    digit = (bits + rounds - 1) // rounds
    mask = (1 << digit) - 1
    to_keys, to_values = np.empty_like(keys), np.empty_like(values)
    for r in range(rounds):
        places = np.zeros((1 << digit) + 1, dtype=np.int64)
        for i in range(len(keys)):
            places[((keys[i] >> (r * digit)) & mask) + 1] += 1
        for d in range(1 << digit):
            places[d + 1] += places[d]
        for i in range(len(keys)):
            d = (keys[i] >> (r * digit)) & mask
            to_keys[places[d]], to_values[places[d]] = keys[i], values[i]
            places[d] += 1
        keys, to_keys = to_keys, keys
        values, to_values = to_values, values
    return keys, values
