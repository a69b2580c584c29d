"""Compiled loops of `suggestions`: the lists of many members, out of what was released.

`write_lists` reads one member's row after the other (`_suggestion_kernels`), scores the strangers
that stand out and as many popular ones as there are places, and says which places noise leaves
open. Memory and time of a member go with its friends, the released values of its row and the
length of the list, not with the number of nodes. As `_kernels`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil.estimate._compile import compiled, inlined
from edgeveil.estimate._place_kernels import ahead, at_degree, best, nearness, open_points
from edgeveil.estimate._suggestion_kernels import (
    beside,
    circles,
    decays_of,
    fit_laws,
    laplace_tables,
    mean_counts,
    place_of,
    points_to,
)

__all__ = ["FIELDS", "weigh_friends", "write_lists"]

FIELDS = 7  # of a place: node, score, first, last, common friends, why, friends of the member

_TELLING = 2.0  # a reason multiplies the expected sum by this
_DEVIATIONS = 2.0  # of the number of nodes ahead
_TAIL_GROWTH = 0.5  # the tail's share grows with this power of the degree
_LEAST_UNIT = 0.02  # of the grid
_CLEAR = 1.5  # by how much weighted sums must exceed what noise alone reaches
_TINY = 1e-300


@compiled
def weigh_friends(
    lists: Any,  # IN  friends of all members
    starts: Any,  # IN  (m + 1)
    sums: Any,  # IN  the friends' noisy sums
    of_friends: Any,  # IN  (n) degrees
    clear: float,  # what noise alone reaches
    weights: Any,  # OUT as long as `lists`
) -> None:
    """min(1, D0 / degree) with D0 the 0.75, else the 0.9 quantile of a member's friends' degrees.

    If the sums that are left stand out of the noise; else all are 1.
    """
    for i in range(len(starts) - 1):
        first, last = starts[i], starts[i + 1]
        out = weights[first:last]
        out[:] = 1.0
        if last == first:
            continue
        degrees, mean = np.empty(last - first), 0.0
        for u in range(len(out)):
            degrees[u] = of_friends[lists[first + u]]
            mean += sums[first + u] / len(out)
        falling = best(degrees, len(out))
        for quantile in (0.75, 0.9):
            at = (1 - quantile) * (len(out) - 1)
            low = int(at)
            high = min(low + 1, len(out) - 1)
            upper, lower = degrees[falling[low]], degrees[falling[high]]
            start = upper + (at - low) * (lower - upper)
            whole = 0.0
            for u in range(len(out)):
                whole += min(1.0, start / degrees[u])
            if whole / len(out) * mean >= _CLEAR * clear:
                for u in range(len(out)):
                    out[u] = min(1.0, start / degrees[u])
                break


@compiled
def write_lists(
    members: Any,  # IN  (m)
    lists: Any,  # IN  friends of all members, sorted for each
    starts: Any,  # IN  (m + 1)
    friend_sums: Any,  # IN  as long as `lists`
    weights: Any,  # IN  as long as `lists`
    places: Any,  # IN  nodes whose noisy sums reach the threshold, rising for each member
    sums: Any,  # IN  as long as `places`
    place_starts: Any,  # IN  (m + 1)
    followers: Any,  # IN  who is known to follow each member, sorted for each; or none
    follower_starts: Any,  # IN  (m + 1)
    shared: Any,  # cell, counts, degrees, total, centres, degrees and friends' of `Popularity`
    order: Any,  # IN  nodes that may be suggested, the most popular first
    allowed: Any,  # IN  (n) which these are, or (0) if all are
    rates: Any,  # 1 / scale of the noise on strangers' and on friends' sums
    limit: float,  # the threshold
    out: Any,  # OUT (m, k, 7), filled with NaN before
) -> None:
    """Write the list of every member."""
    _, counts, fine_degrees, total, centres, degrees, _ = shared
    logs = np.log(centres)
    growth = (centres * len(degrees) / total) ** _TAIL_GROWTH
    fine = len(counts) // len(centres)
    fine_at, fine_part = np.empty(len(counts), dtype=np.int64), np.empty(len(counts))
    for f in range(len(counts)):
        fine_at[f], fine_part[f] = _between(math.log(fine_degrees[f]), f // fine, logs)
    table = (logs, growth, fine_at, fine_part)
    for i in range(len(members)):
        mine = slice(starts[i], starts[i + 1])
        seen = slice(place_starts[i], place_starts[i + 1])
        strangers, noisy = _strangers(members[i], lists[mine], places[seen], sums[seen])
        known = followers[follower_starts[i] : follower_starts[i + 1]]
        fans, _ = _strangers(members[i], lists[mine], known, friend_sums)
        row = (members[i], lists[mine], friend_sums[mine], weights[mine], strangers, noisy)
        cells, model = _read(row, _follow_back(lists[mine], known), shared, table, rates, limit)
        _rank(row, cells, fans, shared, table, order, allowed, model, out[i])


@compiled
def _strangers(member: int, own: Any, places: Any, sums: Any) -> Any:
    """What is left of a member's row without itself and its friends: noise may lift them."""
    kept, values = np.empty(len(places), dtype=np.int64), np.empty(len(places))
    count = at = 0
    for j in range(len(places)):
        while at < len(own) and own[at] < places[j]:
            at += 1
        if places[j] != member and not (at < len(own) and own[at] == places[j]):
            kept[count], values[count] = places[j], sums[j]
            count += 1
    return kept[:count], values[:count]


