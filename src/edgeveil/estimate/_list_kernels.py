"""Compiled loops for `lists`: which names are stored, and the best k of each member.

In numpy the same takes four fifths of a list's time (tests/unit/estimate/test_lists.py has it in
plain Python). Rows lie flat, row i at ``starts[i] : starts[i + 1]``; nodes rise within a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil._compiled import compiled, inner

_LN_2 = np.log(2.0)


@inner
def _score(log_degree: Any, log_odds: Any, log_prior: Any) -> Any:
    """Ln D + ln(1 + (K / n) e^L), without overflow."""
    odds = log_odds + log_prior
    return log_degree + max(odds, 0.0) + np.log1p(np.exp(-abs(odds)))


@inner
def _worse(scores: Any, nodes: Any, i: Any, score: Any, node: Any) -> Any:
    """Whether entry i comes after this score and node in a list; ties go by node."""
    return scores[i] < score or (scores[i] == score and nodes[i] > node)


@inner
def _offer(
    scores: Any, nodes: Any, labels: Any, size: Any, score: Any, node: Any, label: Any
) -> Any:
    """Keep the best: a binary heap, as large as its arrays, with the worst entry at its root.

    Returns how many entries it has now.
    """
    at = size
    if size < len(scores):
        size += 1
        while at > 0:  # a parent is never better than its children
            parent = (at - 1) >> 1
            if _worse(scores, nodes, parent, score, node):
                break
            scores[at], nodes[at], labels[at] = scores[parent], nodes[parent], labels[parent]
            at = parent
    else:
        if size == 0 or not _worse(scores, nodes, 0, score, node):
            return size
        at = _hole_down(scores, nodes, labels, size, score, node)
    scores[at], nodes[at], labels[at] = score, node, label
    return size


@inner
def _hole_down(scores: Any, nodes: Any, labels: Any, size: Any, score: Any, node: Any) -> Any:
    """Move the hole at the root down to where this score belongs; returns its place."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _worse(scores, nodes, child + 1, scores[child], nodes[child]):
            child += 1
        if not _worse(scores, nodes, child, score, node):
            break
        scores[at], nodes[at], labels[at] = scores[child], nodes[child], labels[child]
        at = child
    return at


@inner
def _sort(scores: Any, nodes: Any, labels: Any, size: Any) -> None:
    """Turn the heap into a list, best first: the root is the worst of what is left."""
    for end in range(size - 1, 0, -1):
        score, node, label = scores[end], nodes[end], labels[end]
        scores[end], nodes[end], labels[end] = scores[0], nodes[0], labels[0]
        hole = _hole_down(scores, nodes, labels, end, score, node)
        scores[hole], nodes[hole], labels[hole] = score, node, label


