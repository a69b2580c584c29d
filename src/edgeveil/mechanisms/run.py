"""Run a mechanism: the only way from a graph to rows.

    shared -> randomise (-> shared -> randomise ...) -> fit_shared, once; then for every group
    measure -> randomise (-> measure -> randomise ...) -> estimate

A row's noise is derived from the noise key and its source, so any grouping or sharding of the
sources gives the same rows.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.estimate.lists import Evidence
from edgeveil.estimate.rows import LocalViews
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms.base import Mechanism, Statistics, local_views
from edgeveil.mechanisms.hard_pairs import Pair
from edgeveil.mechanisms.requirements import CLAIM_ROUNDING, check_directions, is_ours
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.loss import largest_loss
from edgeveil.privacy.noise import NoiseSource
from edgeveil.privacy.statistic import (
    AnyStatistic,
    Exact,
    Noised,
    Statistic,
    digest_of,
    randomise,
    randomise_bound,
    total_epsilon,
    without_noise,
)

# A group of rows stays in the processor's cache from step to step: about a megabyte, in multiples
# of the lanes that the kernels compute side by side.
_GROUP_BYTES = 1 << 20
_LANES = 16
_MAX_ROWS = 256
_LISTS = 256  # lists at once: their memory does not grow with the number of nodes

# Outcomes tried for the exact loss, in noise scales beyond the true value. Later statistics may
# depend on the outcome (which coordinates are large, for example).
_OUTCOME_OFFSETS = (0.0, 64.0)


def rows_at_once(n_nodes: int, room: int | None = None) -> int:
    """How many rows to compute at once so that they fit into `room` bytes: a multiple of lanes."""
    fitting = (room or _GROUP_BYTES) // (8 * max(n_nodes, 1))
    return min(max(fitting // _LANES * _LANES, _LANES), _MAX_ROWS)


def answer_all(
    statistics: Statistics, answer: Callable[[AnyStatistic, int], Noised]
) -> list[Noised]:
    """Run `shared` or `measure` to its end: `answer` noises each statistic, given its round."""
    if not isinstance(statistics, Generator):
        raise ParameterError("`shared` and `measure` must yield their statistics, not return them")
    released: list[Noised] = []
    while True:
        statistic = _next_statistic(statistics, released[-1] if released else None)
        if statistic is None:
            return released
        released.append(answer(statistic, len(released)))


def _next_statistic(statistics: Statistics, last: Noised | None) -> AnyStatistic | None:
    """The next statistic, given the noised last one (None for the first); None at the end."""
    try:
        # Read-only view: a mechanism sees private data and must not modify released values.
        return statistics.send(last and last.for_reading())  # type: ignore[arg-type]  # first: None
    except StopIteration:
        return None


def _noised(
    mechanism: Mechanism,
    claim: Guarantee,
    statistics: Statistics,
    draw: Callable[[AnyStatistic, int], Noised] | None,
    *,
    shared: bool,
    enforce_claim: bool,
) -> tuple[Noised, ...]:
    """All statistics of `shared` or `measure` with their noise, within the guarantee.

    Without `draw` they are exact.
    """
    measured, sums = list[AnyStatistic](), list[tuple[int, int]]()

    def answer(statistic: AnyStatistic, number: int) -> Noised:
        measured.append(statistic)
        if enforce_claim:
            _check_within_guarantee(mechanism, claim, measured, shared=shared)
        noised = without_noise(statistic) if draw is None else draw(statistic, number)
        sums.append(_checksum(noised.values))
        return noised

    released = answer_all(statistics, answer)
    # A view made before the noise was added can still be written to. The digests detect that.
    if draw is not None and [_checksum(numbers.values) for numbers in released] != sums:
        raise ParameterError(f"{mechanism.name} wrote to numbers after their noise was added")
    return tuple(released)


def shared_part(
    mechanism: Mechanism, graph: Graph, noise: NoiseSource | None, *, enforce_claim: bool = True
) -> Any:
    """Compute the shared statistics, add their noise, and fit. Without `noise`: exact.

    With ``enforce_claim=False`` a mechanism that measures more than its guarantee allows is run
    all the same: for audits.
    """
    numbers = shared_numbers(mechanism, graph, noise, enforce_claim=enforce_claim)
    return mechanism.fit_shared(numbers, graph.nodes)


def shared_numbers(
    mechanism: Mechanism,
    graph: Graph,
    noise: NoiseSource | None,
    *,
    enforce_claim: bool = True,
    on_round: Callable[[int], None] = lambda _: None,
) -> tuple[Noised, ...]:
    """The noised shared statistics, before `fit_shared`; parameters as for `shared_part`.

    The first round draws from `noise`, every further one from a stream derived from it. Under a
    secret, the noise depends on the very numbers: other numbers never get the same. `on_round` is
    told how many rounds are done.
    """
    check_directions(mechanism, graph)

    def draw(statistic: AnyStatistic, number: int) -> Noised:
        assert noise is not None
        stream = noise.derive("round", number) if number else noise
        if noise.private:  # simulations may compare graphs under the same noise
            stream = stream.derive("numbers", digest_of(statistic))
        noised = randomise(statistic, stream)
        on_round(number + 1)
        return noised

    return _noised(
        mechanism,
        mechanism.guarantee(1),
        mechanism.shared(graph),
        None if noise is None else draw,
        shared=True,
        enforce_claim=enforce_claim,
    )


def make_rows(
    mechanism: Mechanism,
    graph: Graph,
    shared: Any,
    sources: Sequence[int] | npt.NDArray[np.integer],
    noise: NoiseSource | None,
    *,
    names: Sequence[int] | None = None,
    enforce_claim: bool = True,
) -> tuple[Any, LocalViews]:
    """One row for each source of a group, and the own lists that were used.

    `shared` is from `shared_part`, `enforce_claim` as there. `noise` is the release's key for rows;
    a row's noise is derived from it and from the source, so a repeated source has the same row.
    Code from outside of the package may change unnoticed, in a module that it imports; so under a
    secret, the noise of its rows depends on their very numbers, too.
    Audits give other `names` to derive from. Without noise the rows are not private.
    """
    claim = mechanism.guarantee(1)
    views = local_views(graph, sources, claim.model, claim.known_edges)

    from_outside = not all(map(is_ours, type(mechanism).__mro__))

    def draw(statistic: AnyStatistic, number: int) -> Noised:
        assert noise is not None
        stage = noise.derive("stage", number)  # no two statistics share noise
        add_noise = randomise_bound if from_outside and noise.private else randomise
        return add_noise(statistic, stage, views.sources if names is None else names)

    released = _noised(
        mechanism,
        claim,
        mechanism.measure(graph, shared, views),
        None if noise is None else draw,
        shared=False,
        enforce_claim=enforce_claim,
    )
    return mechanism.estimate(released, shared, views), views


def _checksum(values: npt.NDArray[Any]) -> tuple[int, int]:
    """CRC-32 sees the order; the sum of the words always changes with a single word."""
    flat = np.ascontiguousarray(values).reshape(-1)
    return zlib.crc32(flat.data), int(flat.view(np.uint64).sum())


def rows_of(
    mechanism: Mechanism, graph: Graph, sources: Sequence[int], noise: NoiseSource | None
) -> Any:
    """All rows of a release that draws from `noise`; no charge, no record.

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
    """The rows, given the shared part; `noise` is the release's key for rows."""
    groups = groups_of(mechanism, graph.n_nodes, len(sources))
    rows = [make_rows(mechanism, graph, shared, sources[group], noise)[0] for group in groups]
    return Evidence.joined(rows) if mechanism.output == "lists" else np.concatenate(rows)


