"""Many calls, many generations: the exact loss of all that was noised is at most what was charged.

Two neighbouring histories run through engine and ledger. In the first world every noised number
turns out to be the true one, which is an outcome that tells the most; in the second world the
same outcomes are given, whatever its own numbers are. The loss of the transcript is then the sum
of the losses of its numbers (docs/theory/time.md).
"""

from __future__ import annotations

import copy
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeveil.errors import BudgetError
from edgeveil.graph.graph import Graph
from edgeveil.jobs import Local, drawing, release
from edgeveil.ledger import Ledger
from edgeveil.mechanisms import DegreePrior, DPPushFlowCap, EdgeFlipping, Suggest, TwoHop
from edgeveil.mechanisms import run as runner
from edgeveil.mechanisms.hard_pairs import graph_of_pairs
from edgeveil.privacy.loss import largest_loss
from edgeveil.privacy.statistic import without_noise

N = 7
EDGE = (5, 6)  # the one that may differ; the sources are 0 to 4
MECHANISMS = [
    DPPushFlowCap(epsilon=0.5),
    DPPushFlowCap(epsilon=0.25, model="public"),
    EdgeFlipping(epsilon=0.5),
    DegreePrior(epsilon=0.5),
    TwoHop(epsilon=0.5),
    Suggest(epsilon=1.0),
]
SLACK = 1e-6  # prices are whole nano-epsilons, losses are floats


@dataclass
class World:
    """What was asked of one history, question by question: of which campaign, and for whom."""

    graphs: list[Graph]
    outcomes: list | None = None  # of the other world, to be given again
    asked: list = field(default_factory=list)
    given: list = field(default_factory=list)
    whose: list = field(default_factory=list)  # campaign, and member or None for all
    got: set = field(default_factory=set)  # who got a row of which campaign
    now: tuple = ()

    def randomise(self, statistic, noise, names=(0,)):
        self.asked.append(copy.deepcopy(statistic))
        self.whose.append(self.now)
        outcome = (
            without_noise(copy.deepcopy(statistic))
            if self.outcomes is None
            else copy.deepcopy(self.outcomes[len(self.given)])
        )
        self.given.append(copy.deepcopy(outcome))
        return outcome


def played(world, ledger, calls, monkeypatch, around=()):
    """Make the calls; those that the budget refuses are no calls.

    Sources are asked for one by one, so that each number has its member. Those in `around` are
    asked for without the ledger.
    """
    original, at = drawing.shared_numbers, 0

    def shared(*arguments, **options):
        before = world.now
        world.now = (before[0], None)
        numbers = original(*arguments, **options)
        world.now = before
        return numbers

    with monkeypatch.context() as patch:
        patch.setattr(runner, "randomise", world.randomise)
        patch.setattr(drawing, "shared_numbers", shared)
        for number, (mechanism, sources, advance) in enumerate(calls):
            if advance and ledger.charges():
                at = min(ledger.advance() - 1, len(world.graphs) - 1)
            for source in sources:
                world.now = (mechanism, at), str(source)
                paid = {} if number in around else {"ledger": ledger}
                with suppress(BudgetError):
                    release(world.graphs[at], mechanism, [source], engine=Local(threads=1), **paid)
                    world.got.add(world.now)


def losses(histories, calls, create, monkeypatch, around=()):
    """The exact loss of all numbers, by campaign and member, and the ledger."""
    first = World(histories[0])
    played(first, create(), calls, monkeypatch, around)
    second, ledger = World(histories[1], outcomes=first.given), create()
    played(second, ledger, calls, monkeypatch, around)
    assert first.whose == second.whose, "what is asked does not depend on the edge"
    total: Counter[tuple] = Counter(dict.fromkeys(first.got, 0))
    for whose, first_asked, second_asked in zip(
        first.whose, first.asked, second.asked, strict=True
    ):
        total[whose] += largest_loss(first_asked, second_asked)[0]
    return total, ledger


def learnt_by(total, name):
    """What a member has seen: its rows, what their campaigns share, and all that is public."""
    own = {campaign for campaign, whose in total if whose == name}
    return sum(
        loss
        for (campaign, whose), loss in total.items()
        if campaign[0].guarantee(1).model == "public"
        or whose == name
        or (whose is None and campaign in own)
    )


