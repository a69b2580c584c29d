"""What every mechanism has to do, as checks that its author can run.

With pytest, two lines for a class of your own::

    class TestMine(Conformance):
        mechanisms = [Mine(epsilon=1.0)]

Without pytest, ``check(Mine(epsilon=1.0))`` raises on the first claim that does not hold. The
checks look at small graphs that are made here, so their messages may say anything. They can show
that a mechanism is wrong, not that it is right: that takes a proof.
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

from edgeveil.auditing.worst_pairs import ROUNDING, loss_share, pairs_for
from edgeveil.engine.keys import parameters_of
from edgeveil.errors import PromiseError
from edgeveil.estimate.lists import STORED, Evidence
from edgeveil.graph import Graph
from edgeveil.mechanisms import run
from edgeveil.mechanisms.base import (
    KnowsUncertainty,
    MakesLists,
    Mechanism,
    RestsOnPromise,
    Rows,
    own_lists,
)
from edgeveil.mechanisms.hard_pairs import Pair, graph_of_pairs
from edgeveil.mechanisms.run import make_rows, shared_part
from edgeveil.privacy.noise import NoiseSource
from edgeveil.privacy.statistic import AnyStatistic, Bits, Noised, Tail, randomise

__all__ = ["CHECKS", "Conformance", "ConformanceError", "check", "random_pairs"]

_PAIRS = 40  # random ones tried for the loss
_NODES = 23  # of the random graph
_TRIES = 8  # sets of released numbers, before they are said to be ignored


class ConformanceError(AssertionError):
    """A mechanism does not do what every mechanism has to do."""


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
        """One test for each mechanism and claim (pytest calls this)."""
        if "claim" in metafunc.fixturenames:
            metafunc.parametrize("mechanism", self.mechanisms, ids=repr)
            metafunc.parametrize("claim", CHECKS, ids=lambda claim: claim.__name__)

    def test_conformance(self, mechanism: Mechanism, claim: Callable[[Mechanism], None]) -> None:
        """Run one check."""
        claim(mechanism)


def check(mechanism: Mechanism) -> None:
    """Run every check on a mechanism.

    Raises
    ------
    ConformanceError
        For the first claim that does not hold; the message says which and on what graph.

    Examples
    --------
    >>> from edgeveil.mechanisms import DegreePrior
    >>> check(DegreePrior(epsilon=1.0))
    """
    for claim in CHECKS:
        claim(mechanism)


# -- the graphs ---------------------------------------------------------------------------------


def _all_pairs(n: int, directed: bool) -> np.ndarray:
    """All edges that a graph on n nodes can have."""
    return np.array([*(permutations if directed else combinations)(range(n), 2)])


def _shapes(mechanism: Mechanism) -> Iterator[tuple[str, Graph]]:
    """Graphs on which careless code divides by 0 or finds nobody."""
    directed = _directed(mechanism)
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
    for words, (n, edges) in shapes.items():
        yield words, graph_of_pairs(n, edges, directed=directed)
    yield "a random graph", _some_graph(mechanism)


def _some_graph(mechanism: Mechanism) -> Graph:
    """A random graph in which every node has a neighbour (the path sees to that)."""
    pairs = _all_pairs(_NODES, directed := _directed(mechanism))
    drawn = np.random.default_rng(5).random(len(pairs)) < 0.25
    chosen = drawn | (pairs[:, 1] == pairs[:, 0] + 1)
    return graph_of_pairs(_NODES, pairs[chosen], directed=directed)


def random_pairs(mechanism: Mechanism, *, seed: int, most_nodes: int = 8) -> Iterator[Pair]:
    """Neighbouring graphs of which the mechanism's guarantee speaks, without end."""
    rng, directed, claim = np.random.default_rng(seed), _directed(mechanism), mechanism.guarantee(1)
    while True:
        n = int(rng.integers(2, most_nodes + 1))
        pairs = _all_pairs(n, directed)
        graph = graph_of_pairs(n, pairs[rng.random(len(pairs)) < rng.random()], directed=directed)
        x, y = pairs[rng.integers(len(pairs))]
        # In the joint model a source knows its own edges.
        known = {"touching": (x, y), "starting": (x,)}[claim.own_edges]
        free = [v for v in range(n) if claim.model != "joint" or v not in known]
        other = graph.with_edge_flipped(int(x), int(y))
        if free and _keeps_promise(mechanism, graph) and _keeps_promise(mechanism, other):
            yield Pair(graph=graph, neighbour=other, source=int(rng.choice(free)))


