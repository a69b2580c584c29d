"""PageData: what the report page shows, as plain frozen data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgeveil.errors import ParameterError
from edgeveil.evaluation.results import Result


@dataclass(frozen=True, kw_only=True)
class ListedNode:
    """One place of a list. ``right`` is the curator's.

    Attributes
    ----------
    node : int or str
        Id of the node.
    score : float
        The released score.
    first, last : int or None
        Places that the noise leaves open.
    why : str
        The reason, from released values.
    right : bool or None
        Whether the node is one of those that the list's ``truth`` names.
    """

    node: int | str
    score: float
    first: int | None = None
    last: int | None = None
    why: str = ""
    right: bool | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.score):
            raise ParameterError(f"score must be a finite number, got {self.score}")


@dataclass(frozen=True, kw_only=True)
class MemberList:
    """A list of nodes for one member, best first: a ranking or suggestions.

    Attributes
    ----------
    dataset : str
        Name of the graph.
    member : int or str
        For whom.
    mechanism : str
        By which mechanism.
    rows : sequence of ListedNode
        The list.
    epsilon : float or None
        Privacy loss; None for a list without protection, which is shown beside the private ones
        of the same member.
    private : bool
        False for exact values and for noise from a seeded generator: such a list is shown as the
        curator's.
    alone : bool
        Whether it is for its member alone (joint model), or for anyone.
    promise : str
        The guarantee in words: ``str(guarantee)``.
    remark : str
        What the member should know about the list, from released values.
    truth : str
        What ``right`` stands for, for example "one of 4 hidden friends". The curator's.
    """

    dataset: str
    member: int | str
    mechanism: str
    rows: Sequence[ListedNode]
    epsilon: float | None = None
    private: bool = False
    alone: bool = True
    promise: str = ""
    remark: str = ""
    truth: str = ""

    def __post_init__(self) -> None:
        if self.epsilon is not None and not 0 <= self.epsilon < math.inf:
            raise ParameterError(
                f"epsilon must be None or a finite number >= 0, got {self.epsilon}"
            )
        if self.private and self.epsilon is None:
            raise ParameterError("a list without an epsilon is not private: set private=False")


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What a ledger has given out; `edgeveil.report.spending.spending_of` makes it.

    Attributes
    ----------
    ledger : str
        Where it is.
    words : sequence of str
        Who may know how much, in sentences.
    cap : float
        The epsilon that one recipient may learn.
    steps : sequence of (str, float)
        Times, and what the one who had learnt the most had learnt by then.
    columns : sequence of str
        Names of what is in a row.
    rows : sequence of tuples
        One for each spend.
    """

    ledger: str
    words: Sequence[str]
    cap: float
    steps: Sequence[tuple[str, float]]
    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class PageData:
    """All that the report page shows. A section without data is left out.

    Attributes
    ----------
    title : str
        Heading.
    summary : sequence of str
        Paragraphs below the heading.
    lists : sequence of MemberList
        Released lists, and for the curator those without privacy.
    results : sequence of Result
        For the picture and the table of all numbers. Shown in the curator's part.
    notes : sequence of str
        Paragraphs under "What the numbers say". Shown in the curator's part.
    spending : Spending, optional
        For the keeper of the ledger.
    """

    title: str
    summary: Sequence[str] = ()
    lists: Sequence[MemberList] = ()
    results: Sequence[Result] = ()
    notes: Sequence[str] = ()
    spending: Spending | None = None