def groups_of(mechanism: Mechanism, n_nodes: int, count: int) -> list[slice]:
    """Split this many sources into groups whose rows are computed at once."""
    if count == 0:
        raise ParameterError("sources must name at least one node, got none")
    size = _LISTS if mechanism.output == "lists" else rows_at_once(n_nodes)
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


def exact_loss(mechanism: Mechanism, pair: Pair) -> float:
    """The largest privacy loss found among a few outcomes on two neighbouring graphs, computed.

    The outcomes are possible on the first graph and, coordinate by coordinate, the most likely
    to tell the graphs apart; later statistics are computed given these outcomes. So this is a
    lower bound on the mechanism's epsilon. Both orders of the graphs are tried.
    """
    orders = ((pair.graph, pair.neighbour), (pair.neighbour, pair.graph))
    return max(
        _loss(mechanism, first, second, pair.source, offset)
        for first, second in orders
        for offset in _OUTCOME_OFFSETS
    )


def _loss(mechanism: Mechanism, graph: Graph, other: Graph, source: int, offset: float) -> float:
    claim = mechanism.guarantee(1)
    loss, outcomes = _loss_of_rounds(mechanism.shared(graph), mechanism.shared(other), offset)
    if math.isinf(loss):
        return loss
    shared = mechanism.fit_shared(outcomes, graph.nodes)

    def measured(g: Graph) -> Statistics:
        return mechanism.measure(
            g, shared, local_views(g, [source], claim.model, claim.known_edges)
        )

    of_member, _ = _loss_of_rounds(measured(graph), measured(other), offset)
    return loss + of_member


def _loss_of_rounds(
    first: Statistics, second: Statistics, offset: float
) -> tuple[float, tuple[Noised, ...]]:
    """The loss of all rounds, each given the outcomes of those before, and the outcomes."""
    loss, outcomes = 0.0, list[Noised]()
    while not math.isinf(loss):
        last = outcomes[-1] if outcomes else None
        statistic, other = _next_statistic(first, last), _next_statistic(second, last)
        if statistic is None or other is None:  # how many there are tells the graphs apart, too
            return (loss if statistic is other else math.inf), tuple(outcomes)
        more, outcome = largest_loss(statistic, other, beyond=offset)
        # An edge must not move a statistic that is declared to be noise alone.
        noise_only = isinstance(statistic, Statistic) and statistic.noise_only
        loss += math.inf if noise_only and more > 0 else more
        outcomes.append(outcome)
    return loss, tuple(outcomes)


def _check_within_guarantee(
    mechanism: Mechanism, claim: Guarantee, statistics: list[AnyStatistic], *, shared: bool
) -> None:
    """Refuse statistics whose epsilons exceed the guarantee; a function of public values.

    The shared statistics may use the guarantee's shared epsilon, one member's statistics the rest.
    Exact values are allowed only if nothing is guaranteed.
    """
    if claim.model == "none":
        return
    if any(isinstance(statistic, Exact) for statistic in statistics):
        raise ParameterError(f"{mechanism.name} gives numbers without noise under a guarantee")
    epsilon = exact_epsilon(claim.epsilon)
    common = epsilon if claim.collusion == "shared" else exact_epsilon(claim.shared_epsilon)
    allowed = common if shared else epsilon - common
    if total_epsilon(statistics) > allowed + epsilon * CLAIM_ROUNDING:
        part = "its shared statistics" if shared else "one member's statistics"
        raise ParameterError(
            f"{mechanism.name} uses epsilon {float(total_epsilon(statistics)):g} for {part}; its "
            f"guarantee allows {float(allowed):g}"
        )
