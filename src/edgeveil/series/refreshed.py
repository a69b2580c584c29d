"""What a refresh did, and the lists that it gave everybody."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeveil._internal.files import filled_folder
from edgeveil._internal.words import counted
from edgeveil.errors import ParameterError
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs.request import Progress
from edgeveil.results.nouns import Nouns
from edgeveil.results.release_folder import ReleaseFolder, file_of
from edgeveil.results.suggestions import Suggestions
from edgeveil.series.stored_lists import StoredLists


@dataclass(frozen=True)
class Refreshed:
    """What a refresh did, and the lists of everybody in the series.

    Attributes
    ----------
    snapshot : int
        The snapshot that the lists are up to date with.
    n_lists, n_newcomers, n_windows, n_left_out : int
        Members with lists; members charged now; windows opened now (this count depends on edges:
        for the curator only); and members whose budget does not allow a series.
    price : float
        What each newcomer was charged: epsilon.
    least_left : float
        Lowest remaining budget of any member.
    """

    snapshot: int
    n_lists: int
    n_newcomers: int
    n_windows: int
    n_left_out: int
    price: float
    least_left: float
    _lists: StoredLists

    @property
    def summary(self) -> str:
        """Three sentences for the curator's log: lists, charges and windows, remaining budget.

        For the curator only: the number of windows depends on how many friends members have.
        """
        return self.summary_in(None)

    def summary_in(self, words: Nouns | str | None) -> str:
        """The same three sentences with other nouns; see `Suggestions.in_words`."""
        nouns, left_out = Nouns.of(words), ""
        if self.n_left_out:
            left_out = f"; {nouns.counted_members(self.n_left_out, 'were')} left out, because "
            left_out += "their budget does not allow it"
        joined = "Nobody was charged"
        if self.n_newcomers:
            joined = f"{nouns.counted_members(self.n_newcomers)} joined the series now, charged "
            joined += f"{self.price:g} each for all their future lists"
        windows = counted(self.n_windows, "window", "were")
        have = nouns.counted_members(self.n_lists, "have")
        return (
            f"Snapshot {self.snapshot}: {have} lists{left_out}. "
            f"{joined}, and {windows} opened at no further charge (an exact count, for the curator "
            f"only). Lowest remaining budget: epsilon = {self.least_left:g}."
        )

    def suggestions(self, members: Sequence[NodeId] | None = None, k: int = 20) -> Suggestions:
        """Lists of some members, or of everybody in the series."""
        return self._lists.suggestions(members, k)

    def write(
        self,
        folder: str | os.PathLike[str],
        k: int = 20,
        progress: Progress | None = None,
        *,
        overwrite: bool = False,
    ) -> ReleaseFolder:
        """Write all lists to a folder, 8,192 per file; they need not fit into memory.

        `overwrite` replaces a release that is there, and nothing else.
        """
        files = (
            (number, "series", part.members, file_of(part))
            for number, part in enumerate(self._lists.parts(k, progress))
        )
        metadata = self._lists.metadata(self.n_lists)
        return ReleaseFolder.write(Path(folder), "lists", *metadata, files, overwrite=overwrite)

    def write_per_member(
        self,
        folder: str | os.PathLike[str],
        k: int = 20,
        progress: Progress | None = None,
        *,
        overwrite: bool = False,
    ) -> None:
        """Write one .csv file per member (mode 0600), for that member only, to a new folder.

        `overwrite` replaces files of the same names in a folder that is there.
        """
        folder = Path(folder)
        if folder.exists() and not overwrite:
            raise ParameterError(f"{folder} exists; nothing was written")
        with filled_folder(folder) as unfinished:
            for part in self._lists.parts(k, progress):
                part.write_member_tables(unfinished)
