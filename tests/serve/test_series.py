"""The lists of a series: free for whoever has joined, new after every refresh, gone when told."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections import Counter

import numpy as np
import pytest

import edgeveil as ev
from edgeveil.errors import LedgerError
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.saved import save_graph
from edgeveil.ledger.accounts import is_window
from edgeveil.series.history import History
from edgeveil.series.state import SeriesFolder
from edgeveil.serve.list_files import ListStore
from edgeveil.serve.member import _budget, _protection
from edgeveil.serve.served_series import SeriesLists
from tests.serve.running import Service
from tests.unit.series.worker import stored

NOT_YET = "gets the first one with the next refresh"


def without(graph, *gone, joined=()):
    """The next week's graph: some have left, others have joined and know nobody yet."""
    names = [node for node in graph.nodes if node not in gone]
    at = {name: i for i, name in enumerate([*names, *joined])}
    u, v = graph.adjacency().nonzero()
    pairs = [
        (at[a], at[b])
        for a, b in zip(graph.nodes.take(u), graph.nodes.take(v), strict=True)
        if a in at and b in at
    ]
    return Graph.from_edges(*zip(*pairs, strict=True), NodeSet.of(list(at)))


def place_of(running):
    return running.folder / "ledger.series" / "friends"


def wait_until(happens, seconds=60):
    until = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < until
        time.sleep(0.05)


# -- what members get ---------------------------------------------------------------------


def test_member_gets_the_series_list_at_no_charge(service, network):
    ledger = service.open_ledger()
    head, member = ledger.entry(), network.nodes[5]
    served = service.get(member=member)
    assert served.status == 200
    own = served.json["list"]
    assert (own["member"], own["snapshot"], own["made"]) == (member, 1, "2026-01-01")
    suggestions = ev.suggest(network, [member], 1.0, k=10, ledger=ledger, label="friends")
    kept = suggestions.for_member(member)
    assert [line["node"] for line in own["suggestions"]] == [line.node for line in kept]
    assert [line["why"] for line in own["suggestions"]] == [line.why for line in kept]
    # Nothing is computed: on a busy machine some answers take longer, but not all.
    assert min(service.get(member=member).seconds for _ in range(20)) < 0.15
    assert ledger.entry() == head


def test_all_answers_with_a_list_have_one_length(service, network):
    assert len({len(service.get(member=v).body) for v in list(network.nodes)[:40]}) == 1


def test_protection_states_the_total_of_all_lists(service, network):
    said = service.get("/me/protection", network.nodes[7]).json
    assert (said["epsilon"], said["odds"]) == (1.0, 2.72)
    whole = "all your lists together change the odds by a factor of at most 2.72 (epsilon 1)"
    assert (
        f"Whatever somebody believed about such a friendship before, {whole}"
        in (said["in_numbers"])
    )
    assert "at most 7.39" in said["in_numbers"]  # since when: twice epsilon
    assert "they do not show whether two other members are friends" in said["in_short"]
    assert "edgeveil theory series" in said["in_full"]
    budget = service.get("/me/budget", network.nodes[7]).json
    assert (budget["charged"], budget["left"], budget["cap"]) == (1.0, 1.0, 2.0)
    assert "charged once, when you join" in budget["in_words"]


def test_protection_counts_charges_under_other_labels(own_service, network):
    member = network.nodes[7]
    ev.suggest(network, [member], 0.5, ledger=own_service.open_ledger(), label="others")
    running = own_service.start()
    said = running.get("/me/protection", member).json
    assert (said["epsilon"], said["odds"]) == (1.5, 4.49)


# -- refreshes ----------------------------------------------------------------------------


def test_refresh_while_serving_gives_newcomers_a_list(own_service, network):
    running, stays = own_service.start(), network.nodes[3]
    running.wait_for_list(stays)
    for newcomer in ("somebody new", "another"):
        answer = running.get(member=newcomer)
        assert answer.status == 404
        assert NOT_YET in answer.json["error"]
    changed = without(network, network.nodes[9], joined=["somebody new"])
    running.refresh(changed, "2026-01-08")
    running.wait_for_list(stays, 2)
    first = running.get(member="somebody new")
    assert first.json["list"]["member"] == "somebody new"
    assert running.get("/me/budget", "somebody new").json["charged"] == 1.0
    assert running.get("/me/budget", stays).json["charged"] == 1.0
    assert running.get(member=network.nodes[9]).status == 404  # has left
    assert running.get(member="another").status == 404
    (kept,) = running.state.glob("*.lists")  # of the last snapshot alone
    assert kept.name.startswith("000002-")
    head, last = running.open_ledger().entry(), running.get(member=stays).body
    running.stop()
    assert running.start().get(member=stays).body == last  # at once: the copies are complete
    assert running.open_ledger().entry() == head


