"""Whatever the service relies on belongs to its user, and secrets are readable for nobody else."""

from __future__ import annotations

import json
import os

import pytest

pytest.importorskip("starlette")

from edgeveil.cli.serve import _state_folder
from edgeveil.errors import EdgeveilError
from edgeveil.serve.curator import curator_key
from edgeveil.serve.tokens import TokenChecker, new_key
from tests.serve.test_tokens import ED, SECRET, jwk


@pytest.fixture
def as_another_user(monkeypatch):
    """Go on as a user who owns none of the files so far; root may read them all the same."""
    return lambda: monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


def keys_file(folder, *keys, mode=0o600):
    path = folder / "keys.json"
    path.write_text(json.dumps({"keys": keys}))
    path.chmod(mode)
    return path


def test_a_folder_of_another_user_is_refused(tmp_path, as_another_user):
    _state_folder(tmp_path / "state")
    as_another_user()
    with pytest.raises(EdgeveilError, match="belongs to the user"):
        _state_folder(tmp_path / "state")


def test_a_folder_for_compiled_code_of_another_user_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    (tmp_path / "state" / "compiled").mkdir(parents=True)
    (tmp_path / "state").chmod(0o700)
    (tmp_path / "state" / "compiled").chmod(0o777)
    with pytest.raises(EdgeveilError, match="others can write"):
        _state_folder(tmp_path / "state")


def test_a_curators_key_of_another_user_is_refused(tmp_path, as_another_user):
    key = curator_key(tmp_path / "curator.key")
    assert curator_key(tmp_path / "curator.key") == key
    as_another_user()
    with pytest.raises(EdgeveilError, match="belongs to the user"):
        curator_key(tmp_path / "curator.key")


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o660, 0o666])
def test_a_symmetric_key_that_others_can_read_is_refused(tmp_path, mode):
    path = keys_file(tmp_path, jwk(ED, "ed"), jwk(SECRET, "hs"), mode=mode)
    with pytest.raises(EdgeveilError, match="others can"):
        TokenChecker(path, "edgeveil")
    path.chmod(0o600)
    TokenChecker(path, "edgeveil")


def test_a_symmetric_key_of_another_user_is_refused(tmp_path, as_another_user):
    new_key(tmp_path / "keys.json")
    as_another_user()
    with pytest.raises(EdgeveilError, match="belongs to the user"):
        TokenChecker(tmp_path / "keys.json", "edgeveil")


def test_public_keys_writable_by_others_are_refused(tmp_path):
    """Keys that others can only read are accepted."""
    TokenChecker(keys_file(tmp_path, jwk(ED, "ed"), mode=0o644), "edgeveil")
    with pytest.raises(EdgeveilError, match="others can write"):
        TokenChecker(keys_file(tmp_path, jwk(ED, "ed"), mode=0o646), "edgeveil")
