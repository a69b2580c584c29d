"""Who may be suggested, and to whom not: applied whenever a list is made of stored evidence."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.integer]


def _no_pairs() -> npt.NDArray[np.int64]:
    return np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Who may be suggested, by index.

    Given by the curator or by members, never computed from edges: then a list for other candidates
    is post-processing of released values, and costs nothing (docs/theory/series.md).

    Attributes
    ----------
    nodes : array of int, optional
        Who may be suggested at all; everybody by default.
    excluded : array of shape (pairs, 2)
        Rows (member, other): the other is not suggested to this member.
    """

    nodes: Indices | None = None
    excluded: npt.NDArray[np.int64] = field(default_factory=_no_pairs)

    def allowed(self, n: int) -> npt.NDArray[np.bool_]:
        """For each of n nodes, whether it may be suggested; empty: everybody may."""
        if self.nodes is None:
            return np.zeros(0, dtype=np.bool_)
        allowed = np.zeros(n, dtype=np.bool_)
        allowed[self.nodes] = True
        return allowed

    def beside(
        self, sources: Indices, lists: Indices, starts: npt.NDArray[np.int64], n: int
    ) -> tuple[Indices, npt.NDArray[np.int64]]:
        """The members' lists of friends, each with those excluded for the member; sorted.

        `sources` has no repeats.
        """
        pairs = self.excluded[np.isin(self.excluded[:, 0], sources)]
        if not len(pairs):
            return lists, starts
        order = np.argsort(sources)
        rows = order[np.searchsorted(sources[order], pairs[:, 0])]
        keys = np.repeat(np.arange(len(sources)), np.diff(starts)) * n + lists
        both = np.unique(np.concatenate([keys, rows * n + pairs[:, 1]]))
        return both % n, np.searchsorted(both, np.arange(len(sources) + 1) * n).astype(np.int64)
