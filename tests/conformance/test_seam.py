"""What holds for every mechanism because of the seam: losses, noise-free runs, outside classes."""

from __future__ import annotations

import dataclasses
import importlib
import math
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

import edgeveil
from edgeveil.errors import ParameterError
from edgeveil.graph.datasets import social_network
from edgeveil.jobs import drawing, price, release, release_to
from edgeveil.ledger import Ledger
from edgeveil.mechanisms import (
    MECHANISMS,
    DPPushFlowCap,
    EdgeFlipping,
    NonPrivate,
    OwnNeighbours,
    Suggest,
    TwoHop,
)
from edgeveil.mechanisms.base import Mechanism, OnceForAll, OutputKind
from edgeveil.mechanisms.hard_pairs import two_hubs, wedge
from edgeveil.mechanisms.run import _checksum, exact_loss
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource, calibrate, calibrate_whole
from edgeveil.privacy.statistic import Bits, Exact, Statistic, total_epsilon
from edgeveil.testing import audit
from edgeveil.testing.conformance import check
from tests.conformance.test_every_mechanism import (
    CHARGED,
    INSTANCES,
    NOISELESS,
    NOISY,
    a_graph,
    each,
)
from tests.conformance.test_suite import AsksMoreOfSome, AsksTwice, WritesToAnswers
from tests.seam import run, statistics_of

ROUNDING = 1 + 1e-9  # an exact loss is a sum of floats

# --- What is asked costs no more than is said ----------------------------------------------------


@each(CHARGED)
def test_the_epsilons_of_all_statistics_add_up_to_the_guarantees(mechanism):
    asked = [asked for asked, _ in statistics_of(mechanism, a_graph(), [3])]
    exact = [statistic for statistic in asked if isinstance(statistic, Exact)]
    assert bool(exact) == isinstance(mechanism, NonPrivate)
    asked_epsilon = Fraction(0) if exact else total_epsilon(asked)
    claimed = exact_epsilon(mechanism.epsilon) if mechanism in NOISY.values() else 0
    assert asked_epsilon <= claimed
    # Nor is any of the budget left lying.
    assert asked_epsilon >= claimed * (1 - Fraction(1, 10**9))


def test_a_mechanism_without_noise_loses_everything():
    lost = [exact_loss(NonPrivate(), wedge()), exact_loss(OwnNeighbours(), wedge())]
    assert lost == [math.inf, 0.0]


class AsksAll(DPPushFlowCap):
    """Asks only if there are more than two edges: the number of answers tells."""

    def shared(self, graph):
        if graph.n_edges > 2:
            yield Statistic(np.zeros((1, 1)), self.calibration(1), noise_only=True)


class WritesAgain(DPPushFlowCap):
    """Uses its table again after it was noised."""

    def measure(self, graph, shared, views):
        rows = self.exact_rows(graph, views.sources)
        yield Statistic(rows, self.calibration(graph.n_nodes))
        rows[:] = graph.degrees


def test_what_is_written_to_noised_numbers_is_not_released():
    with pytest.raises(ValueError, match="read-only"):
        release(wedge().graph, WritesAgain(epsilon=1.0), [0])


class UsesItsBufferAgain(DPPushFlowCap):
    """By a view that is older than the noise."""

    def measure(self, graph, shared, views):
        rows = self.exact_rows(graph, views.sources)
        view, exact = rows[:], rows.copy()
        yield Statistic(rows, self.calibration(graph.n_nodes))
        view[:] = exact


class SortsItsBuffer(DPPushFlowCap):
    """The same numbers in another order, which depends on what it was told."""

    def measure(self, graph, shared, views):
        rows = self.exact_rows(graph, views.sources)
        view = rows[:]
        yield Statistic(rows, self.calibration(graph.n_nodes))
        view.sort(axis=1)


class WritesOneNumber(DPPushFlowCap):
    """The same for one number of many."""

    def measure(self, graph, shared, views):
        rows = self.exact_rows(graph, views.sources)
        view = rows[:]
        yield Statistic(rows, self.calibration(graph.n_nodes))
        view[0, 4321] = 1.0


@pytest.mark.parametrize("cls", [UsesItsBufferAgain, SortsItsBuffer])
def test_a_buffer_that_is_used_again_after_its_noise_is_seen(cls):
    with pytest.raises(ParameterError, match="after their noise"):
        release(wedge().graph, cls(epsilon=1), [0])


@pytest.mark.parametrize("size", [6, 4096])
def test_a_checksum_sees_order_signs_scale_and_one_bit(size):
    values = np.random.default_rng(size).normal(size=size)
    one_bit = values.copy()
    one_bit.view(np.uint64)[3] ^= np.uint64(1)
    others = [-values, 2 * values, np.sort(values), values[::-1], np.roll(values, 4), one_bit]
    for other in others:
        assert _checksum(other) != _checksum(values)


