"""Windows of a series: the exact loss, and guessing from samples which history it was."""

from __future__ import annotations

import numpy as np
import pytest

from edgeveil.estimate import lists
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.base import local_views
from edgeveil.mechanisms.member_lists import SuggestWindow
from edgeveil.mechanisms.run import make_rows
from edgeveil.privacy.loss import largest_loss
from edgeveil.privacy.noise import NoiseSource
from edgeveil.testing.guessing import fit_guesser

TRIALS, SURE = 8000, 0.999
MEMBER, X, Y, N = 0, 1, 2, 5
WINDOWS = [(0, 1), (1, 2), (2, 3)]


def history(birth):
    """The member's friend is X; X - Y is born at this snapshot, or (0) never."""
    first_seen = {(MEMBER, X): 1, (X, 3): 1, (X, 4): 2} | ({(X, Y): birth} if birth else {})
    entries = sorted(
        (*ends, born) for pair, born in first_seen.items() for ends in (pair, pair[::-1])
    )
    rows, columns, born = np.array(entries).T
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=N))])
    kinds = indptr.astype(np.int32), columns.astype(np.int32)
    return Graph(*kinds, NodeSet.range(N), first_seen=born.astype(np.uint16))


def kept(birth, until):
    """What a history holds of it by then; first_seen of the future are asked about by nobody."""
    return history(birth if birth <= until else 0)


def mechanism(since, until):
    return SuggestWindow(epsilon=1.0, since=np.full(N, since), until=until)


def born_again(birth, until):
    """A control: an edge that ended, began again, and is born a second time."""
    return kept(birth, until) if until < 3 or not birth else history(3)


def exact(first_seen, of=kept):
    """The largest loss of the degrees, and of all windows given an outcome that has it."""
    first, second = (next(mechanism(0, 3).shared(of(birth, 1))) for birth in first_seen)
    loss, outcome = largest_loss(first, second)
    popularity = mechanism(0, 3).fit_shared((outcome,), NodeSet.range(N))
    for since, until in WINDOWS:
        questions = []
        for birth in first_seen:
            graph = of(birth, until)
            views = local_views(graph, [MEMBER], "joint")
            questions.append(next(mechanism(since, until).measure(graph, popularity, views)))
        loss += max(largest_loss(*questions)[0], largest_loss(*questions[::-1])[0])
    return loss


def seen(birth, seed, of):
    """What the member gets from its windows, in as many trials; given that all degrees are 0."""
    noise, numbers = NoiseSource.insecure(seed), []
    popularity = lists.fit_popularity(np.zeros(N), 2 / float(mechanism(0, 1).split[0]))
    for since, until in WINDOWS:
        drawn, _ = make_rows(
            mechanism(since, until),
            *(of(birth, until), popularity, [MEMBER] * TRIALS, noise.derive("window", until)),
            names=range(TRIALS),
        )
        numbers.append(np.nan_to_num(drawn.dense(N), nan=-1.0))
    first, last = numbers[0][:, [Y]], numbers[2][:, [Y]]
    return np.concatenate([*numbers, first + last, first - last], axis=1)


def proved_by_guessing(first_seen, of):
    first, second = (seen(birth, seed, of) for seed, birth in enumerate(first_seen))
    half = TRIALS // 2
    guesser = fit_guesser(first[:half], second[:half], games=2 * half, confidence=SURE)
    return guesser.certify(first[half:], second[half:], SURE)


@pytest.mark.parametrize(
    ("first_seen", "of", "at_least", "at_most"),
    [
        ((1, 0), kept, 0.6, 1.0),  # whether there is a friendship
        ((1, 3), kept, 1.2, 2.0),  # since when
        ((1, 0), born_again, 1.1, 2.0),  # and what must not be: more than epsilon
    ],
    ids=["whether", "since when", "born again"],
)
def test_what_can_be_guessed_from_all_windows(first_seen, of, at_least, at_most, record_property):
    loss = exact(first_seen, of)
    assert loss == pytest.approx(at_most, rel=0.05)
    assert loss <= at_most
    proved = proved_by_guessing(first_seen, of)
    record_property("figure", f"epsilon proved by guessing over a series: {proved:.2f}")
    assert at_least <= proved <= at_most