@inner
def _find(nodes: Any, node: Any) -> Any:
    """The place of a node in a rising array; -1 if it is not there."""
    low, high = 0, len(nodes)
    while low < high:
        middle = (low + high) >> 1
        if nodes[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low if low < len(nodes) and nodes[low] == node else -1


@compiled
def store_best(
    sources: Any,  # IN  (m)
    own: Any,  # IN  flat lists of friends
    own_starts: Any,  # IN  (m + 1)
    starts: Any,  # IN  (m + 1) of the released sums
    nodes: Any,  # IN
    sums: Any,  # IN
    rates: Any,  # IN  (m) log odds for each unit of a sum
    log_degrees: Any,  # IN  (n)
    log_prior: Any,
    room: Any,  # names that are kept for a member, at most
    out_starts: Any,  # OUT (m + 1)
    out_nodes: Any,  # OUT as long as `nodes`
    out_sums: Any,  # OUT as long as `nodes`
) -> None:
    """Leave out the member and its friends, and keep the names with the best scores."""
    heap, heap_nodes, unused = np.empty(room), np.empty(room, np.int64), np.empty(room)
    longest = 0
    for i in range(len(sources)):
        longest = max(longest, starts[i + 1] - starts[i])
    scores, used = np.empty(longest), 0
    out_starts[0] = 0
    for i in range(len(sources)):
        first, friends = used, own[own_starts[i] : own_starts[i + 1]]
        at = 0
        for j in range(starts[i], starts[i + 1]):
            node = nodes[j]
            while at < len(friends) and friends[at] < node:
                at += 1
            if node == sources[i] or (at < len(friends) and friends[at] == node):
                continue
            out_nodes[used], out_sums[used] = node, sums[j]
            used += 1
        if used - first > room:
            size = 0
            for j in range(first, used):
                odds, degree = rates[i] * out_sums[j], log_degrees[out_nodes[j]]
                most = degree + max(odds + log_prior, 0.0) + _LN_2  # `_score` is at most that
                score = -np.inf
                if size < room or most >= heap[0]:
                    score = _score(degree, odds, log_prior)
                    size = _offer(heap, heap_nodes, unused, size, score, out_nodes[j], 0.0)
                scores[j - first] = score
            end, used = used, first
            for j in range(first, end):
                score, node = scores[j - first], out_nodes[j]
                if score > heap[0] or (score == heap[0] and node <= heap_nodes[0]):
                    out_nodes[used], out_sums[used] = node, out_sums[j]
                    used += 1
        out_starts[i + 1] = used


@compiled
def best_of_rows(
    sources: Any,  # IN  (m)
    own: Any,  # IN  flat lists of friends
    own_starts: Any,  # IN  (m + 1)
    starts: Any,  # IN  (m + 1) of the evidence
    nodes: Any,  # IN
    sums: Any,  # IN
    rates: Any,  # IN  (m) log odds for each unit of a sum
    followers: Any,  # IN  flat lists of known followers
    follower_starts: Any,  # IN  (m + 1)
    bonus: Any,  # IN  (m) what being a follower adds to a score
    log_degrees: Any,  # IN  (n)
    order: Any,  # IN  nodes that may be suggested, the most popular first
    allowed: Any,  # IN  (n) who may be suggested; empty: everybody
    log_prior: Any,
    k: Any,
    out_starts: Any,  # OUT (m + 1)
    out_nodes: Any,  # OUT (m * k)
    out_scores: Any,  # OUT (m * k)
    out_sums: Any,  # OUT (m * k) 0 without evidence
    out_above: Any,  # OUT (m * k) how many of the member's sums are at least this one
) -> None:
    """The k best strangers of each member: by evidence, because they follow it, or popular.

    The k most popular strangers come first, in order: their last score is one that the others have
    to reach. The best of the others are collected in a heap, and both are merged.
    """
    scores, names, found = np.empty(k), np.empty(k, np.int64), np.empty(k)
    popular = np.empty(k, np.int64)
    without = _score(0.0, 0.0, log_prior)  # what a name without evidence gets beside its degree
    out_starts[0] = 0
    for i in range(len(sources)):
        source, size, many = sources[i], 0, 0
        friends = own[own_starts[i] : own_starts[i + 1]]
        known = nodes[starts[i] : starts[i + 1]]
        follow = followers[follower_starts[i] : follower_starts[i + 1]]
        for j in range(len(order)):
            if many == k:
                break
            if order[j] != source and _find(friends, order[j]) < 0:
                popular[many] = order[j]
                many += 1
        least = log_degrees[popular[k - 1]] + without if many == k else -np.inf
        at = 0
        for j in range(len(known)):
            node = known[j]
            while at < len(friends) and friends[at] < node:
                at += 1
            if (at < len(friends) and friends[at] == node) or node == source:
                continue
            if len(allowed) > 0 and not allowed[node]:
                continue
            odds = rates[i] * sums[starts[i] + j]
            more = bonus[i] if _find(follow, node) >= 0 else 0.0
            if log_degrees[node] + max(odds + log_prior, 0.0) + _LN_2 + more < least:
                continue  # as `_score` is at most that
            score = _score(log_degrees[node], odds, log_prior) + more
            size = _offer(scores, names, found, size, score, node, sums[starts[i] + j])
        for j in range(len(follow)):
            node = follow[j]
            if node == source or _find(friends, node) >= 0 or _find(known, node) >= 0:
                continue
            if len(allowed) > 0 and not allowed[node]:
                continue
            score = log_degrees[node] + without + bonus[i]
            size = _offer(scores, names, found, size, score, node, 0.0)
        _sort(scores, names, found, size)
        used, at, end = out_starts[i], 0, out_starts[i] + k
        for j in range(many):
            node = popular[j]
            if _find(known, node) >= 0 or _find(follow, node) >= 0:
                continue  # it is among the others, if it is good enough
            score = log_degrees[node] + without
            while at < size and used < end and not _worse(scores, names, at, score, node):
                out_nodes[used], out_scores[used], out_sums[used] = names[at], scores[at], found[at]
                used, at = used + 1, at + 1
            if used < end:
                out_nodes[used], out_scores[used], out_sums[used] = node, score, 0.0
                used += 1
        while at < size and used < end:
            out_nodes[used], out_scores[used], out_sums[used] = names[at], scores[at], found[at]
            used, at = used + 1, at + 1
        out_starts[i + 1] = used
        own_sums = sums[starts[i] : starts[i + 1]]
        for j in range(out_starts[i], used):
            out_above[j] = (own_sums >= out_sums[j]).sum() if out_sums[j] > 0 else 0
