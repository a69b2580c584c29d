"""Lists are made of the snapshot that is the current one, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("starlette")

from edgeveil.errors import LedgerError
from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.ledger import Ledger
from edgeveil.ledger.schema import UnusableError
from edgeveil.serve.answers import Unavailable, UsedUp
from edgeveil.serve.making import Making, Offer


@pytest.fixture(autouse=True)
def threads_end():
    """None loads kernels, or makes lists, beside the next test: that may have replaced a part."""
    yield
    for thread in threading.enumerate():
        if thread.name == "lists":
            thread.join(60)
            assert not thread.is_alive()


@pytest.fixture
def graphs():
    """The states of the graph; the last one is what a service reads."""
    return [social_network(150, average_degree=8).graph]


def next_state(graph):
    """The members in another order, one of them gone, and an edge more or less."""
    keep = [node for node in reversed(list(graph.nodes)) if node != 9]
    nodes = NodeSet.of(keep)
    u, v = graph.adjacency().nonzero()
    pairs = [(keep.index(a), keep.index(b)) for a, b in zip(u, v, strict=True) if 9 not in (a, b)]
    changed = Graph.from_edges(*zip(*pairs, strict=True), nodes)
    return changed.with_edge_flipped(0, 1)


def service(folder, graphs, state="state", ahead=False, k=5, **caps):
    place = folder / "ledger"
    ledger = Ledger.open(place) if place.exists() else Ledger.create(place, **{"epsilon": 5} | caps)
    made = Making(lambda: graphs[-1], ledger, Offer(epsilon=0.5, k=k, ahead=ahead), folder / state)
    made.start()
    return made


def advance(making):
    return making.advance(making.price_of_next())


def run(waiting):
    """Wait for something in a thread of its own: this one may have a browser's loop in it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, waiting).result()


def made(body):
    found = json.loads(body)
    return found["member"], found["snapshot"]


def test_who_waits_while_a_snapshot_is_declared_gets_a_list_of_the_new_one(tmp_path, graphs):
    making = service(tmp_path, graphs)
    really, busy, go_on = making._lists_of, threading.Event(), threading.Event()

    def slowly(edition, indices):
        found = really(edition, indices)
        busy.set()
        go_on.wait(60)
        return found

    making._lists_of = slowly

    async def ask():
        first = asyncio.create_task(making.make(1))
        await asyncio.to_thread(busy.wait, 60)
        second, gone = (asyncio.create_task(making.make(member)) for member in (2, 9))
        await asyncio.sleep(0)
        graphs.append(next_state(graphs[0]))
        advancing = asyncio.create_task(asyncio.to_thread(advance, making))
        await asyncio.sleep(0.05)
        go_on.set()
        assert made(await first) == (1, 1)
        assert await advancing == 2
        # Whether it came before or after: a list of that state, and the next state is not lost.
        assert made(await second) in ((2, 1), (2, 2))
        await asyncio.gather(gone, return_exceptions=True)
        assert made(await making.make(3)) == (3, 2)
        with pytest.raises(Unavailable):
            await making.make(9)

    try:
        run(ask())
        assert not making.trouble
    finally:
        making.stop()
    by_snapshot = {row.number: row.fingerprint for row in snapshots_of(making.ledger)}
    assert by_snapshot == {1: graphs[0].fingerprint, 2: graphs[1].fingerprint}


def snapshots_of(ledger):
    from edgeveil.ledger.snapshots import all_snapshots

    with ledger._transaction(write=False) as transaction:
        return [row for row in all_snapshots(transaction) if row.fingerprint]


def test_what_another_instance_declares_is_followed(tmp_path, graphs):
    first, second = service(tmp_path, graphs), service(tmp_path, graphs, "other state")
    try:
        assert made(run(first.make(1))) == (1, 1)
        graphs.append(next_state(graphs[0]))
        assert advance(first) == 2
        assert made(run(second.make(2))) == (2, 2)  # not of the state before, as number 2
        assert made(run(first.make(2))) == (2, 2)
        assert first.ledger.account("2").charged == 0.5
    finally:
        first.stop()
        second.stop()


