"""`edgeveil token`: test tokens that the service accepts."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("starlette")

from edgeveil.serve.tokens import Refused, TokenChecker
from tests.serve.test_tokens import ED, jwk, write


@pytest.fixture
def members(folder):
    (folder / "members.txt").write_text("ann\nbob\n")
    return folder


def test_a_key_is_made_once_and_the_service_accepts_its_tokens(run, members):
    first = run("token ann --keys keys.json --audience app")
    assert first.returncode == 0
    assert "a new symmetric key" in first.stderr
    path = members / "keys.json"
    assert path.stat().st_mode & 0o777 == 0o600
    key = path.read_text()
    second = run("token bob --keys keys.json --audience app --hours 1")
    assert second.stderr == ""
    assert path.read_text() == key
    checker = TokenChecker(path, "app")
    assert [checker.subject(token.stdout.strip()) for token in (first, second)] == ["ann", "bob"]
    with pytest.raises(Refused):
        TokenChecker(path, "other").subject(first.stdout.strip())


def test_a_member_who_is_unknown_is_said_to_be(run, members):
    assert run("token ann --keys keys.json --nodes members.txt").returncode == 0
    unknown = run("token anm --keys keys.json --nodes members.txt")
    assert unknown.returncode == 2
    assert "anm" in unknown.stderr
    assert unknown.stdout == ""
    assert run("token alice --keys keys.json --graph follows.csv").returncode == 0
    assert run("token nobody --keys keys.json --graph follows.csv").returncode == 2


@pytest.mark.parametrize("word", ["07", "x", "-1", "99"])
def test_integer_ids_are_those_that_the_service_knows(run, members, word):
    (members / "numbers.txt").write_text("1\n7\n")
    assert run("token 7 --keys keys.json --nodes numbers.txt").returncode == 0
    assert run(f"token --keys keys.json --nodes numbers.txt -- {word}").returncode == 2


def test_public_keys_cannot_sign(run, members):
    write(members / "keys.json", jwk(ED, "ed"))
    refused = run("token ann --keys keys.json")
    assert refused.returncode == 4
    assert "public keys only" in refused.stderr
    (members / "keys.json").write_text(json.dumps({"keys": []}))
    assert run("token ann --keys keys.json").returncode == 4


def test_wrong_hours_are_refused_before_a_key_is_made(run, members):
    assert run("token ann --keys keys.json --hours 0").returncode == 2
    assert not (members / "keys.json").exists()
