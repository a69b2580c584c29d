"""Noise labels and formats of stored rows are pinned: what a ledger holds must stay readable."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

import edgeveil as ev
from edgeveil.privacy.noise import NoiseSource, discrete_laplace
from tests.conformance.test_every_mechanism import a_graph

SHARED = {"0_numbers": "|b1", "0_values": "<f8", "0_scale": "<f8"}
ROWS = {"sources": "<i8", "rows": "<f8", "uncertainty": "<f8"}
EVIDENCE = {"sources": "<i8", "starts": "<i8", "nodes": "<i4", "sums": "<f4", "rates": "<f8"}


def test_noise_from_a_secret_is_pinned():
    noise = NoiseSource.from_secret(bytes(range(32)))
    drawn = [discrete_laplace(10**6, 4, noise.derive(*labels)) for labels in (["rows"], ["a", 1])]
    assert hashlib.sha256(np.array(drawn).tobytes()).hexdigest()[:16] == "d686e4099264796c"


def stored_by(tmp_path, mechanism) -> list[dict[str, str]]:
    """Arrays of a ledger's artifacts with their types, the shared statistics first."""
    ledger = ev.Ledger.create(tmp_path / "a.ledger", epsilon=10)
    ev.release(a_graph(), mechanism, [0, 4], ledger=ledger)
    files = []
    for path in filter(Path.is_file, ledger.folder.rglob("*")):
        with np.load(path) as held:
            files.append({name: held[name].dtype.str for name in held.files})
    return sorted(files, key=lambda file: "sources" in file)


def test_stored_rows_of_scores_are_pinned(tmp_path):
    assert stored_by(tmp_path, ev.mechanisms.TwoHop(epsilon=1.0)) == [SHARED, ROWS]


def test_stored_evidence_of_lists_is_pinned(tmp_path):
    assert stored_by(tmp_path, ev.mechanisms.Suggest(epsilon=1.0)) == [SHARED, EVIDENCE]