def test_one_number_written_after_its_noise_is_refused():
    graph = social_network(20_000, average_degree=4).graph
    with pytest.raises(ParameterError, match="after their noise"):
        release(graph, WritesOneNumber(epsilon=1), range(3))


@pytest.mark.parametrize("cls", [AsksMoreOfSome, AsksAll])
def test_graph_dependent_statistic_count_loses_everything(cls):
    assert exact_loss(cls(epsilon=1), wedge()) == math.inf


# --- Pairs on which the claim is nearly used up --------------------------------------------------

WITH_NOISE = [cls for cls in MECHANISMS if cls not in NOISELESS]


@pytest.mark.parametrize("cls", WITH_NOISE, ids=lambda cls: cls.name)
def test_hard_pairs_are_neighbours_under_the_guarantee(cls):
    for mechanism in [m for m in NOISY.values() if type(m) is cls]:
        model, pairs = mechanism.guarantee(1).model, list(mechanism.hard_pairs())
        assert pairs
        for pair in pairs:
            differ = pair.graph.degrees != pair.neighbour.degrees
            assert differ.sum() == 2
            assert abs(pair.graph.n_edges - pair.neighbour.n_edges) == 1
            assert model == "public" or not differ[pair.source]


@pytest.mark.parametrize("cls", WITH_NOISE, ids=lambda cls: cls.name)
def test_tight_case_loses_nine_tenths_of_the_claim(cls, figure):
    mechanism, pair = cls.tight_case()
    assert type(mechanism) is cls
    claimed = mechanism.guarantee(1).epsilon
    share = exact_loss(mechanism, pair) / claimed
    figure(f"exact loss in its tight case, {cls.name}", f"{share:.3f} of the claim")
    assert share <= ROUNDING
    assert share >= 0.9


# --- Five percent too little noise ---------------------------------------------------------------


@pytest.fixture
def too_little_noise(monkeypatch):
    """Every calibration of a mechanism is made for a sensitivity that is 5 % too small."""

    def more(honest, *, sensitivity, **rest):
        return honest(sensitivity=Fraction(sensitivity) * Fraction(100, 105), **rest)

    def spoil(cls):
        for place in (cls.__module__, "edgeveil.mechanisms.capped_flow"):
            module = importlib.import_module(place)
            for honest in (calibrate, calibrate_whole):
                if hasattr(module, honest.__name__):
                    monkeypatch.setattr(module, honest.__name__, partial(more, honest))

    return spoil


def test_bits_losing_more_than_claimed_are_refused(monkeypatch):
    honest = EdgeFlipping.shared

    def shared(self, graph):
        (bits,) = honest(self, graph)
        yield Bits(bits.ones, bits.total, 1.05 * bits.loss)

    monkeypatch.setattr(EdgeFlipping, "shared", shared)
    with pytest.raises(ParameterError, match=r"uses epsilon 1\.05 for its shared statistics"):
        run(EdgeFlipping(epsilon=1), a_graph(), [0])


@pytest.mark.parametrize(
    "cls", [cls for cls in WITH_NOISE if cls is not EdgeFlipping], ids=lambda cls: cls.name
)
def test_five_percent_too_little_noise_is_found_exactly(cls, too_little_noise):
    mechanism, pair = cls.tight_case()
    options = {"pair": pair, "trials": 100, "noise": NoiseSource.insecure(1)}
    honest = audit(mechanism, **options)
    assert honest.consistent
    too_little_noise(cls)
    result = audit(mechanism, **options)
    assert not result.consistent, str(result)
    assert result.exact_loss == pytest.approx(1.05 * honest.exact_loss, rel=0.001)
    assert "VIOLATION" in str(result)


# --- Without noise -------------------------------------------------------------------------------


# (lists keep a fixed share of epsilon for the degrees, so their noise has no end)
@each({name: m for name, m in NOISY.items() if m.output != "lists"})
def test_growing_epsilon_noisy_rows_approach_exact_rows(mechanism):
    graph, apart = a_graph(), []
    for epsilon in (1e2, 1e5, 1e9):
        at = dataclasses.replace(mechanism, epsilon=epsilon)
        rows = run(at, graph, [0, 4], seed=None)
        apart.append(np.abs(run(at, graph, [0, 4]) - rows).max())
    assert apart[-1] < 1e-6
    assert apart[0] == 0 or apart[-1] < apart[0]


# --- What estimates may see ----------------------------------------------------------------------


