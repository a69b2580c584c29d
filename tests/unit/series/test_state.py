"""A folder of a series that cannot be relied on stops a refresh before anybody is charged."""

from __future__ import annotations

import json
import os

import pytest

import edgeveil as ev
from edgeveil.errors import LedgerError
from edgeveil.graph.datasets import social_network

GRAPH = social_network(60, average_degree=8).graph


@pytest.fixture
def ledger(tmp_path):
    return ev.Ledger.create(tmp_path / "f.ledger", epsilon=4)


def refreshed(ledger, folder, day):
    how = {"ledger": ledger, "epsilon": 1.0, "label": "friends", "folder": folder}
    return ev.refresh(GRAPH, date=f"2026-01-{day:02d}", **how)


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_a_folder_that_is_open_to_others_is_refused(ledger, tmp_path):
    folder = tmp_path / "series"
    folder.mkdir()
    folder.chmod(0o755)  # it will hold the graph
    with pytest.raises(LedgerError, match="open to others"):
        refreshed(ledger, folder, 1)
    assert ledger.charges() == []
    folder.chmod(0o700)
    assert refreshed(ledger, folder, 1).n_lists == 60


def test_a_description_that_is_damaged_or_of_another_version_is_refused(ledger, tmp_path):
    folder = tmp_path / "series"
    refreshed(ledger, folder, 1)
    charges = ledger.charges()
    described = folder / "series.json"
    whole = described.read_text("utf-8")
    for text, said in (
        (whole[: len(whole) // 2], "damaged"),
        ("[]", "damaged"),
        ('{"format": 1, "entry": 3}', "damaged"),
        ('{"format": 1, "entry": [0, ""], "more": 1}', "damaged"),
        (json.dumps({**json.loads(whole), "format": 99}), "another version"),
    ):
        described.write_text(text, "utf-8")
        with pytest.raises(LedgerError, match=said):
            refreshed(ledger, folder, 2)
        assert ledger.charges() == charges
    described.write_text(whole, "utf-8")
    assert refreshed(ledger, folder, 2).n_lists == 60
