"""Link prediction: hide some edges, rank by what is left, see where the hidden ones are.

For each source the candidates are all nodes that are not its neighbours in the graph that is
left; those at the other end of a hidden edge are to be found among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.evaluation.intervals import Estimate, estimate
from edgeveil.evaluation.metrics import area_under_curve, hits_at_k
from edgeveil.evaluation.ranking import repeated_rows
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Mechanism
from edgeveil.privacy.noise import NoiseSource

__all__ = ["HiddenEdges", "LinkScores", "hide_edges", "predict_links"]


@dataclass(frozen=True)
class HiddenEdges:
    """A graph without some of its edges, and those edges as a graph of their own."""

    left: Graph
    hidden: Graph


@dataclass(frozen=True)
class LinkScores:
    """Means over sources and repeats.

    Attributes
    ----------
    auc : Estimate
        Chance that a hidden neighbour scores above another candidate, per source.
    recall : Estimate
        Share of the hidden neighbours (at most k of them count) among the top k.
    n_sources : int
        Sources that have a hidden edge and another candidate.
    """

    auc: Estimate
    recall: Estimate
    n_sources: int


def hide_edges(graph: Graph, *, share: float = 0.1, seed: int = 0) -> HiddenEdges:
    """Hide a random share of the edges; the node set stays."""
    if not 0 < share < 1:
        raise ParameterError(f"share must be between 0 and 1, got {share}")
    u = np.repeat(np.arange(graph.n_nodes), graph.degrees)
    v = graph.indices.astype(np.int64)
    u, v = u[u < v], v[u < v]
    hidden = np.zeros(len(u), dtype=np.bool_)
    chosen = np.random.default_rng(seed).choice(len(u), round(share * len(u)), replace=False)
    hidden[chosen] = True
    return HiddenEdges(
        Graph.from_edges(u[~hidden], v[~hidden], graph.nodes),
        Graph.from_edges(u[hidden], v[hidden], graph.nodes),
    )


def predict_links(
    split: HiddenEdges,
    mechanism: Mechanism,
    sources: Sequence[int],
    *,
    repeats: int,
    noise: NoiseSource,
    k: int = 100,
) -> LinkScores:
    """AUC and Recall@k of the hidden edges of some sources.

    Parameters
    ----------
    split : HiddenEdges
        From `hide_edges`.
    mechanism : Mechanism
        Runs on the graph that is left.
    sources : sequence of int
        Indices; those without a hidden edge are left out.
    repeats : int
        Independent releases.
    noise : NoiseSource
        ``NoiseSource.insecure(seed)``.
    k : int
        Length of the list in which hidden neighbours are looked for.
    """
    asked = [s for s in sources if split.hidden.degrees[s] > 0]
    questions = [_candidates(split, source) for source in asked]
    fair = [i for i, (_, hidden) in enumerate(questions) if not hidden.all()]
    if not fair:
        raise ParameterError("no source has a hidden edge: hide more, or ask for more sources")
    asked, questions = [asked[i] for i in fair], [questions[i] for i in fair]
    auc, recall = np.empty((2, len(asked), repeats))
    shared = False
    draws = repeated_rows(split.left, mechanism, asked, repeats, noise)
    for repeat, (rows, prepared) in enumerate(draws):
        shared = shared or prepared is not split.left
        for i, (row, (candidates, hidden)) in enumerate(zip(rows, questions, strict=True)):
            auc[i, repeat] = area_under_curve(row[candidates], hidden)
            hits = hits_at_k(hidden, row[candidates], k)[0]
            recall[i, repeat] = hits / min(k, int(hidden.sum()))
    found = [estimate(m.mean(axis=1), m.mean(axis=0), shared=shared) for m in (auc, recall)]
    return LinkScores(auc=found[0], recall=found[1], n_sources=len(asked))


def _candidates(
    split: HiddenEdges, source: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Nodes that might be linked to the source, and which of them are."""
    open_ = np.ones(split.left.n_nodes, dtype=np.bool_)
    open_[source] = False
    open_[split.left.neighbours(source)] = False
    hidden = np.zeros(len(open_), dtype=np.bool_)
    hidden[split.hidden.neighbours(source)] = True
    candidates = np.flatnonzero(open_)
    return candidates, hidden[candidates]
