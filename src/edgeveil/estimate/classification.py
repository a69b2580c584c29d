"""Predict classes from noisy sums of the neighbours' messages. Sees no graph: released sums only.

Every node sends one message, once: its class, or a guess. Listeners get noisy sums of them
(`edgeveil.flow.neighbour_sums`, with noise). This module chooses the listeners and the messages of
each round, and fits a model to the sums. All of it is computed from public values (labels,
features, a public seed) and from sums that were released before; docs/theory/classification.md
rests on that.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._internal.flat_rows import starts_of, take_rows

Matrix = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

SHARE_T, LEAST_T, MOST_T = 0.3, 100, 20_000  # labelled nodes that listen, to learn the weights
SHARE_V, LEAST_V, MOST_V = 0.1, 100, 10_000  # labelled nodes that are treated like unlabelled ones
SURE = 0.5  # a prior this far from its class's share to certainty is a message in round 1
RIDGES = (1.0, 10.0, 100.0)
ROUNDS = 2
_FOLDS_OF_FEATURES, _FOLDS_OF_T = 5, 3
_FEATURE_RIDGES = (1.0, 3.0, 10.0)
_MOST_DENOMINATOR = 1 << 20
_TINY = 1e-12
_PART = 1 << 15  # listeners whose probabilities are computed at once


class Messages(NamedTuple):
    """What nodes say in a round: node v says ``units[j]`` in column ``columns[j]``.

    j runs over ``starts[v] : starts[v + 1]``. In classification a column is a class.
    """

    starts: Indices
    columns: Indices
    units: Indices

    @property
    def speaks(self) -> Mask:
        """Who says anything."""
        return np.diff(self.starts) > 0


@dataclass(frozen=True)
class Labels:
    """Classes of the labelled nodes (public); node v has `classes[starts[v] : starts[v + 1]]`."""

    starts: Indices  # (n + 1)
    classes: Indices
    n_classes: int

    @classmethod
    def single(cls, classes: npt.ArrayLike, n_classes: int | None = None) -> Labels:
        """From one class per node; -1 if it has none."""
        by_node = np.asarray(classes, dtype=np.int64)
        labelled = by_node >= 0
        count = int(by_node.max(initial=-1)) + 1 if n_classes is None else n_classes
        return cls(starts_of(labelled), by_node[labelled], count)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, labelled or not."""
        return len(self.starts) - 1

    @property
    def counts(self) -> Indices:
        """How many labels each node has."""
        return np.diff(self.starts)

    @property
    def labelled(self) -> Mask:
        """Who has a label."""
        return self.counts > 0

    def shares(self, nodes: Indices) -> Matrix:
        """One row for each of these nodes: its labels, which add up to 1 (0 if it has none)."""
        counts, (_, places) = self.counts[nodes], take_rows(self.starts, nodes)
        out = np.zeros((len(nodes), self.n_classes))
        rows = np.repeat(np.arange(len(nodes)), counts)
        out[rows, self.classes[places]] = 1 / np.repeat(counts, counts)
        return out

    def at(self, nodes: Indices) -> Labels:
        """The labels of these nodes; none at -1."""
        starts, places = take_rows(self.starts, nodes)
        return Labels(starts, self.classes[places], self.n_classes)

    def without(self, mask: Mask) -> Labels:
        """The labels without those of some nodes."""
        kept = np.repeat(~mask, self.counts)
        starts = starts_of(np.where(mask, 0, self.counts))
        return Labels(starts, self.classes[kept], self.n_classes)

    def first(self) -> Indices:
        """The first label of each node; -1 if it has none."""
        out = np.full(self.n_nodes, -1, dtype=np.int64)
        out[self.labelled] = self.classes[self.starts[:-1][self.labelled]]
        return out


@dataclass(frozen=True)
class Roles:
    """Who listens, and which labelled nodes do: public, and independent of the edges."""

    listens: Mask
    trains: Mask  # T: labelled nodes that listen; the weights are learnt from them
    validates: Mask  # V: labelled nodes that are treated like unlabelled ones

    @property
    def listeners(self) -> Indices:
        """The nodes whose sums are released, in the order of the rows."""
        return np.flatnonzero(self.listens)


