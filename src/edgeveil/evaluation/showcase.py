"""One labelled network, several mechanisms: what `edgeveil demo` measures for its page.

Accuracy is measured against the exact graph and is the curator's. A classifier trained on the
embeddings of all members is a utility experiment, too, not a joint release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from edgeveil.datasets import LabelledGraph
from edgeveil.evaluation.baselines import RandomOrder
from edgeveil.evaluation.classification import classify, majority_floor
from edgeveil.evaluation.contest import Contender, measure_contest
from edgeveil.evaluation.ranking import repeated_rows
from edgeveil.evaluation.results import Result
from edgeveil.evaluation.runs import Cells
from edgeveil.graph import Graph
from edgeveil.hashing import hash_nodes, instant_embedding
from edgeveil.mechanisms import (
    DegreePrior,
    DPInstantEmbedding,
    DPPushFlowCap,
    EdgeFlipping,
    Mechanism,
    NonPrivate,
    OwnNeighbours,
    TwoHop,
    TwoHopEmbedding,
)
from edgeveil.privacy.noise import NoiseSource

__all__ = ["classification_results", "ranking_results"]

_PAPER: dict[str, Any] = {"rounds": 100, "prepush": True, "bound": "paper"}
_DIMENSION = 256


def ranking_results(
    name: str,
    network: LabelledGraph | Graph,
    epsilons: Sequence[float],
    sources: int,
    cells: Cells,
    *,
    mechanisms: Sequence[Mechanism] | None = None,
    k: int = 100,
    min_degree: int = 50,
) -> list[Result]:
    """Recall and NDCG of rankings: ours, the paper's, and the floors beside them.

    Parameters
    ----------
    name : str
        The network's name.
    network : LabelledGraph or Graph
        The network.
    epsilons : sequence of float
        Privacy losses.
    sources : int
        How many sources of degree >= `min_degree`.
    cells : Cells
        Keeps what is finished, and shows progress.
    mechanisms : sequence of Mechanism, optional
        Only these beside the floors, each with its own epsilon; `epsilons` is not used then.
    k : int
        How many nodes count.
    min_degree : int
        Neighbours that a source must have.
    """
    settings = {"min_degree": min_degree, "seed": 0, "k": k, "restart": 0.15}
    tried = _contenders(epsilons, sources) if mechanisms is None else _own(mechanisms, sources)
    contenders = [*_floors(sources), *tried]
    return measure_contest("ranking", contenders, {name: network}, settings, cells)


def _floors(sources: int) -> Iterator[Contender]:
    levels: dict[str, Mechanism] = {
        "non-private": NonPrivate(),
        "own neighbours": OwnNeighbours(),
        "random": RandomOrder(),
    }
    for label, fixed in levels.items():
        yield Contender(label, fixed, fixed.guarantee(1).epsilon, sources, 1)


def _own(mechanisms: Sequence[Mechanism], sources: int) -> Iterator[Contender]:
    losses = [mechanism.guarantee(1).epsilon for mechanism in mechanisms]
    named = Counter(zip((m.name for m in mechanisms), losses, strict=True))
    for mechanism, loss in zip(mechanisms, losses, strict=True):
        # A cell is known by its label: two of one name and epsilon need more than that.
        label = mechanism.name if named[mechanism.name, loss] == 1 else repr(mechanism)
        yield Contender(label, mechanism, loss, sources, 3)


def _contenders(epsilons: Sequence[float], sources: int) -> Iterator[Contender]:
    for epsilon in epsilons:
        for mechanism in (TwoHop(epsilon=epsilon), DegreePrior(epsilon=epsilon)):
            yield Contender(mechanism.name, mechanism, epsilon, sources, 3)
        paper = DPPushFlowCap(epsilon=epsilon, **_PAPER)
        yield Contender("push-flow-cap (paper)", paper, epsilon, sources, 3)
        if epsilon >= 1:  # below, the flipped graph is dense and slow
            flipping = EdgeFlipping(epsilon=epsilon)
            yield Contender("edge-flipping", flipping, epsilon, min(sources, 8), 1)


def classification_results(
    name: str, network: LabelledGraph, epsilons: Sequence[float], cells: Cells
) -> list[Result]:
    """Micro-F1 and Macro-F1 of labels learnt from embeddings of all nodes.

    Parameters
    ----------
    name, network, epsilons, cells
        As for `ranking_results`.
    """
    nodes = range(network.graph.n_nodes)
    noise = NoiseSource.insecure(0)
    work: list[tuple[str, float | None, Mechanism | None]] = [
        ("majority label", None, None),
        ("own neighbours", 0.0, OwnNeighbours()),
        ("non-private", float("inf"), NonPrivate(tol=1e-6)),
    ]
    for loss in epsilons:
        ours = TwoHopEmbedding(epsilon=loss, dimension=_DIMENSION)
        paper = DPInstantEmbedding(epsilon=loss, dimension=_DIMENSION, **_PAPER)
        work += [(ours.name, loss, ours), ("instant-embedding (paper)", loss, paper)]

    def score(mechanism: Mechanism | None) -> list[float]:
        if mechanism is None:
            floor = majority_floor(network.labels)
            return [floor.micro, floor.macro]
        stream = noise.derive(repr(mechanism))
        [(rows, _)] = repeated_rows(network.graph, mechanism, nodes, 1, stream)
        if mechanism.columns == "nodes":
            rows = instant_embedding(rows, hash_nodes(network.graph.nodes, _DIMENSION))
        f1 = classify(rows, network.labels)
        return [f1.micro, f1.macro]

    results = []
    with cells.progress(len(work), "embeddings"):
        for label, epsilon, mechanism in work:
            scores = cells.get(f"{label} {epsilon}", partial(score, mechanism))
            results += [
                Result.of(
                    value,
                    experiment="classification",
                    dataset=name,
                    mechanism=label,
                    epsilon=epsilon,
                    metric=metric,
                    scope="all",
                    n_sources=len(nodes),
                    repeats=1,
                )
                for metric, value in zip(("micro-F1", "macro-F1"), scores, strict=True)
            ]
    return results
