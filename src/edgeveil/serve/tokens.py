"""Who asks: the subject of a signed token, checked against a file of public keys (JWKS).

Every reason for a refusal looks the same from outside. The algorithm is the key's, never the
token's, so that no token can choose how it is checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Any

import jwt
from jwt.utils import base64url_decode

from edgeveil.errors import EdgeveilError, InputError
from edgeveil.serve.files import check_secret, read_unchanged

_MOST_BYTES = 4096  # of a token; a subject and a signature need a few hundred
_LEEWAY = 30  # seconds that two clocks may differ
_LOOK_AGAIN = 1.0  # seconds between two looks at the file of keys
_TABLES, _REMEMBERED = 256, 400  # tables of so many tokens whose signature was checked already
_MOST_HEADS = 64  # a sign-on gives all its tokens one head, as long as it has the same key
_LEAST_SECRET = 32  # bytes of an HS256 key: as many as its hash has
_LEAST_RSA = 2048  # bits


class Refused(Exception):  # noqa: N818  (not an error of ours: an answer)
    """A token that is not accepted. Why is nobody's business."""


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
        self._known = _tables()
        self._heads: dict[str, jwt.PyJWK] = {}  # of tokens that the library accepted
        self.trouble = ""

    def subject(self, token: str) -> str:
        """The subject of a valid token; Refused for everything else."""
        if not 0 < len(token) <= _MOST_BYTES or not token.isascii():
            raise Refused
        if time.monotonic() >= self._next_look:
            self._reread()
        name = hashlib.sha256(token.encode()).digest()
        known = self._known[name[0]]
        found = known.get(name)
        if found is None:
            found = self._usual(token) or self._checked(token)
            if len(known) >= _REMEMBERED:
                known.clear()
            known[name] = found
        subject, until = found
        if time.time() >= until:
            raise Refused
        return subject

    def _usual(self, token: str) -> tuple[str, float] | None:
        """What `_checked` says of a valid token without anything unusual; None of all others.

        So this can only say yes; every no is the library's, and so is what a head must be. The
        library takes five times as long, more than all the rest of an answer.
        """
        now = time.time()
        try:
            head, body, signature = token.split(".")
            key = self._heads[head]
            raw, sign = urlsafe_b64decode(f"{body}=="), urlsafe_b64decode(f"{signature}==")
            if _encoded(raw) != body or _encoded(sign) != signature:
                return None
            if not key.Algorithm.verify(f"{head}.{body}".encode(), key.key, sign):
                return None
            said = json.loads(raw.decode())
            subject, audience, until = said["sub"], said["aud"], said["exp"]
            issued, begins = said.get("iat", 0), said.get("nbf", 0)
            usual = (
                type(until) is type(issued) is type(begins) is int  # not a bool
                and issued - _LEEWAY <= now >= begins - _LEEWAY
                and now < until + _LEEWAY
                and audience
                and audience in (self._audience, [self._audience])
                and (self._issuer is None or said.get("iss") == self._issuer)
                and type(said.get("jti", "")) is type(subject) is str
                and subject.encode()  # half a surrogate cannot be
            )
            return (subject, float(until) + _LEEWAY) if usual else None
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError):
            return None
        except RecursionError:
            return None

    def _checked(self, token: str) -> tuple[str, float]:
        heads, keys = self._heads, self._keys
        try:
            # The library would take the whole token apart for this, and then once more.
            head = token.partition(".")[0]
            kid = json.loads(base64url_decode(head)).get("kid")
            # A token may leave out whose key it is, if there is one only.
            key = next(iter(keys.values())) if kid is None and len(keys) == 1 else keys[str(kid)]
            said = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
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
        if len(heads) >= _MOST_HEADS:
            heads.clear()
        heads[head] = key
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
            except EdgeveilError as error:
                self.trouble = str(error)
                return
            # New tables with the new keys: a token that is checked meanwhile against the old ones
            # goes into the old tables.
            self._keys, self._heads, self._known, self.trouble = keys, {}, _tables(), ""


def _tables() -> list[dict[bytes, tuple[str, float]]]:
    """Subjects, and until when. Many small tables: one of 100,000 takes 10 ms to grow or clear."""
    return [{} for _ in range(_TABLES)]


def _encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def read_keys(path: Path) -> dict[str, jwt.PyJWK]:
    """The keys of a JWKS file, by their ``kid``.

    Nobody else may write to the file, and with a symmetric key nobody else may read it.
    """
    try:
        text, found = read_unchanged(path)
    except OSError as error:
        raise InputError(f"cannot read the keys in {path}: {error.strerror}") from error
    try:
        listed = json.loads(text)["keys"]
        keys = {str(one["kid"]): _key(one) for one in listed}
    except (ValueError, LookupError, TypeError, AttributeError, jwt.PyJWTError) as error:
        raise InputError(
            f'{path} is no set of keys (JWKS): {{"keys": [{{"kty": ..., "kid": ...}}, ...]}} '
            "with public Ed25519 or RSA keys, or symmetric ones of 32 bytes or more"
        ) from error
    if not keys or len(keys) != len(listed):
        raise InputError(f"{path} must hold at least one key, each with a kid of its own")
    if any(one["kty"] == "oct" for one in listed):
        check_secret(path, found)
    return keys


def _key(one: dict[str, Any]) -> jwt.PyJWK:
    kinds = {("OKP", "Ed25519"): "EdDSA", ("RSA", None): "RS256", ("oct", None): "HS256"}
    algorithm = kinds[one["kty"], one.get("crv")]
    if one.get("alg", algorithm) not in (algorithm, "Ed25519") or one.get("use", "sig") != "sig":
        raise ValueError("another use or algorithm")
    if algorithm != "HS256" and "d" in one:
        raise ValueError("a private key: only the public half belongs here")
    made = jwt.PyJWK.from_dict(one, algorithm=algorithm)
    key = made.key
    size = len(key) * 8 if algorithm == "HS256" else getattr(key, "key_size", 1 << 20)
    if size < (8 * _LEAST_SECRET if algorithm == "HS256" else _LEAST_RSA):
        raise ValueError("the key is too short")
    return made


def new_key(path: Path) -> bytes:
    """Make a symmetric key, write it as a JWKS file (mode 0600) and give it: for a trial."""
    secret = secrets.token_bytes(_LEAST_SECRET)
    one = {"kty": "oct", "kid": "trial", "alg": "HS256", "k": _encoded(secret)}
    text = json.dumps({"keys": [one]})
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as handle:
        handle.write(text)
    return secret


def sign(subject: str, secret: bytes, audience: str, seconds: float = 86_400) -> str:
    """A token for a trial, signed with `new_key`'s secret."""
    said = {"sub": subject, "aud": audience, "exp": int(time.time() + seconds)}
    return jwt.encode(said, secret, algorithm="HS256", headers={"kid": "trial"})
