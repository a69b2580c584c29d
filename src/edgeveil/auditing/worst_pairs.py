"""Neighbouring graphs on which a mechanism comes near its bound: a library, and a search.

Each shape below was found by `anneal` and then understood. None of them looks at data: a pair
is made from the parameters of the mechanism alone. docs/audit.md tells how near they come.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from edgeveil.auditing.search import Pair, anneal, graph_of_pairs
from edgeveil.errors import PromiseError
from edgeveil.flow.two_hop import exact_weights, two_hop_sums
from edgeveil.mechanisms import (
    DegreePrior,
    DPEmbeddingSparse,
    DPInstantEmbedding,
    DPPushFlow,
    EdgeFlipping,
    TwoHop,
    TwoHopEmbedding,
)
from edgeveil.mechanisms.protocol import Mechanism
from edgeveil.mechanisms.released_degrees import split_epsilon
from edgeveil.privacy.noise import NoiseSource

__all__ = [
    "library",
    "loss_share",
    "single_pair",
    "two_cliques",
    "two_hubs",
    "wedge",
    "worst_pair",
]

# So little noise that rounding an output to six digits removes it.
_HARDLY_ANY_NOISE = 1e9
# Below this share of the claim the library has nothing for these parameters: search.
_GOOD_ENOUGH = 0.6


def wedge(n: int = 3) -> Pair:
    """Source 0 joined to 1 and 2, which get joined; further nodes are alone.

    Both ends are full in both graphs, and the new edge lifts the cap of each: the change is
    2 alpha T, and for one round with prepush that is sigma: the bound is tight.
    """
    return _pair(n, [(0, 1), (0, 2)], (1, 2))


def two_cliques(own: int, other: int, *, at_source: bool) -> Pair:
    """The new edge joins the source's clique to another one.

    All that goes over the new edge reaches nodes that had nothing, and most of it stays
    there. Better than `wedge` for many rounds and a small restart probability, and the best
    shape where a minimum degree D is promised (own = D + 1). In the public model the edge is
    at the source, which may be alone before (own = 1).
    """
    edges = [*combinations(range(own), 2), *combinations(range(own, own + other), 2)]
    return _pair(own + other, edges, (0 if at_source else 1, own))


def single_pair(*, at_source: bool) -> Pair:
    """The least graph whose row shows one bit: whether there is an edge."""
    return _pair(2, [], (0, 1)) if at_source else _pair(3, [(0, 1)], (1, 2))


def two_hubs(near: int, far: int) -> Pair:
    """Source 0 has one friend, 1, who gets joined to 2; these have `near` and `far` leaves.

    The edge moves the degrees of 1 and 2 by one each, and the two-hop sum of 2 from 0 to the
    largest weight there is: all that two-hop protects. Degrees that are far apart in units of
    the noise are not pulled together by estimating them, so that a row shows the noise.
    """
    leaves = [(1, 3 + i) for i in range(near)] + [(2, 3 + near + i) for i in range(far)]
    return _pair(3 + near + far, [(0, 1), *leaves], (1, 2))


def library(mechanism: Mechanism) -> Iterator[Pair]:
    """The stored pairs that fit a mechanism and its parameters."""
    public = mechanism.guarantee(1).model == "public"
    if isinstance(mechanism, EdgeFlipping):
        yield single_pair(at_source=public)
    elif isinstance(mechanism, DegreePrior):
        yield two_hubs(4, 10)
    elif isinstance(mechanism, TwoHop | TwoHopEmbedding):
        yield two_hubs(1, 4)
    elif isinstance(mechanism, DPPushFlow):
        own = mechanism.promised_min_degree + 1
        # In the joint model the edge starts beside the source, so there are two own nodes.
        yield from (two_cliques(max(own, 2), own * k, at_source=public) for k in (1, 2, 4))
    elif public:
        yield from (two_cliques(1, k, at_source=True) for k in (2, 4, 8, 16))
    else:
        yield wedge()
        yield from (two_cliques(2, k, at_source=False) for k in (1, 2, 4, 8, 16))
        if isinstance(mechanism, DPInstantEmbedding | DPEmbeddingSparse):
            # The embedding looks at n p and not below 1: nodes that are alone raise n.
            yield from (wedge(n) for n in range(4, 65))


def loss_share(mechanism: Mechanism, pair: Pair) -> float:
    """Share of the claimed epsilon that a pair uses: change of the exact output / sensitivity.

    0 where the pair breaks a promise, or where the mechanism gives no way to see its exact
    output.
    """
    if isinstance(mechanism, DegreePrior | TwoHop | TwoHopEmbedding):
        return _released_share(mechanism, pair)
    exact = _almost_without_noise(mechanism)
    if exact is None:
        return 0.0
    noise = NoiseSource.insecure(0)  # what remains of it is not seen
    rows = []
    for graph in (pair.graph, pair.neighbour):
        try:
            prepared = exact.prepare(graph, noise.derive("shared"))
        except PromiseError:
            return 0.0
        rows.append(exact.rows(prepared, [pair.source], noise.derive("rows"))[0])
    change = float(np.abs(rows[0] - rows[1]).sum())
    return round(change / _sensitivity(mechanism, pair.graph.n_nodes), 6)


def worst_pair(mechanism: Mechanism, *, steps: int = 400) -> Pair:
    """The pair on which an audit of this mechanism has most to see.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism; its exact outputs are compared with its claimed sensitivity.
    steps : int
        Length of the search that follows if no stored pair uses 60 % of the claim.
    """
    stored = list(library(mechanism))
    shares = [loss_share(mechanism, pair) for pair in stored]
    pair, share = stored[int(np.argmax(shares))], max(shares)
    if share < _GOOD_ENOUGH and not isinstance(mechanism, EdgeFlipping):
        pair, _ = anneal(
            lambda candidate: loss_share(mechanism, candidate),
            n=pair.graph.n_nodes,
            model=mechanism.guarantee(1).model,
            seed=0,
            steps=steps,
            start=pair,
        )
    return pair


def _released_share(mechanism: DegreePrior | TwoHop | TwoHopEmbedding, pair: Pair) -> float:
    """Share of epsilon that the noised values use, before anything is estimated from them."""
    graphs = (pair.graph, pair.neighbour)
    one, other = (graph.degrees.astype(np.float64) for graph in graphs)
    degrees = float(np.abs(one - other).sum()) / 2
    if isinstance(mechanism, DegreePrior):
        return degrees
    shared, own = split_epsilon(mechanism.epsilon, mechanism.degree_epsilon)
    friends = pair.graph.neighbours(pair.source)
    floor = float(one[friends].max()) if len(friends) else 1.0
    weights = exact_weights(floor / np.maximum(one, 1.0))
    sums = [two_hop_sums(graph, pair.source, weights) for graph in graphs]
    hop = float(np.abs(sums[0] - sums[1]).sum())
    return float((shared * degrees + own * hop) / (shared + own))


def _almost_without_noise(mechanism: Any) -> Mechanism | None:
    """The same mechanism at an enormous epsilon; None if it has no epsilon to change."""
    if "epsilon" not in getattr(mechanism, "__dataclass_fields__", ()):
        return None
    exact: Mechanism = dataclasses.replace(mechanism, epsilon=_HARDLY_ANY_NOISE)
    return exact


def _pair(n: int, edges: list[tuple[int, int]], added: tuple[int, int]) -> Pair:
    return Pair(
        graph=graph_of_pairs(n, edges), neighbour=graph_of_pairs(n, [*edges, added]), source=0
    )


def _sensitivity(mechanism: Any, n: int) -> float:
    """L1 bound that the noise was calibrated to; 1 for mechanisms without one."""
    if isinstance(mechanism, DPInstantEmbedding | DPEmbeddingSparse):
        return n * math.log1p(mechanism.sigma)
    return float(getattr(mechanism, "sensitivity", getattr(mechanism, "sigma", 1.0)))
