"""Whatever breaks: every list is charged and drawn once, every answer is right or an error."""

from __future__ import annotations

import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPException


def ask_all(running, members, seen, stop):
    """Ask for lists in a random order until told to stop; every answer is noted."""
    rng = random.Random(threading.get_ident())
    while not stop.is_set():
        member = rng.choice(members)
        try:
            answer = running.get(member=member)
        except (OSError, HTTPException):  # nobody is there just now, or not any more
            time.sleep(0.02)
            continue
        if answer.status == 200:
            seen.append((member, answer.body))
        else:
            assert answer.status == 503, answer.body
            time.sleep(0.02)


def check(running, members, seen):
    """Every answer of a member in a snapshot is the same list, charged once; gives the lists."""
    lists = {}
    for member, body in seen:
        own = json.loads(body)["list"]
        assert own["member"] == member
        assert lists.setdefault((member, own["snapshot"]), body) == body
    opened = running.open_ledger()
    opened.verify()
    assert {opened.account(str(member)).charged for member in members} == {running.epsilon}
    return lists


@contextmanager
def asked(running, members, threads=4):
    """Ask for lists as long as the block lasts; gives what was answered."""
    seen, stop = [], threading.Event()
    with ThreadPoolExecutor(threads) as pool:
        asking = [pool.submit(ask_all, running, members, seen, stop) for _ in range(threads)]
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


def killed_again_and_again(running, graphs, members, rng):
    """Kill the service under load after each refresh, while it may be copying lists.

    Gives all that was answered, and how long it took to start.
    """
    starts = []
    with asked(running, members) as seen:
        for number, graph in enumerate(graphs):
            began = time.monotonic()
            running.start()
            starts.append(time.monotonic() - began)
            wait_for(seen, rng.randrange(1, 8))
            running.refresh(graph, f"2026-{2 + number // 28:02}-{1 + number % 28:02}")
            time.sleep(rng.uniform(0, 0.6))
            running.stop(9)
        running.start()
        wait_for(seen, 10)
    return seen, starts


def test_killed_while_it_copies_lists_it_goes_on_where_it_was(own_service, network):
    members = list(network.nodes)[:120]
    graphs = [network.with_edge_flipped(0, number) for number in (1, 2, 3)]
    seen, _ = killed_again_and_again(own_service, graphs, members, random.Random(5))
    assert len(check(own_service, network.nodes, seen)) > 5
