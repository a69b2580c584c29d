"""Checks that every mechanism must pass, for its author to run.

With pytest, two lines for a class of your own::

    class TestMine(Conformance):
        mechanisms = [Mine(epsilon=1.0)]

Without pytest, ``check(Mine(epsilon=1.0))`` raises on the first check that fails. The checks use
small generated graphs, so their messages may quote them. They can show that a mechanism is wrong,
not that it is right: that takes a proof.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import combinations, islice, permutations
from typing import Any, ClassVar

import numpy as np

from edgeveil.errors import ParameterError, PromiseError
from edgeveil.estimate.lists import STORED, Evidence
from edgeveil.estimate.public import PublicData
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs.keys import parameters_text
from edgeveil.mechanisms.base import LocalViews, Mechanism, Rows, Statistics, local_views
from edgeveil.mechanisms.hard_pairs import Pair, graph_of_pairs
from edgeveil.mechanisms.requirements import (
    check_mechanism,
    check_published,
    guarantee_of,
    publishes,
)
from edgeveil.mechanisms.run import answer_all, groups_of, make_rows, rows_of, shared_part
from edgeveil.privacy.noise import NoiseSource
from edgeveil.privacy.statistic import AnyStatistic, Bits, Noised, Tail, randomise
from edgeveil.results.provenance import Metadata, Provenance
from edgeveil.testing.worst_pairs import ROUNDING, loss_share, pairs_for

__all__ = ["CHECKS", "Conformance", "ConformanceError", "check", "random_pairs"]

_PAIRS = 40  # random pairs of graphs per check
_NODES = 23  # of the random graph
_MOST_NODES = 8  # of a random pair
_TRIES = 8  # sets of released values tried before a mechanism is said to ignore them


class ConformanceError(AssertionError):
    """A mechanism failed a check."""


class Conformance:
    """A suite for pytest: a subclass names the `mechanisms`, and every check becomes a test.

    Examples
    --------
    >>> from edgeveil.mechanisms import TwoHop
    >>> class TestTwoHop(Conformance):
    ...     mechanisms = [TwoHop(epsilon=1.0), TwoHop(epsilon=0.1)]
    """

    mechanisms: ClassVar[Iterable[Mechanism]]

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """One test for each mechanism and requirement (pytest calls this)."""
        if "requirement" in metafunc.fixturenames:
            metafunc.parametrize("mechanism", self.mechanisms, ids=repr)
            metafunc.parametrize(
                "requirement", CHECKS, ids=lambda requirement: requirement.__name__
            )

    def test_conformance(
        self, mechanism: Mechanism, requirement: Callable[[Mechanism], None]
    ) -> None:
        """Run one check."""
        requirement(mechanism)


def check(mechanism: Mechanism) -> None:
    """Run every check on a mechanism.

    Raises
    ------
    ConformanceError
        For the first requirement that does not hold; the message says which and on what graph.

    Examples
    --------
    >>> from edgeveil.mechanisms import DegreePrior
    >>> check(DegreePrior(epsilon=1.0))
    """
    for requirement in CHECKS:
        requirement(mechanism)


# -- the graphs ---------------------------------------------------------------------------------


def _all_pairs(n: int, directed: bool) -> np.ndarray:
    """All edges that a graph on n nodes can have."""
    return np.array([*(permutations if directed else combinations)(range(n), 2)])


def _shapes(mechanism: Mechanism) -> Iterator[tuple[str, Graph]]:
    """Edge cases: graphs on which careless code divides by 0 or indexes an empty array."""
    directed = mechanism.directed
    shapes: dict[str, tuple[int, Any]] = {
        "one node": (1, []),
        "two nodes, no edge": (2, []),
        "two nodes, one edge": (2, [(0, 1)]),
        "an isolated source": (3, [(1, 2)]),
        "no edges": (12, []),
        "a star": (12, [(0, v) for v in range(1, 12)]),
        "a star, seen from a leaf": (12, [(11, v) for v in range(11)]),
        "a clique": (12, _all_pairs(12, directed)),
        "isolated nodes": (12, [(0, 1), (1, 2)]),
        "a path": (23, [(v, v + 1) for v in range(22)]),
    }
    for name, (n, edges) in shapes.items():
        yield name, graph_of_pairs(n, edges, directed=directed)
    yield "a random graph", _random_graph(mechanism)


def _random_graph(mechanism: Mechanism) -> Graph:
    """A random graph that contains a path over all nodes, so that no degree is 0."""
    pairs = _all_pairs(_NODES, directed := mechanism.directed)
    drawn = np.random.default_rng(5).random(len(pairs)) < 0.25
    chosen = drawn | (pairs[:, 1] == pairs[:, 0] + 1)
    return graph_of_pairs(_NODES, pairs[chosen], directed=directed)


def random_pairs(mechanism: Mechanism, *, seed: int) -> Iterator[Pair]:
    """An endless stream of neighbouring graphs that the mechanism's guarantee covers."""
    rng, directed, claim = np.random.default_rng(seed), mechanism.directed, mechanism.guarantee(1)
    while True:
        n = int(rng.integers(2, _MOST_NODES + 1))
        pairs = _all_pairs(n, directed)
        graph = graph_of_pairs(n, pairs[rng.random(len(pairs)) < rng.random()], directed=directed)
        x, y = pairs[rng.integers(len(pairs))]
        # In the joint model edges at the source are not protected from its member.
        informed = {"incident": (x, y), "outgoing": (x,)}[claim.known_edges]
        free = [v for v in range(n) if claim.model != "joint" or v not in informed]
        other = graph.with_edge_flipped(int(x), int(y))
        if free and _keeps_promise(mechanism, graph) and _keeps_promise(mechanism, other):
            yield Pair(graph=graph, neighbour=other, source=int(rng.choice(free)))


