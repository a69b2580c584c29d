"""Compiled loops for `lists`: which names are stored, and the best k of each member.

In numpy the same takes four fifths of a list's time (tests/unit/estimate/test_lists.py has it in
plain Python). Rows lie flat, row i at ``starts[i] : starts[i + 1]``; nodes rise within a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeveil._internal.compiled import compiled, inner


@inner
def _score(log_degree: Any, log_odds: Any, log_prior: Any) -> Any:
    """Ln D + ln(1 + (K / n) e^L), without overflow."""
    odds = log_odds + log_prior
    return log_degree + max(odds, 0.0) + np.log1p(np.exp(-abs(odds)))


@inner
def _contains(nodes: Any, node: Any) -> Any:
    """Whether a node is in a rising array."""
    low, high = 0, len(nodes)
    while low < high:
        middle = (low + high) >> 1
        if nodes[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low < len(nodes) and nodes[low] == node


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
    used = 0
    out_starts[0] = 0
    for i in range(len(sources)):
        first, friends = used, own[own_starts[i] : own_starts[i + 1]]
        for j in range(starts[i], starts[i + 1]):
            if nodes[j] != sources[i] and not _contains(friends, nodes[j]):
                out_nodes[used], out_sums[used] = nodes[j], sums[j]
                used += 1
        if used - first > room:
            scores = np.empty(used - first)
            for j in range(first, used):
                degree = log_degrees[out_nodes[j]]
                scores[j - first] = _score(degree, rates[i] * out_sums[j], log_prior)
            least = np.partition(scores, len(scores) - room)[len(scores) - room]
            ties = room - (scores > least).sum()  # names with just this score: the first ones
            used = first
            for j in range(len(scores)):
                if scores[j] > least or (scores[j] == least and ties > 0):
                    ties -= scores[j] == least
                    out_nodes[used], out_sums[used] = out_nodes[first + j], out_sums[first + j]
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
    """The k best strangers of each member: by evidence, because they follow it, or popular."""
    without = _score(0.0, 0.0, log_prior)  # score beyond the degree, without evidence
    out_starts[0] = 0
    for i in range(len(sources)):
        source, friends = sources[i], own[own_starts[i] : own_starts[i + 1]]
        measured = nodes[starts[i] : starts[i + 1]]
        own_sums = sums[starts[i] : starts[i + 1]]
        follow = followers[follower_starts[i] : follower_starts[i + 1]]
        most = k + len(measured) + len(follow)
        names, scores, totals = np.empty(most, np.int64), np.empty(most), np.zeros(most)
        size, popular, least = 0, 0, -np.inf
        for j in range(len(order)):
            if popular == k:  # a list holds only names that are no worse than the last of these
                least = log_degrees[order[j - 1]] + without
                break
            if order[j] != source and not _contains(friends, order[j]):
                popular += 1
                if not _contains(measured, order[j]) and not _contains(follow, order[j]):
                    names[size], scores[size] = order[j], log_degrees[order[j]] + without
                    size += 1
        for j in range(len(measured) + len(follow)):
            node = measured[j] if j < len(measured) else follow[j - len(measured)]
            score, total = log_degrees[node] + without + bonus[i], 0.0
            if j < len(measured):
                total = own_sums[j]
                score = _score(log_degrees[node], rates[i] * total, log_prior)
                score += bonus[i] if _contains(follow, node) else 0.0
            elif _contains(measured, node):
                continue
            if score < least or node == source or _contains(friends, node):
                continue
            if len(allowed) > 0 and not allowed[node]:
                continue
            names[size], scores[size], totals[size] = node, score, total
            size += 1
        by_node = np.argsort(names[:size])
        best = by_node[np.argsort(-scores[by_node], kind="mergesort")[:k]]  # ties go by node
        first = out_starts[i]
        for j in range(len(best)):
            out_nodes[first + j], out_scores[first + j] = names[best[j]], scores[best[j]]
            out_sums[first + j] = totals[best[j]]
            out_above[first + j] = (own_sums >= totals[best[j]]).sum() if totals[best[j]] > 0 else 0
        out_starts[i + 1] = first + len(best)