def _directed(mechanism: Mechanism) -> bool:
    return bool(getattr(mechanism, "directed", False))


def _keeps_promise(mechanism: Mechanism, graph: Graph) -> bool:
    with suppress(PromiseError):
        if isinstance(mechanism, RestsOnPromise):
            mechanism.check_promise(graph)
        return True
    return False


# -- the claims ---------------------------------------------------------------------------------


def parameters_are_public_and_frozen(mechanism: Mechanism) -> None:
    """A frozen, keyword-only dataclass that can be made again from what a release records."""
    kind = type(mechanism)
    _hold(isinstance(mechanism, Mechanism), "it lacks a method or name that every mechanism has")
    _hold(dataclasses.is_dataclass(kind), "it is no dataclass, so nobody knows its parameters")
    _hold(kind.__dataclass_params__.frozen, "its parameters can be changed: use frozen=True")  # type: ignore[attr-defined]  # of a dataclass
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]  # it is a dataclass
    _hold(all(field.kw_only for field in fields), "its parameters need no names: use kw_only=True")
    recorded = json.loads(json.dumps(parameters_of(mechanism)))
    recorded = {k: tuple(v) if isinstance(v, list) else v for k, v in recorded.items()}
    _hold(kind(**recorded) == mechanism, "what a release records does not give it back")
    default = {f.name: f.default for f in fields}.get("epsilon", dataclasses.MISSING)
    _hold(default is dataclasses.MISSING, "epsilon has a default: nobody else can choose it")


def guarantee_hangs_on_public_numbers(mechanism: Mechanism) -> None:
    """The guarantee is a function of the parameters and the number of sources."""
    named = list(inspect.signature(mechanism.guarantee).parameters)
    _hold(named == ["n_sources"], f"guarantee takes {named}, and may take n_sources alone")
    before = 0.0
    for k in (1, 2, 1000):
        claim = mechanism.guarantee(k)
        _hold(claim == mechanism.guarantee(k), "its guarantee is another one when asked again")
        _hold(claim.n_sources == k, f"its guarantee for {k} sources speaks of {claim.n_sources}")
        _hold(claim.delta == 0, "delta must be 0: the noise here is for pure guarantees")
        _hold(claim.private, "only an insecure seed makes a release not private")
        _hold(claim.pooled_epsilon >= before, "more recipients together would learn less")
        before = claim.pooled_epsilon


def rows_have_the_public_shape(mechanism: Mechanism) -> None:
    """On every graph: rows of one shape and finite numbers; no error, no warning."""
    for words, graph in _shapes(mechanism):
        if _keeps_promise(mechanism, graph):
            sources = [0, graph.n_nodes - 1]
            with _no_error_on(words):
                rows = run.rows_of(mechanism, graph, sources, NoiseSource.insecure(1))
            _check_rows(mechanism, rows, graph, words)


def no_pair_loses_more_than_is_claimed(mechanism: Mechanism) -> None:
    """The exact privacy loss of what is noised, on neighbouring graphs: no sampling."""
    tried = islice(random_pairs(mechanism, seed=0), _PAIRS)
    for pair in (*pairs_for(mechanism), *tried):
        words = f"two graphs on {pair.graph.n_nodes} nodes"
        with _no_error_on(words):
            share = loss_share(mechanism, pair) if mechanism.guarantee(1).protects else 0.0
        _hold(share <= ROUNDING, f"it loses {share:.4g} of its epsilon on {words}")


def estimates_see_released_numbers_only(mechanism: Mechanism) -> None:
    """The same released numbers on a neighbouring graph give the same rows.

    So nothing of the graph gets into a row past the noise: through attributes, through globals,
    through what `measure` does to its answers.
    """
    if not mechanism.guarantee(1).protects:
        return
    drawn, noise = list[Noised](), NoiseSource.insecure(1)

    def draw(asked: AnyStatistic) -> Noised:
        drawn.append(randomise(asked, noise.derive(len(drawn))))
        return _copy(drawn[-1])

    def repeat(asked: AnyStatistic) -> Noised:
        return _copy(next(again))  # in order, whatever is asked

    for pair in islice(random_pairs(mechanism, seed=1), _PAIRS):
        before = len(drawn)
        with _no_error_on(f"a graph on {pair.graph.n_nodes} nodes"):
            first = _driven(mechanism, pair.graph, pair.source, draw)
        again = iter(drawn[before:])
        with _no_error_on("a neighbouring graph with the same released numbers"):
            second = _driven(mechanism, pair.neighbour, pair.source, repeat)
        _hold(all(map(_same, first, second)), "its rows depend on the graph past the noise")


