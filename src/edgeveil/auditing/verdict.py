"""audit: run a mechanism on two neighbouring graphs and hold the outputs against its claim."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edgeveil.auditing.guessing import learn
from edgeveil.auditing.search import Pair
from edgeveil.auditing.trials import draw
from edgeveil.auditing.worst_pairs import library, worst_pair
from edgeveil.errors import ParameterError
from edgeveil.graph import Graph
from edgeveil.mechanisms.protocol import Mechanism
from edgeveil.privacy.noise import NoiseSource

__all__ = ["AuditResult", "audit"]

# This share of the trials is for choosing the guessing rule, the rest for the bound.
_LEARNING = 0.2


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """What an audit found.

    Attributes
    ----------
    claimed : float
        Epsilon of the mechanism's guarantee for one source.
    lower_bound : float
        The true epsilon is at least this, at the given confidence. It says nothing about how
        large epsilon can be.
    confidence : float
        Probability with which `lower_bound` is not above the true epsilon.
    trials : int
        Runs of the mechanism for each of the two graphs, on average.
    pair : str
        The graphs, by their size only.
    """

    claimed: float
    lower_bound: float
    confidence: float
    trials: int
    pair: str

    @property
    def consistent(self) -> bool:
        """Whether the claim survived."""
        return self.lower_bound <= self.claimed

    def __str__(self) -> str:
        if math.isinf(self.claimed):
            return "nothing is claimed (epsilon = inf), so there is nothing to audit"
        with_what = f"at {100 * self.confidence:g} % confidence ({self.trials:,} trials)"
        if self.consistent:
            return (
                f"claimed epsilon {self.claimed:.2f}, audited lower bound "
                f"{self.lower_bound:.2f} {with_what}: consistent"
            )
        return (
            f"VIOLATION: claimed epsilon {self.claimed:.3f}, but it is at least "
            f"{self.lower_bound:.3f} {with_what}"
        )


def audit(
    mechanism: Mechanism,
    *,
    pair: Pair | None = None,
    trials: int = 100_000,
    confidence: float = 0.95,
    noise: NoiseSource | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AuditResult:
    """Try to refute the epsilon that a mechanism claims.

    The mechanism is run, as it is, on two neighbouring graphs; from a part of the outputs a
    rule is learnt that guesses the graph, and how often it is right on fresh outputs gives a
    lower bound on epsilon. See docs/audit.md for what that can and cannot show.

    Parameters
    ----------
    mechanism : Mechanism
        What to audit.
    pair : Pair, optional
        The two graphs and the source; the worst known for this mechanism if left out.
    trials : int
        Runs for each of the two graphs, on average: a fair coin picks the graph of each run.
    confidence : float
        Probability with which a correct mechanism is not accused.
    noise : NoiseSource, optional
        For repeatable tests; fresh secure noise if left out.
    progress : callable, optional
        Called with the runs made and the runs to make.

    Returns
    -------
    AuditResult
        Its text is the verdict.

    Examples
    --------
    >>> from edgeveil.mechanisms import EdgeFlipping
    >>> result = audit(EdgeFlipping(epsilon=3), trials=200, noise=NoiseSource.insecure(1))
    >>> result.consistent
    True
    """
    _check(trials, confidence)
    claim = mechanism.guarantee(1)
    if claim.delta:
        raise ParameterError("the audit is for pure guarantees: delta must be 0")
    if pair is not None and claim.model != "none":
        _check_pair(pair, claim.model)
    noise = noise if noise is not None else NoiseSource.secure()

    def result(lower_bound: float, trials: int, pair: Pair | None) -> AuditResult:
        size = f"two graphs on {pair.graph.n_nodes} nodes" if pair else "no graphs"
        return AuditResult(
            claimed=claim.epsilon,
            lower_bound=lower_bound,
            confidence=confidence,
            trials=trials,
            pair=size,
        )

    if math.isinf(claim.epsilon):
        return result(0.0, 0, None)
    if claim.epsilon == 0:
        candidates = [pair] if pair is not None else list(library(mechanism))
        telling = [p for p in candidates if not _same_output(mechanism, p, noise)]
        if not telling:
            return result(0.0, 1, candidates[-1])
        pair = telling[0]
    pair = pair if pair is not None else worst_pair(mechanism)
    bound = _lower_bound(mechanism, pair, trials, confidence, noise, progress)
    return result(bound, trials, pair)


def _lower_bound(
    mechanism: Mechanism,
    pair: Pair,
    trials: int,
    confidence: float,
    noise: NoiseSource,
    progress: Callable[[int, int], None] | None,
) -> float:
    """Play the guessing game 2 * trials times: the first ones to learn, the others to prove."""
    games, done = 2 * trials, 0
    # Fair coins, one for each game: which of the two graphs it is played on.
    words = noise.derive("coins").words(-(-games // 64))
    coins = np.unpackbits(words.view(np.uint8), count=games).astype(bool)
    learning = max(int(_LEARNING * games), 1)

    def report(made: int) -> None:
        nonlocal done
        done += made
        if progress is not None:
            progress(done, games)

    def outputs(graph: Graph, name: str, mine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = draw(mechanism, graph, pair.source, int(mine.sum()), noise.derive(name), report)
        learnt, fresh = np.split(rows, [int(mine[:learning].sum())])
        return learnt, fresh

    learn_first, first = outputs(pair.graph, "first", ~coins)
    learn_second, second = outputs(pair.neighbour, "second", coins)
    guesser = learn(learn_first, learn_second, games=games - learning, confidence=confidence)
    return guesser.certify(first, second, confidence)


def _same_output(mechanism: Mechanism, pair: Pair, noise: NoiseSource) -> bool:
    """Whether both graphs give the same row, bit by bit, from the same noise."""
    rows = [
        mechanism.rows(
            mechanism.prepare(graph, noise.derive("same", "shared")),
            [pair.source],
            noise.derive("same", "rows"),
        )
        for graph in (pair.graph, pair.neighbour)
    ]
    return rows[0].tobytes() == rows[1].tobytes()


def _check(trials: int, confidence: float) -> None:
    if isinstance(trials, bool) or not isinstance(trials, int | np.integer) or trials < 100:
        raise ParameterError(f"trials must be an integer >= 100, got {trials!r}")
    if not 0.5 <= confidence < 1:
        raise ParameterError(f"confidence must be at least 0.5 and below 1, got {confidence!r}")


def _check_pair(pair: Pair, model: str) -> None:
    """Refuse two graphs that the guarantee does not speak of. No message quotes an edge."""
    n = pair.graph.n_nodes
    if pair.graph.nodes != pair.neighbour.nodes:
        raise ParameterError("the two graphs of a pair must have the same nodes")
    if not 0 <= pair.source < n:
        raise ParameterError(f"the source of a pair must be an index in 0 .. {n - 1}")
    ends = abs(pair.graph.adjacency() - pair.neighbour.adjacency()).sum(axis=1)
    if ends.sum() != 2:
        raise ParameterError("the two graphs of a pair must differ in exactly one edge")
    if model == "joint" and ends[pair.source]:
        raise ParameterError("in the joint model the graphs must not differ at the source")