def _keeps_promise(mechanism: Mechanism, graph: Graph) -> bool:
    with suppress(PromiseError):
        mechanism.check_promise(graph)
        return True
    return False


# -- the requirements -----------------------------------------------------------------------------


def parameters_are_public(mechanism: Mechanism) -> None:
    """It can be made again from what a release records; epsilon has no default."""
    kind = type(mechanism)
    _require(isinstance(mechanism, Mechanism), "its class does not inherit from Mechanism")
    with _no_error_on("no graph"):
        check_mechanism(mechanism)
        recorded = json.loads(parameters_text(mechanism))
    fields = dataclasses.fields(kind)
    recorded = {k: tuple(v) if isinstance(v, list) else v for k, v in recorded.items()}
    current = {field.name: getattr(mechanism, field.name) for field in fields}
    recorded |= {k: v for k, v in current.items() if isinstance(v, PublicData)}  # known by a digest
    _require(
        kind(**recorded) == mechanism,
        "it cannot be rebuilt from the parameters that a release records",
    )
    default = {f.name: f.default for f in fields}.get("epsilon", dataclasses.MISSING)
    _require(default is dataclasses.MISSING, "epsilon has a default: there is no safe one")


def guarantee_depends_on_public_values_only(mechanism: Mechanism) -> None:
    """The guarantee is a function of the parameters and the number of sources."""
    named = list(inspect.signature(mechanism.guarantee).parameters)
    _require(named == ["n_members"], f"guarantee takes {named}, and may take n_members alone")
    before = 0.0
    for k in (1, 2, 1000):
        claim = mechanism.guarantee(k)
        _require(claim == mechanism.guarantee(k), "its guarantee differs between two calls")
        _require(claim.n_members == k, f"its guarantee for {k} sources speaks of {claim.n_members}")
        _require(claim.delta == 0, "delta must be 0: the noise here is for pure guarantees")
        _require(claim.private, "only an insecure seed makes a release not private")
        _require(claim.pooled_epsilon >= before, "more members together would learn less")
        before = claim.pooled_epsilon
        with _no_error_on("no graph"):
            guarantee_of(mechanism, k)
    if publishes(mechanism):
        with _no_error_on("no graph"):
            check_published(mechanism)


