"""NoiseSource: where random bits come from, and the rules that keep them from repeating.

Secrets form a tree. A source owns a 32-byte secret; its key stream and its children get keys
by HMAC-SHA256 under that secret with different tags, so that none of them tells about another.
"""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, SupportsIndex

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from edgeveil._check import is_whole, whole
from edgeveil.errors import ParameterError

SECRET_BYTES = 32
FILL_WORDS = 1 << 15  # words per encryption call: 256 KiB, well inside L2

# AES-CTR of zeros is the key stream itself.
_ZEROS = memoryview(bytes(8 * FILL_WORDS))

# Each tag opens the message of one kind of HMAC. No tag is a prefix of another, so messages of
# different kinds never coincide.
_TAG_SEED = b"edgeveil/noise/seed/1:"
_TAG_STREAM = b"edgeveil/noise/stream/1:"
_TAG_RARE = b"edgeveil/noise/rare/1:"
_TAG_CHILD = b"edgeveil/noise/child/1:"
_TAG_ROWS = b"edgeveil/noise/rows/1:"
_TAG_ROW_RARE = b"edgeveil/noise/row-rare/1:"

_FORKED = (
    "this noise source was made before the process forked, and drawing from it here would repeat "
    "the noise of the parent process: draw from noise.derive(<what is unique to this task>) instead"
)
_NO_COPY = (
    "a NoiseSource cannot be pickled or copied: two copies would draw the same noise; "
    "use noise.derive(...), or NoiseSource.from_secret in another process"
)

# A process is known by its id and by how many Python forks lie above it: ids alone can repeat
# (the first process of a PID namespace is 1 in every namespace).
_forks = 0
_rekey_lock = threading.Lock()


def _after_fork_in_child() -> None:
    global _forks, _rekey_lock
    _forks += 1
    _rekey_lock = threading.Lock()  # another thread of the parent may have held the old one


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _process() -> tuple[int, int]:
    return os.getpid(), _forks


def _tagged(secret: bytes, tag: bytes, message: bytes = b"") -> bytes:
    return hmac.digest(secret, tag + message, "sha256")


def _encode(labels: tuple[str | int, ...]) -> bytes:
    """Labels as bytes, injectively: kind, length, content, one after the other."""
    parts = []
    for label in labels:
        if isinstance(label, str):
            kind, content = b"s", label.encode("utf-8", "surrogatepass")
        elif isinstance(label, int | np.integer) and not isinstance(label, bool):
            number = int(label)
            kind, content = b"i", number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
        else:
            raise ParameterError(f"a label must be a string or an integer, got {label!r}")
        parts += [kind, len(content).to_bytes(8, "big"), content]
    return b"".join(parts)


def _key_stream(key: bytes) -> CipherContext:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()


