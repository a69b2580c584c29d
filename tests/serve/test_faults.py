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


def wait_for(seen, more, seconds=60):
    """Wait until so many more answers were given."""
    wanted, until = len(seen) + more, time.monotonic() + seconds
    while len(seen) < wanted and time.monotonic() < until:
        time.sleep(0.01)


def killed_again_and_again(running, members, kills, rng):
    """Kill the service under load; gives all that was answered, and how long it took to start."""
    seen, stop, starts = [], threading.Event(), []
    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask_all, [running], members, seen, stop) for _ in range(4)]
        try:
            for _ in range(kills):
                began = time.monotonic()
                running.start()
                starts.append(time.monotonic() - began)
                wait_for(seen, rng.randrange(1, 8))
                time.sleep(rng.uniform(0, 0.3))
                running.stop(9)
            running.start()
            wait_for(seen, 10)
        finally:
            stop.set()
        for done in asking:
            done.result()
    return seen, starts


def test_killed_again_and_again_it_goes_on_where_it_was(own_service, network):
    members = list(network.nodes)[:120]
    seen, _ = killed_again_and_again(own_service, members, 4, random.Random(5))
    assert len(check(own_service.ledger, members, seen)) > 10


def test_two_instances_that_race_for_the_same_members_agree(own_service, network):
    first = own_service
    second = Service(first.folder, network, options=["--state", str(first.folder / "second")])
    second.secret = first.secret
    members, seen, stop = list(network.nodes)[:60], [], threading.Event()
    first.start()
    second.start(wait=False)
    try:
        second.wait_for_members()
        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask_all, [first, second], members, seen, stop) for _ in range(4)]
            wait_for(seen, 60)
            stop.set()
            for done in asking:
                done.result()
    finally:
        second.stop()
    lists = check(first.ledger, members, seen)
    assert len(lists) > 10
    charged = sum(spend.n_rows or 0 for spend in Ledger.open(first.ledger).spends())
    assert charged >= len(lists)
