"""The labels from which noise is derived are pinned: a stored secret must give the same noise."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

import edgeveil as ev
from edgeveil.jobs import keys
from edgeveil.jobs.keys import describe, noise_for
from edgeveil.mechanisms import TwoHop
from edgeveil.mechanisms.base import Mechanism, OutputKind
from edgeveil.mechanisms.member_lists import SuggestWindow
from edgeveil.mechanisms.run import rows_after, shared_part
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource, calibrate
from edgeveil.privacy.statistic import Statistic
from tests.conformance.test_every_mechanism import CHARGED, a_graph

SECRET = bytes(range(32))
# Of what `describe` says of these instances.
IDENTITIES = {
    "cap-joint": "823e127a49ec943a",
    "flow-joint": "ce1151eff9de51ee",
    "sparse-joint": "08da1eee7e4cf691",
    "embedding-joint": "1ebb827f099eda35",
    "embedding-sparse-joint": "5859fe1e9145c3a4",
    "flipping-joint": "5d66dfeacf7e6f91",
    "degrees-joint": "32021ddb54479839",
    "two-hop": "21284b21253c4180",
    "suggest": "2d9076c07a475c14",
    "own": "e7cac6afb4602dbe",
    "aggregation": "29beb5809abb5137",
    "own-list": "50f6d16a77ad10d6",
}


def digest_of_rows(rows: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(rows, "<f8").tobytes()).hexdigest()[:16]


class TwoSteps(Mechanism):
    """Two rounds that all share, then two statistics of each row: every noise label occurs."""

    name: ClassVar[str] = "two-steps"
    output: ClassVar[OutputKind] = "scores"
    when_to_use: ClassVar[str] = "in this test"
    epsilon: float

    def guarantee(self, n_members):
        return Guarantee(
            epsilon=self.epsilon,
            model="joint",
            n_members=n_members,
            theorem="none",
            shared_epsilon=self.epsilon / 2,
        )

    def _statistic(self, rows, coordinates):
        quarter = calibrate(coordinates=coordinates, sensitivity=2, epsilon=self.epsilon / 4)
        return Statistic(np.array(rows, dtype=np.float64), quarter)

    def shared(self, graph):
        for _ in range(2):
            yield self._statistic([graph.degrees], graph.n_nodes)

    def fit_shared(self, noised, nodes):
        return noised[0].values[0] - noised[1].values[0]

    def measure(self, graph, shared, views):
        for _ in range(2):
            yield self._statistic(graph.adjacency()[views.sources].toarray(), graph.n_nodes)

    def estimate(self, noised, shared, views):
        return np.concatenate([noised[0].values, noised[1].values], axis=1)


@pytest.mark.parametrize(
    ("noise", "shared", "rows"),
    [
        (NoiseSource.insecure(3), "0a7356984d795d67", "90a84011a811ca24"),
        (NoiseSource.from_secret(SECRET), "f86aeed22efa1e01", "e231605a1fc5bc44"),
    ],
    ids=["seeded", "secret"],
)
def test_labels_of_rounds_stages_and_numbers_are_pinned(noise, shared, rows):
    """Under a secret, noise is bound to the numbers ("numbers") as well."""
    graph, mechanism = a_graph(), TwoSteps(epsilon=1.0)
    released = shared_part(mechanism, graph, noise.derive("shared"))
    drawn = rows_after(mechanism, graph, released, [0, 4], noise.derive("rows"))
    assert (digest_of_rows(released), digest_of_rows(drawn)) == (shared, rows)


def test_noise_of_a_batch_is_pinned(monkeypatch):
    """By its secret, part, graph, mechanism with parameters, code, and shared numbers."""
    monkeypatch.setattr(keys, "code_of", lambda mechanism: "code")
    window = SuggestWindow(epsilon=1.0, since=np.zeros(23, np.uint16), until=1)
    graph = replace(a_graph(), first_seen=np.ones(166, np.uint16))
    words = [
        noise_for(SECRET, "shared", TwoHop(epsilon=1.0), a_graph()).words(1)[0],
        noise_for(SECRET, "rows", TwoHop(epsilon=1.0), a_graph(), released="numbers").words(1)[0],
        noise_for(SECRET, "rows", window, graph, released="numbers").words(1)[0],
    ]
    assert [hex(word) for word in words] == [
        "0xc0344ff1f8cb91f",
        "0x68a37ffbb98b9f71",
        "0x3b1400dd70c10845",
    ]


@pytest.mark.parametrize("name", IDENTITIES)
def test_identity_of_a_mechanism_is_pinned(name):
    """With another one a ledger would charge everybody again."""
    described = describe(CHARGED[name])
    assert hashlib.sha256(described.encode()).hexdigest()[:16] == IDENTITIES[name], described


def test_noise_of_classification_is_pinned():
    """The first round; the second one depends on floats of a fit."""
    labels = {node: "ab"[node % 2] for node in range(20)}
    predictions = ev.classify(a_graph(), labels, epsilon=1.0, noise=NoiseSource.insecure(7))
    assert digest_of_rows(predictions.sums[:, 0]) == "02558abab01408e8"
