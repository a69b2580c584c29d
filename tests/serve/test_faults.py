"""Whatever breaks: every list is charged and drawn once, every answer is right or an error."""

from __future__ import annotations

import json
import random
import resource
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPException

from edgeveil.graph.io import save_graph
from tests.serve.running import Service


def ask_all(services, members, seen, stop):
    """Ask for lists in a random order until told to stop; every answer is noted."""
    rng = random.Random(threading.get_ident())
    while not stop.is_set():
        member = rng.choice(members)
        try:
            found = rng.choice(services).get(member=member)
        except (OSError, HTTPException):  # nobody is there just now, or not any more
            time.sleep(0.02)
            continue
        if found.status == 200:
            seen.append((member, found.body))
        else:
            assert found.status in (429, 503), found.body
            time.sleep(0.02)


def check(running, members, seen):
    """Every answer of a member is the same list, charged once; gives the lists."""
    lists = {}
    for member, body in seen:
        assert lists.setdefault(member, body) == body  # drawn once
    opened = running.open_ledger()
    opened.verify()
    for member in members:
        assert opened.account(str(member)).charged in ((0.5,) if member in lists else (0.0, 0.5))
    return lists


@contextmanager
def asked(services, members, threads=4):
    """Ask for lists as long as the block lasts; gives what was answered."""
    seen, stop = [], threading.Event()
    with ThreadPoolExecutor(threads) as pool:
        asking = [pool.submit(ask_all, services, members, seen, stop) for _ in range(threads)]
        try:
            yield seen
        finally:
            stop.set()
        for done in asking:
            done.result()


def wait_for(seen, more, seconds=60):
    """Wait until so many more answers were given."""
    wanted, until = len(seen) + more, time.monotonic() + seconds
    while len(seen) < wanted and time.monotonic() < until:
        time.sleep(0.01)


def killed_again_and_again(running, members, kills, rng):
    """Kill the service under load; gives all that was answered, and how long it took to start."""
    starts = []
    with asked([running], members) as seen:
        for _ in range(kills):
            began = time.monotonic()
            running.start()
            starts.append(time.monotonic() - began)
            wait_for(seen, rng.randrange(1, 8))
            time.sleep(rng.uniform(0, 0.3))
            running.stop(9)
        running.start()
        wait_for(seen, 10)
    return seen, starts


def test_killed_again_and_again_it_goes_on_where_it_was(own_service, network):
    members = list(network.nodes)[:120]
    seen, _ = killed_again_and_again(own_service, members, 2, random.Random(5))
    assert len(check(own_service, members, seen)) > 5


def test_two_instances_that_race_for_the_same_members_agree(own_service, network):
    first, second = own_service, own_service.another(network)
    members = list(network.nodes)[:60]
    try:
        start_all(first, second)
        with asked([first, second], members) as seen:
            wait_for(seen, 60)
    finally:
        second.stop()
    assert len(check(first, members, seen)) > 10


def start_all(*services):
    for one in services:
        one.start(wait=False)
    for one in services:
        one.wait()


def test_two_instances_race_on_postgres_while_the_server_is_restarted(
    postgres_server, network, tmp_path
):
    first = Service(tmp_path, network, url=f"{postgres_server.url}#race")
    second = first.another(network)
    members = list(network.nodes)[:120]
    try:
        start_all(first, second)
        with asked([first, second], members) as seen:
            for _ in range(2):
                wait_for(seen, 30)
                postgres_server.stop()
                time.sleep(0.3)
                postgres_server.start()
            wait_for(seen, 40)
        assert len(check(first, members, seen)) > 20
        # Nobody asks there for a first list, and the snapshot is found all the same.
        assert first.confirm("/advance").json == {"snapshot": 2}
        wait_until(lambda: second.curator("/status").json["snapshot"] == 2)
        assert [one.curator("/health").status for one in (first, second)] == [200, 200]
    finally:
        first.stop()
        second.stop()


def wait_until(happens, seconds=60):
    until = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_full_disk_is_an_honest_error_and_costs_nobody_anything(own_service, network):
    running, members = own_service.start(), list(network.nodes)
    unlimited = resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE)

    def statuses(*which):
        return [running.get(member=members[i]).status for i in which]

    def files_of_at_most(size):
        limits = (size, unlimited[1])
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, limits)

    first = running.get(member=members[0]).body
    files_of_at_most(1)  # not even the ledger can grow
    assert statuses(1, 2, 0) == [503, 503, 200]
    assert running.curator("/health").status == 503
    files_of_at_most(running.ledger.stat().st_size + (1 << 18))  # copies in their slots cannot
    assert statuses(300, 300) == [200, 200]
    assert "cannot be stored" in running.curator("/status").json["trouble"]
    files_of_at_most(unlimited[0])
    away = running.artifacts.rename(running.folder / "away")
    running.artifacts.write_text("")  # charged, and then it cannot be stored
    assert statuses(4, 5) == [503, 503]
    assert running.open_ledger().account(members[4]).charged == 0.5
    running.artifacts.unlink()
    away.rename(running.artifacts)
    seen = [(members[i], running.get(member=members[i]).body) for i in (0, 1, 2, 300, 4, 5) * 2]
    assert len(check(running, members, [(members[0], first), *seen])) == 6
    assert running.curator("/health").status == 200


def test_a_graph_folder_that_is_replaced_counts_from_the_next_snapshot_on(own_service, network):
    running, (*members, unasked) = own_service.start(), list(network.nodes)[:101]
    with asked([running], members, threads=2) as seen:
        wait_for(seen, 5)
        for number in range(1, 4):
            save_graph(network.with_edge_flipped(0, number), running.graph, overwrite=True)
            wait_for(seen, 5)
    lists = check(running, members, seen)
    assert {json.loads(body)["list"]["snapshot"] for body in lists.values()} == {1}
    shutil.rmtree(running.graph)
    assert running.get(member=unasked).status == 200  # what was opened stays readable
    assert running.confirm("/advance").status == 409
    save_graph(network.with_edge_flipped(0, 3), running.graph)
    assert running.confirm("/advance").json == {"snapshot": 2}
    assert running.get(member=unasked).json["list"]["snapshot"] == 2
    running.stop()
    save_graph(network, running.graph, overwrite=True)  # another one, and no member learns of it
    running.start(wait=False)
    assert running.process.wait(timeout=60) == 1
    running.log.close()
    assert "not the graph of snapshot 2" in (running.folder / "log").read_text()
