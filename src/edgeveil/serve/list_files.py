"""Stored lists: one file for each snapshot, with a slot of the same size for every member.

A slot holds a list and some names in reserve, for those that members ask to be hidden: a line of
JSON about the list, and then a line for each name. `shown` makes the answer. The sizes of slots and
answers follow from public values (k, the longest name), so that the length of an answer reveals
nothing about the list. The file is a copy of what the series holds, and can be made again from it.
A slot with a wrong checksum counts as empty: an interrupted write leaves no list.

The header names an entry of the ledger's chain that is not older than the charge of any list in
the file. A ledger without that entry was restored from an older copy and does not know these lists.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import struct
import threading
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from edgeveil._internal.files import write_atomically
from edgeveil.errors import InputError, LedgerError
from edgeveil.estimate.lists import Reason
from edgeveil.results.nouns import FRIENDS, Nouns
from edgeveil.results.suggestions import remark_in_words

if TYPE_CHECKING:
    from edgeveil.graph.nodes import NodeId, NodeSet
    from edgeveil.ledger import Ledger
    from edgeveil.results.suggestions import Suggestion, Suggestions

_HEADER = 4096
_NEW = {"slot": 0, "answer": 0, "entry": None}  # fields that the caller does not determine
_CHECKSUM = struct.Struct("<I")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_LINE_BYTES = 192  # one line of a list, without the name
_MOST_NOUNS = 3  # in a line, and in a remark; those of friends are part of their bytes
_FRAME_BYTES = 512  # everything else, without the member's name
# Marks of lines: the name stands out, or is there for a reason, or because it is popular.
_STANDS_OUT, _RESTS, _POPULAR = b"s", b"r", b"p"
RESERVE = 20  # names beyond k in a slot


def slot_bytes(nodes: NodeSet, k: int, words: Iterable[str] = ()) -> int:
    """Bytes of one slot: enough for any list of length k, by the longest public name and words."""
    longest = max((len(_json(node)) for node in nodes), default=0)
    nouns = _MOST_NOUNS * max((len(_json(word)) for word in words), default=0)
    most = _FRAME_BYTES + nouns + longest + k * (_LINE_BYTES + nouns + longest)
    return -(-most // 1024) * 1024


def render(suggestions: Suggestions, snapshot: int, revision: int) -> list[bytes]:
    """Each member's slot, from released and public values and the choices of this revision."""
    day = suggestions.provenance.created[:10]
    slots = []
    for at, member in enumerate(suggestions.members):
        head = {"member": member, "snapshot": snapshot, "made": day, "revision": revision}
        lines = [_json(head | {"friends": int(suggestions.friends[at])})]
        lines += [_line(suggestion) for suggestion in suggestions.at(at)]
        slots.append(b"\n".join(lines))
    return slots


class Shown(NamedTuple):
    """A list as it is sent, and what it was made of."""

    body: bytes
    names: int  # how many there are
    revision: int  # of the choices when the slot was made


def shown(
    slot: bytes, k: int, hides: Callable[[str], bool] | None = None, nouns: Nouns = FRIENDS
) -> Shown:
    """The first k names of a slot that are not hidden, as JSON."""
    first, *lines = slot.split(b"\n")
    head, n_standing_out, resting, kept = json.loads(first), 0, 0, list[bytes]()
    for line in lines:
        if hides is not None and hides(_name_in(line)):
            continue
        mark, rest = line[:1], line[2:].rstrip()
        kept.append(b'{"rank":%d,%s' % (len(kept) + 1, rest))
        n_standing_out += mark == _STANDS_OUT
        resting += mark != _POPULAR
        if len(kept) == k:
            break
    revision, friends = head.pop("revision"), head.pop("friends")
    popular = 2 * resting < len(kept)
    head["remark"] = remark_in_words(len(kept), n_standing_out, popular, friends, nouns)
    body = b'%s,"suggestions":[%s]}' % (_json(head)[:-1], b",".join(kept))
    return Shown(body, len(kept), revision)


def is_list_of(member: NodeId, slot: bytes) -> bool:
    """Whether a slot made by `render` is for this member."""
    return slot.startswith(b'{"member":%s,' % _json(member))


_NODE, _AFTER = len(b's{"node":'), b',"strength":'  # where the name is in a line


def _name_in(line: bytes) -> str:
    """The name in a line, as text."""
    node = line[_NODE : line.index(_AFTER, _NODE)]
    return str(json.loads(node)) if b"\\" in node else node.strip(b'"').decode()


def _line(suggestion: Suggestion) -> bytes:
    """A mark, and the name with what is said of it."""
    mark = _STANDS_OUT if suggestion.stands_out else _RESTS
    said = {
        "node": suggestion.node,
        "strength": "weak" if suggestion.reason == Reason.FOLLOWS_YOU else suggestion.strength,
        "why": suggestion.why,
        "common": round(suggestion.common, 1),
        "chance": round(suggestion.chance, 3),
    }
    return (_POPULAR if suggestion.reason == Reason.POPULAR else mark) + _json(said)


def _json(value: Any) -> bytes:
    return _ENCODER.encode(value).encode()


def path_of(folder: Path, header: Mapping[str, Any]) -> Path:
    """The file for lists with this header, which has the snapshot and everything they depend on."""
    name = hashlib.sha256(_json(header)).hexdigest()[:16]
    return folder / f"{header['snapshot']:06d}-{name}.lists"