def test_answers_during_refresh_are_whole_and_the_members_own(own_service, network):
    running, members = own_service.start(), list(network.nodes)[:40]
    running.wait_for_list(members[0])
    seen, stop = [], threading.Event()

    def ask():
        rng = random.Random(threading.get_ident())
        while not stop.is_set():
            member = rng.choice(members)
            answer = running.get(member=member)
            seen.append((member, answer.status, answer.body))

    asking = [threading.Thread(target=ask) for _ in range(3)]
    for thread in asking:
        thread.start()
    try:
        wait_until(lambda: seen)
        for number in range(2, 6):  # members change their places in the graph, and others join
            changed = without(network, network.nodes[100 + number], joined=[f"new {number}"])
            running.refresh(changed, f"2026-01-{6 * number:02}")
            running.wait_for_list(f"new {number}", number)
            wait_until(lambda: json.loads(seen[-1][2])["list"]["snapshot"] == number)  # noqa: B023
    finally:
        stop.set()
        for thread in asking:
            thread.join()
    lists = {}
    for member, status, body in seen:
        assert status == 200  # none was ever without a list
        answer = json.loads(body)["list"]
        assert answer["member"] == member
        assert lists.setdefault((member, answer["snapshot"]), body) == body
    assert {snapshot for _, snapshot in lists} == {1, 2, 3, 4, 5}


def test_member_without_budget_is_told_so(network, own_service):
    left_out = network.nodes[4]
    changed = without(network, joined=["late"])
    ledger = own_service.open_ledger()
    ev.suggest(changed, ["late"], 1.5, ledger=ledger, label="others")  # the cap is 2
    assert own_service.refresh(changed, "2026-01-08").n_left_out == 1
    running = own_service.start()
    assert running.wait_for_list(left_out, 2).status == 200
    answer = running.get(member="late")
    assert answer.status == 404
    assert "if the budget allows" in answer.json["error"]
    assert ledger.account("late").charged == 1.5


def test_curator_refresh_is_accepted_at_the_shown_price_only(own_service, network):
    running = own_service.start()
    running.wait_for_list(network.nodes[3])
    save_graph(without(network, joined=["x", "y"]), running.graph, overwrite=True)
    price = running.curator("/refresh").json
    assert (price["epsilon"], price["n_members"], price["n_newcomers"]) == (1.0, 402, 2)
    others = [{**price, "n_newcomers": 0}, {**price, "epsilon": 0.5}, {**price, "snapshot": 7}]
    others += [{**price, "more": 1}, {}, [], None]
    for other in (None, "[" * 1000, *map(json.dumps, others)):
        refused = running.curator("/refresh", "POST", body=other)
        assert refused.status == 409
        assert "price" in refused.json["error"]
    save_graph(without(network, joined=["x", "y", "z"]), running.graph, overwrite=True)
    assert running.curator("/refresh", "POST", body=json.dumps(price)).status == 409
    assert running.open_ledger().account("x").charged == 0
    assert running.curator("/refresh", "POST", key="wrong", body=json.dumps(price)).status == 401
    assert running.confirm_refresh().status == 200
    running.wait_for_list("z", 2)
    wait_until(lambda: not running.curator("/status").json["refresh"]["running"])
    said = running.curator("/status").json
    assert (said["snapshot"], said["members"], said["last_error"]) == (2, 403, "")
    assert "3 members joined the series now, charged 1 each" in said["refresh"]["words"]
    assert running.curator("/refresh", "POST", body=json.dumps(price)).status == 409
    assert {account.charged for account in running.open_ledger().accounts()} == {1.0}


def test_the_series_is_shown_as_one_charge_with_its_windows(own_service, network):
    own_service.refresh(network.with_edge_flipped(0, 1), "2026-01-08")
    running = own_service.start()
    charges = running.curator("/charges").json
    assert [(charge["members"], charge["epsilon"]) for charge in charges["series"]] == [(400, 1.0)]
    shard = stored(place_of(running))
    assert sum(charge["windows"] for charge in charges["windows"]) == shard.windows.sum() > 0
    assert "exact counts: do not publish" in charges["warning"]
    assert running.curator("/plan").json[0] == {"renewals": 1, "epsilon": 1.0}
    said = json.dumps([charges, running.curator("/status").json])
    assert not any(node in said for node in network.nodes)