def rows_have_the_public_shape(mechanism: Mechanism) -> None:
    """On every graph: rows of the declared shape and finite values; no error, no warning."""
    for words, graph in _shapes(mechanism):
        if _keeps_promise(mechanism, graph):
            sources = [0, graph.n_nodes - 1]
            with _no_error_on(words):
                rows = rows_of(mechanism, graph, sources, NoiseSource.insecure(1))
            _check_rows(mechanism, rows, graph, words)
            with _no_error_on(words):  # also lists, which are made of evidence
                _rows_as_array(mechanism, graph, sources, NoiseSource.insecure(1))


def no_pair_exceeds_the_claimed_epsilon(mechanism: Mechanism) -> None:
    """The exact privacy loss on neighbouring graphs, computed, is at most epsilon."""
    tried = islice(random_pairs(mechanism, seed=0), _PAIRS)
    for pair in (*pairs_for(mechanism), *tried):
        words = f"two graphs on {pair.graph.n_nodes} nodes"
        with _no_error_on(words):
            share = loss_share(mechanism, pair) if mechanism.guarantee(1).protects else 0.0
        _require(share <= ROUNDING, f"its privacy loss is {share:.4g} times its epsilon on {words}")


def estimates_depend_on_released_values_only(mechanism: Mechanism) -> None:
    """The same released values on a neighbouring graph give the same rows, and what is published.

    So nothing of the graph reaches a row without noise: not through attributes, globals, or what
    `measure` does to the noised values.
    """
    if not mechanism.guarantee(1).protects:
        return
    drawn, noise = list[Noised](), NoiseSource.insecure(1)

    def draw(statistic: AnyStatistic) -> Noised:
        drawn.append(randomise(statistic, noise.derive(len(drawn))))
        return _copy(drawn[-1])

    def repeat(statistic: AnyStatistic) -> Noised:
        return _copy(next(again))  # in order, whatever is asked

    for pair in islice(random_pairs(mechanism, seed=1), _PAIRS):
        before = len(drawn)
        with _no_error_on(f"a graph on {pair.graph.n_nodes} nodes"):
            first = _rows_from_answers(mechanism, pair.graph, pair.source, draw)
        again = iter(drawn[before:])
        with _no_error_on("a neighbouring graph with the same released numbers"):
            second = _rows_from_answers(mechanism, pair.neighbour, pair.source, repeat)
        _require(
            all(map(_same, first, second)),
            "its rows depend on the graph other than through noised values",
        )


def rows_do_not_depend_on_other_sources(mechanism: Mechanism) -> None:
    """Any grouping, order and repetition of the sources gives the same bits."""
    graph = _random_graph(mechanism)
    if not _keeps_promise(mechanism, graph):
        return
    noise, n = NoiseSource.insecure(11), graph.n_nodes
    together = _rows_as_array(mechanism, graph, list(range(n)), noise)
    for sources in ([n - 6], [n - 1, 0], list(range(n - 1, -1, -1)), [5, 5, 7, 5], list(range(9))):
        same = _same(_rows_as_array(mechanism, graph, sources, noise), together[sources])
        _require(same, f"the rows of {sources} differ from those computed among all sources")


def randomness_comes_from_the_engine(mechanism: Mechanism) -> None:
    """Rows are a function of the noise key: the same for the same key, different for another."""
    graph = _random_graph(mechanism)
    if not _keeps_promise(mechanism, graph):
        return

    make, claim = partial(_rows_as_array, mechanism, graph, [0, 4]), mechanism.guarantee(1)
    noise = NoiseSource.insecure(3)
    repeats = _same(make(noise), make(noise)) and _same(make(None), make(None))
    _require(repeats, "the same noise gave different rows: it has randomness or state of its own")
    noisy = claim.protects and claim.epsilon > 0
    if noisy and _same(make(noise), make(NoiseSource.insecure(4))):
        _require(_depends_on_answers(mechanism, graph), "other noise gave the same rows")


