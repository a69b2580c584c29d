"""The pair of neighbouring graphs with the largest known privacy loss of a mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError, PromiseError
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.hard_pairs import (
    Pair,
    capped_flow_pairs,
    graph_of_pairs,
    single_pair,
    two_hubs,
)
from edgeveil.mechanisms.run import exact_loss

ROUNDING = 1 + 1e-9  # an exact loss is a sum of floats
_GOOD_ENOUGH = 0.6  # share of the claim below which a better pair is searched for
_AS_GOOD = 0.99  # pairs within this factor of the best count as ties


def pairs_for(mechanism: Mechanism) -> Iterator[Pair]:
    """The pairs that the mechanism names; if it names none, all known shapes."""
    named = list(mechanism.hard_pairs())
    if named:
        yield from named
        return
    model = mechanism.guarantee(1).model
    yield from capped_flow_pairs(model)
    yield single_pair(at_source=model == "public")
    yield two_hubs(1, 4)


def loss_on(mechanism: Mechanism, pair: Pair) -> float:
    """The exact loss on a pair; 0 where the pair breaks a promise."""
    try:
        return exact_loss(mechanism, pair)
    except PromiseError:
        return 0.0


def loss_share(mechanism: Mechanism, pair: Pair) -> float:
    """Exact loss over claimed epsilon; ``inf`` for a loss where epsilon 0 is claimed."""
    claimed, loss = mechanism.guarantee(1).epsilon, loss_on(mechanism, pair)
    if claimed == 0:
        return np.inf if loss else 0.0
    return loss / claimed


def worst_pair(mechanism: Mechanism, *, steps: int = 400) -> Pair:
    """The pair with the largest exact loss, for an audit.

    If no known pair reaches 60 % of the claim, simulated annealing with `steps` steps follows.
    """
    pairs = list(pairs_for(mechanism))
    shares = [loss_share(mechanism, pair) for pair in pairs]
    share = max(shares)
    # The first of ties: mechanisms list the pairs first whose difference shows in their rows.
    pair = next(p for p, s in zip(pairs, shares, strict=True) if not s < _AS_GOOD * share)
    if 0 < share < _GOOD_ENOUGH:
        pair, _ = anneal(
            lambda candidate: loss_share(mechanism, candidate),
            n=pair.graph.n_nodes,
            model=mechanism.guarantee(1).model,
            seed=0,
            steps=steps,
            start=pair,
        )
    return pair


def anneal(
    measure: Callable[[Pair], float],
    *,
    n: int,
    model: str,
    seed: int,
    steps: int = 1000,
    start: Pair | None = None,
) -> tuple[Pair, float]:
    """Simulated annealing for the pair of neighbouring graphs with the largest `measure`.

    One pair of graphs refutes a bound on the sensitivity: `measure` may be ``|p - p'|_1 / sigma``.
    Gives the best pair found and its measure. In the joint model the differing edge is not at the
    source. The search starts from a random pair on n nodes, or from `start`, and takes `steps`
    steps; privacy does not depend on its seed.
    """
    if n < 3:
        raise ParameterError(f"the search needs at least 3 nodes, got {n}")
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(n), 2)))
    present = rng.random(len(pairs)) < rng.uniform(0.1, 0.9)
    edge, source = int(rng.integers(len(pairs))), 0
    if start is not None:
        present = _has_edges(start.neighbour, pairs)
        edge = int(np.flatnonzero(present != _has_edges(start.graph, pairs))[0])
        source = start.source

    def pair_of(present: npt.NDArray[np.bool_], edge: int, source: int) -> Pair | None:
        if model == "joint" and source in pairs[edge]:
            return None
        without, added = present.copy(), present.copy()
        without[edge], added[edge] = False, True
        return Pair(
            graph=graph_of_pairs(n, pairs[without]),
            neighbour=graph_of_pairs(n, pairs[added]),
            source=source,
        )

    while (current := pair_of(present, edge, source)) is None:
        edge = int(rng.integers(len(pairs)))
    score = best = measure(current)
    best_pair = current
    for step in range(steps):
        temperature = 0.1 * max(best, 1e-300) * (1 - step / steps)
        new_present, new_edge, new_source = present.copy(), edge, source
        move = rng.random()
        if move < 0.8:
            flips = rng.integers(len(pairs), size=1 + int(rng.integers(3)))
            new_present[flips] ^= True
        elif move < 0.9:
            new_edge = int(rng.integers(len(pairs)))
        else:
            new_source = int(rng.integers(n))
        candidate = pair_of(new_present, new_edge, new_source)
        if candidate is None:
            continue
        value = measure(candidate)
        if value >= score or rng.random() < math.exp((value - score) / max(temperature, 1e-300)):
            present, edge, source, score = new_present, new_edge, new_source, value
        if value > best:
            best, best_pair = value, candidate
    return best_pair, best


def _has_edges(graph: Graph, pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which of the pairs of nodes are edges of the graph."""
    dense = graph.adjacency().toarray()
    return np.asarray(dense[pairs[:, 0], pairs[:, 1]] != 0)
