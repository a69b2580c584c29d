"""The curator's files of candidates and of excluded pairs, read again when they change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Set
from pathlib import Path

from edgeveil.errors import EdgeveilError
from edgeveil.graph.exclusions import Exclusion, read_exclusions
from edgeveil.graph.node_lists import read_nodes
from edgeveil.serve.watched_files import file_state


class Rules:
    """Who may be suggested at all, and whom not to whom; names are text.

    If a later version of a file is wrong, the rules stay, and `last_error` says what is wrong.
    """

    def __init__(self, candidates: Path | None = None, exclude: Path | None = None) -> None:
        self._files = candidates, exclude
        self._states = self._now()
        self.last_error = ""
        self._read()

    def hidden(self, member: str) -> Set[str]:
        """Whom the member's list must not name, candidate or not."""
        return self._hidden.get(member, frozenset())

    def follow(self) -> None:
        """Read the files again if they have changed."""
        states = self._now()
        if states == self._states:
            return
        self._states = states
        try:
            self._read()
        except (EdgeveilError, OSError) as error:
            self.last_error = str(error)
        else:
            self.last_error = ""

    def _now(self) -> list[tuple[int, int, int] | None]:
        return [None if path is None else file_state(path) for path in self._files]

    def _read(self) -> None:
        candidates, exclude = self._files
        ids = None if candidates is None else read_nodes(candidates, "the file of --candidates")
        among = None if ids is None else frozenset(str(node) for node in ids)
        pairs: list[Exclusion] = [] if exclude is None else read_exclusions(exclude)
        hidden = dict[str, set[str]]()
        for member, other, direction in pairs:
            hidden.setdefault(member, set()).add(other)
            if direction == "both":
                hidden.setdefault(other, set()).add(member)
        self.candidates, self.pairs, self._hidden = among, pairs, hidden
        held = [None if among is None else sorted(among), sorted(pairs)]
        self.digest = hashlib.sha256(json.dumps(held).encode()).hexdigest()
