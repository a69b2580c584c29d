"""Suggestions: for each member a short list of people, with the guarantee it carries. Frozen."""

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

from edgeveil.errors import InputError, ParameterError, UnknownNodeError
from edgeveil.estimate.places import in_words
from edgeveil.io import exports
from edgeveil.io.exports import read_labelled_table, write_labelled_table
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.notebook import html_card, html_table
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.provenance import KINDS, Gives, Provenance, label_of

if TYPE_CHECKING:
    import polars as pl

FIELDS = ("node", "score", "first", "last", "common", "shared", "friends")
"""What the last axis of `Suggestions.values` holds; see there."""

_FORMAT = 1
_SHOWN = 10  # lines in a notebook
_POPULAR, _FOLLOWER = "popular", "follows you"


class Suggestion(NamedTuple):
    """One line of a list.

    Attributes
    ----------
    rank : int
        1 for the best.
    node : id
        Who is suggested.
    score : float
        Expected common friends, and popularity in the same unit.
    first, last : int
        Places that the noise leaves open: in at least 95 % of the cases the place by the true
        numbers is one of these.
    why : str
        Common friends, as estimated, that it follows the member, or popularity.
    """

    rank: int
    node: NodeId
    score: float
    first: int
    last: int
    why: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Suggestions:
    """Lists of suggestions, one per member, each for that member alone.

    Attributes
    ----------
    values : array of shape (members, places, 7), read-only
        For each place, best first: index of the node in `nodes`, score, first and last place that
        the noise leaves open, estimated number of common friends, why (1 for these, 2 if the node
        is known to follow the member, 0 for popularity), and how many friends the member has. NaN
        beyond the end of a list. In a directed graph friends are those whom the member follows.
    members : tuple of ids
        Whose lists these are.
    nodes : NodeSet
        Nodes, those on the lists at least.
    guarantee : Guarantee
        What is protected.
    provenance : Provenance
        How it was made.
    """

    values: npt.NDArray[np.float64]
    members: tuple[NodeId, ...]
    nodes: NodeSet
    guarantee: Guarantee
    provenance: Provenance

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64).view()
        if values.ndim != 3 or values.shape[::2] != (len(self.members), len(FIELDS)):
            raise ParameterError("suggestions need one list per member, of places of seven numbers")
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @property
    def sources(self) -> tuple[NodeId, ...]:
        """The members, by the name that they have in every other release."""
        return self.members

    @property
    def gives(self) -> Gives:
        """What this is, by the word that every other release has for it."""
        return "suggestions"

    # -- lists ----------------------------------------------------------------------------

    def for_member(self, member: NodeId) -> list[Suggestion]:
        """The list of one member, best first."""
        return self.at(self._at(member))

    def at(self, index: int) -> list[Suggestion]:
        """The list of the member at an index of `members`, best first."""
        row = [line for line in self.values[index].tolist() if line[0] == line[0]]  # no NaN
        ids = self.nodes.take(line[0] for line in row)
        return [
            Suggestion(i + 1, node, score, int(first), int(last), self._why(common, reason))
            for i, (node, (_, score, first, last, common, reason, _)) in enumerate(
                zip(ids, row, strict=True)
            )
        ]

    def only(self, member: NodeId) -> Suggestions:
        """The suggestions of one member alone: what it may be given."""
        at = self._at(member)
        # Its own array and its own names: those on other lists are nobody else's business.
        values = self.values[at : at + 1].copy()
        there = ~np.isnan(values[:, :, 0])
        listed = self.nodes.take(values[there][:, 0])
        nodes = NodeSet.of(sorted(listed))
        values[there, 0] = nodes.indices(listed)
        return replace(self, values=values, members=(self.members[at],), nodes=nodes)

    def mostly_popularity(self, member: NodeId) -> bool:
        """Whether fewer than half of a member's suggestions rest on common friends."""
        return bool(self._popular[self._at(member)])

    def remark(self, member: NodeId) -> str:
        """What the member should know about its list, or "": a function of released values."""
        return self.remark_at(self._at(member))

    def remark_at(self, index: int) -> str:
        """The remark for the member at an index of `members`."""
        if not self._popular[index]:
            return ""
        friends = int(sum(found for found in self.values[index, :1, 6].tolist() if found == found))
        return (
            f"with {friends} friend{'s' * (friends != 1)} at epsilon "
            f"{self.guarantee.epsilon:g} this list is mostly what everybody gets"
        )

    @property
    def summary(self) -> str:
        """How different the lists are, in words: from released values only."""
        taken = self.values[:, :, 0]
        nodes = taken[~np.isnan(taken)].astype(np.int64)
        if len(nodes) == 0:
            return "no suggestions"
        counts, lists = np.bincount(nodes), len(self.members)
        distinct, most = int((counts > 0).sum()), int(counts.max())
        whom = f"{lists:,} member{'s' * (lists != 1)}"
        words = f"{len(nodes):,} suggestions to {whom}: {distinct:,} distinct people"
        if lists > 1:
            words += f", the most suggested one in {most / lists:.0%} of the lists"
        popular = int(self._popular.sum())
        if popular:
            words += (
                f"; {popular:,} list{'s are' if popular > 1 else ' is'} mostly popularity (what "
                "everybody gets): too few friends or too small an epsilon to see common friends"
            )
        return words

    @cached_property
    def _popular(self) -> npt.NDArray[np.bool_]:
        listed = (~np.isnan(self.values[:, :, 0])).sum(axis=1)
        return np.asarray(2 * (self.values[:, :, 5] > 0).sum(axis=1) < listed)

    def _why(self, common: float, reason: float) -> str:
        """The reason for a suggestion, in words."""
        if reason != 1:
            return _FOLLOWER if reason else _POPULAR
        whole = max(round(float(common)), 1)
        if self.provenance.parameters.get("directed"):
            return f"followed by about {whole} whom you follow"
        return f"about {whole} common friend{'s' * (whole != 1)}"

    def _at(self, member: NodeId) -> int:
        if member not in self.members:
            raise UnknownNodeError(f"there are no suggestions for {member!r}")
        return self.members.index(member)

    # -- tables and files -----------------------------------------------------------------

    def table(self) -> pl.DataFrame:
        """One line per member and place: member, rank, node, score, first, last, common, why."""
        return exports.polars_frame(self.columns())

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns of `table`, as arrays."""
        member, place = np.nonzero(~np.isnan(self.values[:, :, 0]))
        listed = self.values[member, place]
        kind = object if self.nodes.kind == "str" else np.int64
        # Few different reasons, each put into words once: the kind of reason is below 4.
        reasons, which = np.unique(np.rint(listed[:, 4]) * 4 + listed[:, 5], return_inverse=True)
        whys = [self._why(*divmod(reason, 4)) for reason in reasons.tolist()]
        return {
            "member": np.array(self.members, dtype=kind)[member],
            "rank": place + 1,
            "node": np.array(self.nodes.take(listed[:, 0].astype(np.int64)), dtype=kind),
            "score": listed[:, 1],
            "first": listed[:, 2].astype(np.int64),
            "last": listed[:, 3].astype(np.int64),
            "common": listed[:, 4],
            "why": np.array(whys, dtype=object)[which],
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table to .parquet, .json or .csv, with the guarantee, atomically.

        .parquet and .json keep guarantee and provenance whole, and `read` reads them back; a
        .csv file has the guarantee in a few words in its last column.
        """
        if Path(path).suffix == ".csv":
            return exports.write_csv(Path(path), self.columns(), self.guarantee.brief)
        return write_labelled_table(path, *self.labelled())

    def labelled(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The table of a file, and what is to be known about it."""
        friends = np.nan_to_num(self.values[:, :1, 6]).astype(int).sum(axis=1)
        label = {
            "format": _FORMAT,
            "members": list(self.members),
            "friends": friends.tolist(),
            "places": self.values.shape[1],
            **label_of(self.gives, self.guarantee, self.provenance),
        }
        return self.columns(), label

    def write_per_member(self, folder: str | os.PathLike[str], suffix: str = ".csv") -> None:
        """Write one file per member, readable for nobody else (mode 0600), named by its id.

        Raises
        ------
        ParameterError
            If an id cannot be the name of a file.
        """
        place = Path(folder)
        names = member_files(self.members, suffix)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for member, name in zip(self.members, names, strict=True):
            self.only(member).write(place / name)

    @classmethod
    def joined(cls, parts: Sequence[Suggestions]) -> Suggestions:
        """The lists of several parts of one release, which may name other nodes each."""
        nodes = NodeSet.of(sorted({node for part in parts for node in part.nodes}))
        values = np.concatenate([part.values for part in parts])
        first = 0
        for part in parts:
            here = values[first : first + len(part.members), :, 0]
            there = ~np.isnan(here)
            own = nodes.indices(part.nodes)
            here[there] = own[here[there].astype(np.int64)]
            first += len(part.members)
        members = tuple(member for part in parts for member in part.members)
        return replace(parts[0], values=values, members=members, nodes=nodes)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Suggestions:
        """Read what `write` wrote to .parquet or .json.

        Raises
        ------
        InputError
            If the file holds no suggestions or is damaged.
        """
        table, label = read_labelled_table(path)
        try:
            if label["format"] == _FORMAT and label["kind"] == KINDS["suggestions"]:
                return cls._from_parts(table, label)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(f"{path} holds no suggestions, or is damaged") from error
        raise InputError(f"{path} holds no suggestions, or was written by a newer version")

    @classmethod
    def _from_parts(cls, table: Mapping[str, Any], label: Mapping[str, Any]) -> Suggestions:
        members = NodeSet.of(label["members"])
        nodes = NodeSet.of(sorted(set(np.asarray(table["node"]).tolist())))
        values = np.full((len(members), label["places"], len(FIELDS)), np.nan)
        at = members.indices(list(table["member"])), np.asarray(table["rank"]) - 1
        values[(*at, 0)] = nodes.indices(list(table["node"]))
        for name, field in (("score", 1), ("first", 2), ("last", 3), ("common", 4)):
            values[(*at, field)] = table[name]
        values[(*at, 5)] = [{_POPULAR: 0, _FOLLOWER: 2}.get(why, 1) for why in table["why"]]
        values[(*at, 6)] = np.asarray(label["friends"], dtype=np.float64)[at[0]]
        return cls(
            values=values,
            members=tuple(members),
            nodes=nodes,
            guarantee=Guarantee.from_dict(label["guarantee"]),
            provenance=Provenance(**label["provenance"]),
        )

    # -- display --------------------------------------------------------------------------

    def __str__(self) -> str:
        return f"{self.provenance.mechanism}: {self.summary}. {self.guarantee}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        most = _SHOWN if len(self.members) == 1 else 1  # of several the first place each
        listed = [(m, s) for m in self.members[:_SHOWN] for s in self.for_member(m)[:most]]
        rows = [(m, s.rank, s.node, in_words(s.first, s.last), s.why) for m, s in listed]
        table = html_table(("member", "rank", "node", "could be place", "why"), rows)
        alarm = not self.guarantee.protects
        return html_card(self.summary, str(self.guarantee), alarm=alarm, table=table)


def member_files(members: Iterable[NodeId], suffix: str = ".csv") -> list[str]:
    """The names of the files of `Suggestions.write_per_member`.

    Raises
    ------
    ParameterError
        If an id cannot be the name of a file, or two of them would be one file on a disk that
        does not tell capital letters apart.
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