def test_a_snapshot_whose_file_of_lists_could_not_be_made_does_not_become_the_one_before(
    tmp_path, graphs, monkeypatch
):
    making = service(tmp_path, graphs)
    try:
        assert made(run(making.make(1))) == (1, 1)
        graphs.append(next_state(graphs[0]))
        with monkeypatch.context() as patch:
            patch.setattr("edgeveil.serve.list_files._make", disk_full)
            with pytest.raises(OSError, match="full"):
                advance(making)
            with pytest.raises(Unavailable):
                run(making.make(2))
        assert made(run(making.make(2))) == (2, 2)
        assert not making.trouble
    finally:
        making.stop()


def disk_full(*_):
    raise OSError("the disk is full")


def test_whatever_goes_wrong_the_next_list_is_made(tmp_path, graphs):
    making = service(tmp_path, graphs)
    really = making._lists_of

    def out_of_memory(edition, indices):
        making._lists_of = really
        raise MemoryError("1 2 3")

    making._lists_of = out_of_memory
    try:
        with pytest.raises(Unavailable):
            run(asyncio.wait_for(making.make(1), 60))
        assert making.trouble == "MemoryError"  # its words are not ours
        assert made(run(asyncio.wait_for(making.make(1), 60))) == (1, 1)
    finally:
        making.stop()


def test_loops_that_do_not_load_are_an_honest_error_and_no_endless_wait(
    tmp_path, graphs, monkeypatch
):
    def broken(*_, **more):
        raise RuntimeError("no locator available")

    monkeypatch.setattr("edgeveil.serve.making._load_kernels", broken)
    monkeypatch.setattr("edgeveil.jobs.job.release", broken)
    making = service(tmp_path, graphs)
    try:
        with pytest.raises(Unavailable):
            run(asyncio.wait_for(making.make(1), 60))
        assert making.trouble == "RuntimeError"
    finally:
        making.stop()


def test_a_row_that_cannot_be_finished_keeps_nobody_else_from_a_list(tmp_path, graphs, monkeypatch):
    making = service(tmp_path, graphs)

    async def all_of(*members):
        asked = [making.make(member) for member in members]
        return await asyncio.gather(*asked, return_exceptions=True)

    try:
        run(making.make(1))
        with monkeypatch.context() as patch:  # other code charges a row, and is killed
            patch.setattr("edgeveil.jobs.request.code_of", lambda mechanism: "other")
            patch.setattr("edgeveil.jobs.job.write_rows", disk_full)
            run(all_of(7))
        six, seven, eight = run(all_of(6, 7, 8))
        assert (made(six), made(eight)) == ((6, 1), (8, 1))
        assert isinstance(seven, Unavailable)
    finally:
        making.stop()


def test_lists_made_ahead_are_those_of_the_edition_that_is_current(tmp_path, graphs):
    making = service(tmp_path, graphs)
    try:
        run(making.make(1))
        really, begun = making._lists_of, threading.Event()
        advancing = threading.Thread(target=advance, args=[making])

        def advance_meanwhile(edition, indices):
            found = really(edition, indices)
            if not begun.is_set():
                advancing.start()
                begun.set()
            return found

        graphs.append(next_state(graphs[0]))
        making._lists_of = advance_meanwhile
        making.make_ahead(making.price())
        assert begun.wait(60)
        advancing.join()
        assert making.ahead_left == 0  # what is made ahead of the new one is for the curator to say
        assert made(run(making.make(1))) == (1, 2)
        assert making.edition.lists.get(0) is None
    finally:
        making.stop()


def test_with_ahead_the_lists_of_every_snapshot_are_made_before_they_are_asked_for(
    tmp_path, graphs
):
    making = service(tmp_path, graphs, ahead=True)
    try:
        wait_until(lambda: making.ahead_left == 0)
        graphs.append(next_state(graphs[0]))
        advance(making)
        wait_until(lambda: making.ahead_left == 0)
        n = graphs[1].n_nodes
        assert all(making.edition.lists.get(i) is not None for i in range(n))
    finally:
        making.stop()


def test_who_has_a_list_is_shown_what_another_instance_has_declared(tmp_path, graphs):
    first, second = service(tmp_path, graphs), service(tmp_path, graphs, "other state")
    try:
        for making in (first, second):
            assert made(run(making.make(1))) == (1, 1)
        graphs.append(next_state(graphs[0]))
        advance(first)
        wait_until(lambda: second.edition.snapshot == 2)  # nobody asks there
        assert second.edition.lists.get(second.edition.graph.nodes.index(1)) is None
        assert run(first.make(1)) == run(second.make(1))
    finally:
        first.stop()
        second.stop()


