"""Drive a mechanism through the seam: the one way from a graph to rows.

    shared -> randomise -> learn, once; then for every group of sources
    measure -> randomise (-> measure -> randomise ...) -> estimate

A row's noise is named by its source, so any grouping or sharding of the sources
gives the same rows.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.estimate.lists import Evidence
from edgeveil.estimate.rows import OwnLists
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Mechanism, check_directions, own_lists
from edgeveil.mechanisms.hard_pairs import Pair
from edgeveil.privacy._tail_kernels import digest_words
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.loss import largest_loss
from edgeveil.privacy.noise import NoiseSource
from edgeveil.privacy.statistic import (
    AnyStatistic,
    Exact,
    Noised,
    Statistic,
    randomise,
    total_epsilon,
    without_noise,
)

# A group of rows goes from one step to the next inside of a processor's cache: about a megabyte,
# but whole groups of the lanes that the kernels compute side by side.
_GROUP_BYTES = 1 << 20
_LANES = 16
_MOST_ROWS = 256
_LISTS = 256  # their rows hold two-hop neighbourhoods, whatever the number of nodes

# Outcomes tried for a loss, in scales of the noise beyond the value: what is asked next depends on
# them, such as which coordinates are large.
_BEYOND = (0.0, 64.0)

_ROUNDING = Fraction(1, 10**12)  # a guarantee holds floats


def rows_at_once(n_nodes: int, room: int | None = None) -> int:
    """How many rows are made at once, or fit into `room` bytes in whole groups of lanes."""
    fitting = (room or _GROUP_BYTES) // (8 * max(n_nodes, 1))
    return min(max(fitting // _LANES * _LANES, _LANES), _MOST_ROWS)


def shared_part(
    mechanism: Mechanism, graph: Graph, noise: NoiseSource | None, *, as_claimed: bool = True
) -> Any:
    """Ask what all sources share, noise it, and learn from it. Without `noise`: as it is.

    With ``as_claimed=False`` a mechanism that asks for more than it claims is run all the same:
    for audits.
    """
    numbers = shared_numbers(mechanism, graph, noise, as_claimed=as_claimed)
    return None if numbers is None else mechanism.learn(numbers, graph.nodes)


def shared_numbers(
    mechanism: Mechanism, graph: Graph, noise: NoiseSource | None, *, as_claimed: bool = True
) -> Noised | None:
    """What all sources share, noised, before anything is learnt from it; as for `shared_part`."""
    check_directions(mechanism, graph)
    asked = mechanism.shared(graph)
    if asked is None:
        return None
    if as_claimed:
        _refuse_unclaimed(mechanism, mechanism.guarantee(1), [asked], shared=True)
    return without_noise(asked) if noise is None else randomise(asked, noise)


def make_rows(
    mechanism: Mechanism,
    graph: Graph,
    shared: Any,
    sources: Sequence[int] | npt.NDArray[np.integer],
    noise: NoiseSource | None,
    *,
    names: Sequence[int] | None = None,
    as_claimed: bool = True,
) -> tuple[Any, OwnLists]:
    """One row for each source, and what its owner knows, for one group of sources.

    `shared` is from `shared_part`, `as_claimed` as there. `noise` is the release's for rows, and a
    row's part of it is named by its source: a source that repeats has the same row. Audits give
    other `names`. Without noise the rows are not private.
    """
    claim = mechanism.guarantee(1)
    own = own_lists(graph, sources, claim.model, claim.own_edges)
    measuring: Any = mechanism.measure(graph, shared, own)
    asked, given, sums = list[AnyStatistic](), list[Noised](), list[int]()
    while True:
        try:
            # To be read only: whoever asks has seen the graph, and what it did to released numbers
            # would be released.
            question: AnyStatistic = measuring.send(given[-1].for_reading() if given else None)
        except StopIteration:
            break
        asked.append(question)
        if as_claimed:
            _refuse_unclaimed(mechanism, claim, asked, shared=False)
        if noise is None:
            given.append(without_noise(question))
        else:
            of_stage = noise.derive("stage", len(given))  # no two questions share noise
            given.append(randomise(question, of_stage, own.sources if names is None else names))
        sums.append(_checksum(given[-1].values))
    # An older view of an array can still be written to: a buffer that is used again is seen here.
    if noise is not None and [_checksum(numbers.values) for numbers in given] != sums:
        raise ParameterError(f"{mechanism.name} wrote to numbers after their noise was added")
    return mechanism.estimate(tuple(given), shared, own), own


def _checksum(values: npt.NDArray[Any]) -> int:
    """A number that changes if anything is written, or put into another order."""
    flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    words = len(flat) // 8 * 8
    return int(digest_words(flat[:words].view(np.uint64))) ^ zlib.crc32(flat[words:].tobytes())


def rows_of(
    mechanism: Mechanism, graph: Graph, sources: Sequence[int], noise: NoiseSource | None
) -> Any:
    """All rows of a release that draws from `noise`, without guarantee or price.

    Without `noise` they are not private.
    """
    shared = shared_part(mechanism, graph, noise and noise.derive("shared"))
    return rows_after(mechanism, graph, shared, sources, noise and noise.derive("rows"))


def rows_after(
    mechanism: Mechanism,
    graph: Graph,
    shared: Any,
    sources: Sequence[int],
    noise: NoiseSource | None,
) -> Any:
    """Rows alone, where the shared part is there already; `noise` is the release's for rows."""
    groups = groups_of(mechanism, graph.n_nodes, len(sources))
    made = [make_rows(mechanism, graph, shared, sources[here], noise)[0] for here in groups]
    return Evidence.joined(made) if mechanism.gives == "suggestions" else np.concatenate(made)


