"""Drive a mechanism through the seam: the one way from a graph to rows.

    shared -> randomise -> learn, once; then for every group of sources
    measure -> randomise (-> measure -> randomise ...) -> estimate

A row's noise comes from a stream named by its source, so any grouping or sharding of the sources
gives the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.estimate.own_lists import OwnLists
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import (
    KnowsUncertainty,
    Mechanism,
    Rows,
    check_directions,
    own_lists,
)
from edgeveil.mechanisms.hard_pairs import Pair
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.loss import largest_loss
from edgeveil.privacy.noise import NoiseSource
from edgeveil.privacy.statistic import (
    AnyStatistic,
    Bits,
    Exact,
    Noised,
    Statistic,
    randomise,
    total_epsilon,
    without_noise,
)

__all__ = [
    "answers",
    "exact_loss",
    "make_rows",
    "rows_after",
    "rows_at_once",
    "rows_of",
    "shared_part",
]

# A group of rows goes from one step to the next inside of a processor's cache: about a megabyte,
# but whole groups of the lanes that the kernels compute side by side.
_GROUP_BYTES = 1 << 20
_LANES = 16
_MOST_ROWS = 256
_LISTS = 64  # their rows hold two-hop neighbourhoods, whatever the number of nodes

# Outcomes tried for a loss, in scales of the noise beyond the value: what is asked next depends on
# them, such as which coordinates are large.
_BEYOND = (0.0, 64.0)

_ROUNDING = Fraction(1, 10**12)  # a guarantee holds floats

Answer = Callable[[AnyStatistic, int], Noised]


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
    check_directions(mechanism, graph)
    asked = mechanism.shared(graph)
    if asked is None:
        return None
    if as_claimed:
        _refuse_unclaimed(mechanism, mechanism.guarantee(1), [asked], shared=True)
    given = without_noise(asked) if noise is None else randomise(asked, [noise])
    return mechanism.learn(given, graph.nodes)


def make_rows(
    mechanism: Mechanism,
    graph: Graph,
    shared: Any,
    sources: Sequence[int] | npt.NDArray[np.integer],
    streams: Sequence[NoiseSource] | None,
    *,
    as_claimed: bool = True,
    claim: Guarantee | None = None,
) -> tuple[Rows, OwnLists]:
    """One row for each source, and what its owner knows, for one group of sources.

    Parameters
    ----------
    mechanism, graph
        What to run on what.
    shared
        From `shared_part`.
    sources : sequence of int
        Indices; may repeat.
    streams : sequence of NoiseSource, or None
        One for each source. None: without noise, which is not private.
    as_claimed : bool
        As for `shared_part`.
    claim : Guarantee, optional
        The mechanism's for one source, if it is known already.
    """
    claim = claim or mechanism.guarantee(1)
    own, so_far = own_lists(graph, sources, claim.model, claim.own_edges), list[AnyStatistic]()

    def noised(asked: AnyStatistic, stage: int) -> Noised:
        so_far.append(asked)
        if as_claimed:
            _refuse_unclaimed(mechanism, claim, so_far, shared=False)
        if streams is None:
            return without_noise(asked)
        # The first stage draws from the row's stream itself, each further one from its own.
        return randomise(asked, [s.derive("stage", stage) for s in streams] if stage else streams)

    given = answers(mechanism.measure(graph, shared, own), noised)
    return mechanism.estimate(given, shared, own), own


def answers(measuring: Any, answer: Answer) -> tuple[Noised, ...]:
    """Run the questions of `Mechanism.measure` to their end; `answer` gets each and its number."""
    given: list[Noised] = []
    try:
        asked = next(measuring)
        while True:
            given.append(answer(asked, len(given)))
            # Not to be written to: whoever asks has seen the graph, and what it did to released
            # numbers would be released.
            asked = measuring.send(given[-1].for_reading())
    except StopIteration:
        return tuple(given)


class _RowStreams(Sequence[NoiseSource]):
    """The streams of some sources, made when they are needed: some mechanisms draw nothing here."""

    def __init__(self, noise: NoiseSource, sources: Sequence[int]) -> None:
        self._noise, self._sources = noise, sources

    @cached_property
    def _made(self) -> list[NoiseSource]:
        return [self._noise.derive("row", int(source)) for source in self._sources]

    def __len__(self) -> int:
        return len(self._sources)

    def __getitem__(self, at: Any) -> Any:
        return self._made[at]


def groups(mechanism: Mechanism, sources: Sequence[int], n_nodes: int) -> Iterator[Sequence[int]]:
    """The sources in groups of `rows_at_once`; lists, which are short, in groups of their own."""
    size = _LISTS if mechanism.gives == "suggestions" else rows_at_once(n_nodes)
    for first in range(0, len(sources), size):
        yield sources[first : first + size]


def rows_of(
    mechanism: Mechanism,
    graph: Graph,
    sources: Sequence[int],
    noise: NoiseSource | None,
    *,
    check: Callable[[], None] = lambda: None,
) -> Rows:
    """All rows of a release, in memory, without guarantee or price.

    Parameters
    ----------
    mechanism, graph, sources
        What to run on what, for which indices.
    noise : NoiseSource or None
        Of the whole release. None: without noise, which is not private.
    check : callable
        Called between two groups; may raise to stop.
    """
    shared = shared_part(mechanism, graph, None if noise is None else noise.derive("shared"))
    return _stacked(mechanism, graph, shared, sources, noise and noise.derive("rows"), check)[0]


def rows_after(
    mechanism: Mechanism, graph: Graph, shared: Any, sources: Sequence[int], noise: NoiseSource
) -> Rows:
    """Rows alone, where the shared part is there already; `noise` as below."""
    return _stacked(mechanism, graph, shared, sources, noise, lambda: None)[0]


def rows_with_uncertainty(
    mechanism: Mechanism,
    graph: Graph,
    shared: Any,
    sources: Sequence[int],
    noise: NoiseSource,
    check: Callable[[], None],
) -> tuple[Rows, Rows | None]:
    """Rows and, for scores of a mechanism that knows it, how far noise may have moved them.

    `noise` is the release's stream for rows.
    """
    return _stacked(mechanism, graph, shared, sources, noise, check, uncertainty=True)


def _stacked(
    mechanism: Mechanism,
    graph: Graph,
    shared: Any,
    sources: Sequence[int],
    noise: NoiseSource | None,
    check: Callable[[], None],
    *,
    uncertainty: bool = False,
) -> tuple[Rows, Rows | None]:
    """Group by group, into one array: a group's own memory is then used for the next one."""
    if len(sources) == 0:
        raise ParameterError("sources must name at least one node, got none")
    rows = widths = None
    claim, done = mechanism.guarantee(1), 0
    tells = uncertainty and mechanism.gives == "scores" and isinstance(mechanism, KnowsUncertainty)
    for some in groups(mechanism, sources, graph.n_nodes):
        check()
        streams = None if noise is None else _RowStreams(noise, some)
        made, own = make_rows(mechanism, graph, shared, some, streams, claim=claim)
        here = slice(done, done + len(some))
        rows = _put(rows, made, here, len(sources))
        if tells and isinstance(mechanism, KnowsUncertainty):
            width = mechanism.uncertainty(made, shared, own)
            widths = _put(widths, width, here, len(sources))
        done += len(some)
    assert rows is not None  # there is a source
    return rows, widths