def rows_do_not_depend_on_their_company(mechanism: Mechanism) -> None:
    """Any grouping, order and repetition of the sources gives the same bits."""
    graph = _some_graph(mechanism)
    if not _keeps_promise(mechanism, graph):
        return
    noise, n = NoiseSource.insecure(11), graph.n_nodes
    whole = rows_of(mechanism, graph, list(range(n)), noise)
    for sources in ([n - 6], [n - 1, 0], list(range(n - 1, -1, -1)), [5, 5, 7, 5], list(range(9))):
        same = _same(rows_of(mechanism, graph, sources, noise), whole[sources])
        _hold(same, f"the rows of {sources} are others than among all sources")


def randomness_comes_from_the_engine(mechanism: Mechanism) -> None:
    """The same noise gives the same rows, other noise other rows, and no noise a function."""
    graph = _some_graph(mechanism)
    if not _keeps_promise(mechanism, graph):
        return

    made, claim = partial(rows_of, mechanism, graph, [0, 4]), mechanism.guarantee(1)
    noise = NoiseSource.insecure(3)
    repeats = _same(made(noise), made(noise)) and _same(made(None), made(None))
    _hold(repeats, "the same noise gave other rows: it draws numbers of its own, or keeps some")
    noisy = claim.protects and claim.epsilon > 0
    if noisy and _same(made(noise), made(NoiseSource.insecure(4))):
        harmless = _heeds_answers(mechanism, graph) or _is_own_list(mechanism, graph)
        _hold(harmless, "other noise gave the same rows")


def rows_are_new_arrays(mechanism: Mechanism) -> None:
    """Writing to a row changes neither the graph nor another row, now or later."""
    graph = _some_graph(mechanism)
    if not _keeps_promise(mechanism, graph):
        return
    noise = NoiseSource.insecure(1)
    shared = shared_part(mechanism, graph, noise.derive("shared"))

    def made() -> Rows:
        rows = make_rows(mechanism, graph, shared, [2, 2, 9], noise.derive("rows"))[0]
        return _as_array(rows, graph)

    first, second = made(), made()
    arrays = (second, graph.indptr, graph.indices, graph.degrees)
    _hold(not any(np.shares_memory(first, a) for a in arrays), "rows share memory with others")
    kept = second.copy()
    if not first.flags.writeable:
        first.flags.writeable = True
    first[0] = -1.0
    _hold(_same(first[1:], kept[1:]), "rows of one call share memory")
    _hold(_same(made(), kept), "rows share memory with what is learnt once")


CHECKS: tuple[Callable[[Mechanism], None], ...] = (
    parameters_are_public_and_frozen,
    guarantee_hangs_on_public_numbers,
    rows_have_the_public_shape,
    no_pair_loses_more_than_is_claimed,
    estimates_see_released_numbers_only,
    rows_do_not_depend_on_their_company,
    randomness_comes_from_the_engine,
    rows_are_new_arrays,
)

# -- what the claims are looked at with -----------------------------------------------------------

_same = partial(np.array_equal, equal_nan=True)  # NaN stands where a list has ended


def _hold(holds: object, otherwise: str) -> None:
    if not holds:
        raise ConformanceError(otherwise)


