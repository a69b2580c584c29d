"""What members ask to be hidden is hidden at once, stays so, and comes back when they say so."""

from __future__ import annotations

import json
import sqlite3
import stat

import pytest

pytest.importorskip("starlette")

import edgeveil as ev
from edgeveil.errors import EdgeveilError
from edgeveil.graph.nodes import NodeSet
from edgeveil.series.history import History
from edgeveil.serve import choices as module
from edgeveil.serve import served_series
from edgeveil.serve.choices import Choices, TooMany
from edgeveil.serve.rules import Rules
from edgeveil.serve.served_series import SeriesLists
from tests.serve.test_series import place_of, wait_until, without


def hides(choices, member, other):
    return any(other in names for names in choices.hidden(member))


# -- the file -------------------------------------------------------------------------------


def test_choices_are_in_a_private_file_and_there_after_a_restart(tmp_path):
    path = tmp_path / "choices.db"
    choices = Choices(path)
    choices.dismiss("ann", "bob")
    choices.suggest("cem", False)
    again = Choices(path)
    assert hides(again, "ann", "bob")
    assert not hides(again, "bob", "ann")
    assert hides(again, "ann", "cem")
    assert hides(again, "bob", "cem")
    assert (again.dismissed("ann"), again.is_suggested("cem")) == (["bob"], False)
    assert again.revision == choices.revision == 2
    again.undo_dismiss("ann", "bob")
    again.suggest("cem", True)
    assert not hides(Choices(path), "ann", "bob")
    assert not hides(Choices(path), "ann", "cem")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    with pytest.raises(EdgeveilError, match="others can read"):
        Choices(path)


def test_instances_with_one_file_follow_one_another(tmp_path):
    first, second = Choices(tmp_path / "choices.db"), Choices(tmp_path / "choices.db")
    first.dismiss("ann", "bob")
    assert not hides(second, "ann", "bob")
    second.follow()
    assert hides(second, "ann", "bob")
    assert second.changed == first.changed == {"ann": 1}


def test_a_choice_that_is_repeated_changes_nothing(tmp_path):
    choices = Choices(tmp_path / "choices.db")
    for _ in range(2):
        choices.dismiss("ann", "bob")
        choices.suggest("ann", True)
    assert choices.revision == 1


def test_a_member_cannot_fill_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_DISMISSED", 2)
    choices = Choices(tmp_path / "choices.db")
    for name in ("a", "b"):
        choices.dismiss("ann", name)
    with pytest.raises(TooMany):
        choices.dismiss("ann", "c")
    choices.dismiss("bob", "c")


def test_forgotten_members_are_erased_from_the_choices_file(tmp_path):
    path = tmp_path / "choices.db"
    choices = Choices(path)
    choices.dismiss("ann", "gone person")
    choices.dismiss("gone person", "ann")
    choices.suggest("gone person", False)
    choices.dismiss("ann", "bob")
    choices.forget(NodeSet.of(["ann", "bob"]))
    assert choices.dismissed("ann") == ["bob"]
    assert choices.dismissed("gone person") == []
    assert choices.is_suggested("gone person")
    assert b"gone person" not in path.read_bytes()


def test_failed_store_refuses_the_choice_completely(tmp_path):
    path = tmp_path / "choices.db"
    choices = Choices(path)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("CREATE TRIGGER full BEFORE INSERT ON dismissed BEGIN "
                  "SELECT RAISE(ABORT, 'the disk is full'); END")  # fmt: skip
    with pytest.raises(EdgeveilError, match="full"):
        choices.dismiss("ann", "bob")
    assert not hides(choices, "ann", "bob")
    database.execute("DROP TRIGGER full")
    choices.dismiss("ann", "bob")
    assert hides(Choices(path), "ann", "bob")


# -- the curator's files ----------------------------------------------------------------------


def test_rules_follow_their_files_and_survive_a_wrong_one(tmp_path):
    among, pairs = tmp_path / "among.txt", tmp_path / "blocks.csv"
    among.write_text("ann\nbob\ncem\n")
    pairs.write_text("ann,bob\ncem,ann,one\n")
    rules = Rules(among, pairs)
    first = rules.digest
    hidden = [sorted(rules.hidden(name)) for name in ("ann", "bob", "cem", "dan")]
    assert hidden == [["bob"], ["ann"], ["ann"], []]
    assert rules.candidates == {"ann", "bob", "cem"}
    pairs.write_text("ann,bob,sideways\n")
    rules.follow()
    assert "bob" in rules.hidden("ann")
    assert "line 1" in rules.last_error
    pairs.write_text("bob,cem\n")
    rules.follow()
    assert rules.last_error == ""
    assert "bob" in rules.hidden("cem")
    assert "bob" not in rules.hidden("ann")
    assert rules.digest != first