def _put(whole: Rows | None, part: Rows, here: slice, total: int) -> Rows:
    """Put the rows of a group into the array of all."""
    if whole is None:
        whole = np.empty((total, *part.shape[1:]))
    whole[here] = part
    return whole


def exact_loss(mechanism: Mechanism, pair: Pair) -> float:
    """The privacy loss of what is noised, on two graphs, for one outcome: no sampling.

    The outcomes tried are ones that the first graph may give and that, number by number, tell the
    most; later questions are asked after them. So the mechanism's epsilon is not below this,
    whatever its claim. Both orders of the graphs are tried.

    Parameters
    ----------
    mechanism : Mechanism
        What to look at.
    pair : Pair
        Two neighbouring graphs and a source.
    """
    graphs = (pair.graph, pair.neighbour)
    orders = (graphs, graphs[::-1])
    return max(_loss(mechanism, *o, pair.source, b) for o in orders for b in _BEYOND)


def _loss(mechanism: Mechanism, graph: Graph, other: Graph, source: int, beyond: float) -> float:
    loss, shared = 0.0, None
    asked = (mechanism.shared(graph), mechanism.shared(other))
    if (asked[0] is None) != (asked[1] is None):
        return math.inf  # that something is asked tells the graphs apart
    if asked[0] is not None and asked[1] is not None:
        loss, outcome = largest_loss(asked[0], asked[1], beyond=beyond)
        shared = mechanism.learn(outcome, graph.nodes)
    beside = mechanism.measure(other, shared, _known(mechanism, other, [source]))
    last: Noised | None = None
    moved: set[str] = set()

    def answer(first: AnyStatistic, stage: int) -> Noised:
        nonlocal loss, last
        if math.isinf(loss):
            return without_noise(first)
        try:
            second = next(beside) if last is None else beside.send(last)
        except StopIteration:  # so does the number of questions; seen in one order of the graphs
            loss = math.inf
            return without_noise(first)
        more, outcome = largest_loss(first, second, beyond=beyond)
        loss += more if _as_it_says(first, more, moved) else math.inf
        last = outcome.for_reading()
        return outcome

    answers(mechanism.measure(graph, shared, _known(mechanism, graph, [source])), answer)
    return loss


def _known(mechanism: Mechanism, graph: Graph, sources: npt.ArrayLike) -> OwnLists:
    """What the recipients know by themselves, and no more than the guarantee says they do."""
    claim = mechanism.guarantee(1)
    return own_lists(graph, sources, claim.model, claim.own_edges)


def _as_it_says(asked: AnyStatistic, loss: float, moved: set[str]) -> bool:
    """Whether one edge moves no more than is said: one statistic of a part, none without price."""
    if loss == 0 or isinstance(asked, Exact | Bits):
        return True
    if isinstance(asked, Statistic) and not asked.spends:
        return False
    if asked.part is None:
        return True
    before = asked.part in moved
    moved.add(asked.part)
    return not before


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
