"""One result for everybody: public, charged once to everybody, and never by leaving words out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import edgeveil as ev
from edgeveil.errors import ParameterError
from edgeveil.jobs import prepare
from edgeveil.mechanisms import Aggregation, TwoHop
from edgeveil.mechanisms.base import Mechanism, OnceForAll, laplace_statistic
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.results.release import Release

GRAPH = ev.datasets.social_network(30, average_degree=6).graph


class NoisyDegrees(OnceForAll):
    theorem = "Laplace"
    epsilon: float
    model: str = "joint"

    def shared(self, graph: ev.Graph) -> Any:
        yield laplace_statistic(graph.degrees, sensitivity=2, epsilon=self.epsilon)

    def fit_shared(self, noised: Any, nodes: ev.NodeSet) -> Any:
        return noised[0].values[0]

    def estimate(self, noised: Any, shared: Any, views: Any) -> Any:
        return np.tile(shared, (len(views.sources), 1))

    def published(self, shared: Any, nodes: ev.NodeSet, metadata: Any) -> Release:
        rows = np.tile(shared, (len(nodes), 1))
        return Release(
            values=rows, sources=tuple(nodes), columns=nodes, output="scores", **metadata._asdict()
        )


class ChargedByRow(NoisyDegrees):
    def guarantee(self, n_members: int) -> Guarantee:
        return Mechanism.guarantee(self, n_members)


@pytest.fixture
def ledger(tmp_path):
    return ev.Ledger.create(tmp_path / "test.ledger", epsilon=2)


def test_published_by_a_joint_mechanism_is_refused(ledger):
    """A ledger would charge one member for what everybody sees."""
    for mechanism in (NoisyDegrees(epsilon=1.0), ChargedByRow(epsilon=1.0, model="public")):
        for skip in (False, True):
            with pytest.raises(ParameterError, match="must be public"):
                ev.release(GRAPH, mechanism, ledger=ledger, skip_exhausted=skip)
    assert not ledger.charges()


def test_published_is_charged_once_to_everybody(ledger):
    mechanism = NoisyDegrees(epsilon=1.0, model="public")
    degrees = ev.release(GRAPH, mechanism, ledger=ledger)
    assert degrees.values.shape == (30, 30)
    assert {ledger.account(str(node)).left for node in GRAPH.nodes} == {1.0}
    again = ev.release(GRAPH, mechanism, ledger=ledger)
    assert np.array_equal(again.values, degrees.values)
    assert ledger.account("5").left == 1.0


def test_missing_sources_charge_nobody(ledger):
    for call in (
        lambda: ev.release(GRAPH, TwoHop(epsilon=1.0), ledger=ledger),
        lambda: ev.release(GRAPH, TwoHop(epsilon=1.0), None, ledger=ledger),
        lambda: prepare(GRAPH, TwoHop(epsilon=1.0)),
    ):
        with pytest.raises(ParameterError, match="sources are missing"):
            call()
    assert not ledger.charges()
    everybody = ev.price(GRAPH, TwoHop(epsilon=1.0))
    assert everybody.guarantee.n_members == 30


def test_sums_beyond_memory_are_refused_before_the_charge(ledger, monkeypatch):
    monkeypatch.setattr("edgeveil.jobs.request.total_memory", lambda: 8 * 64 * 29)
    with pytest.raises(ParameterError, match="GiB"):
        prepare(GRAPH, Aggregation(epsilon=1.0), ledger=ledger).run()
    assert not ledger.charges()


def test_subclass_with_other_rows_publishes_nothing(ledger):
    """What it inherits would be another result than its rows."""

    class Halved(Aggregation):
        def estimate(self, noised: Any, shared: Any, views: Any) -> Any:
            return super().estimate(noised, shared, views) / 2

    with pytest.raises(ParameterError, match="sources are missing"):
        ev.release(GRAPH, Halved(epsilon=1.0))


def test_graph_without_nodes_is_refused_before_a_charge(ledger):
    """Its first node is asked for, to be charged for everybody."""
    nobody = ev.Graph.from_edges([], [], ev.NodeSet.range(0))
    with pytest.raises(ParameterError, match="the graph has no nodes"):
        ev.aggregate(nobody, epsilon=1.0, ledger=ledger)
    assert ledger.charges() == []