@compiled
def _follow_back(own: Any, followers: Any) -> float:
    """Odds that whom the member follows is a follower followed back, for each follower."""
    if len(followers) == 0:
        return 0.0
    mutual = 0
    for v in followers:
        mutual += _holds(own, v)
    share = (mutual + 0.5) / (len(own) + 1)
    return share / (1 - share) / len(followers)


@inlined
def _holds(ordered: Any, value: Any) -> bool:
    at = place_of(ordered, value)
    return at > 0 and ordered[at - 1] == value


@inlined
def _between(log_degree: float, at: int, logs: Any) -> Any:
    """Between which two cells a degree lies, as the first and the part of the way to the next.

    ``at`` is the degree's own cell, whose mean is near.
    """
    if log_degree < logs[at]:
        at -= 1
    if at < 0:
        return 0, 0.0
    if at >= len(logs) - 1:
        return len(logs) - 2, 1.0
    gap = logs[at + 1] - logs[at]
    return at, ((log_degree - logs[at]) / gap if gap > 0 else 0.0)  # degrees that hardly differ


@compiled
def _read(row: Any, bonus: float, shared: Any, table: Any, rates: Any, limit: float) -> Any:
    """Read one row: the cells of the strangers in it, and what they and all others may be."""
    _, own, friend_sums, weights, nodes, sums = row
    cell, counts, _, total, centres, _, of_friends = shared
    rate, fine = rates[0], len(counts) // len(centres)
    theirs = np.empty(len(own))
    for u in range(len(own)):
        theirs[u] = of_friends[own[u]]
    expected, counted = np.empty((5, len(centres))), np.empty(len(centres))
    mean_counts(centres, theirs, weights, total, expected, counted)
    share, typical = circles(centres, theirs, friend_sums, counted, total, rates[1])
    whole = reach = squares = 0.0
    for u in range(len(own)):
        whole += weights[u]
        reach += weights[u] * theirs[u]
        squares += weights[u] * weights[u] * theirs[u]
    typical_weight = whole / len(own) if len(own) else 1.0
    typical = max(1.0, typical * typical_weight)
    unit = max(squares / reach if reach > 0 else 1.0, _LEAST_UNIT)
    highest = 0.0
    for i in range(len(sums)):
        highest = max(highest, sums[i])
    points, width = points_to(min(whole, max(8 * typical, highest + 10 / rate)), unit)
    unseen = np.empty(len(points))
    for x in range(len(points)):
        gap = rate * (limit - points[x])
        unseen[x] = 0.5 * math.exp(gap) if gap < 0 else 1 - 0.5 * math.exp(-gap)

    below, cells = counts.copy(), np.empty(len(nodes), dtype=np.int64)
    below[cell[row[0]]] -= 1
    for u in range(len(own)):
        below[cell[own[u]]] -= 1
    for i in range(len(nodes)):
        below[cell[nodes[i]]] -= 1
        cells[i] = cell[nodes[i]] // fine
    rest = np.zeros(len(centres))
    for f in range(len(below)):
        rest[f // fine] += below[f]
    law, ranking = np.empty((2, len(centres), len(points)))
    fit_laws(
        expected, typical, share * len(own), (points, width), unit, rate, unseen,
        rest, cells, sums, table[1], law, ranking,
    )  # fmt: skip

    odds = (1 - share) / share
    popular = np.empty(len(centres))  # rising: the more popular, the more
    for c in range(len(centres)):
        popular[c] = odds * expected[2, c] if c == 0 else max(popular[c - 1], odds * expected[2, c])
    bonus *= max(reach, 1.0) / share
    model = (points, rate, unseen, law, ranking, popular, bonus, below, typical_weight)
    return cells, model


@compiled
def _means(law: Any, points: Any, chance: Any) -> Any:
    """Expected sums by cell, rising, given something that has this chance at each point."""
    found = np.empty(len(law))
    for c in range(len(law)):
        whole = first = 0.0
        for x in range(len(points)):
            mass = law[c, x] * chance[x]
            whole += mass
            first += mass * points[x]
        found[c] = first / max(whole, _TINY)
        if c > 0:
            found[c] = max(found[c], found[c - 1])
    return found


@compiled
def _rank(
    row: Any,
    cells: Any,
    fans: Any,
    shared: Any,
    table: Any,
    order: Any,
    allowed: Any,
    model: Any,
    out: Any,
) -> None:
    """Score candidates: who stands out, who follows, and the popular. The best are the list."""
    _, own, _, _, nodes, sums = row
    cell, counts, _, _, centres, degrees, _ = shared
    logs, fine = table[0], len(counts) // len(centres)
    points, rate, unseen, law, ranking, popular, bonus, _, typical_weight = model
    named, fan = _candidates(row, fans, degrees, order, len(out))
    low_sums = _means(ranking, points, unseen)
    tables = _ranking_tables(ranking, points, rate, cells)
    size = len(named)
    scores, offsets, alone = np.empty(size), np.empty(size), np.empty(size)
    at, part = np.empty(size, dtype=np.int64), np.empty(size)
    ahead_of = np.empty((3, len(nodes)))  # likelihood of each value, and what goes with its place
    for i in range(size):
        v = named[i]
        at[i], part[i] = _between(math.log(degrees[v]), cell[v] // fine, logs)
        offsets[i] = at_degree(popular, at[i], part[i]) + (bonus if fan[i] else 0.0)
        low = at_degree(low_sums, at[i], part[i])
        alone[i] = low + offsets[i]
        scores[i] = alone[i]
        if i < len(nodes):
            # Interpolation between cells must not make more evidence count less.
            mean, ahead_of[0, i], ahead_of[1, i], ahead_of[2, i] = _expected_sum(
                tables, cells[i], points, sums[i], rate
            )
            scores[i] = max(mean, low) + offsets[i]
        if len(allowed) and not allowed[v]:
            scores[i] = -np.inf
    chosen = best(scores, len(out))
    if len(chosen) == 0:
        return
    known = (_means(law, points, unseen), _means(law, points, np.ones(len(points))))
    ranges = np.empty((2, len(chosen)))  # highest and lowest true score that noise leaves open
    near = np.empty(len(points))
    for r in range(len(chosen)):
        i = chosen[r]
        c, above = cell[named[i]] // fine, i < len(nodes)
        common, shares = at_degree(known[0], at[i], part[i]), False
        if above:
            nearness(points, sums[i], rate, near)
            common, none = _posterior(law[c], near, points)
            shares = none < 0.5
            shares &= common >= _TELLING * at_degree(known[1], at[i], part[i])
            # On the list without its sum? Then that is not why it is there.
            shares &= alone[i] < scores[chosen[-1]]
        else:
            near[:] = unseen
        low, high = open_points(ranking[c], near)
        ranges[0, r], ranges[1, r] = points[high] + offsets[i], points[low] + offsets[i]
        line = out[r]
        line[0], line[1] = named[i], scores[i]
        line[4] = min(common / typical_weight, float(len(own)))  # it has no more friends
        line[5] = 1.0 if shares else (2.0 if fan[i] else 0.0)
        line[6] = len(own)
    following = np.zeros(len(counts))  # followers below the threshold, by fine cell
    for v in fans:
        if not _holds(nodes, v):
            following[cell[v]] += 1
    limits = ranges.ravel()
    count, spread = ahead(limits, cells, offsets, ahead_of, tables, table, following, model)
    strangers = max(len(degrees) - len(own) - 1, 1)
    for r in range(len(chosen)):
        first = math.floor(count[r] - _DEVIATIONS * math.sqrt(spread[r] + 1)) + 1
        q = len(chosen) + r
        last = math.ceil(count[q] + _DEVIATIONS * math.sqrt(spread[q] + 1)) + 1
        out[r, 2] = min(max(first, 1.0), r + 1.0)
        out[r, 3] = max(min(last, float(strangers)), r + 1.0)


@compiled
def _candidates(row: Any, fans: Any, degrees: Any, order: Any, k: int) -> Any:
    """Who may be on the list, and whether it is known to follow the member."""
    member, own, _, _, nodes, _ = row
    named = np.empty(len(nodes) + len(fans) + k, dtype=np.int64)
    fan = np.zeros(len(named), dtype=np.bool_)
    size = len(nodes)
    named[:size] = nodes
    if len(fans):
        for i in range(size):
            fan[i] = _holds(fans, nodes[i])
        for i in best(degrees[fans], len(fans)):
            if not _holds(nodes, fans[i]):
                named[size], fan[size] = fans[i], True
                size += 1
    most, at = size + k, 0
    while size < most and at < len(order):
        v = order[at]
        at += 1
        if v != member and not (_holds(own, v) or _holds(nodes, v) or _holds(fans, v)):
            named[size] = v
            size += 1
    return named[:size], fan[:size]


@compiled
def _ranking_tables(law: Any, points: Any, rate: float, cells: Any) -> Any:
    """Tables of `laplace_tables` for the law and its first moment, of the cells that are needed."""
    decays, made = decays_of(points, rate), np.zeros(len(law), dtype=np.bool_)
    left, right, left_sums, right_sums = np.empty((4, len(law), len(points) + 1))
    moment = np.empty(len(points))
    for c in cells:
        if not made[c]:
            made[c] = True
            laplace_tables(law[c], decays, left[c], right[c])
            for x in range(len(points)):
                moment[x] = law[c, x] * points[x]
            laplace_tables(moment, decays, left_sums[c], right_sums[c])
    return left, right, left_sums, right_sums


@inlined
def _expected_sum(tables: Any, c: int, points: Any, z: float, rate: float) -> Any:
    """Expected true sum given the noisy one z; its likelihood, its place and its factors."""
    left, right, left_sums, right_sums = tables
    at = place_of(points, z)
    below, above = beside(points, at, z, rate)
    whole = max(left[c, at] * below + right[c, at] * above, _TINY)
    moment = left_sums[c, at] * below + right_sums[c, at] * above
    return moment / whole, float(at), below / whole, above / whole


@compiled
def _posterior(law: Any, near: Any, points: Any) -> Any:
    """Expected true sum, and the chance that it is 0."""
    whole = first = 0.0
    for x in range(len(points)):
        mass = law[x] * near[x]
        whole += mass
        first += mass * points[x]
    whole = max(whole, _TINY)
    return first / whole, law[0] * near[0] / whole
