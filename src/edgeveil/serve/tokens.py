"""Which member asks: the subject of a signed token (JWT), checked by PyJWT against a JWKS file.

Every refusal looks the same from outside. The algorithm is the key's, never the token's, so that
no token can choose how it is checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from base64 import urlsafe_b64encode
from collections import OrderedDict
from pathlib import Path
from typing import Any

import jwt

from edgeveil.errors import EdgeveilError, InputError
from edgeveil.serve.watched_files import check_secret, file_state, read_unchanged

_LEEWAY = 30  # seconds that two clocks may differ
_CHECK_FILE_EVERY = 1.0  # seconds
_MAX_CACHED = 50_000  # tokens, about 15 MB
_MIN_SECRET_BYTES = 32  # of an HS256 key: as many as its hash has
_MIN_RSA_BITS = 2048


class Refused(Exception):  # noqa: N818  (not an error of ours: an answer)
    """The token is not accepted. The answer does not say why."""


class TokenChecker:
    """Checks tokens. When the file of keys changes it is read again, so that keys can be rotated.

    The file is a JWKS: Ed25519 (EdDSA), RSA (RS256, at least 2,048 bits) or symmetric keys (HS256,
    at least 32 bytes), each with its own ``kid``, and no private keys; otherwise InputError. If a
    later version of the file is invalid, the old keys stay, and `last_error` says what is wrong.
    Not thread-safe: for the event loop only.
    """

    def __init__(self, keys: Path, audience: str, issuer: str | None = None) -> None:
        self._path, self._audience, self._issuer = keys, audience, issuer
        self._file_state = file_state(keys)
        self._keys = read_keys(keys)
        self._next_check = time.monotonic() + _CHECK_FILE_EVERY
        # Subject and expiry of tokens that PyJWT accepted, by SHA-256 digest; oldest first.
        self._cache: OrderedDict[bytes, tuple[str, float]] = OrderedDict()
        self.last_error = ""

    def subject(self, token: str) -> str:
        """The subject of a valid token; Refused for everything else."""
        if time.monotonic() >= self._next_check:
            self._reread()
        digest = hashlib.sha256(token.encode()).digest()
        accepted = self._cache.get(digest)
        if accepted is None:
            accepted = self._verified(token)
            while len(self._cache) >= _MAX_CACHED:
                self._cache.popitem(last=False)
            self._cache[digest] = accepted
        subject, expires = accepted
        if time.time() >= expires:
            raise Refused
        return subject

    def _verified(self, token: str) -> tuple[str, float]:
        """Subject and expiry, if PyJWT accepts the token."""
        try:
            kid: Any = jwt.get_unverified_header(token).get("kid")
            # A token may leave out its key's name if there is one key only.
            only_one = kid is None and len(self._keys) == 1
            key = next(iter(self._keys.values())) if only_one else self._keys[kid]
            claims = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience=self._audience,
                issuer=self._issuer,
                leeway=_LEEWAY,
                options={"require": ["exp", "sub", "aud"]},
            )
            subject, expires = claims["sub"], float(claims["exp"]) + _LEEWAY
            subject.encode()  # a lone surrogate is in no node set, and cannot be looked up
        except Exception:  # noqa: BLE001  (PyJWT does not name all: numbers or nesting too large)
            raise Refused from None
        if not subject:
            raise Refused
        return subject, expires

    def _reread(self) -> None:
        """Read the keys if their file has changed."""
        self._next_check = time.monotonic() + _CHECK_FILE_EVERY
        state = file_state(self._path)
        if state == self._file_state:
            return
        self._file_state = state
        try:
            self._keys = read_keys(self._path)
        except EdgeveilError as error:
            self.last_error = str(error)
            return
        self._cache.clear()  # tokens of a removed key must not stay valid
        self.last_error = ""


def read_keys(path: Path) -> dict[str, jwt.PyJWK]:
    """The keys of a JWKS file, by their ``kid``.

    Nobody else may write to the file, and with a symmetric key nobody else may read it.
    """
    try:
        text, status = read_unchanged(path)
    except OSError as error:
        raise InputError(f"cannot read the keys in {path}: {error.strerror}") from error
    try:
        listed = json.loads(text)["keys"]
        keys = {str(key["kid"]): _key(key) for key in listed}
    except (ValueError, LookupError, TypeError, AttributeError, jwt.PyJWTError) as error:
        raise InputError(
            f'{path} is no set of keys (JWKS): {{"keys": [{{"kty": ..., "kid": ...}}, ...]}} '
            "with public Ed25519 or RSA keys, or symmetric ones of 32 bytes or more"
        ) from error
    if not keys or len(keys) != len(listed):
        raise InputError(f"{path} must hold at least one key, each with a kid of its own")
    if any(key["kty"] == "oct" for key in listed):
        check_secret(path, status)
    return keys


def _key(raw: dict[str, Any]) -> jwt.PyJWK:
    kinds = {("OKP", "Ed25519"): "EdDSA", ("RSA", None): "RS256", ("oct", None): "HS256"}
    algorithm = kinds[raw["kty"], raw.get("crv")]
    if raw.get("alg", algorithm) not in (algorithm, "Ed25519") or raw.get("use", "sig") != "sig":
        raise ValueError("another use or algorithm")
    if algorithm != "HS256" and "d" in raw:
        raise ValueError("a private key: only the public half belongs here")
    jwk = jwt.PyJWK.from_dict(raw, algorithm=algorithm)
    key = jwk.key
    if algorithm == "HS256" and len(key) < _MIN_SECRET_BYTES:
        raise ValueError("the key is too short")
    if algorithm == "RS256" and key.key_size < _MIN_RSA_BITS:
        raise ValueError("the key is too short")
    return jwk


def new_key(path: Path) -> bytes:
    """Make a symmetric key for tests, write it as a JWKS file (mode 0600) and return it."""
    secret = secrets.token_bytes(_MIN_SECRET_BYTES)
    encoded = urlsafe_b64encode(secret).rstrip(b"=").decode()
    text = json.dumps({"keys": [{"kty": "oct", "kid": "trial", "alg": "HS256", "k": encoded}]})
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as handle:
        handle.write(text)
    return secret


def symmetric_key(path: Path) -> tuple[str, bytes]:
    """Name and secret of the first symmetric key in a JWKS file."""
    for kid, key in read_keys(path).items():
        if key.algorithm_name == "HS256":
            return kid, key.key
    raise InputError(
        f"{path} holds public keys only, which cannot sign: get tokens from your sign-on, or name "
        "another file for test tokens"
    )


def sign(
    subject: str, secret: bytes, audience: str, seconds: float = 86_400, kid: str = "trial"
) -> str:
    """A token for tests, signed with a symmetric key."""
    claims = {"sub": subject, "aud": audience, "exp": int(time.time() + seconds)}
    return jwt.encode(claims, secret, algorithm="HS256", headers={"kid": kid})
