"""PageData: what the report page shows, as plain frozen data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from edgeveil.errors import ParameterError

__all__ = ["GuaranteeText", "PageData", "RankedNode", "RankingExample", "ResultRow"]


@dataclass(frozen=True, kw_only=True)
class ResultRow:
    """One measured number. Accuracy is measured against the exact graph: not private.

    Attributes
    ----------
    experiment, dataset, mechanism, metric, scope : str
        What was measured on what. ``scope`` says over which nodes.
    epsilon : float or None
        Privacy loss; None for a mechanism without one (exact values, random, a floor).
        A mechanism with nothing but None or 0 is drawn as a level, the others as curves.
    mean, low, high : float
        The value, and its confidence interval or None.
    n_sources, repeats : int
        Over how many sources and repetitions.
    paper_value : float or None
        The value that the paper prints for the same setting.
    """

    experiment: str
    dataset: str
    mechanism: str
    epsilon: float | None
    metric: str
    scope: str
    mean: float
    low: float | None = None
    high: float | None = None
    n_sources: int
    repeats: int
    paper_value: float | None = None

    def __post_init__(self) -> None:
        _check_epsilon(self.epsilon)
        _check_finite("mean", self.mean)
        for name in ("low", "high", "paper_value"):
            value = getattr(self, name)
            if value is not None:
                _check_finite(name, value)
        if (self.low is None) != (self.high is None):
            raise ParameterError("low and high go together: give both or none")


@dataclass(frozen=True, kw_only=True)
class RankedNode:
    """One place of a ranking. ``true_rank`` and ``is_neighbour`` are the curator's.

    Attributes
    ----------
    rank : int
        Place in the shown ranking, from 1.
    node : int or str
        Id of the node.
    score : float
        The released score.
    true_rank : int or None
        Place in the exact ranking.
    is_neighbour : bool or None
        Whether the node is a neighbour of the source.
    """

    rank: int
    node: int | str
    score: float
    true_rank: int | None = None
    is_neighbour: bool | None = None

    def __post_init__(self) -> None:
        _check_finite("score", self.score)


@dataclass(frozen=True, kw_only=True)
class RankingExample:
    """A ranking for one source.

    Attributes
    ----------
    dataset : str
        Name of the graph.
    source : int or str
        For whom.
    mechanism : str
        By which mechanism.
    epsilon : float or None
        Privacy loss; None for the exact ranking. Where every node of such a ranking is at its
        ``true_rank``, the page shows it beside the private ones.
    private : bool
        False for exact values and for noise from a seeded generator: such a ranking is
        shown to the curator only.
    rows : sequence of RankedNode
        From rank 1 on.
    """

    dataset: str
    source: int | str
    mechanism: str
    epsilon: float | None
    private: bool
    rows: Sequence[RankedNode]

    def __post_init__(self) -> None:
        _check_epsilon(self.epsilon)
        if self.private and self.epsilon is None:
            raise ParameterError("a ranking without an epsilon is not private: set private=False")
        if [row.rank for row in self.rows] != list(range(1, len(self.rows) + 1)) or not self.rows:
            raise ParameterError("a ranking needs rows with the ranks 1, 2, 3, ... in order")


@dataclass(frozen=True, kw_only=True)
class GuaranteeText:
    """What a mechanism promises at an epsilon, in plain words: ``str(guarantee)``."""

    mechanism: str
    epsilon: float | None
    text: str

    def __post_init__(self) -> None:
        _check_epsilon(self.epsilon)


@dataclass(frozen=True, kw_only=True)
class PageData:
    """All that the report page shows. A section without data is left out.

    Attributes
    ----------
    title : str
        Heading.
    summary : sequence of str
        Paragraphs below the heading.
    facts : mapping of str to str
        Machine, versions, protocol. Shown in the curator's part.
    results : sequence of ResultRow
        For the charts and the table of all numbers. Shown in the curator's part.
    rankings : sequence of RankingExample
        For the slider: the private columns are shown as releasable, the true ones to the
        curator only.
    guarantees : sequence of GuaranteeText
        What the mechanisms promise.
    notes : sequence of str
        Paragraphs under "What the numbers say". Shown in the curator's part.
    """

    title: str
    summary: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    results: Sequence[ResultRow] = ()
    rankings: Sequence[RankingExample] = ()
    guarantees: Sequence[GuaranteeText] = ()
    notes: Sequence[str] = ()

    def releasable(self, *, summary: Sequence[str] = ()) -> PageData:
        """The same page without anything of the curator's, to be passed on as a file.

        Private rankings keep ranks, ids and scores; true ranks, neighbour marks, rankings
        that are not private, results, facts and notes are gone, and so is the summary (it
        may speak of accuracy): give another one.

        Examples
        --------
        >>> row = RankedNode(rank=1, node="ann", score=0.2, true_rank=3, is_neighbour=True)
        >>> example = RankingExample(dataset="friends", source="bob", mechanism="capped",
        ...                          epsilon=1.0, private=True, rows=[row])
        >>> page = PageData(title="Bob's friends", rankings=[example], notes=["Recall is 0.9."])
        >>> page.releasable().rankings[0].rows[0].true_rank is None
        True
        >>> page.releasable().notes
        ()
        """
        rankings = tuple(
            replace(
                example,
                rows=tuple(replace(r, true_rank=None, is_neighbour=None) for r in example.rows),
            )
            for example in self.rankings
            if example.private
        )
        return PageData(
            title=self.title,
            summary=summary,
            rankings=rankings,
            guarantees=tuple(one for one in self.guarantees if one.epsilon is not None),
        )


def _check_finite(name: str, value: float) -> None:
    if not math.isfinite(value):
        raise ParameterError(f"{name} must be a finite number, got {value}")


def _check_epsilon(epsilon: float | None) -> None:
    if epsilon is not None and not 0 <= epsilon < math.inf:
        raise ParameterError(f"epsilon must be None or a finite number >= 0, got {epsilon}")