class RareBits:
    """Bits for the one draw in some hundred thousand that its own two words do not decide."""

    def __init__(self, key: bytes) -> None:
        self._stream = _key_stream(key)

    def __call__(self, count: int) -> int:
        """``count`` fresh bits as an integer; ``count`` is a multiple of 8."""
        return int.from_bytes(self._stream.update(bytes(count // 8)), "big")


class _Root:
    """The secret at the top of a tree of sources."""

    __slots__ = ("fresh", "private", "process", "secret")

    def __init__(self, secret: bytes, *, fresh: bool, private: bool) -> None:
        self.secret = secret
        self.fresh = fresh  # from the OS, belonging to one process, replaced after a fork
        self.private = private
        self.process = _process()

    def rekey(self) -> None:
        """Take a new secret if this process inherited the old one. Needs ``_rekey_lock``."""
        if self.fresh and self.process != _process():
            self.secret, self.process = os.urandom(SECRET_BYTES), _process()


class _State:
    """One node's secret and the place reached in its key stream, in one process."""

    __slots__ = ("lock", "position", "process", "secret", "stream")

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self.process = _process()
        self.lock = threading.Lock()
        self.position = 0
        self.stream: CipherContext | None = None


class NoiseSource:
    """A stream of random bits: AES-256 in counter mode under a secret key.

    Make one with `secure`, `from_secret` or `insecure`, and one per independent task with
    `derive`. A draw is a function of the secret, the labels and the place in the stream.

    Two draws of the same noise can be subtracted, so a stream must never be used twice:

    * It cannot be pickled or copied.
    * After a fork, a `secure` source and all that was derived from it, before or after, take a
      new key from the operating system before anything else is drawn or derived.
    * After a fork, a `from_secret` or `insecure` source can be derived from, with the same
      result in every process, but not drawn from: a stream belongs to the process that made it.
    * Deriving twice with the same labels gives the same stream twice. Labels must therefore
      name the task: what is computed, for whom, and for which data.

    A copy of the whole machine's memory (a snapshot of a virtual machine that is started
    twice) cannot be noticed from inside.

    Examples
    --------
    >>> noise = NoiseSource.insecure(7)
    >>> noise
    NoiseSource(kind='insecure seed', private=False)
    >>> row = noise.derive("row", 12)
    >>> int(row.words(1)[0]) == int(noise.derive("row", 12).words(1)[0])
    True
    """

    __slots__ = ("__weakref__", "_path", "_root", "_state")

    def __init__(self, root: _Root, path: tuple[bytes, ...], secret: bytes) -> None:
        self._root = root
        self._path = path
        self._state = _State(secret)

    @classmethod
    def secure(cls) -> NoiseSource:
        """A source with a fresh key from the operating system, for one process."""
        secret = os.urandom(SECRET_BYTES)
        return cls(_Root(secret, fresh=True, private=True), (), secret)

    @classmethod
    def from_secret(cls, secret: bytes) -> NoiseSource:
        """A source that a keeper of ``secret`` can make again, to repeat the *same* release.

        Parameters
        ----------
        secret : bytes
            32 bytes from ``os.urandom``, kept where the graph is kept. Using it for two
            releases that differ in data or parameters destroys the privacy of both, unless
            `derive` separates them.
        """
        if not isinstance(secret, bytes) or len(secret) != SECRET_BYTES:
            raise ParameterError(f"secret must be {SECRET_BYTES} bytes of type bytes")
        return cls(_Root(secret, fresh=False, private=True), (), secret)

    @classmethod
    def insecure(cls, seed: int) -> NoiseSource:
        """A source anyone can make again who knows the seed: for tests and demonstrations."""
        if not is_whole(seed):
            raise ParameterError(f"seed must be an integer, got {seed!r}")
        secret = _tagged(bytes(SECRET_BYTES), _TAG_SEED, _encode((seed,)))
        return cls(_Root(secret, fresh=False, private=False), (), secret)

    @property
    def private(self) -> bool:
        """Whether noise from here protects anything: False for a seeded source."""
        return self._root.private

    @property
    def kind(self) -> Literal["secure", "insecure seed"]:
        """The word for provenance records."""
        return "secure" if self._root.private else "insecure seed"

    def hand_over(self) -> NoiseKey:
        """The key of this source, for other workers on the *same* release."""
        return NoiseKey(self._current().secret, self.private)

    def derive(self, *labels: str | int) -> NoiseSource:
        """An independent source named by ``labels``; this one does not move.

        ``derive("a", "b")`` and ``derive("a").derive("b")`` are two different sources.
        """
        if not labels:
            raise ParameterError("derive needs at least one label")
        step = _encode(labels)
        secret = _tagged(self._current().secret, _TAG_CHILD, step)
        return NoiseSource(self._root, (*self._path, step), secret)

    def rows(self, names: Sequence[int] | NDArray[np.integer]) -> NoiseRows:
        """An independent stream for each name, a whole number; this source does not move.

        The same names give the same streams: derive once for every thing that is drawn.
        """
        return NoiseRows(self._current().secret, names)

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next ``count`` 64-bit words of the key stream (little endian)."""
        whole("count", count, 0)
        out = np.empty(int(count) + 2, dtype=np.uint64)
        for start in range(0, int(count), FILL_WORDS):
            self._fill(out[start : start + FILL_WORDS + 2])
        return out[: int(count)]

    def _fill(self, words: NDArray[np.uint64]) -> int:
        """Fill all of ``words`` but the last two; return the place of the first in the stream.

        The last two are the room for one more block that ``update_into`` insists on. At most
        FILL_WORDS are filled by one call.
        """
        count = words.size - 2
        state = self._current()
        if state.process != _process():
            raise ParameterError(_FORKED)
        with state.lock:
            if state.stream is None:
                state.stream = _key_stream(_tagged(state.secret, _TAG_STREAM))
            state.stream.update_into(_ZEROS[: 8 * count], words.view(np.uint8).data)
            position = state.position
            state.position += count
        _to_native(words)
        return position

    def _rare_bits(self, position: int) -> RareBits:
        """Further bits for the draw whose words start at ``position``, a function of the key."""
        secret = self._current().secret
        return RareBits(_tagged(secret, _TAG_RARE, position.to_bytes(8, "big")))

    def _current(self) -> _State:
        """The state in this process; a fresh tree that was inherited first gets a new secret."""
        state = self._state
        if state.process == _process() or not self._root.fresh:
            return state
        with _rekey_lock:
            if self._state.process != _process():
                self._root.rekey()
                secret = self._root.secret
                for step in self._path:
                    secret = _tagged(secret, _TAG_CHILD, step)
                self._state = _State(secret)
            return self._state

    def __repr__(self) -> str:
        return f"NoiseSource(kind={self.kind!r}, private={self.private})"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(_NO_COPY)

    def __copy__(self) -> NoReturn:
        self.__reduce_ex__(2)

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self.__reduce_ex__(2)


@dataclass(frozen=True)
class NoiseKey:
    """What workers need to draw their rows of one release: the opposite of a fresh source.

    Every worker that has it can draw the same noise; that is its purpose, so that a row that is
    computed twice is the same row. It must reach no disk, no log and no second release, and
    rows must draw from ``source().derive(...).rows(<source ids>)``, never from ``source()`` itself.
    """

    secret: bytes = field(repr=False)
    private: bool

    def source(self) -> NoiseSource:
        """The source, in this process."""
        return NoiseSource(_Root(self.secret, fresh=False, private=self.private), (), self.secret)


class NoiseRows:
    """The streams of many rows under one key: block b of row r is AES-256 of the numbers (r, b).

    Both have 64 bits, so no two rows share a block, and a row's words depend on the key, its name
    and their place alone, whichever rows are drawn beside it. From `NoiseSource.rows`, with the
    same rule: two draws of the same row under one source are the same noise.
    """

    __slots__ = ("_key", "_process", "_secret", "names")

    def __init__(self, secret: bytes, names: Sequence[int] | NDArray[np.integer]) -> None:
        self._secret, self._key = secret, _tagged(secret, _TAG_ROWS)
        self._process = _process()
        given = np.asarray(names)
        if given.size and given.dtype.kind not in "iu":  # 0.2 and 0.7 would be one name
            raise ParameterError("rows are named by whole numbers")
        self.names = given.astype(np.int64)  # a copy

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, some: slice) -> NoiseRows:
        self._check()  # or a part would belong to the process that cut it off
        return NoiseRows(self._secret, self.names[some])

    def fill(
        self, starts: NDArray[np.int64], words: NDArray[np.uint64], room: NDArray[np.uint64]
    ) -> None:
        """OUT ``words``: the first ones of every row, at ``starts``, which are even.

        ``words`` has two more at its end: the room that ``update_into`` insists on. ``room`` is
        at least as long, and overwritten.
        """
        from edgeveil.privacy._tail_kernels import write_counters  # it loads the compiler

        self._check()
        counters = room[: starts[-1]]
        write_counters(self.names, starts, counters)
        if np.little_endian:
            counters.byteswap(inplace=True)
        cipher = Cipher(algorithms.AES256(self._key), modes.ECB()).encryptor()
        cipher.update_into(counters.view(np.uint8).data, words.view(np.uint8).data)
        _to_native(words)

    def row(self, i: int, place: int = 0) -> RowStream:
        """The stream of one row, from word ``place`` on, which is even."""
        self._check()
        return RowStream(self._secret, self._key, int(self.names[i]), place)

    def _check(self) -> None:
        if self._process != _process():
            raise ParameterError(_FORKED)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(_NO_COPY)


class RowStream:
    """One row of `NoiseRows`, word after word: counter mode over its blocks.

    As a `NoiseSource` it belongs to the process that made it, and cannot be pickled or copied.
    """

    __slots__ = ("_name", "_position", "_process", "_secret", "_stream")

    def __init__(self, secret: bytes, key: bytes, name: int, place: int) -> None:
        self._process = _process()
        self._name = name.to_bytes(8, "big", signed=True)
        self._secret, self._position = secret, place
        first = modes.CTR(self._name + (place // 2).to_bytes(8, "big"))
        self._stream = Cipher(algorithms.AES256(key), first).encryptor()

    def _fill(self, words: NDArray[np.uint64]) -> int:
        """As `NoiseSource._fill`."""
        self._check()
        count, position = words.size - 2, self._position
        self._stream.update_into(_ZEROS[: 8 * count], words.view(np.uint8).data)
        self._position += count
        _to_native(words)
        return position

    def _rare_bits(self, position: int) -> RareBits:
        """As `NoiseSource._rare_bits`."""
        self._check()
        place = self._name + position.to_bytes(8, "big")
        return RareBits(_tagged(self._secret, _TAG_ROW_RARE, place))

    def _check(self) -> None:
        if self._process != _process():
            raise ParameterError(_FORKED)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(_NO_COPY)


def _to_native(words: NDArray[np.uint64]) -> None:
    if np.little_endian is False:  # pragma: no cover - the stream is little endian everywhere
        words.byteswap(inplace=True)
