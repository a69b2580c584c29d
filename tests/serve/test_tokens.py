"""A token is accepted for one reason, and refused, in one way, for all others."""

from __future__ import annotations

import base64
import json
import math
import os
import time

import jwt
import pytest

pytest.importorskip("starlette")

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from edgeveil.errors import InputError
from edgeveil.serve import tokens as module
from edgeveil.serve.tokens import Refused, TokenChecker, new_key, sign

ED = ed25519.Ed25519PrivateKey.generate()
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SMALL_RSA = rsa.generate_private_key(public_exponent=65537, key_size=1024)
SECRET = os.urandom(32)


def text(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def jwk(key, kid):
    if isinstance(key, bytes):
        return {"kty": "oct", "kid": kid, "k": text(key)}
    public = key.public_key()
    if isinstance(key, ed25519.Ed25519PrivateKey):
        raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return {"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": text(raw)}
    numbers = public.public_numbers()
    size = (numbers.n.bit_length() + 7) // 8
    n, e = numbers.n.to_bytes(size, "big"), numbers.e.to_bytes(3, "big")
    return {"kty": "RSA", "kid": kid, "n": text(n), "e": text(e)}


def write(path, *keys):
    path.touch(mode=0o600)
    path.write_text(json.dumps({"keys": list(keys)}))
    return path


@pytest.fixture
def checker(tmp_path):
    keys = jwk(ED, "ed"), jwk(RSA, "rsa"), jwk(SECRET, "hs")
    return TokenChecker(write(tmp_path / "keys.json", *keys), "edgeveil", "issuer")


def claims(**changed):
    now = int(time.time())
    said = {"sub": "ann", "aud": "edgeveil", "iss": "issuer", "exp": now + 600, **changed}
    return {name: value for name, value in said.items() if value is not None}


def token(key=ED, algorithm="EdDSA", kid="ed", **changed):
    return jwt.encode(claims(**changed), key, algorithm=algorithm, headers={"kid": kid})


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"),
    [(ED, "EdDSA", "ed"), (RSA, "RS256", "rsa"), (SECRET, "HS256", "hs")],
    ids=["EdDSA", "RS256", "HS256"],
)
def test_a_token_of_each_kind_of_key_names_its_subject(checker, key, algorithm, kid):
    assert checker.subject(token(key, algorithm, kid)) == "ann"
    assert checker.subject(token(key, algorithm, kid, aud=["other", "edgeveil"])) == "ann"


def unsigned():
    head, body = (
        text(json.dumps(part).encode()) for part in ({"alg": "none", "kid": "ed"}, claims())
    )
    return f"{head}.{body}."


