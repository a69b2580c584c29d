"""The curator's side: closed by default, and to nobody without the key."""

from __future__ import annotations

import json
import stat
import time

import pytest

from edgeveil.errors import EdgeveilError, InputError
from edgeveil.graph.io import save_graph
from edgeveil.ledger import Ledger
from edgeveil.serve.curator import curator_key
from tests.serve.running import request


@pytest.mark.parametrize("path", ["/status", "/charges", "/plan", "/metrics", "/advance"])
@pytest.mark.parametrize("key", [None, "wrong"])
def test_without_the_key_nothing_is_said(service, path, key):
    found = service.curator(path, key=key)
    assert found.status == 401
    assert found.json == {"error": "this needs the curator's key"}


@pytest.mark.parametrize("path", ["/advance", "/ahead"])
def test_without_the_key_nothing_is_done(service, path):
    before = service.curator("/status").json
    assert service.curator(path, "POST", key=None).status == 401
    after = service.curator("/status").json
    assert after["snapshot"] == before["snapshot"]
    assert after["ahead_left"] == 0


def test_a_members_token_does_not_open_the_curators_side_nor_the_key_the_members(service, network):
    assert service.curator("/status", key=service.token(network.nodes[0])).status == 401
    assert service.get(token=service.key).status == 401
    for path in ("/status", "/charges", "/metrics", "/advance", "/ahead", "/health"):
        assert service.get(path, network.nodes[0]).status == 404


def test_status_charges_and_metrics_hold_numbers_and_no_ids(service, network):
    service.get(member=network.nodes[20])
    status = service.curator("/status").json
    assert status["members"] == network.n_nodes
    assert status["epsilon"] == 0.5
    assert status["trouble"] == ""
    charges = service.curator("/charges").json
    assert sum(charge["lists"] for charge in charges) >= 1
    text = json.dumps([status, charges]) + service.curator("/metrics").body.decode()
    assert not any(node in text for node in network.nodes)


def test_the_plan_is_that_of_the_ledger(service):
    [first, *_] = service.curator("/plan").json
    account = Ledger.open(service.ledger).account()
    assert first["every"] == "week"
    assert first["epsilon"] * first["releases"] <= account.left + 1e-9


def test_lists_are_made_ahead_and_then_served_at_once(own_service, network):
    running = own_service.start()
    assert running.confirm("/ahead").json["left"] == network.n_nodes
    until = time.monotonic() + 60
    while running.curator("/status").json["ahead_left"]:
        assert time.monotonic() < until
        time.sleep(0.05)
    first = [running.get(member=member) for member in list(network.nodes)[3:23]]
    assert {one.status for one in first} == {200}
    # A list that is made first comes on the beat, after 0.2 s or later. A busy machine may keep
    # some of these waiting as long, but not all of them.
    assert min(one.seconds for one in first) < 0.15
    ledger = Ledger.open(running.ledger)
    assert sum((spend.n_rows or 0) for spend in ledger.charges()) == network.n_nodes


def test_a_new_snapshot_gives_new_lists_until_the_budget_is_used_up(own_service, network):
    running, member = own_service.start(), network.nodes[3]
    lists = [running.get(member=member).json]
    for number in range(2, 5):  # the cap is 2, a list costs 0.5
        changed = network.with_edge_flipped(0, number)
        save_graph(changed, running.graph, overwrite=True)
        assert running.confirm("/advance").json == {"snapshot": number}
        lists.append(running.get(member=member).json)
    assert [one["list"]["snapshot"] for one in lists] == [1, 2, 3, 4]
    assert running.get("/me/budget", member).json["left"] == 0
    assert running.confirm("/advance").json == {"snapshot": 5}
    last = running.get(member=member).json
    assert last["current"] is False
    assert last["list"] == lists[-1]["list"]
    running.stop()
    assert running.start().get(member=member).json == last  # also after it was started anew
    other = running.get(member=network.nodes[4])  # somebody who has not asked before
    assert other.json["current"] is True


@pytest.mark.parametrize("path", ["/advance", "/ahead"])
def test_members_are_charged_only_at_the_price_that_was_shown(own_service, network, path):
    running = own_service.start()
    running.get(member=network.nodes[3])
    price = running.curator(path).json
    assert (price["epsilon"], price["members"]) == (0.5, network.n_nodes)
    assert (price["least_left"], price["lists_left"]) == (1.5, 3)
    others = [{**price, name: value} for name, value in (("epsilon", 0.1), ("members", 7))]
    others += [{**price, "snapshot": 9}, {**price, "more": 1}, {}, [], "[" * 1000]
    for other in (None, *(one if isinstance(one, str) else json.dumps(one) for one in others)):
        refused = running.curator(path, "POST", body=other)
        assert refused.status == 409
        assert "price" in refused.json["error"]
    status = running.curator("/status").json
    assert (status["snapshot"], status["ahead_left"]) == (1, 0)
    assert running.curator(path, "POST", body=json.dumps(price)).status == 200


def test_the_same_consent_does_not_count_twice(own_service, network):
    running = own_service.start()
    running.get(member=network.nodes[3])
    price = running.curator("/advance").body
    statuses = [running.curator("/advance", "POST", body=price).status for _ in range(2)]
    assert statuses == [200, 409]
    assert running.curator("/status").json["snapshot"] == 2


def test_the_curator_is_told_that_the_graph_has_not_changed(own_service, network):
    running = own_service.start()
    running.get(member=network.nodes[3])
    assert running.curator("/advance").json["same_graph"] is True
    save_graph(network.with_edge_flipped(0, 1), running.graph, overwrite=True)
    assert running.curator("/advance").json["same_graph"] is False


@pytest.mark.parametrize("held", ["", "\n", "short"])
def test_a_file_without_a_key_is_no_key_that_everybody_has(tmp_path, held):
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
