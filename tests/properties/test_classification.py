"""The theorem of docs/theory/classification.md: an edge moves all rounds together by at most 1.

The rounds are written here from the page, in rationals, and attacked by random search. Words of a
round depend on what was released before, so both graphs are followed along one common outcome.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

HALF, ONE = Fraction(1, 2), Fraction(1)


def heard(edges, listeners, words, classes, directed):
    """What each listener hears in one round; directed: from followed, then from followers."""
    sums = {(u, c): Fraction(0) for u in listeners for c in range(classes * (1 + directed))}
    for u, v in edges:
        for listener, speaker, offset in ((u, v, 0), (v, u, classes * directed)):
            if listener in listeners:
                for c, share in words.get(speaker, {}).items():
                    sums[listener, c + offset] += share
    return sums


def moved(rng, *, directed=False, broken=None):
    """How far one random edge moves all rounds together, for random roles and adaptive words."""
    n, classes, rounds = (int(rng.integers(*ends)) for ends in ((2, 8), (2, 5), (1, 5)))
    pairs = list(combinations(range(n), 2))
    if directed:
        pairs += [(v, u) for u, v in pairs]
    edge = pairs[int(rng.integers(len(pairs)))]
    without = [p for p in pairs if p != edge and rng.random() < 0.5]
    listeners = {v for v in range(n) if rng.random() < rng.choice([0.3, 0.7, 1.0])}
    loud = {v: HALF if v in listeners and broken != "loud listeners" else ONE for v in range(n)}
    rows = set(range(n)) if broken == "rows of others" else listeners
    spoken, total = set(), Fraction(0)
    for number in range(rounds):
        # Both graphs release the same outcome, so that one random choice stands for any function
        # of it: who speaks now, and what is said.
        able = [v for v in range(n) if v not in spoken or broken == "speaks twice"]
        now = [v for v in able if number == rounds - 1 or rng.random() < 0.5]
        spoken |= set(now)
        words = {}
        for v in now:
            named = rng.choice(classes, int(rng.integers(1, classes + 1)), replace=False)
            words[v] = {int(c): loud[v] / len(named) for c in named}
        graphs = [without, [*without, edge]]
        first, second = (heard(g, rows, words, classes, directed) for g in graphs)
        if broken == "label from edges":
            for v in now:  # named is whether v has an edge: another word on the other graph
                words[v] = {0: loud[v]}
            other = {v: {int(v in edge): loud[v]} for v in now}
            first = heard(without, rows, words, classes, directed)
            second = heard([*without, edge], rows, other, classes, directed)
        total += sum(abs(first[at] - second[at]) for at in first)
    return total


@pytest.mark.parametrize("directed", [False, True])
def test_no_edge_moves_all_rounds_by_more_than_1(directed, figure):
    rng = np.random.default_rng(5)
    largest = max(moved(rng, directed=directed) for _ in range(3000))
    assert largest == 1  # never more, and reached
    kind = "directed" if directed else "undirected"
    figure(f"classes named by neighbours, {kind}", f"largest change {float(largest):.3f} of 1")


@pytest.mark.parametrize(
    "broken", ["speaks twice", "rows of others", "loud listeners", "label from edges"]
)
def test_each_broken_condition_is_found(broken):
    rng = np.random.default_rng(6)
    assert max(moved(rng, broken=broken) for _ in range(1000)) > 1


def test_an_edge_between_two_listeners_moves_them_by_1():
    words = {0: {0: HALF}, 1: {1: HALF}}
    first, second = (heard(edges, {0, 1}, words, 2, False) for edges in ([], [(0, 1)]))
    assert sum(abs(first[at] - second[at]) for at in first) == 1


def test_a_mutual_pair_moves_them_by_2():
    words = {0: {0: HALF}, 1: {1: HALF}}
    first, second = (heard(e, {0, 1}, words, 2, True) for e in ([], [(0, 1), (1, 0)]))
    assert sum(abs(first[at] - second[at]) for at in first) == 2
