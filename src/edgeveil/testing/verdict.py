"""audit: test a mechanism's claimed epsilon on two neighbouring graphs, in two ways.

The exact loss: noised values lie on a lattice and the distribution of the noise is known, so the
largest log-ratio of an outcome's probabilities is computed, not sampled. It detects every error of
calibration or sensitivity that raises the loss on the pair above the claim. The guessing game: the
mechanism runs unchanged, and an attacker guesses the graph from the release (a membership test).
It can also detect errors in the sampler.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edgeveil._internal.checks import check_int
from edgeveil.errors import ParameterError
from edgeveil.estimate.lists import Evidence
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms.base import Mechanism, Rows
from edgeveil.mechanisms.hard_pairs import Pair
from edgeveil.mechanisms.requirements import check_mechanism
from edgeveil.mechanisms.run import make_rows, shared_numbers, shared_part
from edgeveil.privacy.noise import NoiseSource
from edgeveil.testing.guessing import fit_guesser
from edgeveil.testing.worst_pairs import ROUNDING, loss_on, loss_share, worst_pair

_TRAINING_SHARE = 0.2  # of the trials, to choose the guessing rule; the rest give the bound
TRIALS = 5_000  # by default: a few seconds
_BATCH = 1024  # trials in one call, if sources share no statistic
FALSE_ALARMS = 1e-6  # of a right mechanism's audits, at most; all games of an audit together
_MOST_GAMES = 2  # one for the given parameters and one for the tight case
_CONCLUSIVE = 0.9  # if the loss is a smaller share of the claim, the pair may hide errors of noise


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """What an audit found.

    Attributes
    ----------
    claimed : float
        Epsilon of the mechanism's guarantee for one source.
    exact_loss : float
        Privacy loss of the noised values on the pair. It is computed exactly: epsilon cannot be
        lower.
    lower_bound : float
        Lower bound on epsilon from the guessing game, at the given confidence. It says nothing
        about how large epsilon can be. A right and tight mechanism exceeds its claim here with
        probability 1 - `confidence`, so this number alone is no violation.
    confidence : float
        Probability that `lower_bound` is not above the true epsilon.
    verdict_bound : float
        The same bound at the confidence of the verdict: a right mechanism exceeds its claim in at
        most one of a million audits.
    trials : int
        Runs of the mechanism for each of the two graphs, on average.
    pair : str
        The two graphs, described by their size only.
    tight_case : AuditResult or None
        The audit of the parameters and the pair for which the mechanism's bound is tight
        (`Mechanism.tight_case`), if the given ones are not conclusive.
    """

    claimed: float
    confidence: float
    exact_loss: float = 0.0
    lower_bound: float = 0.0
    verdict_bound: float = 0.0
    trials: int = 0
    pair: str = "no graphs"
    tight_case: AuditResult | None = None

    @property
    def consistent(self) -> bool:
        """Whether neither the exact loss nor the verdict's bound exceeds the claim.

        In the tight case as well. A right mechanism fails here once in a million audits at most.
        """
        bound = max(self.verdict_bound, self.exact_loss)
        within = bound <= self.claimed * ROUNDING
        return within and (self.tight_case is None or self.tight_case.consistent)

    @property
    def conclusive(self) -> bool:
        """Whether noise that is 10 % too small would have been detected on this pair."""
        return self.exact_loss >= _CONCLUSIVE * self.claimed

    def __str__(self) -> str:
        if math.isinf(self.claimed):
            return "nothing is claimed (epsilon = inf), so there is nothing to audit"
        lines = self._lines()
        if self.tight_case is not None:
            lines += ["at the parameters where its bound is tight:", *self.tight_case._lines()]
        return "\n".join([*lines, self._verdict()])

    def _lines(self) -> list[str]:
        share = self.exact_loss / self.claimed if self.claimed else 1.0
        exact = f"exact loss of the noised numbers {self.exact_loss:.3f} on {self.pair}"
        if not self.conclusive:
            exact += (
                f" ({share:.0%} of the claim: noise that is too small by less than a factor of "
                f"{1 / share:.1f} would not show here)"
                if share
                else " (nothing would show here)"
            )
        return [
            f"claimed epsilon {self.claimed:.3f}: {exact}",
            f"claimed epsilon {self.claimed:.3f}: guessing from releases proves at least "
            f"{self.lower_bound:.3f} at {100 * self.confidence:g} % confidence, "
            f"{self.verdict_bound:.3f} at the verdict's ({self.trials:,} trials)",
        ]

    def _verdict(self) -> str:
        if not self.consistent:
            return (
                "VIOLATION: more is learnt than is claimed "
                "(a right mechanism is accused once in a million audits at most)"
            )
        if self.conclusive or (self.tight_case is not None and self.tight_case.conclusive):
            return "consistent"
        return "consistent, but no pair of graphs is known on which this could have failed"


def audit(
    mechanism: Mechanism,
    *,
    pair: Pair | None = None,
    trials: int = TRIALS,
    confidence: float = 0.95,
    noise: NoiseSource | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> AuditResult:
    """Try to refute the epsilon that a mechanism claims; print the result to see the verdict.

    An audit can refute a claim but never prove it; see docs/audit.md.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism to audit.
    pair : Pair, optional
        The two graphs and the source. By default the worst pair known for this mechanism and, if
        that is not conclusive, also the mechanism's tight case.
    trials : int
        Runs for each of the two graphs, on average: a fair coin picks the graph of each run.
    confidence : float
        Confidence of the lower bound that is reported. The verdict does not depend on it: it uses
        a bound that a right mechanism exceeds in at most one of a million audits.
    noise : NoiseSource, optional
        For repeatable tests; fresh secure noise by default.
    progress : callable, optional
        Called with the number of runs done and the number of all runs.

    Examples
    --------
    >>> from edgeveil.mechanisms import EdgeFlipping
    >>> seeded = NoiseSource.insecure(1)
    >>> result = audit(EdgeFlipping(epsilon=3), trials=200, confidence=0.999, noise=seeded)
    >>> result.consistent, round(result.exact_loss, 6)
    (True, 3.0)
    """
    check_int("trials", trials, 100)
    if not 0.5 <= confidence < 1:
        raise ParameterError(f"confidence must be at least 0.5 and below 1, got {confidence!r}")
    claim = check_mechanism(mechanism).guarantee(1)
    if claim.delta:
        raise ParameterError("the audit is for pure guarantees: delta must be 0")
    if math.isinf(claim.epsilon):
        return AuditResult(claimed=claim.epsilon, confidence=confidence)
    if pair is not None:
        _check_pair(pair, claim.model, claim.known_edges)
    noise = noise or NoiseSource.secure()
    cases: list[tuple[Mechanism, Pair]] = [(mechanism, pair or worst_pair(mechanism))]
    conclusive = loss_share(*cases[0]) >= _CONCLUSIVE
    tight = type(mechanism).tight_case()
    if pair is None and not conclusive and tight is not None:
        cases.append(tight)
    done, result = 0, None

    def report(runs: int) -> None:
        nonlocal done
        done += runs
        progress(done, 2 * trials * len(cases))

    # First the tight case, because its result is part of the other one.
    for audited, graphs in reversed(cases):
        stream = noise.derive("game", len(cases) if result is None else 0)
        lower_bound, verdict_bound = _lower_bounds(
            audited, graphs, trials, (confidence, 1 - FALSE_ALARMS / _MOST_GAMES), stream, report
        )
        result = AuditResult(
            claimed=audited.guarantee(1).epsilon,
            exact_loss=loss_on(audited, graphs),
            lower_bound=lower_bound,
            verdict_bound=verdict_bound,
            confidence=confidence,
            trials=trials,
            pair=f"two graphs on {graphs.graph.n_nodes} nodes",
            tight_case=result,
        )
    assert result is not None  # at least the given mechanism was audited
    return result


def draw_rows(
    mechanism: Mechanism,
    graph: Graph,
    source: int,
    trials: int,
    noise: NoiseSource,
    report: Callable[[int], None],
) -> Rows:
    """Rows of independent releases for one source: array (trials, columns).

    All of the mechanism's code runs in every trial; `report` is called with how many are done.
    """
    # With nothing shared, many releases for one source are many rows of one call.
    batch = 1 if shared_numbers(mechanism, graph, None, enforce_claim=False) else _BATCH
    parts = []
    for first in range(0, trials, batch):
        size = min(batch, trials - first)
        shared = shared_part(mechanism, graph, noise.derive("shared", first), enforce_claim=False)
        drawn, _ = make_rows(
            mechanism,
            graph,
            shared,
            [source] * size,
            noise.derive("rows"),
            names=range(first, first + size),  # each trial has noise of its own
            enforce_claim=False,
        )
        # The stored evidence of a list becomes a row of numbers, with -1 for an empty entry.
        rows = drawn.dense(graph.n_nodes) if isinstance(drawn, Evidence) else drawn
        parts.append(np.nan_to_num(rows.reshape(size, -1), nan=-1.0))
        report(size)
    return np.concatenate(parts)


def _lower_bounds(
    mechanism: Mechanism,
    pair: Pair,
    trials: int,
    confidences: tuple[float, float],
    noise: NoiseSource,
    report: Callable[[int], None],
) -> tuple[float, float]:
    """Play the guessing game 2 * trials times: the first games train, the others certify.

    Each confidence has its own rule, since more confidence favours a rule that guesses more often.
    Each bound holds on its own.
    """
    games = 2 * trials
    # One fair coin per game: which of the two graphs it is played on.
    words = noise.derive("coins").words(-(-games // 64))
    coins = np.unpackbits(words.view(np.uint8), count=games).astype(bool)
    n_training = max(int(_TRAINING_SHARE * games), 1)

    def outputs(graph: Graph, name: str, played: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = draw_rows(
            mechanism, graph, pair.source, int(played.sum()), noise.derive(name), report
        )
        training, fresh = np.split(rows, [int(played[:n_training].sum())])
        return training, fresh

    train_first, first = outputs(pair.graph, "first", ~coins)
    train_second, second = outputs(pair.neighbour, "second", coins)

    def certified(confidence: float) -> float:
        guesser = fit_guesser(
            train_first, train_second, games=games - n_training, confidence=confidence
        )
        return guesser.certify(first, second, confidence)

    usual, verdict = confidences
    return certified(usual), certified(verdict)


def _check_pair(pair: Pair, model: str, known_edges: str) -> None:
    """Refuse two graphs that the guarantee does not cover. No message quotes an edge."""
    n = pair.graph.n_nodes
    if pair.graph.nodes != pair.neighbour.nodes:
        raise ParameterError("the two graphs of a pair must have the same nodes")
    if not 0 <= pair.source < n:
        raise ParameterError(f"the source of a pair must be an index in 0 .. {n - 1}")
    apart = abs(pair.graph.adjacency() - pair.neighbour.adjacency())
    if apart.sum() != (1 if pair.graph.directed else 2):
        raise ParameterError("the two graphs of a pair must differ in exactly one edge")
    touched = apart.sum(axis=1) + (apart.sum(axis=0) if known_edges == "incident" else 0)
    if model == "joint" and touched[pair.source]:
        raise ParameterError("in the joint model the graphs must not differ at the source")
