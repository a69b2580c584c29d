"""Lists that are made, as the bytes that are sent: one file, one slot of the same size for each.

All slots have one size, which follows from public values (places, the longest name), so that the
length of an answer tells nothing about the list in it. The file is a copy of what the ledger's
artifacts hold and can be made anew from them. A slot counts as made if its checksum fits: after a
crash a slot that was half written is simply not there.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgeveil.errors import InputError
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.suggestions import Suggestions

__all__ = ["Lists", "render", "slot_bytes"]

_HEADER = 4096
_CHECK = struct.Struct("<I")
_LINE = 160  # bytes of a line of a list beside the two names: numbers, and why
_AROUND = 512  # beside the lines: when, and a remark


def slot_bytes(nodes: NodeSet, places: int) -> int:
    """Bytes of one slot: enough for any list of so many places, by the longest public name."""
    longest = max((len(_json(node)) for node in nodes), default=0)
    return -(-(_AROUND + longest + places * (_LINE + longest)) // 1024) * 1024


def render(lists: Suggestions, member: NodeId, snapshot: int, made: str) -> bytes:
    """One member's list as JSON: released values and public ones, nothing else."""
    return _json(
        {
            "member": member,
            "snapshot": snapshot,
            "made": made,
            "remark": lists.remark(member),
            "suggestions": [
                {
                    "place": line.rank,
                    "node": line.node,
                    "first": line.first,
                    "last": line.last,
                    "why": line.why,
                }
                for line in lists.for_member(member)
            ],
        }
    )


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class Lists:
    """The lists of one snapshot, by the index of their member. From `open` or `kept`."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.about, self.slot = about, int(about["slot"])
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    @classmethod
    def open(cls, path: Path, about: Mapping[str, Any], nodes: NodeSet, places: int) -> Lists:
        """The file at `path`; made, readable for nobody else, unless it is there.

        Parameters
        ----------
        path : path
            The file. One that was made for something else is replaced.
        about : mapping
            What these lists are: snapshot, parameters. As JSON it must fit into 4 KB.
        nodes : NodeSet
            The public members.
        places : int
            Of a list.
        """
        known = _header_of(path)
        wanted = {**about, "members": len(nodes), "places": places}
        if known is None or {**known, "slot": 0} != {**wanted, "slot": 0}:
            known = {**wanted, "slot": slot_bytes(nodes, places)}
            _make(path, known, len(nodes))
        return cls(path, known)

    @classmethod
    def kept(cls, path: Path) -> Lists | None:
        """What an earlier run left at `path`, if it is whole."""
        known = _header_of(path)
        return None if known is None else cls(path, known)

    def get(self, index: int) -> bytes | None:
        """The list of one member, padded with spaces; None if it is not made."""
        found = os.pread(self._file, self.slot, self._at(index))
        body = found[_CHECK.size :]
        fits = _CHECK.pack(zlib.crc32(body, index)) == found[: _CHECK.size]
        return body if fits and body.startswith(b"{") else None  # an empty slot holds zeros

    def put(self, index: int, body: bytes) -> bytes:
        """Keep the list of one member; gives it padded, whether the disk has taken it or not."""
        room = self.slot - _CHECK.size
        if len(body) > room:
            raise InputError("a list is longer than its public size")
        padded = body.ljust(room)
        # The member's index goes into the checksum: a list in another slot does not fit.
        os.pwrite(self._file, _CHECK.pack(zlib.crc32(padded, index)) + padded, self._at(index))
        return padded

    def flush(self) -> None:
        """Return when everything is on the disk."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _at(self, index: int) -> int:
        if not 0 <= index < self.about["members"]:
            raise IndexError(index)
        return _HEADER + index * self.slot


def _header_of(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as handle:
            known = json.loads(handle.read(_HEADER).rstrip(b"\0"))
        whole = path.stat().st_size == _HEADER + known["members"] * known["slot"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return known if isinstance(known, dict) and whole else None


def _make(path: Path, known: Mapping[str, Any], members: int) -> None:
    header = _json(known)
    if len(header) > _HEADER:
        raise InputError("there is too much to say about these lists")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.draft")
    descriptor = os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(header.ljust(_HEADER, b"\0"))
        handle.truncate(_HEADER + members * int(known["slot"]))  # empty slots take no room
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(path)
