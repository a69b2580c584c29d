"""Suggestions: a short list of people for each member, with its guarantee. Immutable."""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._internal.files import filled_folder
from edgeveil._internal.flat_rows import row_sums, starts_of
from edgeveil._internal.notebook import html_table
from edgeveil._internal.words import counted
from edgeveil.errors import InputError, ParameterError
from edgeveil.estimate.lists import STANDS_OUT, STRONG, Lists, Reason
from edgeveil.graph.nodes import NodeId, NodeSet
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.results.nouns import FRIENDS, Nouns
from edgeveil.results.provenance import OutputKind, Provenance, metadata_of, output_of
from edgeveil.results.tabular import Tabular, load_library, read_only

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 10  # lines in a notebook
_FEW_FRIENDS = 20


class Suggestion(NamedTuple):
    """One entry of a list.

    Attributes
    ----------
    rank : int
        Position in the list; 1 is the best.
    node : id
        Who is suggested.
    score : float
        Log odds of a friendship, up to a constant.
    common : float
        Estimated number of common friends, from 0 to the member's number of friends.
    chance : float
        Of the names with at least this many estimated common friends, the share that is expected
        from noise alone: 0.3 means that three in ten are there by chance.
    reason : Reason
        Why the node is on the list.
    why : str
        The reason in words.
    """

    rank: int
    node: NodeId
    score: float
    common: float
    chance: float
    reason: Reason
    why: str

    @property
    def stands_out(self) -> bool:
        """Whether the name is more likely on the list for a reason than by chance."""
        return self.chance < STANDS_OUT

    @property
    def by_chance(self) -> str:
        """The share of such names that is expected from noise alone, in words."""
        return chance_in_words(self.chance)

    @property
    def strength(self) -> str:
        """The evidence in a word: strong (`chance` below 0.1), weak, or else the reason."""
        if not self.stands_out:
            return self.why
        return "strong" if self.chance < STRONG else "weak"