def test_an_instance_that_reads_another_graph_than_the_first_takes_none_over(tmp_path, graphs):
    elsewhere = [graphs[0]]
    first, second = service(tmp_path, graphs), service(tmp_path, elsewhere, "other state")
    try:
        kept = run(second.make(1))
        graphs.append(next_state(graphs[0]))
        advance(first)
        run(first.make(2))
        wait_until(lambda: "not the graph of snapshot 2" in second.trouble)
        assert second.edition.lists.get(1) == kept  # what was shown so far
        elsewhere.append(graphs[-1])
        assert run(second.make(2)) == run(first.make(2))
        assert second.trouble == ""
    finally:
        first.stop()
        second.stop()


def wait_until(happens, seconds=60):
    until = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < until
        time.sleep(0.01)


def copied(folder, name, other):
    """Copy ledger and artifacts, as a backup does."""
    for suffix in ("", ".artifacts"):
        source, target = folder / f"{name}{suffix}", folder / f"{other}{suffix}"
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)


def test_lists_of_a_snapshot_that_a_restored_ledger_lacks_are_not_shown(tmp_path, graphs):
    first = service(tmp_path, graphs)
    run(first.make(1))
    first.stop()
    copied(tmp_path, "ledger", "backup")
    graphs.append(graphs[0].with_edge_flipped(0, 1))
    first.ledger.advance()
    second = service(tmp_path, graphs)
    unknown = run(second.make(2))
    second.stop()
    copied(tmp_path, "backup", "ledger")
    graphs.append(graphs[0].with_edge_flipped(2, 3))  # another graph, with the same number
    Ledger.open(tmp_path / "ledger").advance()
    with pytest.raises(LedgerError, match="does not know"):
        service(tmp_path, graphs)
    for path in (tmp_path / "state").glob("*.lists"):
        path.rename(path.with_suffix(".lost"))
    again = service(tmp_path, graphs)
    try:
        assert again.edition.lists.get(2) is None
        assert run(again.make(2)) != unknown
        assert again.ledger.account("2").charged == 0.5
    finally:
        again.stop()


def test_lists_that_a_restored_ledger_lacks_within_one_snapshot_are_not_shown(tmp_path, graphs):
    first = service(tmp_path, graphs)
    run(first.make(1))
    first.stop()
    copied(tmp_path, "ledger", "backup")
    second = service(tmp_path, graphs)  # nothing is wrong so far
    run(second.make(2))
    second.stop()
    copied(tmp_path, "backup", "ledger")
    for k in (7, 5):  # lists of another length would be replaced
        with pytest.raises(LedgerError, match="does not know"):
            service(tmp_path, graphs, k=k)


def test_the_last_list_stays_when_members_have_changed_and_the_service_was_restarted(
    tmp_path, graphs
):
    making = service(tmp_path, graphs, epsilon=0.5)
    last = run(making.make(1))
    making.stop()
    graphs.append(next_state(graphs[0]))
    making.ledger.advance()
    again = service(tmp_path, graphs)
    try:
        with pytest.raises(UsedUp):
            run(again.make(1))
        assert again.earlier(1) == last
        assert again.earlier(9) is None  # it had none
    finally:
        again.stop()


def test_a_disk_that_takes_no_copies_takes_nobody_s_list(tmp_path, graphs, monkeypatch):
    making = service(tmp_path, graphs)
    try:
        with monkeypatch.context() as patch:
            patch.setattr("edgeveil.serve.list_files.os.pwrite", disk_full)
            first = run(making.make(1))
            assert making.edition.lists.get(1) is None
            assert "cannot be stored" in making.trouble
        assert run(making.make(1)) == first == making.edition.lists.get(1)
        assert making.trouble == ""
        assert making.ledger.account("1").charged == 0.5
    finally:
        making.stop()


def test_a_ledger_that_cannot_be_used_is_asked_once_for_all_who_wait(tmp_path, graphs, monkeypatch):
    making = service(tmp_path, graphs)
    calls = []

    def locked(*_):
        calls.append(1)
        raise UnusableError("the database is locked")

    async def all_of(*members):
        asked = [making.make(member) for member in members]
        return await asyncio.gather(*asked, return_exceptions=True)

    try:
        run(making.make(1))
        making._lists_of = locked
        found = run(all_of(*range(20, 60)))
        assert all(isinstance(one, Unavailable) for one in found)
        assert len(calls) < 10  # one for each batch
    finally:
        making.stop()