class ListStore:
    """The lists of one snapshot, by the index of their member. Use `open` or `open_earlier`."""

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.header, self.slot, self.path = header, int(header["slot"]), path
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)  # not while a request may read from it
        self._lock = threading.Lock()  # a request must not read half of a slot that is made again

    @classmethod
    def open(cls, path: Path, header: Mapping[str, Any], nodes: NodeSet, k: int) -> ListStore:
        """Open the file at `path`, or create it (mode 0600).

        `header` says what the lists are (snapshot, parameters), in at most 4 KB of JSON. A file
        with another header is replaced.
        """
        stored = _header_of(path)
        wanted = {**header, "members": len(nodes), "k": k}
        if stored is None or stored | _NEW != wanted | _NEW:
            words = header.get("words", ())
            sizes = {
                "slot": slot_bytes(nodes, k + RESERVE, words),
                "answer": slot_bytes(nodes, k, words),
            }
            stored = wanted | _NEW | sizes
            _make(path, stored)
        return cls(path, stored)

    @classmethod
    def open_earlier(cls, path: Path) -> ListStore | None:
        """Open what an earlier run left at `path`; None if it is incomplete."""
        header = _header_of(path)
        return None if header is None else cls(path, header)

    def get(self, index: int) -> bytes | None:
        """The slot of one member, padded with spaces; None if it is empty or damaged."""
        try:
            with self._lock:
                slot = os.pread(self._file, self.slot, self._at(index))
        except OSError:
            return None
        body = slot[_CHECKSUM.size :]
        fits = _CHECKSUM.pack(zlib.crc32(body, index)) == slot[: _CHECKSUM.size]
        return body if fits and body.startswith(b"{") else None  # an empty slot holds zeros

    def answer(self, body: bytes) -> bytes:
        """A list as it is sent, padded with spaces to the size of all answers."""
        return _padded(body, int(self.header["answer"]))

    @property
    def entry(self) -> tuple[int, str] | None:
        """Number and hash of the ledger's entry that the file is bound to; None without lists."""
        bound = self.header["entry"]
        return None if bound is None else (bound[0], bound[1])

    def bind(self, entry: tuple[int, str] | None) -> None:
        """Bind the file to an entry of the ledger, durably: before a list with a later charge."""
        if entry != self.entry:
            bound = {**self.header, "entry": entry}
            os.pwrite(self._file, _header(bound), 0)
            os.fdatasync(self._file)
            self.header = bound

    def flush(self) -> None:
        """Return when everything written so far is on disk."""
        os.fdatasync(self._file)

    def refuse_unknown(self, ledger: Ledger) -> None:
        """Raise LedgerError for lists that the ledger has not charged."""
        bound = self.entry
        if bound is not None and ledger.entry(bound[0]) != bound:
            raise LedgerError(
                f"{self.path} holds lists that the ledger does not know: its entry {bound[0]} is "
                "missing or another one, so the ledger was restored from an older copy. Put the "
                "newest ledger and its artifacts back. If they are lost, members may have seen "
                "lists that this ledger has not charged: read Backup in docs/over-time.md, and "
                f"move the files *.lists out of {self.path.parent} before you start again"
            )

    def remove(self) -> None:
        """Remove the file; a process that has it open can still read it."""
        self.path.unlink(missing_ok=True)

    def put(self, index: int, body: bytes) -> None:
        """Store the slot of one member; OSError if the disk takes only a part of it."""
        padded = _padded(body, self.slot - _CHECKSUM.size)
        # The checksum covers the index: a list that was moved to another slot is not accepted.
        whole = _CHECKSUM.pack(zlib.crc32(padded, index)) + padded
        with self._lock:
            written = os.pwrite(self._file, whole, self._at(index))
        if written < len(whole):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def _at(self, index: int) -> int:
        if not 0 <= index < self.header["members"]:
            raise IndexError(index)
        return _HEADER + index * self.slot


def _padded(body: bytes, room: int) -> bytes:
    if len(body) > room:
        raise InputError("a list is longer than its public size")
    return body.ljust(room)


def kept_lists(folder: Path, series: str, ledger: Ledger) -> list[ListStore]:
    """The lists of this series from earlier runs, oldest first; LedgerError if unknown."""
    stores = [ListStore.open_earlier(path) for path in sorted(folder.glob("*.lists"))]
    kept = [store for store in stores if store and store.header.get("series") == series]
    for lists in kept:
        lists.refuse_unknown(ledger)
    return kept


def _header(header: Mapping[str, Any]) -> bytes:
    encoded = _json(header)
    if len(encoded) > _HEADER:
        raise InputError("the label is too long for the header of a file of lists")
    return encoded.ljust(_HEADER, b"\0")


def _header_of(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as handle:
            header = json.loads(handle.read(_HEADER).rstrip(b"\0"))
        whole = path.stat().st_size == _HEADER + header["members"] * header["slot"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return header if isinstance(header, dict) and "entry" in header and whole else None


def _make(path: Path, header: Mapping[str, Any]) -> None:
    encoded = _header(header)

    def write(draft: Path) -> None:
        with draft.open("wb") as handle:
            handle.write(encoded)
            # A sparse file: empty slots take no space.
            handle.truncate(_HEADER + int(header["members"]) * int(header["slot"]))

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(path, write)