# -- lists ------------------------------------------------------------------------------------


@pytest.fixture
def lists(network, tmp_path):
    """The lists of a series, without a service around them; gives what opens them."""
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=2.0)
    ev.refresh(network, ledger=ledger, epsilon=1.0, label="friends", date="2026-01-01")
    copies = tmp_path / "copies"
    copies.mkdir(mode=0o700)

    def opened(**rules):
        own_ledger = ev.Ledger.open(tmp_path / "ledger")
        served = SeriesLists(
            lambda: network, own_ledger, "friends", 5, copies, rules=Rules(**rules)
        )
        served._follow()
        return served

    return opened


def test_candidates_are_the_only_names_on_served_lists(lists, network, tmp_path):
    (tmp_path / "among.txt").write_text("\n".join(list(network.nodes)[:50]))
    served = lists(candidates=tmp_path / "among.txt")
    named = {name for member in network.nodes for name in names_of(served, member)}
    assert len(named) > 5
    assert named <= set(list(network.nodes)[:50])
    (tmp_path / "among.txt").write_text("\n".join(list(network.nodes)[:40]))
    served.rules.follow()
    named = {name for member in network.nodes for name in names_of(served, member)}
    assert named <= set(list(network.nodes)[:40])


def names_of(served, member):
    published = served.published
    slot = published.get(published.nodes.find(member))
    answer = json.loads(served.answer(published.lists, member, slot))
    return [row["node"] for row in answer["suggestions"]]


def test_a_dismissed_name_is_gone_at_once_and_back_when_undone(lists, network):
    served, member = lists(), network.nodes[3]
    before = names_of(served, member)
    served.choices.dismiss(member, before[1])
    now = names_of(served, member)
    assert now[:4] == [before[0], *before[2:]]
    assert len(now) == 5
    served._renew_slots()
    assert before[1] not in names_of(served, member)
    again = lists()  # after a restart
    assert before[1] not in names_of(again, member)
    again.choices.undo_dismiss(member, before[1])
    names_of(again, member)  # whoever asks next makes it known
    again._renew_slots()
    assert before[1] in names_of(again, member)
    assert again.ledger.account(member).charged == 1.0


def test_a_list_is_filled_again_when_the_reserve_is_used_up(lists, network):
    served, member = lists(), network.nodes[3]
    for _ in range(12):
        for name in names_of(served, member):
            served.choices.dismiss(member, name)
    short = names_of(served, member)
    assert len(short) < 5  # 60 names were dismissed, and 25 are in a slot
    served._renew_slots()
    full = names_of(served, member)
    assert len(full) == 5
    assert not set(full) & set(served.choices.dismissed(member))


def test_opted_out_member_is_on_no_list(lists, network):
    served = lists()
    everybody = list(network.nodes)
    gone = names_of(served, everybody[3])[0]
    served.choices.suggest(gone, False)

    def on_a_list():
        return any(gone in names_of(served, member) for member in everybody)

    assert not on_a_list()
    assert all(len(names_of(served, member)) == 5 for member in everybody)
    changed = network.with_edge_flipped(0, 1)
    ev.refresh(changed, ledger=served.ledger, epsilon=1.0, label="friends", date="2026-01-08")
    served._follow()
    assert served.published.snapshot == 2
    assert not on_a_list()
    served.choices.suggest(gone, True)
    ev.refresh(network, ledger=served.ledger, epsilon=1.0, label="friends", date="2026-01-15")
    served._follow()
    assert on_a_list()


def test_files_of_rules_that_change_hold_without_a_restart(lists, network, tmp_path):
    (tmp_path / "blocks.csv").write_text("")
    served, member = lists(exclude=tmp_path / "blocks.csv"), network.nodes[3]
    first, second = names_of(served, member)[:2]
    (tmp_path / "blocks.csv").write_text(f'"{member}","{first}"\n"{second}","{member}"\n')
    served.rules.follow()
    assert not {first, second} & set(names_of(served, member))
    served._follow()
    assert len(names_of(served, member)) == 5
    assert not {first, second} & set(names_of(served, member))
    assert member not in names_of(served, first)