def remark_in_words(listed: int, clear: int, popular: bool, friends: int, nouns: Nouns) -> str:
    """A remark on a list: `clear` of `listed` names stand out; `popular`: most do for no reason."""
    if listed == 0:
        return "there is nobody to suggest"
    words = f"{clear} of {listed} name{'s' * (listed != 1)} stand{'s' * (clear == 1)} out"
    if not popular:
        return words
    own = nouns.own(friends)
    if friends < _FEW_FRIENDS:
        return f"{words}; with {own} this list is mostly what everybody gets"
    return (
        f"{words}; with {own}, hardly anybody shares enough of them to be told apart from "
        "noise, so this list is mostly what everybody gets"
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Suggestions(Tabular):
    """Lists of suggestions, one per member. Show each list only to the member it was made for.

    Attributes
    ----------
    members : tuple of ids
        The members that the lists are for.
    nodes : NodeSet
        A node set that includes all nodes on the lists.
    lists : Lists
        The lists as columns; nodes are given by their indices in `nodes`.
    friends : array of shape (members,)
        Number of friends of each member; in a directed graph, of those it follows.
    k : int
        Length of a list; a list may be shorter.
    guarantee : Guarantee
        What is protected.
    provenance : Provenance
        How it was made.
    nouns : Nouns
        What members and edges are called in words; see `in_words`. Not written to files.
    """

    members: tuple[NodeId, ...]
    nodes: NodeSet
    lists: Lists
    friends: npt.NDArray[np.int64]
    k: int
    guarantee: Guarantee
    provenance: Provenance
    nouns: Nouns = FRIENDS

    def __post_init__(self) -> None:
        size, counts = len(self.lists.nodes), np.diff(self.lists.starts)
        if len(counts) != len(self.members) or len(self.friends) != len(self.members):
            raise ParameterError("suggestions need one list per member")
        if any(len(column) != size for column in self.lists[1:]) or self.lists.starts[-1] != size:
            raise ParameterError("the columns of suggestions must have one length")
        object.__setattr__(self, "lists", Lists(*map(read_only, self.lists)))
        object.__setattr__(self, "friends", read_only(self.friends))

    @property
    def sources(self) -> tuple[NodeId, ...]:  # type: ignore[override]
        """The members, under the name that other releases use."""
        return self.members

    @property
    def output(self) -> OutputKind:  # type: ignore[override]
        """What this release holds: "lists"."""
        return "lists"

    def in_words(self, words: Nouns | str | None) -> Suggestions:
        """The same lists with other nouns in reasons and remarks; nothing else changes.

        Parameters
        ----------
        words : str
            ``"accounts,payments"``: who gets lists and what connects them, in the plural; a third
            noun is for those at the other end of an edge. None: members and friends.

        Examples
        --------
        >>> from edgeveil import datasets, suggest
        >>> lists = suggest(datasets.social_network(200, average_degree=10).graph, 7, epsilon=4.0)
        >>> lists.in_words("accounts,payments").for_member(7)[0].why.partition("common ")[2]
        'accounts'
        """
        return replace(self, nouns=Nouns.of(words))

    # -- lists ----------------------------------------------------------------------------

    def for_member(self, member: NodeId) -> list[Suggestion]:
        """The list of one member, best first."""
        return self.at(self._at(member))

    def at(self, index: int) -> list[Suggestion]:
        """The list of the member at an index of `members`, best first."""
        entries = self._slice(index)
        nodes, *columns = (column[entries].tolist() for column in self.lists[1:])
        lines = zip(self.nodes.take(nodes), *columns, strict=True)
        return [
            Suggestion(rank, node, score, common, chance, Reason(reason), self._why(common, reason))
            for rank, (node, score, common, chance, reason) in enumerate(lines, start=1)
        ]

    def only(self, member: NodeId) -> Suggestions:
        """The suggestions of one member, which this member may see."""
        index = self._at(member)
        # New arrays and a new node set: names on other members' lists must not be handed out.
        columns: list[npt.NDArray[Any]] = [c[self._slice(index)].copy() for c in self.lists[1:]]
        listed = self.nodes.take(columns[0])
        nodes = NodeSet.of(sorted(listed))
        columns[0] = nodes.indices(listed)
        return replace(
            self,
            members=(self.members[index],),
            nodes=nodes,
            lists=Lists(np.array([0, len(listed)]), *columns),
            friends=self.friends[index : index + 1].copy(),
        )

    def stand_out(self, member: NodeId) -> int:
        """Number of names on a member's list that stand out from the noise."""
        return int(self._outstanding[self._at(member)])

    def mostly_popular(self, member: NodeId) -> bool:
        """Whether fewer than half of a member's suggestions rest on more than popularity."""
        return bool(self._popular[self._at(member)])

    def remark(self, member: NodeId) -> str:
        """A remark on the quality of a member's list, from released values only."""
        return self.remark_at(self._at(member))

    def remark_at(self, index: int) -> str:
        """The remark for the member at an index of `members`."""
        listed = int(np.diff(self.lists.starts)[index])
        clear, popular = int(self._outstanding[index]), bool(self._popular[index])
        return remark_in_words(listed, clear, popular, int(self.friends[index]), self.nouns)

    @property
    def summary(self) -> str:
        """How diverse the lists are, in words, from released values only."""
        nodes, lists = self.lists.nodes, len(self.members)
        if len(nodes) == 0:
            return "no suggestions"
        counts = np.bincount(nodes)
        distinct, most = int((counts > 0).sum()), int(counts.max())
        words = f"{counted(len(nodes), 'suggestion')} to {self.nouns.counted_members(lists)}: "
        words += self.nouns.listed(distinct)
        if lists > 1:
            words += f", the most suggested one in {most / lists:.0%} of the lists"
        words += f"; {counted(int(self._outstanding.sum()), 'name', 'stand out')}"
        if popular := int(self._popular.sum()):
            words += f"; {counted(popular, 'list', 'are')} mostly popular names"
        return words

    @cached_property
    def _popular(self) -> npt.NDArray[np.bool_]:
        rests = row_sums(self.lists.starts, self.lists.reasons != Reason.POPULAR)
        return np.asarray(2 * rests < np.diff(self.lists.starts))

    @cached_property
    def _outstanding(self) -> npt.NDArray[np.int64]:
        return row_sums(self.lists.starts, self.lists.chance < STANDS_OUT)

    def _why(self, common: float, reason: int) -> str:
        """The reason for a suggestion, in words."""
        if reason == Reason.FOLLOWS_YOU:
            return self.nouns.follows()
        if reason == Reason.POPULAR:
            return "popular"
        count = max(round(float(common)), 1)
        if self.provenance.parameters.get("directed"):
            return self.nouns.followed(count)
        return self.nouns.common(count)

    def _slice(self, index: int) -> slice:
        return slice(int(self.lists.starts[index]), int(self.lists.starts[index + 1]))

    # -- tables and files -----------------------------------------------------------------

    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        """One line per entry of a list: member, rank, node, score, common, chance, reason."""
        starts, nodes, scores, common, chance, reasons = self.lists
        counts = np.diff(starts)
        kind = object if self.nodes.kind == "str" else np.int64
        names = np.array([reason.name.lower() for reason in Reason], dtype=object)
        return {
            "member": np.repeat(np.array(self.members, dtype=kind), counts),
            "rank": np.arange(len(nodes)) - np.repeat(starts[:-1], counts) + 1,
            "node": np.array(self.nodes.take(nodes), dtype=kind),
            "score": scores,
            "common": common,
            "chance": chance,
            "reason": names[reasons],
        }

    def plot(self) -> Figure:
        """Plot the number of names that stand out against the member's number of friends."""
        load_library("matplotlib", "plot")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 3.5), layout="constrained")
        axes = figure.add_subplot()
        axes.scatter(np.maximum(self.friends, 1), self._outstanding, s=12, alpha=0.5)
        axes.set_xscale("log")
        axes.set_xlabel(f"{self.nouns.neighbours} of the {self.nouns.member}")
        axes.set_ylabel(f"names of {self.k} that stand out")
        axes.spines[["top", "right"]].set_visible(False)
        return figure

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The table of a file, and its label."""
        label = {
            "members": list(self.members),
            "friends": self.friends.tolist(),
            "k": self.k,
            **self._label(),
        }
        return self._columns(), label

    def write_per_member(self, folder: str | os.PathLike[str]) -> None:
        """Write one .csv file per member, named by the member's id (mode 0600: for this user only).

        Raises
        ------
        ParameterError
            If an id cannot be the name of a file.
        """
        member_files(self.members)  # refused before anything is written
        with filled_folder(Path(folder)) as unfinished:
            self.write_member_tables(unfinished)

    def write_member_tables(self, folder: Path) -> None:
        """Write one .csv file per member (mode 0600) to a folder, without waiting for the disk.

        For callers that write many parts and sync once. Two syncs a file would take most of the
        time.
        """
        table = self._csv()
        head, lines = table.clear().write_csv(), table.write_csv(include_header=False).split("\n")
        # A name with a line break makes more lines than rows: then each list is encoded alone.
        one_each = len(lines) == len(table) + 1
        for index, name in enumerate(member_files(self.members)):
            entries = self._slice(index)
            if one_each:
                content = "\n".join([head[:-1], *lines[entries], ""])
            else:
                content = table[entries].write_csv()
            handle = os.open(folder / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with open(handle, "w", encoding="utf-8", newline="") as file:
                file.write(content)

    @classmethod
    def joined(cls, parts: Sequence[Suggestions]) -> Suggestions:
        """Join several parts of one release, whose node sets may differ."""
        nodes = NodeSet.of(sorted({node for part in parts for node in part.nodes}))
        renamed = [nodes.indices(part.nodes)[part.lists.nodes] for part in parts]
        counts = np.concatenate([np.diff(part.lists.starts) for part in parts])
        columns = zip(*(part.lists[2:] for part in parts), strict=True)
        return replace(
            parts[0],
            members=tuple(member for part in parts for member in part.members),
            nodes=nodes,
            lists=Lists(
                starts_of(counts),
                np.concatenate(renamed),
                *map(np.concatenate, columns),
            ),
            friends=np.concatenate([part.friends for part in parts]),
        )

    @classmethod
    def _from_parts(cls, table: Mapping[str, Any], label: Mapping[str, Any]) -> Suggestions:
        """The inverse of `to_parts`; lines may be in any order."""
        if output_of(label) != "lists":
            raise InputError("a release of another kind")
        members = NodeSet.of(label["members"])
        at, rank = members.indices(list(table["member"])), np.asarray(table["rank"])
        order = np.lexsort((rank, at))
        counts = np.bincount(at, minlength=len(members))
        starts = starts_of(counts)
        if not np.array_equal(
            rank[order], np.arange(len(order)) - np.repeat(starts[:-1], counts) + 1
        ):
            raise ValueError("ranks are missing or repeat")
        nodes = NodeSet.of(sorted(set(np.asarray(table["node"]).tolist())))
        codes = {reason.name.lower(): int(reason) for reason in Reason}
        columns: list[npt.NDArray[Any]] = [
            nodes.indices(list(table["node"])),
            *(np.asarray(table[name], dtype=np.float64) for name in ("score", "common", "chance")),
            np.array([codes[name] for name in table["reason"]], dtype=np.int8),
        ]
        return cls(
            members=tuple(members),
            nodes=nodes,
            lists=Lists(starts, *(column[order] for column in columns)),
            friends=np.asarray(label["friends"], dtype=np.int64),
            k=int(label["k"]),
            **metadata_of(label)._asdict(),
        )

    # -- display --------------------------------------------------------------------------

    def _headline(self) -> str:
        return f"{self.provenance.mechanism}: {self.summary}."

    def _preview(self) -> str:
        most = _SHOWN if len(self.members) == 1 else 1  # several members: the first entry of each
        listed = [
            (self.members[i], place)
            for i in range(len(self.members[:_SHOWN]))
            for place in self.at(i)[:most]
        ]
        rows = [(member, s.rank, s.node, s.why, s.by_chance) for member, s in listed]
        return html_table((self.nouns.member, "rank", "node", "why", "by chance"), rows)


def chance_in_words(chance: float) -> str:
    """The share of such names that is expected from noise alone, in words.

    >>> chance_in_words(0.66), chance_in_words(0.004), chance_in_words(1.0)
    ('66 in 100', 'under 1 in 100', '')
    """
    if chance >= 1:
        return ""
    return f"{100 * chance:.0f} in 100" if chance >= 0.01 else "under 1 in 100"


def member_files(members: Iterable[NodeId], suffix: str = ".csv") -> list[str]:
    """The names of the files of `Suggestions.write_per_member`.

    Raises
    ------
    ParameterError
        If an id cannot be the name of a file, or if two names differ only in capital letters,
        which some disks do not distinguish.
    """
    names = [f"{member}{suffix}" for member in members]
    for name in names:
        plain = name.isprintable() and not set(name) & set('/\\:*?"<>|')
        if not plain or name[:1] == "." or len(name.encode()) > 200:
            raise ParameterError(f"{name!r} cannot be the name of a file: use --out instead")
    alike = Counter(unicodedata.normalize("NFC", name).casefold() for name in names)
    if twice := [name for name, count in alike.items() if count > 1]:
        raise ParameterError(f"two members would share the file {twice[0]!r}: use --out instead")
    return names
