"""Networks with classes and public features, for classification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from edgeveil.graph.datasets import LabelledGraph, load_blogcatalog
from edgeveil.graph.graph import Graph
from edgeveil.graph.matrices import load_mat
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.read import read_graph

__all__ = ["Attributed", "attributed", "load_attributed"]

_DORMITORY, _YEAR = 4, 5  # columns of local_info
_LEAST = 10  # members of a class; smaller ones count as unknown


@dataclass(frozen=True, kw_only=True, eq=False)
class Attributed(LabelledGraph):
    """A labelled graph with public features; a node without a label is of no known class."""

    features: sp.csr_array | None = None


def load_attributed(folder: Path) -> dict[str, Attributed]:
    """All networks with classes of the folder."""
    return {name: load(folder) for name, load in _LOADERS.items()}


def university(folder: Path, file: str, column: int = _YEAR) -> Attributed:
    """Facebook friendships in a university: one column is the label, the others are features.

    0 is unknown, and so are classes of fewer than 10 members. The nodes stay in the graph.
    """
    graph = read_graph(folder / file, key="A")
    facts = np.asarray(load_mat(folder / file, "local_info")).astype(np.int64)
    others = [j for j in range(facts.shape[1]) if j != column]
    features = sp.csr_array(sp.hstack([_one_hot(facts[:, j]) for j in others]))
    names, y = np.unique(facts[:, column], return_inverse=True)
    common = (names > 0) & (np.bincount(y) >= _LEAST)
    number = np.where(common, np.cumsum(common) - 1, -1)
    return attributed(graph, number[y], tuple(map(str, names[common])), features)


def pages(folder: Path, file: str) -> Attributed:
    """A network from an .npz file: edges, 0/1 features, a class for every node."""
    with np.load(folder / file) as arrays:
        (n, width), edges = arrays["x_shape"], arrays["edges"]
        stored = np.ones(len(arrays["x_indices"])), arrays["x_indices"], arrays["x_indptr"]
        features = sp.csr_array(stored, shape=(int(n), int(width)))
        graph = Graph.from_edges(edges[:, 0], edges[:, 1], NodeSet.range(int(n)))
        return attributed(graph, arrays["labels"], tuple(map(str, arrays["classes"])), features)


def attributed(
    graph: Graph,
    classes: npt.NDArray[np.int64],
    names: tuple[str, ...],
    features: sp.csr_array | None,
) -> Attributed:
    """A network with one class for each node, or -1."""
    labelled = np.flatnonzero(classes >= 0)
    entries = np.ones(len(labelled), dtype=bool), (labelled, classes[labelled])
    labels = sp.csr_array(entries, shape=(graph.n_nodes, len(names)))
    return Attributed(graph=graph, labels=labels, label_names=names, features=features)


def _one_hot(column: npt.NDArray[np.int64]) -> sp.csr_array:
    """A column for every value; unknown is one, too."""
    _, place = np.unique(column, return_inverse=True)
    return sp.csr_array((np.ones(len(column)), place, np.arange(len(column) + 1)))


def _blogs(folder: Path) -> Attributed:
    data = load_blogcatalog(folder)
    return Attributed(graph=data.graph, labels=data.labels, label_names=data.label_names)


_LOADERS: dict[str, Callable[[Path], Attributed]] = {
    "Amherst": lambda folder: university(folder, "amherst.mat"),
    "Reed": lambda folder: university(folder, "reed.mat"),
    "Facebook pages": lambda folder: pages(folder, "facebook_pages.npz"),
    "Cora": lambda folder: pages(folder, "cora.npz"),
    "Citeseer": lambda folder: pages(folder, "citeseer.npz"),
    "Twitch ES": lambda folder: pages(folder, "twitch_es.npz"),
    "Amherst, dormitories": lambda folder: university(folder, "amherst.mat", _DORMITORY),
    "BlogCatalog": _blogs,
}
