"""OwnNeighbours: what a recipient can compute alone (epsilon = 0)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edgeveil.flow.walk import check_restart
from edgeveil.mechanisms.base import Gives, NothingShared, OnceForAll, OwnLists, Rows
from edgeveil.privacy.statistic import Noised


@dataclass(frozen=True, kw_only=True)
class OwnNeighbours(OnceForAll, NothingShared):
    """The source and its own neighbour list: one step of the walk, nothing of anybody else.

    The floor that every private mechanism has to beat: it costs no budget. Joint model only,
    because a row shows its source's edges. Proof: docs/theory/baselines.md.

    Parameters
    ----------
    restart : float
        Restart probability of the ordinary walk.
    """

    name: ClassVar[str] = "own-neighbours"
    gives: ClassVar[Gives] = "scores"
    when_to_use: ClassVar[str] = "no budget at all: the floor that everything else has to beat"

    theorem: ClassVar[str] = "docs/theory/baselines.md"
    epsilon = 0.0  # nothing about edges elsewhere

    restart: float = 0.15

    def __post_init__(self) -> None:
        check_restart(self.restart)

    def estimate(self, noised: tuple[Noised, ...], shared: Any, own: OwnLists) -> Rows:
        """`restart` at the source, the rest spread over its neighbours."""
        rows = np.zeros((len(own.sources), len(own.nodes)))
        for i, (row, source) in enumerate(zip(rows, own.sources, strict=True)):
            friends = own.of(i)
            row[source] = self.restart if len(friends) else 1.0
            row[friends] = (1 - self.restart) / max(len(friends), 1)
        return rows