def rows_are_new_arrays(mechanism: Mechanism) -> None:
    """Writing to a row changes neither the graph nor another row, now or later."""
    graph = _random_graph(mechanism)
    if not _keeps_promise(mechanism, graph):
        return
    noise = NoiseSource.insecure(1)
    shared = shared_part(mechanism, graph, noise.derive("shared"))

    def arrays() -> tuple[np.ndarray, ...]:
        """The arrays as `estimate` gave them: of evidence its own, not copies."""
        rows = make_rows(mechanism, graph, shared, [2, 2, 9], noise.derive("rows"))[0]
        return tuple(vars(rows).values()) if isinstance(rows, Evidence) else (rows,)

    first, second = arrays(), arrays()
    others = (*second, graph.indptr, graph.indices, graph.degrees)
    _require(
        not any(np.shares_memory(own, other) for own in first for other in others),
        "rows share memory with other rows or with the graph",
    )
    copies = [array.copy() for array in second]
    for array in first:
        if not array.flags.writeable:
            array.flags.writeable = True
        # Rows of evidence are parts of one array; rows of an array may be views of one row.
        array[: len(array) if mechanism.output == "lists" else 1] = -1
    if mechanism.output != "lists":
        _require(_same(first[0][1:], copies[0][1:]), "rows of one call share memory")
    _require(all(map(_same, arrays(), copies)), "rows share memory with the shared part")


CHECKS: tuple[Callable[[Mechanism], None], ...] = (
    parameters_are_public,
    guarantee_depends_on_public_values_only,
    rows_have_the_public_shape,
    no_pair_exceeds_the_claimed_epsilon,
    estimates_depend_on_released_values_only,
    rows_do_not_depend_on_other_sources,
    randomness_comes_from_the_engine,
    rows_are_new_arrays,
)

# -- helpers --------------------------------------------------------------------------------------

_same = partial(np.array_equal, equal_nan=True)  # lists are padded with NaN


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise ConformanceError(otherwise)


@contextmanager
def _no_error_on(words: str) -> Iterator[None]:
    """Errors and warnings are outputs that may depend on private data: allow none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    except Exception as error:
        message = f"it raised {type(error).__name__} on {words}: {error}"
        raise ConformanceError(message) from error


def _check_rows(mechanism: Mechanism, rows: Any, graph: Graph, words: str) -> None:
    """Rows have the shape that the engine allocates, and finite values."""
    if mechanism.output == "lists":
        _check_evidence(mechanism, rows, graph, words)
        return
    of_scores = mechanism.output == "scores"
    shape = (2, graph.n_nodes if of_scores else getattr(mechanism, "dimension", 0))
    _require(rows.shape == shape, f"rows of shape {rows.shape} instead of {shape} on {words}")
    _require(rows.dtype == np.float64, f"rows of {rows.dtype} instead of float64 on {words}")
    _require(np.isfinite(rows).all(), f"rows are not finite on {words}")


def _check_evidence(mechanism: Mechanism, rows: Any, graph: Graph, words: str) -> None:
    """Evidence about nodes of the graph, no more of it than the engine stores."""
    _require(
        isinstance(rows, Evidence) and len(rows) == 2, f"no evidence for two members on {words}"
    )
    _require(np.diff(rows.starts).max() <= STORED, f"more than {STORED} names a member on {words}")
    rising = rows.starts[0] == 0 and (np.diff(rows.starts) >= 0).all()
    sizes = {int(rows.starts[-1]), len(rows.nodes), len(rows.sums)}
    fits = rising and len(sizes) == 1 and len(rows.rates) == 2
    _require(fits, f"the arrays of evidence do not fit together on {words}")
    inside = (rows.nodes >= 0) & (rows.nodes < graph.n_nodes)
    _require(inside.all(), f"evidence about nodes that are not there on {words}")
    finite = np.isfinite(rows.sums).all() and np.isfinite(rows.rates).all()
    _require(finite, f"evidence is not finite on {words}")


def _as_array(mechanism: Mechanism, rows: Any, shared: Any, views: LocalViews) -> Rows:
    """Rows as an array: of suggestions the sums, the rates, and the scores on whole lists."""
    if not isinstance(rows, Evidence):
        array: Rows = rows
        return array
    n = len(views.nodes)
    lists = mechanism.lists(rows, shared, views, n)
    scores = np.full((len(rows), n), np.nan)
    scores[np.repeat(np.arange(len(rows)), np.diff(lists.starts)), lists.nodes] = lists.scores
    return np.hstack((rows.dense(n), rows.rates[:, None], scores))


def _rows_as_array(
    mechanism: Mechanism, graph: Graph, sources: Sequence[int], noise: NoiseSource | None
) -> Rows:
    """All rows of a release that draws from `noise`, as an array; of suggestions lists as well."""
    shared = shared_part(mechanism, graph, noise and noise.derive("shared"))
    groups = [
        make_rows(mechanism, graph, shared, sources[group], noise and noise.derive("rows"))
        for group in groups_of(mechanism, graph.n_nodes, len(sources))
    ]
    return np.concatenate([_as_array(mechanism, rows, shared, views) for rows, views in groups])


def _rows_from_answers(
    mechanism: Mechanism, graph: Graph, source: int, answer: Callable[[AnyStatistic], Noised]
) -> list[Rows]:
    """A row, and its uncertainty if there is one, with `answer` in place of the noise."""
    claim = mechanism.guarantee(1)

    def answered(statistics: Statistics) -> tuple[Noised, ...]:
        return tuple(answer_all(statistics, lambda statistic, _: answer(statistic)))

    shared = mechanism.fit_shared(answered(mechanism.shared(graph)), graph.nodes)
    views = local_views(graph, [source], claim.model, claim.known_edges)
    answers = answered(mechanism.measure(graph, shared, views))
    rows = _as_array(mechanism, mechanism.estimate(answers, shared, views), shared, views)
    half = (
        mechanism.uncertainty(rows.copy(), shared, views) if mechanism.output == "scores" else None
    )
    outputs = [rows] if half is None else [rows, half]
    if publishes(mechanism) and _serves(mechanism, graph.nodes):
        provenance = Provenance(
            mechanism=mechanism.name, parameters={}, version="", noise="insecure", ledger=False
        )
        metadata = Metadata(claim, provenance)
        outputs += _arrays_in(mechanism.published(shared, graph.nodes, metadata))
    return outputs


def _serves(mechanism: Mechanism, nodes: NodeSet) -> bool:
    """Whether the mechanism is for these nodes: it may hold public data of others."""
    with suppress(ParameterError):
        mechanism.check_nodes(nodes)
        return True
    return False


def _arrays_in(value: Any) -> list[Rows]:
    """All numbers of a result, as arrays."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, float | int | np.number):
        return [np.array(value)]
    parts: Iterable[Any] = ()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = (getattr(value, field.name) for field in dataclasses.fields(value))
    elif isinstance(value, list | tuple):
        parts = value
    elif isinstance(value, dict):
        parts = value.values()
    return [array for part in parts for array in _arrays_in(part)]