@each(INSTANCES)
def test_estimate_sees_own_lists_in_the_joint_model_only(mechanism):
    graph, kind, seen = a_graph(), type(mechanism), []

    class Watched(kind):
        def estimate(self, noised, shared, views):
            seen.append(views)
            return super().estimate(noised, shared, views)

    run(Watched(**dataclasses.asdict(mechanism)), graph, [0, 4])
    (views,) = seen
    assert views.sources.tolist() == [0, 4]
    assert views.nodes == graph.nodes
    for i, source in enumerate([0, 4]):
        wanted = graph.neighbours(source).tolist()
        if mechanism.guarantee(1).model == "public":
            wanted = []
        assert views.of(i).tolist() == wanted


class Leaks(NonPrivate):
    """Exact numbers under a guarantee."""

    name = "leaks"

    def guarantee(self, n_members):
        return Guarantee(epsilon=1.0, model="joint", n_members=n_members, theorem="none")


class LeaksDegrees(DPPushFlowCap):
    """Asks only if there are more than two edges: the number of answers tells."""

    name = "leaks-degrees"

    def shared(self, graph):
        yield Exact(graph.degrees.astype(np.float64)[None])


@pytest.mark.parametrize("mechanism", [Leaks(), LeaksDegrees(epsilon=1)], ids=lambda m: m.name)
def test_numbers_without_noise_are_refused_under_a_guarantee(mechanism):
    for seed in (1, None):
        with pytest.raises(ParameterError, match="numbers without noise under a guarantee"):
            run(mechanism, a_graph(), [0], seed=seed)
    with pytest.raises(ParameterError, match="numbers without noise under a guarantee"):
        release(a_graph(), mechanism, [0])
    assert exact_loss(mechanism, wedge()) == math.inf


# --- A mechanism from outside --------------------------------------------------------------------


class Popularity(Mechanism):
    """Everybody's noisy degree as the score: all that a mechanism has to say."""

    name: ClassVar[str] = "popularity"
    output: ClassVar[OutputKind] = "scores"
    when_to_use: ClassVar[str] = "in this test"
    theorem: ClassVar[str] = "one edge moves two degrees by one each"
    epsilon: float

    def guarantee(self, n_members):
        return Guarantee(
            epsilon=self.epsilon,
            model="public",
            n_members=n_members,
            theorem=self.theorem,
            collusion="shared",
        )

    def shared(self, graph):
        noise = calibrate(coordinates=graph.n_nodes, sensitivity=2, epsilon=self.epsilon)
        yield Statistic(graph.degrees.astype(np.float64)[None], noise)

    def fit_shared(self, noised, nodes):
        return noised[0].values[0]

    def estimate(self, noised, shared, views):
        return np.tile(shared, (len(views.sources), 1))


def test_a_mechanism_from_outside_is_released_charged_and_priced(tmp_path):
    graph, mechanism = a_graph(), Popularity(epsilon=0.5)
    assert isinstance(mechanism, Mechanism)
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1)
    quoted = price(graph, mechanism, [0, 1], ledger=ledger)
    assert quoted.guarantee.epsilon == 0.5
    assert ledger.charges() == []
    released = release(graph, mechanism, [0, 1], ledger=ledger)
    (charge,) = ledger.charges()
    assert charge.epsilon_nano == 500_000_000
    assert released.guarantee.epsilon == 0.5
    assert released.provenance.mechanism == "popularity"
    assert released.uncertainty is None
    np.testing.assert_array_equal(released.values[0], released.values[1])
    again = release(graph, mechanism, [0, 1], ledger=ledger)
    np.testing.assert_array_equal(again.values, released.values)
    folder = release_to(tmp_path / "out", graph, mechanism, [0, 1], noise=NoiseSource.insecure(1))
    np.testing.assert_array_equal(folder.read().values, run(mechanism, graph, [0, 1]))


def test_a_mechanism_from_outside_ranks():
    ranking = edgeveil.rank(a_graph(), 0, mechanism=Popularity(epsilon=1e6))
    assert ranking.top(1)[0][0] == int(np.argmax(a_graph().degrees))


def test_a_mechanism_from_outside_is_audited():
    result = audit(Popularity(epsilon=1), trials=200, noise=NoiseSource.insecure(1))
    assert result.consistent
    assert result.conclusive, "the shapes of the package are not enough for it"

    class Half(Popularity):
        def shared(self, graph):
            return dataclasses.replace(self, epsilon=2 * self.epsilon).honest(graph)

        honest = Popularity.shared

    assert exact_loss(Half(epsilon=1), wedge()) == pytest.approx(2, rel=1e-3)
    with pytest.raises(ParameterError, match="uses epsilon 2 for its shared statistics"):
        release(a_graph(), Half(epsilon=1), [0])


def test_a_mechanism_from_outside_is_evaluated():
    table = edgeveil.evaluate(
        a_graph(60), mechanisms=[Popularity(epsilon=1)], sources=3, k=5, min_degree=1
    )
    assert "popularity" in {row[0] for row in table.rows()}


