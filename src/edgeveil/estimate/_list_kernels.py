"""Compiled loops of `suggestions`: the lists of many members, one after the other.

`make_lists` goes all of the way for a member: its strangers, what its friends tell, the law of a
true sum, the scores of those that stand out and of as many popular ones as there are places, the
best of them, and the places that are open. Time goes with its friends, the released values of its
row and the length of the list, not with the number of nodes. As `_kernels`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgeveil._compiled import compiled, inlined, inner
from edgeveil.estimate._friend_kernels import read_friends
from edgeveil.estimate._law_kernels import (
    PLAIN,
    STEPS,
    beside,
    decays_of,
    exponentials,
    laplace_tables,
    poissons,
    stays_below,
    widths_of,
)
from edgeveil.estimate._mixture_kernels import (
    BLOCK,
    KINDS,
    LANES,
    LAWS,
    collect,
    fill_blocks,
    fit_mixture,
    mix,
)
from edgeveil.estimate._place_kernels import open_below, open_places, open_seen
from edgeveil.estimate.popularity import CELLS, FINE

FIELDS = 7  # of a place: node, score, first, last, common friends, why, friends of the member

_PSEUDO = 0.2  # nodes that each component of the tail has beforehand, and
_SEATS = 0.5  # strangers in the member's circles for each friend in them, beforehand
_TELLING = 2.0  # a reason multiplies the expected sum by this
_TINY = 1e-300
_ROUNDING = 1 + 1e-12


@compiled
def make_lists(
    own: Any,  # IN  members (m), their friends, each list sorted, starts (m + 1), sums, weights
    row: Any,  # IN  released places, rising for each member, their noisy sums, starts (m + 1)
    known: Any,  # IN  who follows the members, rising for each, starts (m + 1)
    popularity: Any,  # IN  of_friends (n), cell (n), and by cells: counts, degrees, between, growth
    total: float,  # sum of all degrees
    order: Any,  # IN  nodes that may be suggested, the most popular first
    allowed: Any,  # IN  (n) which these are, or (0) if all are
    rates: Any,  # 1 / scale of the noise on strangers' and on friends' sums
    limit: float,  # the threshold
    out: Any,  # OUT (m, k, FIELDS), filled with NaN before
) -> None:
    """Score candidates: who stands out, who follows, and the popular. The best are the list."""
    members, lists, starts, friend_sums, weights = own
    places, sums, row_starts = row
    followers, known_starts = known
    of_friends, cell, counts, centres, between, growth = popularity
    rate, k, room, most = rates[0], out.shape[1], 0, 0
    for i in range(len(members)):
        size = row_starts[i + 1] - row_starts[i] + known_starts[i + 1] - known_starts[i]
        room = max(room, size)
    room += k
    # Of candidates: node, fine cell, whether it follows the member, noisy sum, points up to that.
    named, fine = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    fan, values = np.empty(room, dtype=np.bool_), np.empty(room)
    at, offsets, scores = np.empty(room, dtype=np.int64), np.empty(room), np.empty(room)
    items, blocks = np.empty((4, room)), np.empty(BLOCK * ((CELLS + room) // LANES + 1))
    below, following = np.empty(CELLS * FINE), np.empty(CELLS * FINE)
    popular, expected = np.empty(CELLS * FINE), np.empty(PLAIN * CELLS)
    value, whole, shares = np.empty(PLAIN * CELLS), np.empty(PLAIN * CELLS), np.empty(KINDS)
    by_cell, by_fine = np.empty((3, CELLS)), np.empty((3, CELLS * FINE))
    best, limits = np.empty(room, dtype=np.int64), np.empty(2 * k)
    mass = left = right = np.empty((0, LAWS))
    law = ranking = peaks = chances = np.empty((0, CELLS))
    tables, ids = np.empty((8, 0, CELLS)), np.empty(0, dtype=np.int32)
    for i in range(len(members)):
        friends = lists[starts[i] : starts[i + 1]]
        seen, count, bonus = _strangers(
            members[i], friends, places[row_starts[i] : row_starts[i + 1]],
            sums[row_starts[i] : row_starts[i + 1]],
            followers[known_starts[i] : known_starts[i + 1]], cell, counts,
            named, values, fine, fan, below, following,
        )  # fmt: skip
        highest = 0.0
        for j in range(seen):
            highest = max(highest, values[j])
        share, typical, unit, size, typical_weight, reach = read_friends(
            friends, friend_sums[starts[i] : starts[i + 1]], weights[starts[i] : starts[i + 1]],
            of_friends, centres, total, between, rates, highest, expected, popular,
        )  # fmt: skip
        bonus *= max(reach, 1.0) / share
        count = _add_popular(members[i], friends, seen, count, cell, order, k, named, fine, fan)
        for j in range(count):
            offsets[j] = popular[fine[j]] + (bonus if fan[j] else 0.0)

        if size > most:
            most = size
            mass, left = np.empty((most, LAWS)), np.empty((most + 1, LAWS))
            right, ranking = np.empty((most + 1, LAWS)), np.empty((most, CELLS))
            law, peaks = np.empty((most, CELLS)), np.empty((most + 1, CELLS))
            chances, tables = np.empty((most + 1, CELLS)), np.empty((8, most + 1, CELLS))
            ids = np.empty(4 * CELLS * (most + 1), dtype=np.int32)
            for key in range(len(ids)):  # np.full takes a second to compile
                ids[key] = -1
        widths, decays, unseen = np.empty(size), np.empty(size), np.empty(size)
        widths_of(widths)
        decays_of(rate * unit, decays)
        stays_below(limit, unit, rate, unseen)
        for c in range(PLAIN * CELLS):
            expected[c] /= unit
        poissons(expected, widths, mass, value, whole)
        exponentials(typical, unit, widths, mass, PLAIN * CELLS)
        laplace_tables(mass, size, LAWS, decays, left, right)
        found = collect(values, fine, fan, seen, offsets, unit, size, ids, at, items)
        used = fill_blocks(
            mass, unseen, below, growth, items, found, unit, rate, left, right, blocks
        )
        fit_mixture(blocks, used, _PSEUDO, False, shares)
        mix(shares, growth, mass, size, law)
        seats = _SEATS * share * len(friends) / (KINDS - PLAIN)
        fit_mixture(blocks, used, _PSEUDO + seats, True, shares)
        mix(shares, growth, mass, size, ranking)

        _read_laws(ranking, law, unseen, unit, decays, between, tables, chances, by_cell, by_fine)
        _peaks(tables, size, decays, peaks)
        chosen = _best(
            seen, count, named, values, fine, at, offsets, allowed, by_fine, peaks,
            tables, unit, rate, size, scores, best, k,
        )  # fmt: skip
        for r in range(chosen):
            j = best[r]
            f = fine[j]
            c, common, shares_friends = f // FINE, by_fine[1, f], False
            if j < seen:
                z, x = values[j], at[j]
                common, none = _read_value(z, x, c, law[0, c], unit, rate, size, tables)
                shares_friends = none < 0.5
                shares_friends &= common >= _TELLING * by_fine[2, f]
                # On the list without its sum? Then that is not why it is there.
                shares_friends &= by_fine[0, f] + offsets[j] < scores[best[chosen - 1]]
                low, high = open_seen(z, x, c, unit, rate, decays, tables[0], tables[1])
            else:
                low, high = open_below(chances, c, size)
            limits[r] = STEPS[high] * unit + offsets[j]
            limits[k + r] = STEPS[low] * unit + offsets[j]
            line = out[i, r]
            line[0], line[1] = named[j], scores[j]
            line[4] = min(common / typical_weight, float(len(friends)))  # it has no more friends
            line[5] = 1.0 if shares_friends else (2.0 if fan[j] else 0.0)
            line[6] = len(friends)
        if chosen:
            open_places(
                chances, below, following, popular, bonus, items, found, unit, rate, decays,
                tables[0], tables[1], limits, chosen, max(len(cell) - 1.0 - len(friends), 1.0),
                out[i],
            )  # fmt: skip


@inner
def _strangers(
    member: int, friends: Any, places: Any, sums: Any, followers: Any, cell: Any, counts: Any,
    named: Any, values: Any, fine: Any, fan: Any, below: Any, following: Any,
) -> Any:  # fmt: skip
    """Strangers that stand out, then further ones that follow the member.

    How many both are, and the odds that whom a member follows is a follower followed back, for
    each follower. The member and its friends are left out: noise may lift them. OUT ``below`` and
    ``following`` (fine cells): how many strangers do not stand out, and follow of these.
    """
    for f in range(len(counts)):
        below[f], following[f] = counts[f], 0.0
    below[cell[member]] -= 1.0
    for u in range(len(friends)):
        below[cell[friends[u]]] -= 1.0
    seen = at = f = 0
    for j in range(len(places)):
        place = places[j]
        while at < len(friends) and friends[at] < place:
            at += 1
        if place != member and not (at < len(friends) and friends[at] == place):
            while f < len(followers) and followers[f] < place:
                f += 1
            named[seen], values[seen], fine[seen] = place, sums[j], cell[place]
            fan[seen] = f < len(followers) and followers[f] == place
            below[fine[seen]] -= 1.0
            seen += 1
    count, unknown = seen, 0
    for f in range(len(followers)):
        follower = followers[f]
        if follower != member and not _holds(friends, len(friends), follower):
            unknown += 1
            if not _holds(named, seen, follower):
                named[count], fine[count], fan[count] = follower, cell[follower], True
                following[fine[count]] += 1.0
                count += 1
    if len(followers) == 0:
        return seen, count, 0.0
    share = (len(followers) - unknown + 0.5) / (len(friends) + 1)
    return seen, count, share / max(1 - share, _TINY) / len(followers)


@inner
def _add_popular(
    member: int, friends: Any, seen: int, count: int, cell: Any, order: Any, k: int, named: Any,
    fine: Any, fan: Any,
) -> int:  # fmt: skip
    """The k most popular strangers beside these, or as many as there are: how many now."""
    most, at, others = count + k, 0, count
    while count < most and at < len(order):
        v = order[at]
        at += 1
        if v == member or _holds(friends, len(friends), v) or _holds(named, seen, v):
            continue
        if others > seen and _holds(named[seen:], others - seen, v):
            continue
        named[count], fine[count], fan[count] = v, cell[v], False
        count += 1
    return count


@inlined
def _holds(ordered: Any, end: int, value: int) -> bool:
    """Whether a value is among the first `end`, which rise."""
    low, high = 0, end
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low < end and ordered[low] == value


@inner
def _read_laws(
    ranking: Any, law: Any, unseen: Any, unit: float, decays: Any, between: Any, tables: Any,
    chances: Any, by_cell: Any, by_fine: Any,
) -> None:  # fmt: skip
    """OUT ``tables``: `laplace_tables` of `ranking`, of its first moment, of `law` and its moment.

    OUT ``chances`` as in `open_places`; ``by_fine`` (3, fine cells): expected sums of those below
    the threshold when ranked, the same by `law`, and by `law` before all values.
    """
    size = len(decays)
    for j in range(2):
        of, moment = (law if j else ranking), chances  # room until the moments are read
        for x in range(size):
            for c in range(CELLS):
                moment[x, c] = of[x, c] * (STEPS[x] * unit)
        laplace_tables(of, size, CELLS, decays, tables[4 * j], tables[4 * j + 1])
        laplace_tables(moment, size, CELLS, decays, tables[4 * j + 2], tables[4 * j + 3])
    _means(ranking, unseen, 0.0, unit, by_cell[0])
    _means(law, unseen, 0.0, unit, by_cell[1])
    _means(law, unseen, 1.0, unit, by_cell[2])
    for f in range(CELLS * FINE):  # linear between the cells' degrees
        at, part = int(between[0, f]), between[1, f]
        for j in range(3):
            by_fine[j, f] = by_cell[j, at] + part * (by_cell[j, at + 1] - by_cell[j, at])
    for c in range(CELLS):
        chances[size, c] = 0.0
    for x in range(size - 1, -1, -1):
        for c in range(CELLS):
            chances[x, c] = chances[x + 1, c] + ranking[x, c] * unseen[x]
    for x in range(size - 1, -1, -1):  # the first row last: all are divided by it
        for c in range(CELLS):
            chances[x, c] /= max(chances[0, c], _TINY)


@inner
def _means(law: Any, chance: Any, least: float, unit: float, found: Any) -> None:
    """OUT ``found`` (c): expected sums, rising, given what has this chance at each point."""
    whole = np.zeros(CELLS)
    for c in range(CELLS):
        found[c] = 0.0
    for x in range(len(chance)):
        part = max(chance[x], least)
        for c in range(CELLS):
            whole[c] += law[x, c] * part
            found[c] += law[x, c] * part * (STEPS[x] * unit)
    for c in range(CELLS):
        found[c] /= max(whole[c], _TINY)
        if c > 0:
            found[c] = max(found[c], found[c - 1])


@inner
def _peaks(tables: Any, size: int, decays: Any, peaks: Any) -> None:
    """OUT ``peaks`` (x + 1, c): the expected sum of a noisy sum at the next point.

    It rises with the noisy sum: no value before that point has a larger one.
    """
    for x in range(size):
        decay = decays[x]
        for c in range(CELLS):
            whole = tables[0, x + 1, c] + tables[1, x + 1, c] * decay
            moment = tables[2, x + 1, c] + tables[3, x + 1, c] * decay
            peaks[x, c] = moment / max(whole, _TINY) * _ROUNDING
    for c in range(CELLS):
        peaks[size, c] = peaks[size - 1, c]


@inner
def _best(
    seen: int, count: int, named: Any, values: Any, fine: Any, at: Any, offsets: Any, allowed: Any,
    by_fine: Any, peaks: Any, tables: Any, unit: float, rate: float, size: int, scores: Any,
    best: Any, k: int,
) -> int:  # fmt: skip
    """OUT ``best``: candidates of the k largest scores, best first; of equal ones the first.

    Gives how many there are. Those that stand out come last: if k others have larger scores than
    the peaks of one, it is left out. The others' scores are written.
    """
    filled, others, bound = 0, 0, np.inf
    for step in range(count):
        j = step + seen if step < count - seen else step - (count - seen)
        if len(allowed) and not allowed[named[j]]:
            continue
        f, x = fine[j], at[j]
        score = by_fine[0, f]
        if j < seen:
            c = f // FINE
            # Interpolation between cells must not make more evidence count less.
            most = max(peaks[x, c], score) + offsets[j]
            if others >= k and most < bound:
                continue
            before, after = beside(values[j], x, unit, rate, size)
            whole = max(tables[0, x, c] * before + tables[1, x, c] * after, _TINY)
            score = max((tables[2, x, c] * before + tables[3, x, c] * after) / whole, score)
        else:
            others, bound = others + 1, min(bound, score + offsets[j])
        scores[j], best[filled] = score + offsets[j], j
        filled += 1
    _sort_by(scores, best, filled)
    return min(filled, k)


@inlined
def _sort_by(scores: Any, best: Any, count: int) -> None:
    """INOUT ``best``: the largest score first, of equal ones the first. By Shell's gaps."""
    gap = 1
    while 3 * gap < count:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            j, at = best[i], i
            while at >= gap and _worse(scores, best[at - gap], j):
                best[at] = best[at - gap]
                at -= gap
            best[at] = j
        gap //= 3


@inlined
def _worse(scores: Any, i: int, j: int) -> bool:
    return scores[i] < scores[j] or (scores[i] == scores[j] and i > j)


@inner
def _read_value(
    z: float, at: int, c: int, at_zero: float, unit: float, rate: float, size: int, tables: Any
) -> Any:
    """Expected true sum of a noisy z, by the law of estimates, and the chance that it is 0."""
    before, after = beside(z, at, unit, rate, size)
    whole = max(tables[4, at, c] * before + tables[5, at, c] * after, _TINY)
    mean = (tables[6, at, c] * before + tables[7, at, c] * after) / whole
    near = before * math.exp(-rate * unit * STEPS[at - 1]) if at > 0 else after
    return mean, at_zero * near / whole