def confused():
    """Signed by HMAC with the public key's text as secret: the classical trick."""
    public = RSA.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    import hashlib
    import hmac

    head = text(json.dumps({"alg": "HS256", "kid": "rsa"}).encode())
    body = text(json.dumps(claims()).encode())
    signature = hmac.new(public, f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{text(signature)}"


def tampered():
    head, _, signature = token().split(".")
    return f"{head}.{text(json.dumps(claims(sub='bob')).encode())}.{signature}"


NOW = int(time.time())
BAD = {
    "none": unsigned(),
    "another key's algorithm": confused(),
    "another body": tampered(),
    "expired": token(exp=NOW - 60),
    "not yet valid": token(nbf=NOW + 3600),
    "issued in the future": token(iat=NOW + 3600),
    "another audience": token(aud="other"),
    "no audience": token(aud=None),
    "no subject": token(sub=None),
    "empty subject": token(sub=""),
    "no expiry": token(exp=None),
    "another issuer": token(iss="other"),
    "no issuer": token(iss=None),
    "a foreign key": token(ed25519.Ed25519PrivateKey.generate()),
    "an unknown kid": token(kid="other"),
    "no kid among several": jwt.encode(claims(), ED, algorithm="EdDSA"),
    "a kid that is a path": token(kid="../../etc/passwd"),
    "empty": "",
    "dots": "..",
    "no token": "abc",
    "not ASCII": "ä.ö.ü",
    "deep": ".".join(
        [text(json.dumps({"alg": "EdDSA", "kid": "ed"}).encode()), text(b"[" * 1000), "AA"]
    ),
    "an expiry that is no number": jwt.api_jws.encode(
        json.dumps(claims(exp="soon")).encode(), ED, algorithm="EdDSA", headers={"kid": "ed"}
    ),
    "an expiry beyond all bounds": jwt.api_jws.encode(
        json.dumps(claims(exp=10**400)).encode(), ED, algorithm="EdDSA", headers={"kid": "ed"}
    ),
    "an endless expiry": jwt.api_jws.encode(
        json.dumps(claims(exp=math.inf)).encode(), ED, algorithm="EdDSA", headers={"kid": "ed"}
    ),
    "a subject that is no text": token(sub="\ud800"),
    "a body that is no object": jwt.api_jws.encode(
        b"[1]", ED, algorithm="EdDSA", headers={"kid": "ed"}
    ),
    "a critical header": jwt.encode(
        claims(), ED, algorithm="EdDSA", headers={"kid": "ed", "crit": ["exp"]}
    ),
}


@pytest.mark.parametrize("why", BAD)
def test_every_other_token_is_refused_without_a_word(checker, why):
    with pytest.raises(Refused) as refusal:
        checker.subject(BAD[why])
    assert refusal.value.args == ()


def test_a_token_that_was_accepted_ends_with_its_expiry(checker, monkeypatch):
    short = token(exp=int(time.time()) + 600)
    assert checker.subject(short) == "ann"
    later = time.time() + 3600
    monkeypatch.setattr(module.time, "time", lambda: later)
    with pytest.raises(Refused):
        checker.subject(short)


def test_after_rotation_tokens_of_the_removed_key_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_CHECK_FILE_EVERY", 0.0)
    path = write(tmp_path / "keys.json", jwk(ED, "ed"), jwk(SECRET, "hs"))
    checker = TokenChecker(path, "edgeveil", "issuer")
    old, new = token(), token(SECRET, "HS256", "hs")
    assert checker.subject(old) == checker.subject(new) == "ann"
    write(tmp_path / "new.json", jwk(SECRET, "hs")).replace(path)
    assert checker.subject(new) == "ann"
    with pytest.raises(Refused):
        checker.subject(old)


def test_a_broken_file_of_keys_is_not_taken_over(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_CHECK_FILE_EVERY", 0.0)
    path = write(tmp_path / "keys.json", jwk(ED, "ed"))
    checker = TokenChecker(path, "edgeveil", "issuer")
    path.write_text("{")
    assert checker.subject(token()) == "ann"
    assert "no set of keys" in checker.last_error
    write(path, jwk(SECRET, "hs"))
    with pytest.raises(Refused):
        checker.subject(token())
    assert checker.last_error == ""


def test_what_was_accepted_is_remembered_and_no_more_than_fits(checker, monkeypatch):
    monkeypatch.setattr(module, "_MAX_CACHED", 3)
    many = [token(jti=str(number)) for number in range(6)]
    assert [checker.subject(accepted) for accepted in many] == ["ann"] * 6
    assert len(checker._cache) == 3
    monkeypatch.setattr(module.jwt, "decode", None)  # not asked again
    assert checker.subject(many[-1]) == "ann"
    with pytest.raises(Refused):
        checker.subject(many[0])


def test_token_changed_in_one_character_is_refused(checker):
    good = token()
    assert checker.subject(good) == "ann"
    for at in range(len(good)):
        for other in "Aa=.":
            changed = f"{good[:at]}{other}{good[at + 1 :]}"
            if changed != good and not _same_bytes(changed, good):
                with pytest.raises(Refused):
                    checker.subject(changed)


def _same_bytes(first, second):
    """The last character of a part has bits that mean nothing; they are not signed in the last."""
    *signed, signature = first.split(".")
    *others, right = second.split(".")
    pad = "=" * (-len(right) % 4)
    try:
        decoded = base64.urlsafe_b64decode(signature + pad)
    except ValueError:
        return False
    return signed == others and decoded == base64.urlsafe_b64decode(right + pad)


@pytest.mark.parametrize("audience", ["", None, [""], ["other"], {"edgeveil": 1}, 1, True])
def test_no_other_audience_is_accepted(checker, audience):
    raw = json.dumps(claims() | {"aud": audience}).encode()
    forged = jwt.api_jws.encode(raw, ED, algorithm="EdDSA", headers={"kid": "ed"})
    with pytest.raises(Refused):
        checker.subject(forged)


private = {**jwk(ED, "ed"), "d": text(b"x" * 32)}


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [private],
        [jwk(b"short", "hs")],
        [jwk(SMALL_RSA, "rsa")],
        [{**jwk(ED, "ed"), "use": "enc"}],
        [{**jwk(RSA, "rsa"), "alg": "HS256"}],
        [{"kty": "EC", "crv": "P-256", "kid": "ec", "x": "AA", "y": "AA"}],
        [{"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": "short"}],
        [jwk(ED, "same"), jwk(RSA, "same")],
        [{k: v for k, v in jwk(ED, "ed").items() if k != "kid"}],
        ["text"],
    ],
)
def test_unreliable_key_set_is_refused_at_start(tmp_path, keys):
    with pytest.raises(InputError, match="key"):
        TokenChecker(write(tmp_path / "keys.json", *keys), "edgeveil")


def test_a_trial_key_is_for_its_owner_alone(tmp_path):
    path = tmp_path / "keys.json"
    secret = new_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert TokenChecker(path, "edgeveil").subject(sign("bob", secret, "edgeveil")) == "bob"
    with pytest.raises(InputError, match="cannot read"):
        TokenChecker(tmp_path / "none.json", "edgeveil")
