"""The short way for usual tokens accepts what the library accepts, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
import random
import time

import jwt
import pytest

pytest.importorskip("starlette")

from edgeveil.serve.tokens import Refused, Tokens
from tests.serve.test_tokens import ED, RSA, SECRET, jwk, text, write

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
KINDS = {"hs": "HS256", "ed": "EdDSA", "rsa": "RS256"}
ABSENT = object()
NOW = int(time.time())
# Nothing nearer to an end than the minutes that this may take.
TIMES = [NOW + 6000, NOW - 6000, NOW - 6000.5, NOW + 6000.5, str(NOW + 6000), str(NOW - 6000)]
ODD = [ABSENT, None, True, False, 0, -1, 10**400, -(10**400), math.inf, math.nan, "", "x", [], {}]
CLAIMS = {
    "exp": [*TIMES, *ODD, [NOW + 6000]],
    "iat": [*TIMES, *ODD],
    "nbf": [*TIMES, *ODD],
    "aud": [*ODD, ["edgeveil"], ["edgeveil", "b"], ["b", "edgeveil"], "b", ["b"], [["edgeveil"]],
            ["edgeveil", 1], {"edgeveil": 1}, "edgeveil ", "Edgeveil", 1],
    "iss": [*ODD, "other", ["issuer"], {"issuer": 1}],
    "sub": [*ODD, "\ud800", "ä", "bob", "a\0b", ["ann"], 7],
    "jti": [*ODD, "one"],
    "else": [*ODD, {"sub": "bob"}],
}  # fmt: skip
HEADS = {
    "alg": ["none", "None", "HS256", "EdDSA", "RS256", "HS512", "hs256", *ODD],
    "kid": ["hs", "ed", "rsa", "other", *ODD],
    "typ": ["JWS", *ODD],
    "crit": [["exp"], ["b64"], "b64", *ODD],
    "b64": [*ODD],
    "jwk": [{"kty": "oct", "k": text(SECRET)}],
}
ENCODINGS = ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1"]


def changed(draw, usual, others):
    """A usual object with up to two members replaced, added or left out."""
    said = dict(usual)
    for name in draw.sample(sorted(others), draw.choice([0, 0, 1, 1, 1, 2])):
        said[name] = draw.choice(others[name])
    return {name: value for name, value in said.items() if value is not ABSENT}


def written(draw, said, odd=0.1):
    """JSON of an object, now and then in an unusual form: repeated names, spaces, encodings."""
    raw = json.dumps(said, separators=draw.choice([(",", ":"), (" , ", " : ")]))
    if draw.random() < odd:
        more = draw.choice(['"sub":"eve"', '"exp":1', '"aud":"b"', '"kid":"ed"', '"alg":"none"'])
        first = draw.random() < 0.5
        raw = f"{{{more},{raw[1:]}" if first else f"{raw[:-1]},{more}}}"
    if draw.random() < odd:
        raw = draw.choice([f"\n{raw} ", f"[{raw}]", raw[:-1], f"{raw}0", "[" * 1200, "null", '"a"'])
    return raw.encode(draw.choice(ENCODINGS) if draw.random() < odd else "utf-8", "replace")


def signed(draw, head, body, kind):
    """The token, mostly by the key that its kind says."""
    message = f"{text(head)}.{text(body)}".encode()
    if draw.random() < 0.05:
        message += b" "
    if kind == "HS256":
        signature = hmac.digest(SECRET, message, hashlib.sha256)
    elif kind == "EdDSA":
        signature = ED.sign(message)
    else:
        signature = jwt.get_algorithm_by_name("RS256").sign(message, RSA)
    return f"{text(head)}.{text(body)}.{text(signature)}"


def spoilt(draw, token):
    """Characters changed, added or left out; the last of a part has bits that mean nothing."""
    at, one = draw.randrange(len(token)), draw.choice(f"{ALPHABET}=.+/ \n\0ä")
    parts = token.split(".")
    which = draw.randrange(3)
    last = ALPHABET.find(parts[which][-1:])
    same = [*parts]
    same[which] = parts[which][:-1] + ALPHABET[last ^ draw.choice([1, 2, 3])]
    padded = [*parts]
    padded[which] += draw.choice(["=", "==", "===", "A"])
    return draw.choice(
        [
            f"{token[:at]}{one}{token[at + 1 :]}",
            f"{token[:at]}{one}{token[at:]}",
            f"{token[:at]}{token[at + 1 :]}",
            ".".join(same),
            ".".join(padded),
            ".".join(draw.sample(parts, 3)),
            ".".join(parts[: draw.randrange(3)]),
            f"{token}.{one}",
        ]
    )


def library_says(token, keys):
    """Subject and expiry as the library has them, or None."""
    try:
        kid = jwt.get_unverified_header(token)["kid"]
        said = jwt.decode(
            token,
            keys[kid],
            algorithms=[KINDS[kid]],
            audience="edgeveil",
            issuer="issuer",
            leeway=30,
            options={"require": ["exp", "sub", "aud"]},
        )
        said["sub"].encode()
        float(said["exp"])
        return said["sub"] or None
    except (jwt.PyJWTError, LookupError, ValueError, OverflowError):
        return None


def tokens(draw, count):
    """Usual ones, and others."""
    usual = {"sub": "ann", "aud": "edgeveil", "iss": "issuer", "exp": NOW + 6000, "iat": NOW - 60}
    for number in range(count):
        kid = draw.choices([*KINDS], [8, 3, 1])[0]
        top = {"alg": KINDS[kid], "kid": kid}
        head = json.dumps(top).encode()
        if draw.random() < 0.2:
            head = written(draw, changed(draw, top, HEADS))
        body = written(draw, changed(draw, {**usual, "sub": f"ann{number % 7}"}, CLAIMS))
        made = signed(draw, head, body, KINDS[kid])
        yield spoilt(draw, made) if draw.random() < 0.3 else made


@pytest.mark.parametrize("seed", range(4))
def test_our_short_way_and_the_library_agree_on_thousands_of_tokens(tmp_path, seed):
    path = write(tmp_path / "keys.json", jwk(SECRET, "hs"), jwk(ED, "ed"), jwk(RSA, "rsa"))
    keys = {"hs": SECRET, "ed": ED.public_key(), "rsa": RSA.public_key()}
    checker, draw = Tokens(path, "edgeveil", "issuer"), random.Random(seed)
    short = long = refused = 0
    for token in tokens(draw, 3000):
        right, usual = library_says(token, keys), checker._usual(token)
        if usual is not None:
            assert usual == checker._checked(token), token
            assert usual[0] == right, token
        for _ in range(2):  # new, and known
            try:
                found = checker.subject(token)
            except Refused:
                found = None
            assert found == right, token
        short += usual is not None
        long += usual is None and right is not None
        refused += right is None
    assert min(short - 400, long - 100, refused - 700) > 0, (short, long, refused)


def test_a_usual_token_is_checked_by_the_short_way_once_its_head_is_known(tmp_path):
    path = write(tmp_path / "keys.json", jwk(SECRET, "hs"), jwk(ED, "ed"), jwk(RSA, "rsa"))
    checker = Tokens(path, "edgeveil")
    for kid, key in (("hs", SECRET), ("ed", ED), ("rsa", RSA)):
        said = {"sub": "ann", "aud": "edgeveil", "exp": NOW + 6000}
        first, second = (
            jwt.encode({**said, "sub": name}, key, KINDS[kid], {"kid": kid}) for name in "ab"
        )
        assert checker._usual(first) is None
        assert checker.subject(first) == "a"
        assert checker._usual(second) == ("b", NOW + 6030.0)


def test_an_empty_audience_is_none(tmp_path):
    checker = Tokens(write(tmp_path / "keys.json", jwk(SECRET, "hs")), "")
    said = {"sub": "ann", "exp": NOW + 6000}
    several, none = (
        jwt.encode({**said, "aud": one}, SECRET, "HS256", {"kid": "hs"}) for one in ([""], "")
    )
    assert checker.subject(several) == "ann"  # as the library has it
    with pytest.raises(Refused):
        checker.subject(none)


def test_heads_that_differ_in_every_token_do_not_fill_the_memory(tmp_path):
    checker = Tokens(write(tmp_path / "keys.json", jwk(SECRET, "hs")), "edgeveil")
    said = {"sub": "ann", "aud": "edgeveil", "exp": NOW + 6000}
    for number in range(200):
        head = {"kid": "hs", "nonce": base64.b64encode(bytes([number])).decode()}
        assert checker.subject(jwt.encode(said, SECRET, "HS256", head)) == "ann"
    assert len(checker._heads) <= 64