def test_two_refreshes_at_once_are_one(own_service, network):
    running, place = own_service.start(), SeriesFolder(place_of(own_service))
    running.wait_for_list(network.nodes[3])
    save_graph(without(network, joined=["x"]), running.graph, overwrite=True)
    price = running.curator("/refresh").body
    with place.writing():  # as another process does that refreshes
        assert running.curator("/refresh", "POST", body=price).status == 200
        wait_until(lambda: running.curator("/status").json["refresh"]["words"])
        assert (
            "another process is refreshing" in running.curator("/status").json["refresh"]["words"]
        )
    answers = []

    def post():
        answers.append(running.curator("/refresh", "POST", body=price).status)

    both = [threading.Thread(target=post) for _ in range(4)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert 200 in answers
    running.wait_for_list("x", 2)
    wait_until(lambda: not running.curator("/status").json["refresh"]["running"])
    assert answers.count(200) == 1
    assert len(History.open(place.path / "history")) == 2
    assert running.open_ledger().account("x").charged == 1.0


def test_refresh_killed_and_resumed_charges_nobody_twice(own_service, network):
    running, rng = own_service, random.Random(3)
    save_graph(without(network, joined=["x", "y"]), running.graph, overwrite=True)
    for _ in range(4):
        running.start()
        # Until the first lists are there a price may change before it is confirmed.
        wait_until(lambda: running.confirm_refresh().status == 200)
        time.sleep(rng.uniform(0, 0.3))
        running.stop(9)
    running.start()
    wait_until(lambda: running.confirm_refresh().status == 200)
    wait_until(lambda: not running.curator("/status").json["refresh"]["running"])
    newest = len(History.open(place_of(running) / "history"))
    assert newest in (2, 3)  # a refresh is of a day, and midnight may pass
    for member in ("x", "y", network.nodes[3]):
        running.wait_for_list(member, newest)
    ledger = running.open_ledger()
    assert {account.charged for account in ledger.accounts()} == {1.0}
    ledger.verify()
    shard = stored(place_of(running))
    drawn = [charge for charge in ledger.charges() if is_window(charge)]
    assert sum(charge.n_rows for charge in drawn) == shard.windows.sum()


def test_two_instances_on_postgres_follow_one_series(postgres_server, network, tmp_path):
    url = f"{postgres_server.url}#lists"
    first = Service(tmp_path, network, url=url)
    second = first.another(network)
    try:
        for instance in (first, second):
            instance.start()
        lists = [instance.wait_for_list(network.nodes[3]).body for instance in (first, second)]
        assert lists[0] == lists[1]
        save_graph(without(network, joined=["x"]), first.graph, overwrite=True)
        assert first.confirm_refresh().status == 200
        lists = [instance.wait_for_list("x", 2).body for instance in (first, second)]
        assert lists[0] == lists[1]
        postgres_server.stop()
        time.sleep(0.5)  # the service has looked, and asked the database in vain
        assert second.get(member="x").body == lists[0]  # stored lists need no database
        postgres_server.start()
        wait_until(lambda: second.curator("/health").status == 200)
        assert first.open_ledger().account("x").charged == 1.0
    finally:
        first.stop()
        second.stop()


# -- older copies, the forgotten, renewals ------------------------------------------------


def put_back(running, name, backup):
    """Put one of ledger and series back to another copy, at once; gives the one that was there."""
    place, away = running.folder / name, running.folder / f"{name} {time.monotonic_ns()}"
    place.rename(away)
    backup.rename(place)
    return away


@pytest.mark.parametrize("which", ["ledger", "ledger.series"])
def test_older_copy_is_refused_running_and_at_start(own_service, network, which):
    member = network.nodes[3]
    backup = own_service.folder / "backup"
    copy = shutil.copytree if which == "ledger.series" else shutil.copy
    copy(own_service.folder / which, backup)
    running = own_service.start()
    running.wait_for_list(member)
    changed = network.with_edge_flipped(0, 1)
    for day in range(8, 15):  # until a window opens, or at least an entry is new
        running.refresh(without(changed, joined=[f"new {day}"]), f"2026-01-{day:02}")
    running.wait_for_list(member, 8)
    newer = put_back(running, which, backup)
    wait_until(lambda: running.get(member=member).status == 503)
    assert running.get(member=member).json == {
        "error": "there is no list for you now; try again later"
    }
    wait_until(lambda: running.curator("/health").status == 503)
    if which == "ledger.series":
        assert "older copy" in running.curator("/status").json["last_error"]
    running.stop()
    running.start(wait=False)
    assert running.process.wait(timeout=60) == 1
    running.log.close()
    assert "older copy" in (running.folder / "log").read_text()
    running.process = None
    older = put_back(running, which, newer)
    running.start()
    assert running.wait_for_list(member, 8).status == 200
    newer = put_back(running, which, older)
    wait_until(lambda: running.get(member=member).status == 503)
    put_back(running, which, newer)  # and it recovers by itself
    running.wait_for_list(member, 8)
    wait_until(lambda: running.curator("/health").status == 200)


def test_forgotten_member_has_and_is_on_no_list(own_service, network):
    running = own_service.start()
    running.wait_for_list(network.nodes[3])
    bodies = {v: running.get(member=v).body for v in network.nodes}
    listed = Counter(
        line["node"] for body in bodies.values() for line in json.loads(body)["list"]["suggestions"]
    )
    gone = next(v for v, _ in listed.most_common() if v != network.nodes[3])
    named = [v for v, body in bodies.items() if gone.encode() in body]
    assert len(named) > 1
    history = History.open(place_of(running) / "history")
    history.add(without(network, gone), date="2026-01-08")  # not refreshed since
    history.forget(gone)
    wait_until(lambda: running.get(member=gone).status == 404)
    wait_until(lambda: not any(gone.encode() in running.get(member=v).body for v in named))
    assert running.get(member=network.nodes[3]).json["list"]["snapshot"] == 1
    wait_until(lambda: len(list(running.state.glob("*.lists"))) == 1)
    held = b"".join(path.read_bytes() for path in running.state.iterdir())
    assert gone.encode() not in held
    assert running.curator("/status").json["last_error"] == ""


def test_renewed_series_serves_old_lists_until_new_ones(own_service, network):
    running, member = own_service.start(), network.nodes[3]
    first = running.wait_for_list(member)
    running.open_ledger().advance("friends")
    time.sleep(0.4)  # the service has seen it
    assert running.get(member=member).body == first.body
    running.refresh(network, "2026-01-08")
    running.wait_for_list(member, 2)
    said = running.get("/me/protection", member).json
    assert said["epsilon"] == 2.0  # both series count
    assert running.get("/me/budget", member).json["left"] == 0


# -- copies of lists ----------------------------------------------------------------------


@pytest.fixture
def lists(network, tmp_path):
    """The lists of a series, without a service around them."""
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=2.0)
    ev.refresh(network, ledger=ledger, epsilon=1.0, label="friends", date="2026-01-01")
    copies = tmp_path / "copies"
    copies.mkdir(mode=0o700)

    def opened():
        own_ledger = ev.Ledger.open(tmp_path / "ledger")
        return SeriesLists(lambda: network, own_ledger, "friends", 5, copies)

    return opened


