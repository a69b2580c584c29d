"""Node classification from embeddings, as in the paper's Figure 2.

One-vs-rest logistic regression (L2, C = 1, not standardised), trained on a random share of the
nodes. A node is given as many labels as it has (the protocol of DeepWalk): those
with the highest scores. Micro-F1 over all (node, label) pairs, Macro-F1 over the labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from edgeveil.errors import ParameterError
from experiments.logistic import fit_logistic

__all__ = ["F1", "classify", "f1_scores", "majority_floor", "random_embedding", "split_nodes"]

Labels = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class F1:
    """Micro-F1 and Macro-F1, between 0 and 1."""

    micro: float
    macro: float


def split_nodes(
    n: int, *, train: float = 0.5, seed: int = 0
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A random split of the nodes into those to learn from and those to be tested on."""
    if not 0 < train < 1:
        raise ParameterError(f"train must be a share between 0 and 1, got {train}")
    order = np.random.default_rng(seed).permutation(n)
    cut = round(n * train)
    if not 0 < cut < n:
        raise ParameterError(f"{n} nodes are too few for a train share of {train}")
    return order[:cut], order[cut:]


def classify(
    embedding: npt.NDArray[np.float64] | sp.csr_array,
    labels: sp.csr_array | Labels,
    *,
    train: float = 0.5,
    seed: int = 0,
    strength: float = 1.0,
) -> F1:
    """Learn labels from embeddings on one random split.

    Parameters
    ----------
    embedding : array or sparse array of shape (n, k)
        One row per node.
    labels : sparse or dense array of bool, n x L
        Entry (v, l) is True where node v has label l.
    train : float
        Share of nodes to learn from.
    seed : int
        Chooses the split.
    strength : float
        C of the logistic regression; smaller regularises more.
    """
    truth = _dense(labels)
    if embedding.shape[0] != len(truth):
        raise ParameterError("there must be one row of labels per embedded node")
    training, test = split_nodes(len(truth), train=train, seed=seed)
    # A label that nobody in the training set has is never predicted, one that all have always.
    scores = np.where(truth[training].all(axis=0), np.inf, -np.inf) * np.ones((len(test), 1))
    learnable = truth[training].any(axis=0) & ~truth[training].all(axis=0)
    # Products this small gain nothing from threads and lose much on a busy machine.
    with threadpool_limits(1):
        weights, start = fit_logistic(
            embedding[training], truth[training][:, learnable], strength=strength
        )
        scores[:, learnable] = embedding[test] @ weights + start
    return f1_scores(scores, truth[test])


def majority_floor(labels: sp.csr_array | Labels, *, train: float = 0.5, seed: int = 0) -> F1:
    """F1 of always predicting the most frequent labels of the training nodes."""
    truth = _dense(labels)
    training, test = split_nodes(len(truth), train=train, seed=seed)
    scores = np.tile(truth[training].sum(axis=0).astype(np.float64), (len(test), 1))
    return f1_scores(scores, truth[test])


def random_embedding(n: int, dimension: int, *, seed: int = 0) -> npt.NDArray[np.float64]:
    """An embedding that knows nothing: uniform on [-1, 1]."""
    return np.random.default_rng(seed).uniform(-1, 1, (n, dimension))


def f1_scores(scores: npt.NDArray[np.float64], truth: Labels) -> F1:
    """F1 when each node is given as many labels as it has, those with the highest scores.

    Macro-F1 is over the labels that some node has or is given. Equal scores go by column.

    Examples
    --------
    >>> f1_scores(np.array([[0.9, 0.1], [0.8, 0.3]]), np.array([[True, False], [False, True]]))
    F1(micro=0.5, macro=0.3333333333333333)
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    given = np.zeros_like(truth)
    taken = np.arange(truth.shape[1]) < truth.sum(axis=1)[:, None]
    np.put_along_axis(given, order, taken, axis=1)
    right, total = (given & truth).sum(axis=0), given.sum(axis=0) + truth.sum(axis=0)
    present = total > 0
    if not present.any():
        raise ParameterError("no node has a label")
    macro = float((2 * right[present] / total[present]).mean())
    return F1(2 * int(right.sum()) / int(total.sum()), macro)


def _dense(labels: sp.csr_array | Labels) -> Labels:
    dense = labels.toarray() if sp.issparse(labels) else labels
    return np.asarray(dense, dtype=np.bool_)
