"""Sessions: one connection for many transactions, and never one to a file that was replaced."""

from __future__ import annotations

import shutil
import sqlite3
import threading

import pytest

import edgeveil as ev
from edgeveil.errors import LedgerError


@pytest.fixture
def opened(monkeypatch):
    """All connections that were opened since."""
    connections, connect = [], sqlite3.connect

    def counting(*given, **more):
        connections.append(connect(*given, **more))
        return connections[-1]

    monkeypatch.setattr(sqlite3, "connect", counting)
    return connections


def test_refresh_opens_one_connection(tmp_path, opened):
    graph = ev.datasets.social_network(60, average_degree=6).graph
    ledger = ev.Ledger.create(tmp_path / "a.ledger", epsilon=9)
    for week in ("2026-01-05", "2026-01-12"):
        opened.clear()
        ev.refresh(graph, ledger=ledger, epsilon=1, date=week)
        assert len(opened) == 1


def test_session_ends_with_its_block(tmp_path, opened):
    ledger = ev.Ledger.create(tmp_path / "a.ledger", epsilon=9)
    with ledger.session(), ledger.session():
        opened.clear()
        ledger.generation()
        ledger.account()
    assert len(opened) == 1
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")
    ledger.generation()
    assert len(opened) == 2


def fail_after_writing(ledger):
    with ledger._transaction(write=True) as transaction:
        transaction.run("UPDATE ledger SET created = 'tomorrow'")
        raise ZeroDivisionError


def test_an_error_within_a_session_undoes_its_transaction(tmp_path):
    ledger = ev.Ledger.create(tmp_path / "a.ledger", epsilon=9)
    with ledger.session():
        with pytest.raises(ZeroDivisionError):
            fail_after_writing(ledger)
        with ledger._transaction(write=True) as transaction:  # the lock is free again
            assert transaction.run("SELECT created FROM ledger") != [("tomorrow",)]


def test_a_file_replaced_within_a_session_is_noticed(tmp_path):
    place = tmp_path / "a.ledger"
    ledger = ev.Ledger.create(place, epsilon=9)
    ev.Ledger.create(tmp_path / "b.ledger", epsilon=8)
    with ledger.session():
        ledger.generation()
        shutil.copy(tmp_path / "b.ledger", tmp_path / "c.ledger")
        (tmp_path / "c.ledger").rename(place)
        with pytest.raises(LedgerError, match="another ledger"):
            ledger.generation()


def test_another_thread_has_its_own_connection(tmp_path, opened):
    ledger = ev.Ledger.create(tmp_path / "a.ledger", epsilon=9)
    with ledger.session():
        ledger.generation()
        opened.clear()
        thread = threading.Thread(target=ledger.generation)
        thread.start()
        thread.join()
    assert len(opened) == 1
