"""NoiseSource: where random bits come from, and the rules that keep them from repeating.

Secrets form a tree. A source has a 32-byte secret; the keys of its own stream, of its rows and of
its children are HMAC-SHA256 under that secret with different tags, so none reveals another.
"""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn, SupportsIndex

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from edgeveil._internal.checks import check_int, is_whole
from edgeveil.errors import ParameterError

SECRET_BYTES = 32

# Every HMAC message starts with one of these tags. No tag is a prefix of another, so messages of
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

# A process is identified by its id and the number of Python forks above it: ids alone can repeat
# (the first process of every PID namespace is 1).
_forks = 0
_rekey_lock = threading.RLock()


def _after_fork_in_child() -> None:
    global _forks, _rekey_lock
    _forks += 1
    _rekey_lock = threading.RLock()  # another thread of the parent may have held the old one


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _process() -> tuple[int, int]:
    return os.getpid(), _forks


def _tagged(secret: bytes, tag: bytes, message: bytes = b"") -> bytes:
    return hmac.digest(secret, tag + message, "sha256")


def _encode(labels: tuple[str | int, ...]) -> bytes:
    """Labels as bytes, injectively: type, length and content of each."""
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


def _cipher(key: bytes, first_block: bytes = bytes(16)) -> CipherContext:
    """AES-256 in counter mode: encrypting zeros gives the key stream itself."""
    return Cipher(algorithms.AES256(key), modes.CTR(first_block)).encryptor()


class _NeverCopied:
    """Pickling and copying fail: two copies would draw the same noise."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(_NO_COPY)


class KeyStream(_NeverCopied):
    """64-bit words of AES-256 in counter mode, in order, for the process that made it.

    Parameters
    ----------
    secret : bytes
        The source's secret, from which further bits are derived.
    key : bytes
        The cipher's key, derived from the secret.
    rare : bytes
        Tag of the further bits; different for every stream under one secret.
    first_block : bytes
        The counter of word `position`.
    position : int
        Number of the first word; even, because a block is two words.
    """

    __slots__ = ("_cipher", "_first", "_key", "_lock", "_position", "_rare", "_secret", "process")

    def __init__(
        self,
        secret: bytes,
        key: bytes,
        rare: bytes,
        first_block: bytes = bytes(16),
        position: int = 0,
    ) -> None:
        self.process = _process()
        self._secret, self._key, self._rare = secret, key, rare
        self._first, self._position = first_block, position
        self._cipher: CipherContext | None = None  # made with the first word
        self._lock = threading.Lock()

    def take(self, count: int) -> tuple[int, NDArray[np.uint64]]:
        """Position of the next word, and the next `count` words (little endian), read-only."""
        self._check()
        with self._lock:
            if self._cipher is None:
                self._cipher = _cipher(self._key, self._first)
            drawn = self._cipher.update(bytes(8 * count))
            position = self._position
            self._position += count
        return position, np.frombuffer(drawn, dtype="<u8").astype(np.uint64, copy=False)

    def further_bits(self, position: int) -> Callable[[int], int]:
        """Bits for the rare draw that its own two words, at `position`, do not decide.

        The result gives as many fresh bits as it is asked for, a multiple of 8, as an integer.
        """
        self._check()
        cipher = _cipher(_tagged(self._secret, self._rare, position.to_bytes(8, "big")))
        return lambda count: int.from_bytes(cipher.update(bytes(count // 8)), "big")

    def _check(self) -> None:
        if self.process != _process():
            raise ParameterError(_FORKED)


class _Root:
    """The secret at the top of a tree of sources."""

    __slots__ = ("_process", "_secret", "fresh", "private")

    def __init__(self, secret: bytes, *, fresh: bool, private: bool) -> None:
        self.fresh = fresh  # from the OS, for one process: replaced after a fork
        self.private = private
        self._secret, self._process = secret, _process()

    def secret(self) -> bytes:
        """The secret in this process; a fresh one that was inherited by a fork is replaced."""
        if self.fresh and self._process != _process():
            with _rekey_lock:
                if self._process != _process():
                    self._secret, self._process = os.urandom(SECRET_BYTES), _process()
        return self._secret


class NoiseSource(_NeverCopied):
    """A stream of random bits from a secret key, for one task.

    Make a source with `secure`, `from_secret` or `insecure`, and derive one source for each
    independent task with `derive`. A draw is a function of the secret, the labels and the position
    in the stream.

    If two results share noise, their difference cancels it, so a stream must never be used twice:

    * A source cannot be pickled or copied.
    * After a fork, a `secure` source and all sources derived from it, before or after, take a new
      key from the operating system before anything else is drawn or derived.
    * After a fork, you can derive from a `from_secret` or `insecure` source, with the same result
      in every process, but not draw from it: a stream belongs to the process that made it.
    * Deriving twice with the same labels gives the same stream twice. So the labels must name the
      task: what is computed, for whom, and for which data.

    A process cannot detect a copy of the machine's whole memory, such as a snapshot of a virtual
    machine that is started twice.

    Examples
    --------
    >>> noise = NoiseSource.insecure(7)
    >>> noise
    NoiseSource(kind='insecure seed', private=False)
    >>> row = noise.derive("row", 12)
    >>> int(row.words(1)[0]) == int(noise.derive("row", 12).words(1)[0])
    True
    """

    __slots__ = ("__weakref__", "_path", "_root", "_stream")

    def __init__(self, root: _Root, path: tuple[bytes, ...] = ()) -> None:
        self._root = root
        self._path = path  # labels of every derivation below the root
        self._stream = self._new_stream()

    @classmethod
    def secure(cls) -> NoiseSource:
        """A source with a fresh key from the operating system, for one process."""
        return cls(_Root(os.urandom(SECRET_BYTES), fresh=True, private=True))

    @classmethod
    def from_secret(cls, secret: bytes) -> NoiseSource:
        """A source that whoever keeps ``secret`` can make again, to repeat the *same* release.

        Parameters
        ----------
        secret : bytes
            32 bytes from ``os.urandom``, kept as private as the graph. Using it for two releases
            that differ in data or parameters destroys the privacy of both, unless each uses
            sources of its own from `derive`.
        """
        if not isinstance(secret, bytes) or len(secret) != SECRET_BYTES:
            raise ParameterError(f"secret must be {SECRET_BYTES} bytes of type bytes")
        return cls(_Root(secret, fresh=False, private=True))

    @classmethod
    def insecure(cls, seed: int) -> NoiseSource:
        """A source that anyone who knows the seed can make again: for tests and demonstrations."""
        if not is_whole(seed):
            raise ParameterError(f"seed must be an integer, got {seed!r}")
        secret = _tagged(bytes(SECRET_BYTES), _TAG_SEED, _encode((seed,)))
        return cls(_Root(secret, fresh=False, private=False))

    @property
    def private(self) -> bool:
        """Whether noise from this source protects anything: False for a seeded source."""
        return self._root.private

    @property
    def kind(self) -> Literal["secure", "insecure seed"]:
        """The kind of source, for provenance records."""
        return "secure" if self._root.private else "insecure seed"

    def export_key(self) -> NoiseKey:
        """The key of this source, for other workers on the *same* release."""
        return NoiseKey(self._secret(), self.private)

    def derive(self, *labels: str | int) -> NoiseSource:
        """An independent source named by ``labels``; the position in this one does not change.

        ``derive("a", "b")`` and ``derive("a").derive("b")`` are two different sources.
        """
        if not labels:
            raise ParameterError("derive needs at least one label")
        return NoiseSource(self._root, (*self._path, _encode(labels)))

    def rows(self, names: Sequence[int] | NDArray[np.integer]) -> NoiseRows:
        """An independent stream for each name (an integer); this source's position does not change.

        The same names give the same streams, so derive a source for every statistic.
        """
        return NoiseRows(self._secret(), names)

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next ``count`` 64-bit words of this source's own stream, read-only."""
        return self.stream().take(int(check_int("count", count, 0)))[1]

    def stream(self) -> KeyStream:
        """The stream of this source; a fresh source gets a new key after a fork."""
        if self._root.fresh and self._stream.process != _process():
            with _rekey_lock:
                if self._stream.process != _process():
                    self._stream = self._new_stream()
        return self._stream

    def _new_stream(self) -> KeyStream:
        secret = self._secret()
        return KeyStream(secret, _tagged(secret, _TAG_STREAM), _TAG_RARE)

    def _secret(self) -> bytes:
        secret = self._root.secret()
        for step in self._path:
            secret = _tagged(secret, _TAG_CHILD, step)
        return secret

    def __repr__(self) -> str:
        return f"NoiseSource(kind={self.kind!r}, private={self.private})"


