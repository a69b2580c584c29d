"""Who asks: the subject of a signed token, checked against a file of public keys (JWKS).

Every reason for a refusal looks the same from outside. The algorithm is the key's, never the
token's, so that no token can choose how it is checked.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import jwt
from jwt.utils import base64url_decode

from edgeveil.errors import InputError

_MOST_BYTES = 4096  # of a token; a subject and a signature need a few hundred
_LEEWAY = 30  # seconds that two clocks may differ
_LOOK_AGAIN = 1.0  # seconds between two looks at the file of keys
_REMEMBERED = 100_000  # tokens whose signature was checked already
_LEAST_SECRET = 32  # bytes of an HS256 key: as many as its hash has
_LEAST_RSA = 2048  # bits


class Refused(Exception):  # noqa: N818  (not an error of ours: an answer)
    """A token that is not accepted. Why is nobody's business."""


class _Key(NamedTuple):
    algorithm: str
    key: Any


class Tokens:
    """Checks tokens. Keys are read anew when their file changes, so that they can be rotated.

    The file is a JWKS: Ed25519 (EdDSA), RSA (RS256, at least 2,048 bits) or symmetric keys (HS256,
    at least 32 bytes), each with its own ``kid``, and no private keys; InputError if it is not.
    Later, such a file is not taken over: the keys of before stay, and `trouble` says what is wrong.
    """

    def __init__(self, keys: Path, audience: str, issuer: str | None = None) -> None:
        self._path, self._audience, self._issuer = keys, audience, issuer
        self._lock = threading.Lock()
        self._stamp = self._look()
        self._keys = read_keys(keys)
        self._next_look = time.monotonic() + _LOOK_AGAIN
        self._known: dict[bytes, tuple[str, float]] = {}  # subjects, and until when
        self.trouble = ""

    def subject(self, token: str) -> str:
        """The subject of a valid token; Refused for everything else."""
        if not 0 < len(token) <= _MOST_BYTES or not token.isascii():
            raise Refused
        if time.monotonic() >= self._next_look:
            self._reread()
        known, name = self._known, hashlib.sha256(token.encode()).digest()
        found = known.get(name)
        if found is None:
            found = self._checked(token)
            if len(known) >= _REMEMBERED:
                known.clear()
            known[name] = found
        subject, until = found
        if time.time() >= until:
            raise Refused
        return subject

    def _checked(self, token: str) -> tuple[str, float]:
        try:
            # The library would take the whole token apart for this, and then once more.
            kid = json.loads(base64url_decode(token.partition(".")[0])).get("kid")
            keys = self._keys
            # A token may leave out whose key it is, if there is one only.
            key = next(iter(keys.values())) if kid is None and len(keys) == 1 else keys[str(kid)]
            said = jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm],
                audience=self._audience,
                issuer=self._issuer,
                leeway=_LEEWAY,
                options={"require": ["exp", "sub", "aud"]},
            )
            subject = said["sub"]
            subject.encode()  # half a surrogate is in no node set, and could not be looked up
            until = float(said["exp"]) + _LEEWAY
        except (jwt.PyJWTError, LookupError, ValueError, TypeError, AttributeError):
            raise Refused from None
        except (ArithmeticError, RecursionError):  # a number or a nesting beyond all bounds
            raise Refused from None
        if not isinstance(subject, str) or not subject:
            raise Refused
        return subject, until

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def _reread(self) -> None:
        with self._lock:
            self._next_look = time.monotonic() + _LOOK_AGAIN
            stamp = self._look()
            if stamp == self._stamp:
                return
            self._stamp = stamp
            try:
                keys = read_keys(self._path)
            except InputError as error:
                self.trouble = str(error)
                return
            # A new table of tokens with the new keys: one that is checked meanwhile against the
            # old ones goes into the old table.
            self._keys, self._known, self.trouble = keys, {}, ""


def read_keys(path: Path) -> dict[str, _Key]:
    """The keys of a JWKS file, by their ``kid``."""
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))["keys"]
        keys = {str(one["kid"]): _key(one) for one in listed}
    except OSError as error:
        raise InputError(f"cannot read the keys in {path}: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError, jwt.PyJWTError) as error:
        raise InputError(
            f'{path} is no set of keys (JWKS): {{"keys": [{{"kty": ..., "kid": ...}}, ...]}} '
            "with public Ed25519 or RSA keys, or symmetric ones of 32 bytes or more"
        ) from error
    if not keys or len(keys) != len(listed):
        raise InputError(f"{path} must hold at least one key, each with a kid of its own")
    return keys


def _key(one: dict[str, Any]) -> _Key:
    kinds = {("OKP", "Ed25519"): "EdDSA", ("RSA", None): "RS256", ("oct", None): "HS256"}
    algorithm = kinds[one["kty"], one.get("crv")]
    if one.get("alg", algorithm) not in (algorithm, "Ed25519") or one.get("use", "sig") != "sig":
        raise ValueError("another use or algorithm")
    if algorithm != "HS256" and "d" in one:
        raise ValueError("a private key: only the public half belongs here")
    key = jwt.PyJWK.from_dict(one, algorithm=algorithm).key
    size = len(key) * 8 if algorithm == "HS256" else getattr(key, "key_size", 1 << 20)
    if size < (8 * _LEAST_SECRET if algorithm == "HS256" else _LEAST_RSA):
        raise ValueError("the key is too short")
    return _Key(algorithm, key)


def new_key(path: Path) -> bytes:
    """Make a symmetric key, write it as a JWKS file (mode 0600) and give it: for a trial."""
    secret = secrets.token_bytes(_LEAST_SECRET)
    encoded = base64.urlsafe_b64encode(secret).rstrip(b"=").decode()
    text = json.dumps({"keys": [{"kty": "oct", "kid": "trial", "alg": "HS256", "k": encoded}]})
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as handle:
        handle.write(text)
    return secret


def sign(subject: str, secret: bytes, audience: str, seconds: float = 86_400) -> str:
    """A token for a trial, signed with `new_key`'s secret."""
    said = {"sub": subject, "aud": audience, "exp": int(time.time() + seconds)}
    return jwt.encode(said, secret, algorithm="HS256", headers={"kid": "trial"})