def groups_of(mechanism: Mechanism, n_nodes: int, count: int) -> list[slice]:
    """So many sources in groups whose rows are made at once."""
    if count == 0:
        raise ParameterError("sources must name at least one node, got none")
    size = _LISTS if mechanism.gives == "suggestions" else rows_at_once(n_nodes)
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


def exact_loss(mechanism: Mechanism, pair: Pair) -> float:
    """The privacy loss of what is noised, on two graphs, for one outcome: no sampling.

    The outcomes tried are ones that the first graph may give and that, number by number, tell the
    most; later questions are asked after them. So the mechanism's epsilon is not below this,
    whatever its claim. Both orders of the graphs are tried.
    """
    graphs = (pair.graph, pair.neighbour)
    orders = (graphs, graphs[::-1])
    return max(_loss(mechanism, *o, pair.source, b) for o in orders for b in _BEYOND)


def _loss(mechanism: Mechanism, graph: Graph, other: Graph, source: int, beyond: float) -> float:
    loss, shared, outcome = 0.0, None, None
    first, second = mechanism.shared(graph), mechanism.shared(other)
    if first is not None and second is not None:
        loss, for_all = largest_loss(first, second, beyond=beyond)
        shared = mechanism.learn(for_all, graph.nodes)
    elif first is not second:
        return math.inf  # that something is asked tells the graphs apart
    claim = mechanism.guarantee(1)
    measurings = [
        mechanism.measure(g, shared, own_lists(g, [source], claim.model, claim.own_edges))
        for g in (graph, other)
    ]
    while not math.isinf(loss):
        first, second = (_next_question(measuring, outcome) for measuring in measurings)
        if first is None or second is None:  # the number of questions tells them apart, too
            return loss if first is second else math.inf
        more, outcome = largest_loss(first, second, beyond=beyond)
        silent = isinstance(first, Statistic) and not first.spends
        loss += math.inf if silent and more > 0 else more
    return loss


def _next_question(measuring: Any, outcome: Noised | None) -> AnyStatistic | None:
    """What is asked after this outcome, at first None; None at the end."""
    try:
        asked: AnyStatistic = measuring.send(outcome and outcome.for_reading())
        return asked
    except StopIteration:
        return None


def _refuse_unclaimed(
    mechanism: Mechanism, claim: Guarantee, asked: list[AnyStatistic], *, shared: bool
) -> None:
    """Refuse to noise more than the guarantee has a price for, by public numbers alone.

    What all share may cost what the guarantee says is shared, and what one recipient is asked
    about the rest. Numbers without noise are for a guarantee that promises nothing.
    """
    if claim.model == "none":
        return
    if any(isinstance(statistic, Exact) for statistic in asked):
        raise ParameterError(f"{mechanism.name} gives numbers without noise under a guarantee")
    whole = exact_epsilon(claim.epsilon)
    common = whole if claim.pooling == "shared" else exact_epsilon(claim.shared_epsilon)
    most = common if shared else whole - common
    if total_epsilon(asked) > most + whole * _ROUNDING:
        whom = "everybody together" if shared else "one recipient"
        raise ParameterError(
            f"{mechanism.name} asks for epsilon {float(total_epsilon(asked)):g} for {whom}, its "
            f"guarantee allows {float(most):g}"
        )
