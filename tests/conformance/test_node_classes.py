"""NodeClasses: conformance, exact losses through the engine, and controls that must fail.

docs/theory/classification.md. What is said in a round is any function of what was released before:
here it is random, so that one search covers every estimator.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations, permutations

import numpy as np
import pytest

from edgeveil.errors import ParameterError
from edgeveil.estimate.classification import Labels, Messages, Roles, denominator
from edgeveil.estimate.public import NodeData
from edgeveil.flow.neighbour_sums import neighbour_sums
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms import NodeClasses, node_classes
from edgeveil.mechanisms.hard_pairs import Pair, graph_of_pairs
from edgeveil.mechanisms.run import exact_loss
from edgeveil.privacy.noise import NoiseSource
from edgeveil.testing import audit, conformance
from edgeveil.testing.conformance import Conformance
from edgeveil.testing.worst_pairs import ROUNDING

EPSILON = 0.7
CONTROLS = 150  # random cases in which each broken condition must show


class TestNodeClasses(Conformance):
    mechanisms = (
        NodeClasses.example(epsilon=1.0),
        NodeClasses.example(epsilon=0.3, directed=True),
    )


@pytest.mark.parametrize("directed", [False, True])
def test_published_depends_on_released_values_only(directed, monkeypatch):
    """On graphs of all nodes that the data is about; the suite's graphs are smaller."""
    mechanism = NodeClasses.example(epsilon=1.0, directed=directed)
    graphs = partial(random_pairs_of, nodes=mechanism.data.nodes)
    monkeypatch.setattr(conformance, "random_pairs", graphs)
    conformance.estimates_depend_on_released_values_only(mechanism)
    published = NodeClasses.published
    leak = {}

    def leaks(self, shared, nodes, metadata):
        predictions = published(self, shared, nodes, metadata)
        return replace(predictions, noise_scale=predictions.noise_scale + leak["edges"])

    def looks(self, graph):
        leak["edges"] = graph.n_edges
        yield from ()

    shared = NodeClasses.shared
    monkeypatch.setattr(NodeClasses, "published", leaks)
    monkeypatch.setattr(
        NodeClasses, "shared", lambda self, graph: [*looks(self, graph)] or shared(self, graph)
    )
    with pytest.raises(conformance.ConformanceError, match="other than through noised values"):
        conformance.estimates_depend_on_released_values_only(mechanism)


def random_pairs_of(mechanism, *, seed, nodes):
    rng, n = np.random.default_rng(seed), len(nodes)
    while True:
        pairs = np.array([(u, v) for u in range(n) for v in range(n) if u != v])
        some = pairs[rng.random(len(pairs)) < 0.1]
        graph = graph_of_pairs(n, some, directed=mechanism.directed)
        u, v = pairs[rng.integers(len(pairs))]
        yield Pair(graph=graph, neighbour=graph.with_edge_flipped(int(u), int(v)), source=0)


# -- random messages: any function of what was released ------------------------------------------


