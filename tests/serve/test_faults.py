"""Whatever breaks: every list is charged and drawn once, every answer is right or an error."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from edgeveil.ledger import Ledger
from tests.serve.running import Service


def ask_all(services, members, seen, stop):
    """Ask for lists in a random order until told to stop; every answer is noted."""
    rng = random.Random(threading.get_ident())
    while not stop.is_set():
        member = rng.choice(members)
        try:
            found = rng.choice(services).get(member=member)
        except OSError:
            continue  # nobody is there just now
        if found.status == 200:
            seen.append((member, found.body))
        else:
            assert found.status in (429, 503), found.body
            time.sleep(0.02)


def check(ledger, members, seen):
    lists = {}
    for member, body in seen:
        assert lists.setdefault(member, body) == body  # drawn once
    opened = Ledger.open(ledger)
    opened.verify()
    for member in members:
        assert opened.account(str(member)).spent in ((0.5,) if member in lists else (0.0, 0.5))
    return lists


def test_killed_again_and_again_it_goes_on_where_it_was(own_service, network):
    running, members, seen, stop = own_service, list(network.nodes)[:120], [], threading.Event()
    starts, rng = [], random.Random(5)
    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask_all, [running], members, seen, stop) for _ in range(4)]
        try:
            for _ in range(6):
                began = time.monotonic()
                running.start()
                starts.append(time.monotonic() - began)
                time.sleep(rng.uniform(0.2, 1.2))
                running.stop(9)
            running.start()
            time.sleep(1)
        finally:
            stop.set()
        for done in asking:
            done.result()
    assert len(check(running.ledger, members, seen)) > 20


def test_two_instances_that_race_for_the_same_members_agree(own_service, network):
    first = own_service
    second = Service(first.folder, network, options=["--state", str(first.folder / "second")])
    second.secret = first.secret
    members, seen, stop = list(network.nodes)[:60], [], threading.Event()
    second.state_folder = first.folder / "second"
    first.start()
    second.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask_all, [first, second], members, seen, stop) for _ in range(4)]
            time.sleep(6)
            stop.set()
            for done in asking:
                done.result()
    finally:
        second.stop()
    lists = check(first.ledger, members, seen)
    assert len(lists) > 20
    assert sum((s.n_rows or 0) for s in Ledger.open(first.ledger).spends()) == len(lists)
