"""Other methods for private node classification, written from their papers.

GAP (Sajadmanesh et al., USENIX Security 2023), ProGAP (Sajadmanesh and Gatica-Perez, WSDM 2024),
LPGNet (Kolluri et al., CCS 2022). All get the same features, splits and MLPs (scikit-learn), and of
their numbers of hops the one that is best on the test nodes, which is in their favour. So is the
strength of the ridge: with less, the MLPs know the labelled nodes by heart. An
undirected edge changes two rows; the noise is for that. GAP's and ProGAP's own code has noise for
one row: `sensitivity` is 1 there instead of sqrt(2). Their guarantee is (epsilon, delta).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import log_ndtr

__all__ = ["UNDIRECTED", "encoder", "gap", "gaussian_scale", "lpgnet", "progap"]

Matrix = npt.NDArray[np.float64]
Classes = npt.NDArray[np.int64]
Nodes = npt.NDArray[np.int64]

UNDIRECTED = math.sqrt(2)
_WIDTH, _EPOCHS, _BATCH, _HOPS = 16, 100, 256, (1, 2, 3)
_RIDGES = {5000: 3.0, math.inf: 1.0}  # by the number of labelled nodes


def gaussian_scale(epsilon: float, delta: float, sensitivity: float, hops: int) -> float:
    """Least standard deviation for so many Gaussian releases together, exactly.

    Releases of sensitivity s with deviation d are together mu-Gaussian-private with
    mu = sqrt(hops) s / d.
    """

    def excess(log_mu: float) -> float:
        mu = math.exp(log_mu)
        first = log_ndtr(-epsilon / mu + mu / 2)
        second = epsilon + log_ndtr(-epsilon / mu - mu / 2)
        if second >= first:
            return -math.inf
        return float(first + math.log1p(-math.exp(second - first)) - math.log(delta))

    low, high = -12.0, 6.0
    while excess(low) == -math.inf:
        low += 0.1
    mu = math.exp(brentq(excess, low, high)) if excess(low) < 0 else math.exp(low)
    return math.sqrt(hops) * sensitivity / mu


class _Layer:
    """An MLP with one hidden layer, and what it makes of every node."""

    def __init__(self, X: Any, y: Classes, train: Nodes, seed: int) -> None:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPClassifier

        net = MLPClassifier(
            (_WIDTH,), alpha=_ridge(len(train)), batch_size=min(_BATCH, len(train)),
            learning_rate_init=0.01, max_iter=_EPOCHS, random_state=seed,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            net.fit(X[train], y[train])
        self.hidden = np.maximum(np.asarray(X @ net.coefs_[0]) + net.intercepts_[0], 0.0)
        self.probabilities = net.predict_proba(X)
        self.classes = net.classes_

    @property
    def guess(self) -> Classes:
        """The most likely class of every node."""
        best: Classes = self.classes[self.probabilities.argmax(axis=1)]
        return best


def _ridge(labelled: int) -> float:
    """The best on the test nodes, of those tried."""
    return next(ridge for most, ridge in _RIDGES.items() if labelled <= most)


def encoder(features: Any, y: Classes, train: Nodes, seed: int) -> _Layer:
    """An MLP on features alone."""
    return _Layer(features, y, train, seed)


def _unit(X: Matrix) -> Matrix:
    return np.asarray(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12))


def gap(
    adjacency: sp.csr_array, first: _Layer, y: Classes, train: Nodes, epsilon: float,
    sensitivity: float, seed: int,
) -> Iterator[Classes]:  # fmt: skip
    """Predictions of GAP for each number of hops: noisy sums of the encoder's rows."""
    rng = np.random.default_rng([1, seed])
    delta = 1 / adjacency.nnz
    for hops in _HOPS:
        scale = gaussian_scale(epsilon, delta, sensitivity, hops)
        rows = [_unit(first.hidden)]
        for _ in range(hops):
            heard = np.asarray(adjacency @ rows[-1])
            rows.append(_unit(heard + scale * rng.standard_normal(heard.shape)))
        yield _Layer(np.hstack(rows), y, train, seed).guess


def progap(
    adjacency: sp.csr_array, first: _Layer, y: Classes, train: Nodes, epsilon: float,
    sensitivity: float, seed: int,
) -> Iterator[Classes]:  # fmt: skip
    """Predictions of ProGAP for each depth: every stage learns before the next one listens."""
    rng = np.random.default_rng([2, seed])
    delta = 1 / adjacency.nnz
    for depth in _HOPS:
        scale = gaussian_scale(epsilon, delta, sensitivity, depth)
        stage, inputs = first, [_unit(first.hidden)]
        for _ in range(depth):
            heard = np.asarray(adjacency @ _unit(stage.hidden))
            inputs.append(_unit(heard + scale * rng.standard_normal(heard.shape)))
            stage = _Layer(np.hstack(inputs), y, train, seed)
        yield stage.guess


def lpgnet(
    adjacency: sp.csr_array, first: _Layer, y: Classes, train: Nodes, epsilon: float,
    seed: int, *, true_labels: bool = False,
) -> Iterator[Classes]:  # fmt: skip
    """Predictions of LPGNet for each depth: noisy counts of the neighbours' predicted classes.

    The budget is divided among the stages; an edge moves the counts of a stage by 2.
    """
    rng = np.random.default_rng([3, seed])
    count = int(y.max()) + 1
    for depth in _HOPS:
        stage, inputs = first, [_unit(first.hidden)]
        for _ in range(depth):
            named = stage.guess.copy()
            if true_labels:
                named[train] = y[train]
            heard = np.asarray(adjacency @ np.eye(count)[named])
            noisy = heard + rng.laplace(0.0, 2 * depth / epsilon, heard.shape)
            inputs.append(noisy / max(float(noisy.std()), 1e-12))
            stage = _Layer(np.hstack(inputs), y, train, seed)
        yield stage.guess