def test_protection_names_nodes_read_off_the_edges(tmp_path):
    (tmp_path / "friends.csv").write_text("ann,bob\nbob,cem\ncem,dan\n")
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=2.0)
    graph = ev.read_graph(tmp_path / "friends.csv")
    options = {"epsilon": 1.0, "label": "friends", "nodes_from_edges": True}
    ev.refresh(graph, ledger=ledger, **options, date="2026-01-01")
    served = SeriesLists(lambda: graph, ledger, "friends", 5, tmp_path / "copies")
    said = _protection(served, "ann")["in_full"]
    assert "the end of the last one show exactly" in said
    assert "This covers all lists of the series together" in said
    shown = served.price()
    served.refresh(shown)  # the word that began the series stays
    wait_until(lambda: not served.refreshing.running)
    assert "Snapshot" in served.refreshing.words


def test_service_in_other_words_speaks_of_no_friends(tmp_path):
    graph = ev.datasets.social_network(60, average_degree=10, seed=2).graph
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=9.0)
    ev.refresh(graph, ledger=ledger, epsilon=8.0, date="2026-01-01")
    for words, common in ((None, "friend"), ("accounts,payments", "account")):
        served = SeriesLists(lambda: graph, ledger, "", 5, tmp_path / "copies", words=words)
        served._follow()
        published = served.published
        (line, *_) = json.loads(served.answer(published.lists, 7, published.get(7)))["suggestions"]
        assert f" common {common}" in line["why"]
        said = _protection(served, "7")
        told = " ".join([said["in_short"], said["in_numbers"], *said["words"].values()])
        told += _budget(served, "7")["in_words"]
        assert ("friend" in told) == (words is None)
        assert ("member" in told) == (words is None)
    assert "payments between other accounts" in said["in_short"]
    assert said["words"]["title"] == "Accounts suggested to you"


