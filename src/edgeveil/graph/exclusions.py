"""Pairs of members who must not be suggested to one another: in memory, or a file.

Whoever makes them must not look at other members' edges: they are members' own words, or rules of
the house. A file is UTF-8 text (also ``.gz``), one pair a line:

    member,other,direction

The third field may be left out. ``both`` (the default): neither is suggested to the other.
``one``: the other is not suggested to the member. The first line may be this very header.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.errors import InputError, ParameterError
from edgeveil.graph import lines
from edgeveil.graph.nodes import MISSING, NodeSet

Exclude = Iterable[Any] | str | os.PathLike[str]

_DIRECTIONS = ("both", "one")
_HEADERS = (["member", "other"], ["member", "other", "direction"])


class Exclusion(NamedTuple):
    """A pair; ids are text, because a file does not say of which kind they are."""

    member: str
    other: str
    direction: str = "both"  # or "one": the other is off the member's list, and no more


def read_exclusions(exclude: Exclude) -> list[Exclusion]:
    """The pairs in a file, or given as tuples (member, other) or (member, other, direction).

    Errors name lines, never ids: who blocked whom is between the two.
    """
    if isinstance(exclude, str | os.PathLike):
        try:
            return list(_in_file(Path(exclude)))
        except InputError as error:
            raise InputError(f"the file of exclusions cannot be read: {error}") from error
    exclusions = []
    for number, pair in enumerate(exclude):
        words = tuple(pair) if isinstance(pair, tuple | list) else ()
        if len(words) not in (2, 3) or (words[2:] and words[2] not in _DIRECTIONS):
            raise ParameterError(
                "exclude takes pairs (member, other) or (member, other, 'one'), or the path of a "
                f"file of them; entry {number} is neither"
            )
        exclusions.append(Exclusion(*map(str, words)))
    return exclusions


def _in_file(path: Path) -> Iterator[Exclusion]:
    delimiter, first = "", True
    for number, _, line in lines.data_lines(lines.content(path)):
        text = lines.decode(line, f"{path}, line {number}").strip(" \t\r")
        delimiter = delimiter or lines.sniff_delimiter(text)
        words = lines.fields(text, delimiter)
        header, first = first and [word.lower() for word in words] in _HEADERS, False
        if header:
            continue
        if len(words) not in (2, 3) or (words[2:] and words[2] not in _DIRECTIONS):
            raise InputError(
                f"{path}, line {number}: expected member,other or member,other,direction, with "
                "the direction one or both"
            )
        if any(not word or word in MISSING for word in words[:2]):
            raise InputError(f"{path}, line {number}: an id is missing")
        yield Exclusion(*words)


def excluded_pairs(
    exclusions: Iterable[Exclusion], nodes: NodeSet
) -> tuple[npt.NDArray[np.int64], int]:
    """Rows (member, other): the other is not suggested to the member; and how many are unknown.

    Unknown is a pair of which one is not in the public node set: it has no effect, because people
    leave and blocks of them stay.
    """
    pairs, unknown = list[tuple[int, int]](), 0
    for exclusion in exclusions:
        member, other = (nodes.find(nodes.named(name)) for name in exclusion[:2])
        if member is None or other is None:
            unknown += 1
            continue
        pairs.append((member, other))
        if exclusion.direction == "both":
            pairs.append((other, member))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2), unknown