class Random(NodeClasses):
    """Speakers and messages are drawn by a generator seeded by everything released so far."""

    twice = False
    loud = False

    def rounds(self, known):
        n, classes, unit = known.labels.n_nodes, known.labels.n_classes, denominator(known.labels)
        loudness = np.where(known.roles.listens & (not self.loud), unit // 2, unit)
        spoken, seen = np.zeros(n, dtype=bool), self.seed
        for number in range(node_classes.ROUNDS):
            rng = np.random.default_rng([self.seed, seen])
            now = (rng.random(n) < 0.5) | (number == node_classes.ROUNDS - 1)
            now &= ~spoken | self.twice
            spoken |= now
            starts = np.concatenate(([0], np.cumsum(now))).astype(np.int64)
            columns = rng.integers(classes, size=int(now.sum()))
            said = np.where(rng.random(len(columns)) < 0.2, 1, loudness[now])  # some say less
            heard = yield Messages(starts, columns, np.minimum(said, loudness[now]))
            seen = zlib.crc32(np.round(heard, 6).tobytes())

    def fit_shared(self, noised, nodes):
        return None


def case(rng, kind=Random, *, directed=False) -> tuple[NodeClasses, Pair]:
    """A mechanism with random labels and roles, and two graphs that differ in one edge."""
    n, classes = int(rng.integers(2, 8)), int(rng.integers(2, 4))
    counts = rng.integers(0, 4, size=n)
    named = [rng.permutation(classes)[:count] for count in counts]
    starts = np.concatenate(([0], np.cumsum([len(part) for part in named]))).astype(np.int64)
    labels = Labels(starts, np.concatenate(named).astype(np.int64), classes)
    listens = ~labels.labelled | (rng.random(n) < 0.4)
    data = NodeData(
        nodes=NodeSet.range(n),
        classes=tuple(range(classes)),
        labels=labels,
        roles=Roles(listens, labels.labelled & listens, np.zeros(n, dtype=bool)),
    )
    pairs = np.array([*(permutations if directed else combinations)(range(n), 2)])
    edges = pairs[rng.random(len(pairs)) < rng.random()]
    graph = graph_of_pairs(n, edges, directed=directed)
    x, y = pairs[rng.integers(len(pairs))]
    other = graph.with_edge_flipped(int(x), int(y))
    seed = int(rng.integers(2**31))
    mechanism = kind(epsilon=EPSILON, directed=directed, data=data, seed=seed)
    return mechanism, Pair(graph=graph, neighbour=other, source=0)


def losses(kind=Random, count=CONTROLS, *, directed=False) -> Iterator[float]:
    rng = np.random.default_rng(8)
    return (exact_loss(*case(rng, kind, directed=directed)) for _ in range(count))


@pytest.mark.parametrize("directed", [False, True])
def test_no_edge_loses_more_than_epsilon_in_random_rounds(directed, figure):
    largest = max(losses(count=400, directed=directed))
    assert 0.999 * EPSILON < largest <= EPSILON * ROUNDING
    kind = "directed" if directed else "undirected"
    figure(f"classification, {kind}", f"largest exact loss {largest / EPSILON:.4f} of epsilon")


# -- controls: each breaks one condition ----------------------------------------------------------


class SpeaksTwice(Random):
    twice = True


class LoudListeners(Random):
    loud = True


class LabelFromEdges(Random):
    """Says class 0 or 1 by whether the node has two edges: a label computed from the edges."""

    def shared(self, graph):
        mine = replace(self)
        mine.__dict__["of_edges"] = (graph.degrees > 1).astype(np.int64)
        return super(LabelFromEdges, mine).shared(graph)

    def rounds(self, known):
        rounds, heard = super().rounds(known), None
        for _ in range(node_classes.ROUNDS):
            messages = rounds.send(heard)
            heard = yield messages._replace(columns=self.of_edges[messages.speaks])


@pytest.mark.parametrize(
    ("kind", "says"),
    [(SpeaksTwice, "speaks in two rounds"), (LoudListeners, "more than its loudness")],
)
def test_messages_that_break_the_theorem_are_refused(kind, says):
    with pytest.raises(ParameterError, match=says):
        max(losses(kind))


@pytest.mark.parametrize("kind", [SpeaksTwice, LoudListeners, LabelFromEdges])
def test_a_broken_condition_loses_more_than_epsilon(kind, monkeypatch):
    monkeypatch.setattr(node_classes, "check_messages", lambda *messages: None)
    assert max(losses(kind)) > 1.5 * EPSILON


def test_rows_of_nodes_that_do_not_listen_lose_twice_epsilon(monkeypatch):
    def of_everybody(graph, starts, columns, units, width, listens):
        return neighbour_sums(graph, starts, columns, units, width, np.ones_like(listens))

    monkeypatch.setattr(node_classes, "neighbour_sums", of_everybody)
    monkeypatch.setattr(NodeClasses, "_heard", lambda self, noised, known: noised.values)
    assert max(losses()) == pytest.approx(2 * EPSILON, rel=1e-6)


# -- the mechanism itself -------------------------------------------------------------------------


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_the_loss_of_an_edge_with_a_listener_is_epsilon(epsilon, directed):
    mechanism = NodeClasses.example(epsilon=epsilon, directed=directed)
    pairs = list(mechanism.hard_pairs())
    assert len(pairs) == 2  # a listener and a speaker; two listeners
    for pair in pairs:
        assert exact_loss(mechanism, pair) == pytest.approx(epsilon, rel=1e-6)


def test_learnt_weights_lose_no_more_than_epsilon():
    mechanism = NodeClasses.example(epsilon=EPSILON, n_nodes=6, trains=True)
    edges = [(0, 2), (2, 3), (1, 5), (4, 5)]
    graph = graph_of_pairs(6, edges)
    pair = Pair(graph=graph, neighbour=graph.with_edge_flipped(0, 5), source=0)
    assert exact_loss(mechanism, pair) == pytest.approx(EPSILON, rel=1e-6)


def test_a_mutual_pair_of_arcs_loses_twice_epsilon():
    mechanism = NodeClasses.example(epsilon=EPSILON, directed=True)
    none = graph_of_pairs(3, [], directed=True)
    both = graph_of_pairs(3, [(0, 2), (2, 0)], directed=True)
    pair = Pair(graph=none, neighbour=both, source=0)
    assert exact_loss(mechanism, pair) == pytest.approx(2 * EPSILON, rel=1e-6)


def test_an_edge_between_two_that_do_not_listen_is_not_seen():
    mechanism = NodeClasses.example(epsilon=EPSILON)
    graph = graph_of_pairs(6, [(0, 1)])
    pair = Pair(graph=graph, neighbour=graph.with_edge_flipped(1, 4), source=0)
    assert exact_loss(mechanism, pair) == 0


def test_an_audit_is_consistent_and_conclusive():
    mechanism, pair = NodeClasses.tight_case()
    result = audit(mechanism, pair=pair, trials=300, noise=NoiseSource.insecure(1))
    assert result.consistent
    assert result.conclusive
    assert result.lower_bound > 0


def test_an_audit_finds_noise_that_is_too_small():
    class Quiet(NodeClasses):
        def _noise(self, known):
            return node_classes.calibrate_whole(coordinates=10**6, sensitivity=2, epsilon=3)

    mechanism = Quiet(epsilon=1.0, data=NodeClasses.example(epsilon=1.0).data)
    pair = next(mechanism.hard_pairs())
    result = audit(mechanism, pair=pair, trials=500, noise=NoiseSource.insecure(1))
    assert not result.consistent