def test_lists_follow_the_series_though_choices_cannot_be_read(
    lists, network, tmp_path, monkeypatch
):
    monkeypatch.setattr(served_series, "_CHECK_EVERY_AFTER_ERROR", 0.1)
    served = lists()
    (tmp_path / "copies" / "choices.db").write_bytes(b"no database" * 1000)
    served.start()
    try:
        ev.refresh(network, ledger=served.ledger, epsilon=1.0, label="friends", date="2026-01-08")
        wait_until(lambda: served.published.snapshot == 2)
        wait_until(lambda: "members' choices" in served.last_error)
    finally:
        served.stop()
    assert len(names_of(served, network.nodes[3])) == 5


# -- over HTTP --------------------------------------------------------------------------------


def listed(running, member):
    return [row["node"] for row in running.get(member=member).json["list"]["suggestions"]]


def test_choices_over_http_hold_at_once_and_after_a_restart(own_service, network):
    running, member = own_service.start(), network.nodes[3]
    length = len(running.wait_for_list(member).body)
    assert running.get("/me/choices", member).json == {"not_interested": [], "suggest_me": True}
    first, other = listed(running, member)[0], listed(running, member)[1]
    told = running.tell("/me/not-interested", member, {"node": first})
    assert told.json == {"not_interested": [first], "suggest_me": True}
    assert first not in listed(running, member)
    assert running.tell("/me/suggest-me", other, {"suggest_me": False}).json["suggest_me"] is False
    assert other not in listed(running, member)
    assert len(listed(running, member)) == 10
    assert len(running.get(member=member).body) == length
    running.stop()
    running.start()
    assert not {first, other} & set(listed(running, member))
    running.refresh(without(network, network.nodes[9]), "2026-01-08")
    running.wait_for_list(member, 2)
    assert not {first, other} & set(listed(running, member))
    (copies,) = running.state.glob("*.lists")
    before = copies.stat().st_mtime_ns
    assert running.tell("/me/interested", member, {"node": first}).json["not_interested"] == []
    wait_until(lambda: copies.stat().st_mtime_ns != before)  # without being asked for the list
    assert first in listed(running, member)
    log = (running.folder / "log").read_text()
    metrics = running.curator("/metrics").body.decode()
    status = json.dumps(running.curator("/status").json)
    assert not any(name in log + metrics + status for name in (member, first, other))


def test_forgotten_member_loses_all_choices_in_the_service(own_service, network):
    running, member, gone = own_service.start(), network.nodes[3], network.nodes[9]
    running.wait_for_list(member)
    running.tell("/me/not-interested", member, {"node": gone})
    running.tell("/me/suggest-me", gone, {"suggest_me": False})
    history = History.open(place_of(running) / "history")
    history.add(without(network, gone), date="2026-01-08")
    history.forget(gone)
    wait_until(lambda: running.get("/me/choices", member).json["not_interested"] == [])
    wait_until(lambda: gone.encode() not in (running.state / "choices.db").read_bytes())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
    ],
)
def test_cross_site_choice_is_refused(service, network, headers, status):
    body = {"suggest_me": True}
    assert service.tell("/me/suggest-me", network.nodes[40], body, **headers).status == status


@pytest.mark.parametrize(
    "body",
    [None, [], {}, {"node": None}, {"node": ["a"]}, {"node": True}, {"node": "a", "more": 1}, 1],
)
def test_malformed_choice_is_refused(service, network, body):
    assert service.tell("/me/not-interested", network.nodes[40], body).status == 400


def test_choices_are_for_members_and_about_members(service, network):
    member, name = network.nodes[40], {"node": network.nodes[41]}
    assert service.tell("/me/not-interested", member, {"node": "nobody"}).status == 404
    assert service.tell("/me/not-interested", "somebody new", name).status == 404
    assert service.get("/me/choices", "somebody new").status == 404
    headers = {"Content-Type": "application/json"}
    answer = service.get(
        "/me/not-interested", headers=headers, method="POST", body=json.dumps(name)
    )
    assert answer.status == 401
    assert service.get("/me/not-interested", member).status == 405
    assert service.tell("/me/not-interested", member, {"node": "x" * 5000}).status == 413
    assert service.get("/me/choices", member).json["not_interested"] == []
