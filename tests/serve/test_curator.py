"""The curator's side: closed by default, and to nobody without the key."""

from __future__ import annotations

import json
import stat

import pytest

from edgeveil.errors import EdgeveilError, InputError
from edgeveil.serve.curator import curator_key
from tests.serve.running import request


@pytest.mark.parametrize("path", ["/status", "/charges", "/plan", "/metrics", "/refresh"])
@pytest.mark.parametrize("key", [None, "wrong"])
def test_curator_side_without_the_key_answers_nothing(service, path, key):
    answer = service.curator(path, key=key)
    assert answer.status == 401
    assert answer.json == {"error": "this needs the curator's key"}


def test_curator_side_without_the_key_refreshes_nothing(service):
    price = service.curator("/refresh").body
    assert service.curator("/refresh", "POST", key=None, body=price).status == 401
    assert service.curator("/status").json["refresh"]["members"] == 0


def test_member_token_and_curator_key_open_only_their_side(service, network):
    assert service.curator("/status", key=service.token(network.nodes[0])).status == 401
    assert service.get(token=service.key).status == 401
    for path in ("/status", "/charges", "/metrics", "/refresh", "/health"):
        assert service.get(path, network.nodes[0]).status == 404


def test_status_charges_and_metrics_hold_numbers_and_no_ids(service, network):
    service.get(member=network.nodes[20])
    status = service.curator("/status").json
    assert status["members"] == network.n_nodes
    assert status["epsilon"] == 1.0
    assert status["last_error"] == ""
    charges = service.curator("/charges").json
    assert [charge["members"] for charge in charges["series"]] == [network.n_nodes]
    text = json.dumps([status, charges]) + service.curator("/metrics").body.decode()
    assert not any(node in text for node in network.nodes)


@pytest.mark.parametrize("held", ["", "\n", "short"])
def test_empty_key_file_is_refused(tmp_path, held):
    path = tmp_path / "curator.key"
    path.touch(mode=0o600)
    path.write_text(held)  # as after a power failure
    with pytest.raises(InputError, match="holds no key"):
        curator_key(path)
    path.unlink()
    assert curator_key(path) == curator_key(path)
    path.chmod(0o640)
    with pytest.raises(EdgeveilError, match="others can read"):
        curator_key(path)


def test_the_key_and_the_lists_are_for_their_owner_alone(service):
    folder = service.state
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in [*folder.iterdir(), service.folder / "keys.json", service.ledger]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(service.artifacts.stat().st_mode) == 0o700


def test_the_curators_page_is_there_without_data(service):
    page = request(service.curator_port, "/")
    assert request(service.curator_port, "/openapi.json").status == 404
    assert page.status == 200
    assert b"For the curator" in page.body