def test_copies_that_are_not_complete_are_made_again(lists, network, monkeypatch):
    put, calls = ListStore.put, []

    def killed(store, index, body):
        calls.append(index)
        if len(calls) == 100:
            raise KeyboardInterrupt
        put(store, index, body)

    with monkeypatch.context() as patch:
        patch.setattr(ListStore, "put", killed)
        with pytest.raises(KeyboardInterrupt):
            lists()._follow()
    again = lists()
    assert again.published is None  # half of the lists are there, and none is shown
    again._follow()
    assert all(again.published.get(i) for i in range(network.n_nodes))
    assert lists().published is not None


def test_a_disk_that_takes_no_copies_leaves_the_lists_before(lists, network, monkeypatch):
    served = lists()
    served._follow()
    before = served.published.get(3)

    def full(*_):
        raise OSError("the disk is full")

    changed = network.with_edge_flipped(0, 1)
    ev.refresh(changed, ledger=served.ledger, epsilon=1.0, label="friends", date="2026-01-08")
    with monkeypatch.context() as patch:
        patch.setattr(ListStore, "put", full)
        with pytest.raises(OSError, match="full"):
            served._follow()
    assert (served.published.snapshot, served.published.get(3)) == (1, before)
    served._follow()
    assert served.published.snapshot == 2


def test_member_who_left_loses_its_list_before_the_copies(lists, network, monkeypatch):
    """The lists before stay while new ones cannot be copied, but not for who has gone."""
    served = lists()
    served._follow()
    gone, stays = 9, 3
    assert served.published.get(gone)
    assert served.published.get(stays)
    changed = without(network, network.nodes[gone])
    ev.refresh(changed, ledger=served.ledger, epsilon=1.0, label="friends", date="2026-01-08")

    def full(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(ListStore, "put", full)
    with pytest.raises(OSError, match="full"):
        served._follow()
    assert served.published.snapshot == 1
    assert served.published.get(gone) is None
    assert served.published.get(stays)


def test_refresh_ending_during_copy_is_published_next(lists, network, monkeypatch):
    served, really = lists(), ListStore.put
    calls = []

    def meanwhile(store, index, body):
        if not calls:
            calls.append(1)
            options = {"epsilon": 1.0, "label": "friends", "date": "2026-01-08"}
            ev.refresh(network, ledger=served.ledger, **options)
        really(store, index, body)

    monkeypatch.setattr(ListStore, "put", meanwhile)
    served._follow()
    assert served.published is None
    served._follow()
    assert served.published.snapshot == 2


def test_copies_notice_a_restore_of_everything_else(lists, network, tmp_path):
    parts = ("ledger", "ledger.artifacts", "ledger.series")
    for name in parts:
        source, target = tmp_path / name, tmp_path / f"backup {name}"
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    changed = without(network, joined=["x"])
    options = {"ledger": tmp_path / "ledger", "epsilon": 1.0, "label": "friends"}
    ev.refresh(changed, **options, date="2026-01-08")
    lists()._follow()
    for name in parts:
        (tmp_path / name).rename(tmp_path / f"newer {name}")
        (tmp_path / f"backup {name}").rename(tmp_path / name)
    with pytest.raises(LedgerError, match="holds lists that the ledger does not know"):
        lists()


def test_older_ledger_without_copies_is_refused_at_start(lists, network, tmp_path):
    shutil.copy(tmp_path / "ledger", tmp_path / "backup")
    options = {"ledger": tmp_path / "ledger", "epsilon": 1.0, "label": "friends"}
    ev.refresh(without(network, joined=["x"]), **options, date="2026-01-08")
    (tmp_path / "backup").replace(tmp_path / "ledger")
    with pytest.raises(LedgerError, match="lacks an entry"):
        lists()


def test_indices_of_another_history_are_not_mixed_up(lists, network, tmp_path):
    """A renewed series with a new history: everybody has another index there."""
    served = lists()
    served._follow()
    place = tmp_path / "ledger.series" / "friends"
    place.rename(tmp_path / "old")
    served.ledger.advance("friends")
    turned = list(reversed(list(network.nodes)))
    at = network.nodes.indices(turned)
    matrix = network.adjacency()[np.asarray(at)][:, np.asarray(at)]
    u, v = matrix.nonzero()
    changed = Graph.from_edges(u, v, NodeSet.of(turned))
    ev.refresh(changed, ledger=served.ledger, epsilon=1.0, label="friends", date="2026-01-08")
    old = served.published
    served._follow()
    new = served.published
    assert old.history != new.history
    for published in (old, new):
        for member in list(network.nodes)[:20]:
            body = json.loads(published.get(published.nodes.find(member)).splitlines()[0])
            assert body["member"] == member
