"""Lists that are made, as the bytes that are sent: one file, one slot of the same size for each.

All slots have one size, which follows from public values (places, the longest name), so that the
length of an answer tells nothing about the list in it. The file is a copy of what the ledger's
artifacts hold and can be made anew from them. A slot counts as made if its checksum fits: after a
crash a slot that was half written is simply not there. Beside it lie the public ids of its
members, for the day on which the graph has others.

The header names an entry of the ledger's chain that is not older than the charge of any list in
the file. A ledger without that entry was put back to an older copy and does not know these lists.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Callable, Mapping
from functools import cached_property
from json.encoder import encode_basestring
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeveil._files import write_atomically
from edgeveil.errors import InputError
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    from edgeveil.suggestions import Suggestions

_HEADER = 4096
_UNSET = {"slot": 0, "entry": None}  # what a header holds beside what the lists are
_CHECK = struct.Struct("<I")
_LINE = 160  # bytes of a line of a list beside the two names: numbers, and why
_AROUND = 512  # beside the lines: when, and a remark
_IN_JSON = np.array([len(json.dumps(chr(code))) - 2 for code in range(128)] + [1] * 128, np.uint8)
"""How many bytes a byte of UTF-8 becomes inside a JSON string."""


def slot_bytes(nodes: NodeSet, places: int) -> int:
    """Bytes of one slot: enough for any list of so many places, by the longest public name."""
    if nodes.kind == "str":
        text, offsets = nodes.arrays["text"], nodes.arrays["offsets"]
        lengths, escaped = np.diff(offsets), np.flatnonzero(_IN_JSON[text] > 1)
        whose = np.searchsorted(offsets, escaped, side="right") - 1
        np.add.at(lengths, whose, _IN_JSON[text[escaped]] - 1)
        longest = 2 + int(lengths.max(initial=0))
    else:
        ends = nodes.ids.min(initial=0), nodes.ids.max(initial=0)
        longest = max(len(str(node)) for node in ends)
    return -(-(_AROUND + longest + places * (_LINE + longest)) // 1024) * 1024


def digest_of(nodes: NodeSet) -> str:
    """Stands for a node set: its ids and their order."""
    ids = hashlib.sha256(nodes.kind.encode())
    for name, array in sorted(nodes.arrays.items()):
        ids.update(name.encode() + array.tobytes())
    return ids.hexdigest()


def render(made: Suggestions, snapshot: int) -> list[bytes]:
    """Each member's list as JSON: released values and public ones, nothing else.

    All lists at once: one by one, this took as long as making them, and under Python's lock.
    """
    every = [made.at(i) for i in range(len(made.members))]
    quoted: Callable[[Any], str] = encode_basestring
    text = quoted if made.nodes.kind == "str" else str
    lines = [
        f'{{"place":{s.rank},"node":{text(s.node)},"chance":{s.chance:.3g},"why":{quoted(s.why)}}}'
        for listed in every
        for s in listed
    ]
    ends = made.lists.starts[1:].tolist()
    about = f'"snapshot":{snapshot},"made":"{made.provenance.created[:10]}"'
    return [
        f'{{"member":{text(member)},{about},"remark":{quoted(made.remark_at(at))},'
        f'"suggestions":[{",".join(lines[first:end])}]}}'.encode()
        for at, (member, first, end) in enumerate(zip(made.members, [0, *ends], ends, strict=False))
    ]


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class Lists:
    """The lists of one snapshot, by the index of their member. From `open` or `kept`."""

    def __init__(self, path: Path, about: Mapping[str, Any], nodes: NodeSet | None = None) -> None:
        self.about, self.slot, self.path = about, int(about["slot"]), path
        if nodes is not None:
            self.nodes = nodes
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    @classmethod
    def open(cls, path: Path, about: Mapping[str, Any], nodes: NodeSet, places: int) -> Lists:
        """The file at `path`; made, readable for nobody else, unless it is there.

        What these lists are (`about`: snapshot, parameters) must fit into 4 KB of JSON. A file
        that was made for something else is replaced.
        """
        known = _header_of(path)
        wanted = {**about, "members": len(nodes), "places": places}
        if known is None or known | _UNSET != wanted | _UNSET:
            known = wanted | _UNSET | {"slot": slot_bytes(nodes, places)}
            _make(path, known, nodes)
        return cls(path, known, nodes)

    @classmethod
    def kept(cls, path: Path) -> Lists | None:
        """What an earlier run left at `path`, if it is whole."""
        known = _header_of(path)
        return None if known is None else cls(path, known)

    @cached_property
    def nodes(self) -> NodeSet | None:
        """Whose lists these are; None if that was not kept."""
        try:
            with np.load(_beside(self.path), allow_pickle=False) as kept:
                arrays = dict(kept)
            return NodeSet.from_arrays(str(arrays.pop("kind")), arrays)
        except (OSError, ValueError, LookupError, InputError):
            return None

    def get(self, index: int) -> bytes | None:
        """The list of one member, padded with spaces; None if it is not made or cannot be read."""
        try:
            found = os.pread(self._file, self.slot, self._at(index))
        except OSError:
            return None
        body = found[_CHECK.size :]
        fits = _CHECK.pack(zlib.crc32(body, index)) == found[: _CHECK.size]
        return body if fits and body.startswith(b"{") else None  # an empty slot holds zeros

    def padded(self, body: bytes) -> bytes:
        """A list in the one length that all have; InputError if it is longer."""
        room = self.slot - _CHECK.size
        if len(body) > room:
            raise InputError("a list is longer than its public size")
        return body.ljust(room)

    @property
    def entry(self) -> tuple[int, str] | None:
        """Number and hash of the ledger's entry that the file is bound to; None without lists."""
        bound = self.about["entry"]
        return None if bound is None else (bound[0], bound[1])

    def bind(self, entry: tuple[int, str] | None) -> None:
        """Bind the file to an entry of the ledger, durably; call it before `put`."""
        if entry != self.entry:
            bound = {**self.about, "entry": entry}
            os.pwrite(self._file, _header(bound), 0)
            os.fdatasync(self._file)
            self.about = bound

    def put(self, index: int, padded: bytes) -> None:
        """Keep the padded list of one member; if the disk takes half of it, it is not there."""
        # The member's index goes into the checksum: a list in another slot does not fit.
        os.pwrite(self._file, _CHECK.pack(zlib.crc32(padded, index)) + padded, self._at(index))

    def _at(self, index: int) -> int:
        if not 0 <= index < self.about["members"]:
            raise IndexError(index)
        return _HEADER + index * self.slot


def _header(about: Mapping[str, Any]) -> bytes:
    header = _json(about)
    if len(header) > _HEADER:
        raise InputError("there is too much to say about these lists")
    return header.ljust(_HEADER, b"\0")


def _header_of(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as handle:
            known = json.loads(handle.read(_HEADER).rstrip(b"\0"))
        whole = path.stat().st_size == _HEADER + known["members"] * known["slot"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return known if isinstance(known, dict) and "entry" in known and whole else None


def _beside(path: Path) -> Path:
    return path.with_suffix(".members.npz")


def _make(path: Path, known: Mapping[str, Any], nodes: NodeSet) -> None:
    header = _header(known)

    def members(draft: Path) -> None:
        with draft.open("wb") as handle:
            np.savez(handle, kind=np.array(nodes.kind), **nodes.arrays)  # type: ignore[arg-type]

    def lists(draft: Path) -> None:
        with draft.open("wb") as handle:
            handle.write(header)
            handle.truncate(_HEADER + len(nodes) * int(known["slot"]))  # empty slots take no room

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(_beside(path), members)
    write_atomically(path, lists)