def choose_roles(labels: Labels, targets: Mask | None = None, *, seed: int = 0) -> Roles:
    """Choose T and V by class, from a public seed; unlabelled targets listen, too.

    V is set aside if a tenth of the labelled nodes is at least 100.

    Parameters
    ----------
    labels : Labels
    targets : array of bool, optional
        Who is to be predicted; by default everybody without a label.
    seed : int
        Public, and apart from the secret of the noise.
    """
    rng = np.random.default_rng([0x5EED, seed])
    labelled = np.flatnonzero(labels.labelled)
    classes = labels.first()
    n_v = min(int(SHARE_V * len(labelled)), MOST_V)
    validates = np.zeros(labels.n_nodes, dtype=bool)
    if n_v >= LEAST_V:
        validates[_by_class(labelled, classes, n_v, rng)] = True
    rest = labelled[~validates[labelled]]
    n_t = min(max(round(SHARE_T * len(labelled)), LEAST_T), len(rest), MOST_T)
    trains = np.zeros(labels.n_nodes, dtype=bool)
    trains[_by_class(rest, classes, n_t, rng)] = True
    predicted = ~labels.labelled if targets is None else targets & ~labels.labelled
    return Roles(predicted | trains | validates, trains, validates)


def _by_class(nodes: Indices, classes: Indices, size: int, rng: Any) -> Indices:
    """A random sample in which each class has its share, but for rounding.

    Sorted by class with ties at random, every (len / size)-th node is taken.
    """
    if size <= 0:
        return nodes[:0]
    mixed = nodes[rng.permutation(len(nodes))]
    ordered = mixed[np.argsort(classes[mixed], kind="stable")]
    at = (np.arange(size) + rng.random()) * (len(nodes) / size)
    chosen: Indices = ordered[np.minimum(at.astype(np.int64), len(nodes) - 1)]
    return chosen


# -- Messages --------------------------------------------------------------------------------------


def denominator(labels: Labels) -> int:
    """Units in a loudness of 1: even, and divisible by the numbers of labels if they are few."""
    common = 1
    for count in np.unique(labels.counts[labels.labelled]).tolist():
        common = math.lcm(common, count)
        if 2 * common > _MOST_DENOMINATOR:
            return _MOST_DENOMINATOR
    return 2 * common