def _depends_on_answers(mechanism: Mechanism, graph: Graph) -> bool:
    """Whether released values far above noise and rounding change any row.

    At an extreme epsilon a correct mechanism gives the same row for most noise; one that ignores
    the released values gives it for any of them.
    """
    before: list[Rows] = []
    for seed in range(_TRIES):
        answer = partial(_large_answer, np.random.default_rng(seed), NoiseSource.insecure(seed))
        rows = [_rows_from_answers(mechanism, graph, v, answer)[0] for v in range(graph.n_nodes)]
        if not all(map(_same, before, rows)):
            return True
        before = rows
    return False


def _large_answer(rng: np.random.Generator, noise: NoiseSource, statistic: Any) -> Noised:
    """The noised statistic, with random values far above the noise in place of the private ones."""
    if isinstance(statistic, Bits):
        ones = np.flatnonzero(rng.random(statistic.total) < 0.5)
        return randomise(dataclasses.replace(statistic, ones=ones), noise)
    calibrations = statistic.calibration
    if not isinstance(calibrations, tuple):
        calibrations = (calibrations,)
    size = 100 * max(1.0, *(calibration.noise_scale for calibration in calibrations))
    values = size * rng.normal(size=statistic.values.shape)
    if isinstance(statistic, Tail):
        values = statistic.threshold + np.abs(values)
    return randomise(dataclasses.replace(statistic, values=values), noise)


def _copy(noised: Noised) -> Noised:
    arrays = {k: v.copy() for k, v in vars(noised).items() if isinstance(v, np.ndarray)}
    return dataclasses.replace(noised, **arrays)  # type: ignore[arg-type]  # its own fields