@dataclass(frozen=True)
class NoiseKey:
    """The key with which several workers draw the rows of one release.

    Every worker that has it can draw the same noise. That is its purpose: a row that is computed
    twice is the same row. It must not be written to a disk or a log, or be used for a second
    release, and rows must draw from ``source().derive(...).rows(<source ids>)``, never from
    ``source()`` itself.
    """

    secret: bytes = field(repr=False)
    private: bool

    def source(self) -> NoiseSource:
        """The source, in this process."""
        return NoiseSource(_Root(self.secret, fresh=False, private=self.private))


class NoiseRows(_NeverCopied):
    """The streams of many rows under one key: block b of row r is AES-256 of the numbers (r, b).

    Both have 64 bits, so no two rows share a block, and a row's words depend only on the key, the
    row's name and their position, whichever rows are drawn with it. Made by `NoiseSource.rows`;
    two draws of the same row under one source are the same noise.
    """

    __slots__ = ("_key", "_process", "_secret", "names")

    def __init__(self, secret: bytes, names: Sequence[int] | NDArray[np.integer]) -> None:
        self._secret, self._key = secret, _tagged(secret, _TAG_ROWS)
        self._process = _process()
        numbers = np.asarray(names)
        if numbers.size and numbers.dtype.kind not in "iu":  # 0.2 and 0.7 would be one name
            raise ParameterError("rows are named by whole numbers")
        self.names = numbers.astype(np.int64)  # a copy

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, rows: slice) -> NoiseRows:
        self._check()  # the slice would belong to this process
        return NoiseRows(self._secret, self.names[rows])

    def row(self, i: int, position: int = 0) -> KeyStream:
        """The stream of one row, from word `position` on, which is even."""
        self._check()
        name = int(self.names[i]).to_bytes(8, "big", signed=True)
        first_block = name + (position // 2).to_bytes(8, "big")
        return KeyStream(self._secret, self._key, _TAG_ROW_RARE + name, first_block, position)

    def word(self, i: int, index: int) -> int:
        """One word of a row."""
        _, pair = self.row(i, index - index % 2).take(2)
        return int(pair[index % 2])

    def _check(self) -> None:
        if self._process != _process():
            raise ParameterError(_FORKED)
