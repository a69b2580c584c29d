"""Mechanisms from outside that are wrong: refused before anything is charged or released."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import edgeveil as ev
from edgeveil.errors import BudgetError, ParameterError
from edgeveil.estimate.lists import Evidence
from edgeveil.jobs import prepare
from edgeveil.mechanisms import MECHANISMS, DPEmbeddingSparse
from edgeveil.mechanisms.base import Mechanism, OnceForAll, laplace_statistic
from edgeveil.mechanisms.capped_flow import embedding_noise
from edgeveil.mechanisms.requirements import guarantee_of
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource, calibrate, calibrate_whole
from edgeveil.privacy.statistic import Bits, Statistic, randomise, randomise_bound
from edgeveil.testing.conformance import ConformanceError, check

GRAPH = ev.datasets.social_network(30, average_degree=6).graph
SECRET = NoiseSource.from_secret(b"a secret of thirty-two bytes ...")


class Degrees(Mechanism):
    """All degrees, with noise of its own for each row."""

    theorem = "an edge moves two degrees by one each"
    epsilon: float

    def measure(self, graph: ev.Graph, shared: Any, views: Any) -> Any:
        rows = np.tile(graph.degrees.astype(np.float64), (len(views.sources), 1))
        yield laplace_statistic(rows, sensitivity=2, epsilon=self.epsilon)


class CheaperForMany(Degrees):
    def guarantee(self, n_members: int) -> Guarantee:
        return Guarantee(
            epsilon=self.epsilon / n_members, model="joint", n_members=n_members, theorem="none"
        )


class NothingTogether(Degrees):
    def guarantee(self, n_members: int) -> Guarantee:
        return Guarantee(
            epsilon=self.epsilon,
            model="joint",
            n_members=n_members,
            theorem="none",
            collusion="additive" if n_members == 1 else "shared",
        )


class OnePriceForAllRows(Degrees):
    def guarantee(self, n_members: int) -> Guarantee:
        return Guarantee(epsilon=self.epsilon, model="public", n_members=n_members, theorem="none")


class OthersKnowMore(Degrees):
    def guarantee(self, n_members: int) -> Guarantee:
        return Guarantee(
            epsilon=self.epsilon,
            model="joint",
            n_members=n_members,
            theorem="none",
            known_edges="incident" if n_members == 1 else "outgoing",
        )


@pytest.fixture
def ledger(tmp_path):
    return ev.Ledger.create(tmp_path / "test.ledger", epsilon=100)


@pytest.mark.parametrize(
    "kind", [CheaperForMany, NothingTogether, OnePriceForAllRows, OthersKnowMore]
)
def test_guarantee_of_many_below_that_of_each_is_refused(kind, ledger):
    """A ledger would charge too little, for rows that are measured one by one."""
    mechanism = kind(epsilon=1.0)
    for options in ({}, {"ledger": ledger}):
        with pytest.raises(ParameterError, match="claims less for 30 rows"):
            ev.release(GRAPH, mechanism, GRAPH.nodes, **options)
    ev.release(GRAPH, mechanism, [0], ledger=ledger)  # of one row it is right
    with pytest.raises(ParameterError, match="claims less for 2 rows"):
        ev.release(GRAPH, mechanism, [1], ledger=ledger)
    assert [charge.n_rows for charge in ledger.charges()] == [1]
    with pytest.raises(ConformanceError, match="claims less"):
        check(mechanism)


class SpeaksOfOneMember(Degrees):
    def guarantee(self, n_members: int) -> Guarantee:
        return Guarantee(epsilon=self.epsilon, model="joint", theorem="none")


def test_guarantee_counts_members_as_released_not_as_claimed(tmp_path):
    """The cap for all members together would be charged for a single one."""
    ledger = ev.Ledger.create(tmp_path / "test.ledger", epsilon=100, pooled_epsilon=5)
    rows = ev.release(GRAPH, SpeaksOfOneMember(epsilon=1.0), [0, 1, 2], ledger=ledger)
    assert rows.guarantee.pooled_epsilon == ledger.account().pooled_charged == 3
    with pytest.raises(BudgetError, match="2 of 5 is left for all members together"):
        ev.release(GRAPH, SpeaksOfOneMember(epsilon=1.0), [3, 4, 5], ledger=ledger)


@pytest.mark.parametrize("kind", MECHANISMS, ids=lambda kind: kind.name)
def test_guarantee_of_many_passes_for_our_mechanisms(kind):
    given = {"promised_min_degree": 3} if kind.name == "push-flow" else {}
    models = ["joint", "public"] if "model" in kind.__dataclass_fields__ else [None]
    for epsilon in (0.1, 1 / 3, 17.123456789):
        if "epsilon" in kind.__dataclass_fields__:
            given["epsilon"] = epsilon
        for model in models:
            mechanism = kind(**given, **({} if model is None else {"model": model}))
            for count in (1, 2, 7, 10**6):
                assert guarantee_of(mechanism, count) == mechanism.guarantee(count)


class SharesToo(Degrees):
    """Measures all of epsilon twice: for everybody, and for each member."""

    part: float = 0.0

    def guarantee(self, n_members: int) -> Guarantee:
        claim = super().guarantee(n_members)
        return dataclasses.replace(claim, shared_epsilon=self.part)

    def shared(self, graph: ev.Graph) -> Any:
        yield laplace_statistic(graph.degrees, sensitivity=2, epsilon=self.part or self.epsilon)


def test_shared_and_own_statistics_have_one_epsilon_together(ledger):
    for part, words in ((0.0, "1 for its shared statistics"), (0.5, "1 for one member's statist")):
        with pytest.raises(ParameterError, match=f"uses epsilon {words}"):
            ev.release(GRAPH, SharesToo(epsilon=1.0, part=part), [0], ledger=ledger)


def test_narrow_numbers_of_numpy_get_the_same_noise():
    """Rounded to sixteen bits, the noise of an embedding was too small by a hair."""
    narrow = DPEmbeddingSparse(epsilon=np.float32(0.3), sigma=np.float16(0.01), rounds=np.int8(9))
    plain = DPEmbeddingSparse(
        epsilon=float(np.float32(0.3)), sigma=float(np.float16(0.01)), rounds=9
    )
    assert all(type(value) in (float, int, str, bool) for value in vars(narrow).values())
    assert narrow == plain
    for count in (1, 7, 50):
        first, second = (embedding_noise(m, 1000, count, m.half_epsilon) for m in (narrow, plain))
        assert first == second


class Masked(Degrees):
    def measure(self, graph: ev.Graph, shared: Any, views: Any) -> Any:
        rows = np.tile(graph.degrees.astype(np.float64), (len(views.sources), 1))
        hidden = np.ma.masked_array(rows, mask=rows > 0, hard_mask=True)
        noise = calibrate(coordinates=graph.n_nodes, sensitivity=2, epsilon=1)
        yield Statistic(hidden, noise)


def test_masked_rows_are_refused():
    """Numbers under a hard mask would be released without noise."""
    with pytest.raises(ParameterError, match="plain, writeable"):
        ev.release(GRAPH, Masked(epsilon=1.0), [0])
    noise = calibrate(coordinates=4, sensitivity=1, epsilon=1)
    for add_noise in (randomise, randomise_bound):
        with pytest.raises(ParameterError, match="plain, writeable"):
            add_noise(Statistic(np.ma.masked_array(np.ones((1, 4))), noise), SECRET, [0])


@pytest.mark.parametrize(
    "ones",
    [[3, 3], [2, 1], [-1], [5], [0.5], [[1]], np.array([3, 1], dtype=np.uint64)],
    ids=["twice", "falling", "negative", "beyond the end", "no integer", "table", "unsigned"],
)
def test_ones_that_are_no_rising_positions_are_refused(ones):
    """Nothing flips there, so they would show what they are."""
    with pytest.raises(ParameterError, match="positions of ones must increase"):
        Bits(np.array(ones), 5, 1.0)


class TooFewBits(OnceForAll):
    """Counts one pair of nodes too few."""

    theorem = "an edge changes one bit"
    model = "public"

    def shared(self, graph: ev.Graph) -> Any:
        n = graph.n_nodes
        rows, columns = np.triu_indices(n, 1)
        linked = np.array([v in graph.neighbours(u) for u, v in zip(rows, columns, strict=True)])
        yield Bits(np.flatnonzero(linked), max(len(rows) - 1, 0), self.epsilon)

    def fit_shared(self, noised: Any, nodes: ev.NodeSet) -> Any:
        return len(noised[0].values)

    def estimate(self, noised: Any, shared: Any, views: Any) -> Any:
        return np.full((len(views.sources), len(views.nodes)), float(shared))


def test_bits_beyond_the_end_fail_conformance():
    with pytest.raises(ConformanceError, match="positions of ones must increase"):
        check(TooFewBits(epsilon=1.0))


class HalfNumbers(OnceForAll):
    """Takes noise for whole numbers, which does not cover rounding."""

    theorem = "an edge moves two halves of degrees by a half each"
    model = "public"

    def shared(self, graph: ev.Graph) -> Any:
        noise = calibrate_whole(coordinates=graph.n_nodes, sensitivity=1, epsilon=1)
        yield Statistic(graph.degrees[None, :] / 2, noise)

    def fit_shared(self, noised: Any, nodes: ev.NodeSet) -> Any:
        return noised[0].values[0]

    def estimate(self, noised: Any, shared: Any, views: Any) -> Any:
        return np.tile(shared, (len(views.sources), 1))


def test_parts_of_numbers_under_noise_for_whole_ones_fail():
    with pytest.raises(ConformanceError, match="its privacy loss is inf times its epsilon"):
        check(HalfNumbers(epsilon=1.0))


class Weighted(Degrees):
    weights: Any


@pytest.mark.parametrize("weights", [np.ones(3), {1, 2}, object()])
def test_parameter_that_no_ledger_can_record_is_refused(weights, ledger):
    """It was an error of the encoder of JSON."""
    mechanism = Weighted(epsilon=1.0, weights=weights)
    with pytest.raises(ParameterError, match="a ledger records the parameters of weighted"):
        ev.release(GRAPH, mechanism, [0], ledger=ledger)
    with pytest.raises(ConformanceError, match="must be numbers, text"):
        check(mechanism)
    assert ledger.charges() == []


class OneRowForAll(Degrees):
    """Gives the row of the first member, with its own list in it, to all that are computed."""

    def estimate(self, noised: Any, shared: Any, views: Any) -> Any:
        row = noised[0].values[:1].copy()
        row[0, views.of(0)] = 1000.0
        return row


class OneIntervalForAll(Degrees):
    def uncertainty(self, rows: Any, shared: Any, views: Any) -> Any:
        return rows[:1]


class OneListForAll(Degrees):
    output = "lists"

    def estimate(self, noised: Any, shared: Any, views: Any) -> Any:
        return Evidence.none(1)

    def lists(self, evidence: Any, shared: Any, views: Any, k: int, candidates: Any = None) -> Any:
        raise AssertionError


@pytest.mark.parametrize("kind", [OneRowForAll, OneIntervalForAll, OneListForAll])
def test_row_of_one_member_is_never_given_to_others(kind, ledger):
    for options in ({}, {"ledger": ledger}):
        with pytest.raises(ParameterError, match="must give one row for each source"):
            ev.release(GRAPH, kind(epsilon=1.0), [3, 4, 5], **options)


class Listed(Degrees):
    """Its epsilon is in a list, which can change."""

    epsilon: float = 1.0
    epsilons: list[float]

    def guarantee(self, n_members: int) -> Guarantee:
        return Guarantee(
            epsilon=self.epsilons[0], model="joint", n_members=n_members, theorem="none"
        )

    def measure(self, graph: ev.Graph, shared: Any, views: Any) -> Any:
        rows = np.tile(graph.degrees.astype(np.float64), (len(views.sources), 1))
        yield laplace_statistic(rows, sensitivity=2, epsilon=self.epsilons[0])


def test_parameter_that_changes_after_the_price_is_refused(ledger):
    """It would be drawn at another epsilon than was shown, and stored as what it was."""
    mechanism = Listed(epsilons=[1.0])
    job = prepare(GRAPH, mechanism, [0], ledger=ledger)
    assert job.price.in_ledger.epsilon == 1
    mechanism.epsilons[0] = 5.0
    with pytest.raises(ParameterError, match="listed has other parameters than when it was priced"):
        job.run()
    assert ledger.charges() == []