# --- Several rounds that all members share ------------------------------------------------------


class TwoRounds(OnceForAll):
    """Noisy degrees, then the degrees within the half of the nodes that looked popular."""

    name: ClassVar[str] = "two-rounds"
    output: ClassVar[OutputKind] = "scores"
    when_to_use: ClassVar[str] = "in this test"
    theorem: ClassVar[str] = "in each round an edge moves two degrees by one each"
    epsilon: float
    share: ClassVar[float] = 0.5

    def shared(self, graph):
        share = exact_epsilon(self.epsilon) * Fraction(self.share)
        noise = calibrate(coordinates=graph.n_nodes, sensitivity=2, epsilon=share)
        first = yield Statistic(graph.degrees.astype(np.float64)[None], noise)
        popular = first.values[0] >= np.median(first.values[0])
        within = graph.adjacency() @ popular * popular
        yield Statistic(np.ascontiguousarray(within, dtype=np.float64)[None], noise)

    def fit_shared(self, noised, nodes):
        first, second = noised
        return first.values[0] + second.values[0]

    def estimate(self, noised, shared, views):
        return np.tile(shared, (len(views.sources), 1))


class TwoRoundsOfAll(TwoRounds):
    """Each round for all of epsilon."""

    share = 1.0


def test_shared_rounds_pass_conformance():
    check(TwoRounds(epsilon=1.0))


def test_shared_rounds_draw_independent_noise():
    (_, first), (_, second) = statistics_of(TwoRounds(epsilon=1.0), a_graph(), [0])
    exact = [asked.values for asked, _ in statistics_of(TwoRounds(epsilon=1.0), a_graph(), [0])]
    assert not np.isclose(first.values - exact[0], second.values - exact[1]).any()


def test_shared_rounds_lose_the_sum_of_their_epsilons():
    pair = two_hubs(4, 10)
    assert exact_loss(TwoRounds(epsilon=1), pair) == pytest.approx(1, rel=1e-3)
    assert exact_loss(TwoRoundsOfAll(epsilon=1), pair) == pytest.approx(2, rel=1e-3)


def test_shared_rounds_beyond_epsilon_are_refused():
    with pytest.raises(ParameterError, match="uses epsilon 2 for its shared statistics"):
        release(a_graph(), TwoRoundsOfAll(epsilon=1), [0])


def test_stored_shared_rounds_are_read_again(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1)
    first = release(a_graph(), TwoRounds(epsilon=1.0), [0], ledger=ledger)
    drawing._recent.clear()  # as in another process
    second = release(a_graph(), TwoRounds(epsilon=1.0), [1], ledger=ledger)
    np.testing.assert_array_equal(first.values[0], second.values[0])
    assert len(ledger.charges()) == 2
    assert ledger.account("0").charged == 1


def test_shared_statistic_that_is_returned_is_refused():
    class Returns(TwoRounds):
        def shared(self, graph):
            return next(super().shared(graph))

    with pytest.raises(ParameterError, match="must yield their statistics"):
        release(a_graph(), Returns(epsilon=1.0), [0])


# --- What a wrong mechanism cannot do ------------------------------------------------------------


class SaysItIsFree(DPPushFlowCap):
    """Says that exact rows are the same on every graph."""

    def measure(self, graph, shared, views):
        yield dataclasses.replace(next(super().measure(graph, shared, views)), noise_only=True)


def test_measure_cannot_write_to_released_values():
    with pytest.raises(ValueError, match="read-only"):
        run(WritesToAnswers(epsilon=1), a_graph(), [0])


def test_statistics_beyond_the_guarantee_are_refused():
    with pytest.raises(ParameterError, match="uses epsilon 2 for one member's statistics; its"):
        run(AsksTwice(epsilon=1), a_graph(), [0])


def test_false_zero_price_is_caught_by_the_exact_loss():
    """The numbers said to be free arrive as zeros: the rows are noise alone."""
    free = SaysItIsFree(epsilon=1, sigma=1e-3)
    graph = a_graph()
    rows = run(free, graph, [0, 4])
    exact = DPPushFlowCap(epsilon=1, sigma=1e-3).exact_rows(graph, np.array([0, 4]))
    honest = run(DPPushFlowCap(epsilon=1, sigma=1e-3), graph, [0, 4])
    np.testing.assert_allclose(honest - rows, exact, atol=1e-6)
    assert exact_loss(free, wedge()) == math.inf


@pytest.mark.parametrize("cls", [TwoHop, Suggest])
def test_audits_look_at_edges_between_two_friends_too(cls):
    mechanism = cls(epsilon=1)
    assert any(
        pair.source == 0 and {1, 2} <= set(pair.graph.neighbours(0).tolist())
        for pair in mechanism.hard_pairs()
    )
