"""PageData: what the report page shows, as plain frozen data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from edgeveil.errors import ParameterError
from edgeveil.evaluation.results import Result

__all__ = ["ListedNode", "MemberList", "PageData"]


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
        False for exact values and for noise from a seeded generator: such a list is shown to the
        curator only.
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
    results : sequence of Result
        For the picture and the table of all numbers. Shown in the curator's part.
    lists : sequence of MemberList
        What is private in them is shown as releasable, the rest to the curator only.
    notes : sequence of str
        Paragraphs under "What the numbers say". Shown in the curator's part.
    """

    title: str
    summary: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    results: Sequence[Result] = ()
    lists: Sequence[MemberList] = ()
    notes: Sequence[str] = ()

    def releasable(self, *, summary: Sequence[str] = ()) -> PageData:
        """The same page without anything of the curator's, to be passed on as a file.

        Private lists keep what was released; marks of the truth, lists that are not private,
        results, facts and notes are gone, and so is the summary (it may speak of accuracy): give
        another one.

        Examples
        --------
        >>> row = ListedNode(node="ann", score=0.2, right=True)
        >>> made = MemberList(dataset="friends", member="bob", mechanism="suggest", epsilon=1.0,
        ...                   private=True, rows=[row], truth="a hidden friend")
        >>> page = PageData(title="For Bob", lists=[made], notes=["A third is found."])
        >>> page.releasable().lists[0].rows[0].right is None
        True
        >>> page.releasable().notes
        ()
        """
        lists = tuple(
            replace(one, truth="", rows=tuple(replace(row, right=None) for row in one.rows))
            for one in self.lists
            if one.private
        )
        return PageData(title=self.title, summary=summary, lists=lists)