def first_messages(labels: Labels, roles: Roles, log_prior: Matrix) -> Messages:
    """Round 1: labelled nodes but V name their labels; others speak if they are sure."""
    unit = denominator(labels)
    public = labels.without(roles.validates)
    guess = np.where(public.labelled, -1, log_prior.argmax(axis=1))
    share = np.exp(frequencies(public, 1)[0])  # a prior that is no more than the share is not sure
    guess[np.exp(log_prior.max(axis=1)) < share[guess] + SURE * (1 - share[guess])] = -1
    counts = np.where(public.labelled, public.counts, guess >= 0)
    starts = starts_of(counts)
    columns = np.empty(starts[-1], dtype=np.int64)
    labelled = np.repeat(public.labelled, counts)
    columns[labelled], columns[~labelled] = public.classes, guess[guess >= 0]
    loudness = np.where(roles.listens, unit // 2, unit)
    each = loudness // np.maximum(counts, 1)  # rounded down: together at most the loudness
    return Messages(starts, columns, np.repeat(each, counts))


def second_messages(labels: Labels, roles: Roles, spoken: Mask, guess: Indices) -> Messages:
    """Round 2: everybody who has not spoken names the class that is guessed for it."""
    speaks = ~spoken
    unit = denominator(labels)
    loudness = np.where(roles.listens, unit // 2, unit)
    return Messages(starts_of(speaks), guess[speaks], loudness[speaks])


# -- Without the graph -----------------------------------------------------------------------------


def frequencies(labels: Labels, n: int) -> Matrix:
    """Log of the classes' shares among the labels, for each of n nodes: one row, read-only."""
    counts = np.bincount(labels.classes, minlength=labels.n_classes) + 1.0
    return np.broadcast_to(np.log(counts / counts.sum()), (n, labels.n_classes))


def from_prior(prior: Matrix) -> Matrix:
    """Log probabilities of a user's own model."""
    clipped = np.maximum(prior, 1e-6)
    logs: Matrix = np.log(clipped / clipped.sum(axis=1, keepdims=True))
    return logs


def from_features(features: Any, labels: Labels) -> Matrix:
    """Log probabilities of a logistic regression on features; out of fold for labelled nodes.

    The ridge is chosen by the likelihood out of fold.
    """
    labelled = np.flatnonzero(labels.labelled)
    X, Y = _scaled(features), labels.shares(labelled)
    rng = np.random.default_rng([0xF01D, 0])
    fold = np.empty(len(labelled), dtype=np.int64)
    order = rng.permutation(len(labelled))
    order = order[np.argsort(labels.first()[labelled][order], kind="stable")]
    fold[order] = np.arange(len(labelled)) % _FOLDS_OF_FEATURES
    out_of_fold: dict[float, Matrix] = {}
    for ridge in _FEATURE_RIDGES:
        logs = out_of_fold[ridge] = np.empty_like(Y)
        for k in range(_FOLDS_OF_FEATURES):
            held_out = fold == k
            W, b = logistic_regression(X[labelled[~held_out]], Y[~held_out], ridge)
            logs[held_out] = _log_softmax(np.asarray(X[labelled[held_out]] @ W) + b)
    best = max(out_of_fold, key=lambda ridge: float((Y * out_of_fold[ridge]).sum()))
    W, b = logistic_regression(X[labelled], Y, best)
    out = _log_softmax(np.asarray(X @ W) + b)
    out[labelled] = out_of_fold[best]
    return out


def logistic_regression(X: Any, Y: Matrix, ridge: float) -> tuple[Matrix, Matrix]:
    """Weights (columns, classes) and bias of a softmax regression on rows of class shares.

    The weights are under a ridge, the bias is nearly free.
    """
    from scipy.optimize import minimize

    d, c = X.shape[1], Y.shape[1]
    turned = X.T.tocsr() if hasattr(X, "tocsr") else X.T

    def loss(flat: Matrix) -> tuple[float, Matrix]:
        W, b = flat[: d * c].reshape(d, c), flat[d * c :]
        logs = _log_softmax(np.asarray(X @ W) + b)
        E = np.exp(logs) - Y
        value = -(Y * logs).sum() + ridge / 2 * (W * W).sum() + 5e-4 * (b @ b)
        gradient = np.concatenate(
            ((np.asarray(turned @ E) + ridge * W).ravel(), E.sum(axis=0) + 1e-3 * b)
        )
        return float(value), gradient

    fit = minimize(
        loss, np.zeros((d + 1) * c), jac=True, method="L-BFGS-B",
        options={"maxiter": 200, "ftol": 1e-7},
    )  # fmt: skip
    return fit.x[: d * c].reshape(d, c), fit.x[d * c :]


def _scaled(features: Any) -> Any:
    """Columns in comparable units: dense ones standardised, sparse ones divided by their largest.

    All rows count, labelled or not: features are public.
    """
    if hasattr(features, "tocsr"):
        import scipy.sparse as sp

        X = sp.csr_array(features, dtype=np.float64)
        largest = np.ravel(abs(X).max(axis=0).toarray()) if X.shape[0] else np.ones(X.shape[1])
        return sp.csr_array(X @ sp.diags_array(1 / np.where(largest > 0, largest, 1.0)))
    dense = np.asarray(features, dtype=np.float64)
    spread = dense.std(axis=0)
    return (dense - dense.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


# -- From the sums ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Weights:
    """How a score is made: shared weights ("friends are alike") and a matrix for the rest."""

    prior: float  # w0, of the log probabilities without the graph
    sums: Matrix  # (blocks) w, of the sums in units of `scales`
    shares: Matrix  # (blocks) v, of the sums as shares of all that was heard
    matrices: Matrix  # (blocks, classes, classes) D: row heard, column predicted
    bias: Matrix  # (classes)
    scales: Matrix  # (blocks)
    units: Matrix  # (blocks, classes) of what D hears
    noise: float  # b, the scale of the noise in units of loudness 1

    def log_probabilities(self, log_prior: Matrix, heard: Sequence[Matrix]) -> Matrix:
        """Log of the probability of every class, for each row of the prior and of the sums."""
        Z = self.prior * log_prior + self.bias
        for t, S in enumerate(heard):
            Z += (S / self.units[t]) @ self.matrices[t] + S * (self.sums[t] / self.scales[t])
            Z += self.shares[t] * _shares_of(S, self.noise)
        return _log_softmax(Z)


def _shares_of(S: Matrix, noise: float) -> Matrix:
    """The sums as shares of all that a listener heard: hubs hear much, which proves little.

    A few noises more are in the total, so that the shares of who heard next to nothing are near 0.
    """
    total = np.maximum(S.sum(axis=1, keepdims=True), 0.0) + 3 * noise
    shares: Matrix = S / np.maximum(total, _TINY)
    return shares


def fit_weights(
    log_prior: Matrix, heard: Sequence[Matrix], Y: Matrix, ridge: float, noise: float,
    scales: Matrix, units: Matrix, begin: Weights | None = None,
) -> Weights:  # fmt: skip
    """Fit a softmax to class shares Y by L-BFGS, under a ridge."""
    from scipy.optimize import minimize

    c, k = Y.shape[1], len(heard)
    evidence = [
        (S / unit, S / scale, _shares_of(S, noise))
        for S, unit, scale in zip(heard, units, scales, strict=True)
    ]
    cuts = np.cumsum([1, k, k, k * c * c])

    def unpack(flat: Matrix) -> tuple[float, Matrix, Matrix, Matrix, Matrix]:
        w0, w, v, D, bias = np.split(flat, cuts)
        return float(w0[0]), w, v, D.reshape(k, c, c), bias

    def loss(flat: Matrix) -> tuple[float, Matrix]:
        w0, w, v, D, bias = unpack(flat)
        Z = w0 * log_prior + bias
        for t, (A, all_alike, B) in enumerate(evidence):
            Z += A @ D[t] + w[t] * all_alike + v[t] * B
        logs = _log_softmax(Z)
        E = np.exp(logs) - Y
        value = -float((Y * logs).sum()) + ridge / 2 * float((D * D).sum())
        value += 0.5 * (w0 - 1) ** 2 + 0.5 * float(bias @ bias) + 0.05 * float(w @ w)
        value += 0.5 * float(v @ v)
        dw, dv, dD = np.empty(k), np.empty(k), np.empty((k, c, c))
        for t, (A, all_alike, B) in enumerate(evidence):
            dw[t] = float((E * all_alike).sum()) + 0.1 * w[t]
            dv[t] = float((E * B).sum()) + v[t]
            dD[t] = A.T @ E + ridge * D[t]
        first = [float((E * log_prior).sum()) + w0 - 1]
        return value, np.concatenate((first, dw, dv, dD.ravel(), E.sum(axis=0) + bias))

    at = np.zeros(cuts[-1] + c)
    at[0] = 1.0
    if begin is not None:
        parts = (begin.sums, begin.shares, begin.matrices.ravel(), begin.bias)
        at = np.concatenate(([begin.prior], *parts))
    fit = minimize(loss, at, jac=True, method="L-BFGS-B", options={"maxiter": 300, "ftol": 1e-8})
    w0, w, v, D, bias = unpack(fit.x)
    return Weights(w0, w, v, D, bias, np.asarray(scales, dtype=float), units, noise)


def choose_weights(
    labels: Labels, roles: Roles, log_prior: Matrix, heard: Sequence[Matrix], noise: float,
    *, seed: int = 0,
) -> Weights | None:  # fmt: skip
    """Fit weights to T; None where the graph does not help: the prior alone predicts then.

    V, or else T by folds, chooses the ridge, whether to use the weights, and the units of the
    matrices: one for all classes, or one for each, without which a rare class is not heard.

    Parameters
    ----------
    labels, roles
        As they were when the sums were asked for.
    log_prior : array of shape (n, classes)
        Out of fold for labelled nodes.
    heard : sequence of arrays of shape (listeners, classes)
        Noisy sums in units of loudness 1: rounds, and in directed graphs both directions of each.
    noise : float
        Scale of the noise in the same unit.
    """
    rows = roles.listeners
    scales = np.array([_spread(S) for S in heard])
    T, V = np.flatnonzero(roles.trains[rows]), np.flatnonzero(roles.validates[rows])
    if not len(T):  # nothing to learn from
        return None
    L_T, Y_T, S_T = log_prior[rows[T]], labels.shares(rows[T]), [S[T] for S in heard]
    fits: dict[tuple[float, bool], Weights] = {}
    for each in (False, True):
        units = np.array([_units(S, each) for S in heard])
        begin: Weights | None = None
        for ridge in sorted(RIDGES, reverse=True):
            begin = fit_weights(L_T, S_T, Y_T, ridge, noise, scales, units, begin)
            fits[ridge, each] = begin
    gains: dict[tuple[float, bool], Matrix] = {}
    if len(V):
        L, Y, S_V = log_prior[rows[V]], labels.shares(rows[V]), [S[V] for S in heard]
        for choice, weights in fits.items():
            gains[choice] = _gain(weights, L, S_V, Y)
    else:
        fold = np.random.default_rng([0x3F01D, seed]).permutation(len(T)) % _FOLDS_OF_T
        for choice, weights in fits.items():
            gain = gains[choice] = np.zeros(len(T))
            for k in range(_FOLDS_OF_T):
                held_out, rest = fold == k, fold != k
                if held_out.any() and rest.any():
                    S_rest, S_held_out = [S[rest] for S in S_T], [S[held_out] for S in S_T]
                    part = fit_weights(
                        L_T[rest], S_rest, Y_T[rest], choice[0], noise, scales, weights.units,
                        weights,
                    )  # fmt: skip
                    gain[held_out] = _gain(part, L_T[held_out], S_held_out, Y_T[held_out])
    best = max(gains, key=lambda choice: float(gains[choice].mean()))
    gain = gains[best]
    error = float(gain.std() / math.sqrt(len(gain))) if len(V) else 0.0
    return fits[best] if gain.mean() > error else None


def _gain(weights: Weights, log_prior: Matrix, heard: Sequence[Matrix], Y: Matrix) -> Matrix:
    """What the sums add to the log likelihood of each node's labels."""
    gain: Matrix = (Y * (weights.log_probabilities(log_prior, heard) - log_prior)).sum(axis=1)
    return gain


@dataclass(frozen=True)
class ClassificationFit:
    """Weights and class probabilities, from the sums of all rounds: all of it may be published."""

    log_prior: Matrix  # (n, classes)
    heard: tuple[Matrix, ...]  # released sums by round, in units of loudness 1
    noise: float
    weights: Weights | None  # None: the graph did not help
    log_probabilities: Matrix = field(repr=False)  # (n, classes); labelled nodes: as if unlabelled


def message_rounds(
    labels: Labels, roles: Roles, log_prior: Matrix, noise: float, *, blocks: int = 1, seed: int = 0
) -> Generator[Messages, Matrix, ClassificationFit]:
    """Yield the messages of each round, and take the noisy sums of the listeners in whole units.

    Parameters
    ----------
    labels, roles, log_prior, noise
        As for `choose_weights`.
    blocks : int
        2 for a directed graph: sums of those whom a listener follows, then of its followers.
    """
    unit = denominator(labels)
    messages = first_messages(labels, roles, log_prior)
    heard: list[Matrix] = [np.asarray((yield messages)) / unit]
    spoken = messages.speaks
    weights = choose_weights(labels, roles, log_prior, _blocks(heard, blocks), noise, seed=seed)
    guess = log_prior.argmax(axis=1)
    for rows, logs in _by_parts(weights, roles, log_prior, _blocks(heard, blocks)):
        guess[rows] = logs.argmax(axis=1)
    heard.append(np.asarray((yield second_messages(labels, roles, spoken, guess))) / unit)
    return fit_classes(labels, roles, log_prior, heard, noise, blocks=blocks, seed=seed)


def fit_classes(
    labels: Labels, roles: Roles, log_prior: Matrix, heard: Sequence[Matrix], noise: float,
    *, blocks: int = 1, seed: int = 0,
) -> ClassificationFit:  # fmt: skip
    """Fit weights to the sums of all rounds (in units of loudness 1) and predict all classes."""
    split = _blocks(heard, blocks)
    weights = choose_weights(labels, roles, log_prior, split, noise, seed=seed)
    logs = log_prior.copy()
    for rows, part in _by_parts(weights, roles, log_prior, split):
        logs[rows] = part
    return ClassificationFit(log_prior, tuple(heard), noise, weights, logs)


def _by_parts(
    weights: Weights | None, roles: Roles, log_prior: Matrix, heard: Sequence[Matrix]
) -> Iterator[tuple[Indices, Matrix]]:
    """Log probabilities of the listeners, as many at a time as need little memory."""
    listeners = roles.listeners
    for first in range(0, len(listeners), _PART):
        part = slice(first, first + _PART)
        rows = listeners[part]
        prior = log_prior[rows]
        yield (
            rows,
            (
                prior
                if weights is None
                else weights.log_probabilities(prior, [S[part] for S in heard])
            ),
        )


def _blocks(heard: Sequence[Matrix], blocks: int) -> list[Matrix]:
    return [part for S in heard for part in np.split(S, blocks, axis=1)]


def _spread(S: Matrix) -> float:
    """The root of the mean square, a public unit for sums."""
    return max(math.sqrt(float(np.einsum("ij,ij->", S, S)) / S.size), _TINY) if S.size else 1.0


def _units(S: Matrix, each: bool) -> Matrix:
    """What a matrix counts sums in: the same for all classes, or each in its own."""
    if not (each and S.size):
        return np.full(S.shape[1], _spread(S))
    own: Matrix = np.maximum(np.sqrt(np.einsum("ij,ij->j", S, S) / len(S)), _TINY)
    return own


def _log_softmax(Z: Matrix) -> Matrix:
    Z = Z - Z.max(axis=1, keepdims=True)
    Z -= np.log(np.exp(Z).sum(axis=1, keepdims=True))
    return Z