def check(total, ledger):
    """Hold the losses against the accounts."""
    assert sum(total.values()) <= ledger.account().pooled_charged + SLACK
    for name in {whose for _, whose in total} - {None}:
        assert learnt_by(total, name) <= ledger.account(name).charged + SLACK


pairs = [(u, v) for v in range(N) for u in range(v) if (u, v) != EDGE]
graphs = st.lists(st.sampled_from(pairs), min_size=4, max_size=12, unique=True)
calls = st.lists(
    st.tuples(
        st.sampled_from(MECHANISMS),
        st.lists(st.integers(0, 4), min_size=1, max_size=4),
        st.booleans(),
    ),
    min_size=2,
    max_size=6,
)


def both(edges, with_edge):
    graph = graph_of_pairs(N, edges)
    return graph, graph.with_edge_flipped(*EDGE) if with_edge else graph


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    states=st.lists(st.tuples(graphs, st.booleans()), min_size=1, max_size=3),
    asked=calls,
)
def test_sequence_of_calls_loses_at_most_its_charges(states, asked, tmp_path_factory, monkeypatch):
    """Theorems 1 and 2."""
    histories = list(zip(*(both(*state) for state in states), strict=True))
    cap = 4

    def create():
        return Ledger.create(tmp_path_factory.mktemp("l") / "ledger", epsilon=cap)

    total, ledger = losses(histories, asked, create, monkeypatch)
    check(total, ledger)
    for name in {whose for _, whose in total} - {None}:
        assert learnt_by(total, name) <= cap + SLACK


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: f"{m.name} {m.guarantee(1).model}")
def test_coalition_of_all_calls_loses_at_most_the_pooled_price(mechanism, tmp_path, monkeypatch):
    """Theorem 1 on a pair on which something is learnt; so the check above can fail."""
    star = [(u, 5) for u in range(5)] + [(0, 1), (2, 3)]
    histories = list(zip(both(star, with_edge=True), strict=True))
    place = iter(range(9))

    def create():
        return Ledger.create(tmp_path / f"ledger {next(place)}", epsilon=100)

    calls = [(mechanism, [0, 1], False), (mechanism, [1, 2, 0], False), (mechanism, [3], False)]
    total, ledger = losses(histories, calls, create, monkeypatch)
    check(total, ledger)
    assert sum(total.values()) > 0
    price = mechanism.guarantee(4)
    assert ledger.account().pooled_charged == pytest.approx(price.pooled_epsilon)


# --- Controls: each of these must be noticed -----------------------------------------------------

STAR = [(u, 5) for u in range(5)] + [(0, 1), (2, 3)]


@pytest.fixture
def create(tmp_path):
    place = iter(range(9))
    return lambda **caps: Ledger.create(
        tmp_path / f"ledger {next(place)}", **{"epsilon": 100, **caps}
    )


def test_control_shared_part_drawn_twice_exceeds_charges(create, monkeypatch):
    def drawn_anew(question, batch):
        numbers = drawing.shared_numbers(question.mechanism, question.graph, _NoNoise())
        return question.mechanism.fit_shared(numbers, question.graph.nodes), ""

    monkeypatch.setattr(drawing, "_fitted", drawn_anew)
    flipping = EdgeFlipping(epsilon=0.5)
    histories = list(zip(both(STAR, with_edge=True), strict=True))
    asked = [(flipping, [0], False), (flipping, [1], False)]
    total, ledger = losses(histories, asked, create, monkeypatch)
    assert sum(total.values()) == pytest.approx(1.0)
    with pytest.raises(AssertionError):
        check(total, ledger)


class _NoNoise:
    """Stands where a source of noise is passed on and never used."""

    private = True  # as one from a stored secret

    def derive(self, *_):
        return self


def test_control_rows_drawn_without_ledger_exceed_charges(create, monkeypatch):
    cap = DPPushFlowCap(epsilon=0.5, sigma=1e-7, restart=0.999, rounds=1, prepush=True)
    histories = list(zip(both([(0, 5), (1, 5), (2, 5)], with_edge=True), strict=True))
    asked = [(cap, [0], False)] * 12
    total, ledger = losses(histories, asked, create, monkeypatch)
    check(total, ledger)
    assert learnt_by(total, "0") > 0.05
    total, ledger = losses(histories, asked, create, monkeypatch, around=range(1, 12))
    with pytest.raises(AssertionError):
        check(total, ledger)
