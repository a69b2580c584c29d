"""Peers of private classification: their noise, and that they learn from a graph."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm

from experiments import classification_peers as peers


@pytest.mark.parametrize("epsilon", [0.1, 0.25, 1.0, 4.0, 8.0])
@pytest.mark.parametrize("hops", [1, 3])
def test_gaussian_scale_gives_exactly_delta(epsilon, hops):
    delta, sensitivity = 1e-5, math.sqrt(2)
    scale = peers.gaussian_scale(epsilon, delta, sensitivity, hops)
    mu = math.sqrt(hops) * sensitivity / scale
    spent = norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
    assert spent == pytest.approx(delta, rel=1e-6)


def test_peers_learn_from_a_graph_with_two_groups():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    joined = rng.random((120, 120)) < np.where(y[:, None] == y[None, :], 0.3, 0.02)
    above = np.triu(joined, 1)
    adjacency = sp.csr_array((above | above.T).astype(float))
    features = rng.standard_normal((120, 4)) + 0.3 * y[:, None]
    train = rng.permutation(120)[:60]
    test = np.setdiff1d(np.arange(120), train)
    first = peers.encoder(features, y, train, 0)
    alone = np.mean(first.guess[test] == y[test])
    for run in (
        peers.gap(adjacency, first, y, train, 100.0, peers.UNDIRECTED, 0),
        peers.progap(adjacency, first, y, train, 100.0, peers.UNDIRECTED, 0),
        peers.lpgnet(adjacency, first, y, train, 100.0, 0),
        peers.lpgnet(adjacency, first, y, train, 100.0, 0, true_labels=True),
    ):
        assert max(np.mean(guess[test] == y[test]) for guess in run) > alone + 0.1