@contextmanager
def _no_error_on(words: str) -> Iterator[None]:
    """An error is an output: on no graph may a mechanism raise or warn."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    except Exception as error:
        told = f"it raised {type(error).__name__} on {words}: {error}"
        raise ConformanceError(told) from error


def _check_rows(mechanism: Mechanism, rows: Any, graph: Graph, words: str) -> None:
    """Rows of the shape that the engine makes room for, of numbers."""
    if mechanism.gives == "suggestions":
        _check_evidence(mechanism, rows, graph, words)
        return
    of_scores = mechanism.gives == "scores"
    shape = (2, graph.n_nodes if of_scores else getattr(mechanism, "dimension", 0))
    _hold(rows.shape == shape, f"rows of shape {rows.shape} instead of {shape} on {words}")
    _hold(rows.dtype == np.float64, f"rows of {rows.dtype} instead of float64 on {words}")
    _hold(np.isfinite(rows).all(), f"rows are not finite on {words}")


def _check_evidence(mechanism: Mechanism, rows: Any, graph: Graph, words: str) -> None:
    """Evidence about nodes of the graph, no more of it than the engine makes room for."""
    _hold(isinstance(mechanism, MakesLists), "it gives suggestions and has no method `lists`")
    _hold(isinstance(rows, Evidence) and len(rows) == 2, f"no evidence for two members on {words}")
    _hold(np.diff(rows.starts).max() <= STORED, f"more than {STORED} names a member on {words}")
    inside = (rows.nodes >= 0) & (rows.nodes < graph.n_nodes)
    _hold(inside.all(), f"evidence about nodes that are not there on {words}")
    finite = np.isfinite(rows.sums) & np.isfinite(rows.log_odds)
    _hold(finite.all(), f"evidence is not finite on {words}")


def _as_array(rows: Any, graph: Graph) -> Rows:
    """Rows as an array, also of evidence."""
    found: Rows = rows.dense(graph.n_nodes) if isinstance(rows, Evidence) else rows
    return found


def rows_of(
    mechanism: Mechanism, graph: Graph, sources: Sequence[int], noise: NoiseSource | None
) -> Rows:
    """`run.rows_of` as an array, also of evidence."""
    return _as_array(run.rows_of(mechanism, graph, sources, noise), graph)


def _driven(
    mechanism: Mechanism, graph: Graph, source: int, answer: Callable[[AnyStatistic], Noised]
) -> list[Rows]:
    """A row, and its uncertainty if it is known, from answers that come from outside."""
    claim, asked, given = mechanism.guarantee(1), mechanism.shared(graph), list[Noised]()
    shared = None if asked is None else mechanism.learn(answer(asked), graph.nodes)
    own = own_lists(graph, [source], claim.model, claim.own_edges)
    measuring: Any = mechanism.measure(graph, shared, own)
    question = next(measuring, None)
    while question is not None:
        given.append(answer(question))
        try:
            question = measuring.send(given[-1].for_reading())
        except StopIteration:
            question = None
    rows = _as_array(mechanism.estimate(tuple(given), shared, own), graph)
    if isinstance(mechanism, KnowsUncertainty) and mechanism.gives == "scores":
        return [rows, mechanism.uncertainty(rows.copy(), shared, own)]
    return [rows]


def _heeds_answers(mechanism: Mechanism, graph: Graph) -> bool:
    """Whether numbers that no noise drowns and no rounding hides change anybody's row.

    At an extreme epsilon a right mechanism gives the same row for most noise; one that does not
    look at what was released gives it for any numbers.
    """
    before: list[Rows] = []
    for seed in range(_TRIES):
        answer = partial(_loud_answer, np.random.default_rng(seed), NoiseSource.insecure(seed))
        rows = [_driven(mechanism, graph, v, answer)[0] for v in range(graph.n_nodes)]
        if not all(map(_same, before, rows)):
            return True
        before = rows
    return False


def _loud_answer(rng: np.random.Generator, noise: NoiseSource, asked: Any) -> Noised:
    """The question's answer with random numbers for private ones, far above the noise."""
    if isinstance(asked, Bits):
        ones = np.flatnonzero(rng.random(asked.total) < 0.5)
        return randomise(dataclasses.replace(asked, ones=ones), noise)
    given = asked.calibration if isinstance(asked.calibration, tuple) else (asked.calibration,)
    size = 100 * max(1.0, *(calibration.noise_scale for calibration in given))
    values = size * rng.normal(size=asked.values.shape)
    if isinstance(asked, Tail):
        values = asked.at_least + np.abs(values)
    return randomise(dataclasses.replace(asked, values=values), noise)


def _is_own_list(mechanism: Mechanism, graph: Graph) -> bool:
    """Whether rows are what their owners know anyway: into a sign, one dimension, no more fits."""
    claim, pairs = mechanism.guarantee(1), np.argwhere(graph.adjacency().toarray())
    if claim.model != "joint" or isinstance(mechanism, RestsOnPromise):
        return False
    ends, noise, alone = 2 if claim.own_edges == "touching" else 1, NoiseSource.insecure(0), []
    for source in range(_NODES):
        known = pairs[(pairs == source)[:, :ends].any(axis=1)]
        own_edges = graph_of_pairs(_NODES, known, directed=graph.directed)
        alone += [*rows_of(mechanism, own_edges, [source], noise)]
    rows = rows_of(mechanism, graph, range(_NODES), noise)
    return _same(rows, alone) and bool((rows != rows[0]).any())


def _copy(noised: Noised) -> Noised:
    arrays = {k: v.copy() for k, v in vars(noised).items() if isinstance(v, np.ndarray)}
    return dataclasses.replace(noised, **arrays)  # type: ignore[arg-type]  # its own fields
