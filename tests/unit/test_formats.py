"""Formats of everything that is kept on disk are pinned: what was written must stay readable.

Whoever changes one of them on purpose raises the number of its format and changes the test.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import edgeveil as ev
from edgeveil.graph.saved import save_graph
from edgeveil.ledger.chain import chained, digest, first_hash
from edgeveil.ledger.schema import ChargeRow, GenerationRow, Header, ReleaseRow
from edgeveil.mechanisms import Suggest, TwoHop
from edgeveil.privacy.noise import NoiseSource, discrete_laplace
from edgeveil.series.history import History
from edgeveil.serve.choices import Choices
from tests.conformance.test_every_mechanism import a_graph

SHARED = {"0_numbers": "|b1", "0_values": "<f8", "0_scale": "<f8"}
ROWS = {"sources": "<i8", "rows": "<f8", "uncertainty": "<f8"}
EVIDENCE = {"sources": "<i8", "starts": "<i8", "nodes": "<i4", "sums": "<f4", "rates": "<f8"}
WINDOWS = {"charged": "|b1", "last": "<u2", "windows": "<u2", "counts": "<u2"}
WINDOW_EVIDENCE = {"nodes": "<i4", "sums": "<f2", "rates": "<f4"}
GUARANTEE = {
    "epsilon": 1.0,
    "model": "joint",
    "theorem": "docs/theory/two-hop.md",
    "n_members": 2,
    "delta": 0.0,
    "collusion": "additive",
    "promise": "",
    "private": False,
    "shared_epsilon": 0.4,
    "not_protected": "",
}
PROVENANCE = ["mechanism", "parameters", "version", "noise", "ledger", "created", "lists"]
LABEL = ["output", "guarantee", "statement", "provenance"]
SEEDED = NoiseSource.insecure(1)


def short_digest(content: bytes | str) -> str:
    content = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(content).hexdigest()[:16]


def dtypes_of(path: Path) -> dict[str, str]:
    with np.load(path) as arrays:
        return {name: arrays[name].dtype.str for name in arrays.files}


def columns_of(path: Path) -> dict[str, str]:
    schema = pq.read_schema(path)
    return dict(zip(schema.names, map(str, schema.types), strict=True))


# --- Noise and artifacts of a ledger -------------------------------------------------------------


def test_noise_from_a_secret_is_pinned():
    noise = NoiseSource.from_secret(bytes(range(32)))
    drawn = [discrete_laplace(10**6, 4, noise.derive(*labels)) for labels in (["rows"], ["a", 1])]
    assert short_digest(np.array(drawn).tobytes()) == "d686e4099264796c"


def stored_by(tmp_path, mechanism) -> list[dict[str, str]]:
    """Arrays of a ledger's artifacts with their types, the shared statistics first."""
    ledger = ev.Ledger.create(tmp_path / "a.ledger", epsilon=10)
    ev.release(a_graph(), mechanism, [0, 4], ledger=ledger)
    files = [dtypes_of(path) for path in filter(Path.is_file, ledger.folder.rglob("*"))]
    return sorted(files, key=lambda file: "sources" in file)


def test_stored_rows_of_scores_are_pinned(tmp_path):
    assert stored_by(tmp_path, TwoHop(epsilon=1.0)) == [SHARED, ROWS]


def test_stored_evidence_of_lists_is_pinned(tmp_path):
    assert stored_by(tmp_path, Suggest(epsilon=1.0)) == [SHARED, EVIDENCE]


# --- The ledger ----------------------------------------------------------------------------------


def test_ledger_tables_are_pinned(tmp_path):
    ledger = ev.Ledger.create(tmp_path / "a.ledger", epsilon=10)
    with contextlib.closing(sqlite3.connect(ledger.location)) as database:
        [(application,)] = database.execute("PRAGMA application_id")
        [(version,)] = database.execute("SELECT format FROM ledger")
        tables = database.execute("SELECT sql FROM sqlite_master WHERE sql <> '' ORDER BY name")
        statements = " ".join(" ".join(statement.split()) for (statement,) in tables)
    assert (application, version) == (1164201063, 4)
    assert short_digest(statements) == "f880855f44fa4e72"


def test_ledger_hash_chain_is_pinned():
    """Heads that were noted elsewhere, and backups, must go on to verify."""
    header = Header(4, "id", 10**9, None, "2026-01-01T00:00:00+00:00")
    charge = ChargeRow(
        *(1, "key", "campaign", "friends", 1, "fingerprint", "joint", 5, 5, 2, 2),
        *(digest("ann", "bob"), "code", "{}", "2026-01-02T00:00:00+00:00", 0, 5, 5),
    )
    release = ReleaseRow(1, "key", "sha256", "2026-01-03T00:00:00+00:00")
    generation = GenerationRow(1, "friends", 1, None, "2026-01-04T00:00:00+00:00")
    rows = {"charges": charge, "releases": release, "snapshots": generation}
    hashes = {name: chained(row, first_hash(header, name)).hash for name, row in rows.items()}
    assert {name: value[:16] for name, value in hashes.items()} == {
        "charges": "a0aef17cc2056e5e",
        "releases": "8e0f04c081208fc5",
        "snapshots": "7c4e435549be5bb0",
    }


# --- Graphs, histories and series ----------------------------------------------------------------


def test_saved_graph_is_pinned(tmp_path):
    graph = ev.as_graph([("ann", "bob"), ("bob", "cem")])
    folder = save_graph(graph, tmp_path / "graph")
    described = json.loads((folder / "graph.json").read_text())
    arrays = described.pop("arrays")
    assert described == {
        "format": "edgeveil graph",
        "version": 1,
        "n_nodes": 3,
        "n_edges": 2,
        "ids": "str",
        "read_report": {
            "entries": 2,
            "self_loops": 0,
            "repeated": 0,
            "both_directions": 0,
            "weighted": 0,
            "nodes_from_edges": True,
        },
    }
    assert {name: (a["dtype"], a["size"], a["sha256"][:16]) for name, a in arrays.items()} == {
        "indptr": ("<i4", 4, "05158760cfaef238"),
        "indices": ("<i4", 4, "5ba98eed4a72b83d"),
        "text": ("|u1", 9, "37ace6c48aa8c839"),
        "offsets": ("<i8", 4, "206853782eeb089d"),
    }
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["graph.json", *(f"{name}.npy" for name in arrays)]
    )


def test_history_is_pinned(tmp_path):
    history = History.create(tmp_path / "history")
    history.add(a_graph(), "2026-01-01")
    manifest = json.loads((history.path / "history.json").read_text())
    [snapshot] = manifest["snapshots"]
    assert {name: value for name, value in manifest.items() if value in (1, 2, [])} == {
        "version": 2,
        "forgotten": [],
        "returned": [],
        "marks": [],
    }
    assert list(manifest) == [
        *("format", "version", "identity", "state", "snapshots", "forgotten", "returned"),
        *("key", "marks"),
    ]
    assert manifest["format"] == "edgeveil history"
    assert list(snapshot) == ["number", "date", "n_nodes", "nodes", "token"]
    state = history.path / manifest["state"]
    assert json.loads((state / "graph.json").read_text())["version"] == 3
    assert {path.stem: np.load(path).dtype.str for path in state.glob("*.npy")} == {
        "indptr": "<i4",
        "indices": "<i4",
        "first_seen": "<u2",
        "current": "|b1",
        "present": "|b1",
    }


def test_series_state_is_pinned(tmp_path):
    ledger = ev.Ledger.create(tmp_path / "ledger", epsilon=10)
    options = {"epsilon": 1.0, "label": "friends", "date": "2026-01-01", "nodes_from_edges": True}
    ev.refresh(a_graph(), ledger=ledger, **options)
    folder = tmp_path / "ledger.series" / "friends"
    manifest = json.loads((folder / "series.json").read_text())
    assert list(manifest) == ["format", "series", "until", "token", "entry", "state", "n_nodes"]
    assert (manifest["format"], manifest["until"], manifest["n_nodes"]) == (1, 1, 23)
    assert dtypes_of(folder / manifest["state"] / "000000.npz") == WINDOWS | WINDOW_EVIDENCE


# --- Results -------------------------------------------------------------------------------------


def test_release_files_are_pinned(tmp_path):
    released = ev.release(a_graph(), TwoHop(epsilon=1.0), [0, 4], noise=SEEDED)
    released.write(tmp_path / "r.json")
    released.write(tmp_path / "r.parquet")
    written = json.loads((tmp_path / "r.json").read_text())
    label = written["edgeveil"]
    columns = ["node", "score of 0", "score of 4", "uncertainty of 0", "uncertainty of 4"]
    assert list(written) == ["edgeveil", "columns"]
    assert list(written["columns"]) == columns
    assert list(label) == ["sources", "format", *LABEL]
    assert (label["sources"], label["format"], label["output"]) == ([0, 4], 2, "scores")
    assert label["guarantee"] == GUARANTEE
    assert list(label["provenance"]) == PROVENANCE
    assert columns_of(tmp_path / "r.parquet") == {
        name: "int64" if name == "node" else "double" for name in columns
    }
    metadata = pq.ParquetFile(tmp_path / "r.parquet").metadata.metadata
    assert json.loads(metadata[b"edgeveil"]) == label


def test_release_folder_is_pinned(tmp_path):
    folder = ev.release_to(tmp_path / "out", a_graph(), TwoHop(epsilon=1.0), [0, 4], noise=SEEDED)
    manifest = json.loads((folder.path / "release.json").read_text())
    assert list(manifest) == ["format", "rows", *LABEL, "parts"]
    assert (manifest["format"], manifest["rows"], manifest["output"]) == (1, 2, "scores")
    assert manifest["guarantee"] == GUARANTEE
    assert list(manifest["provenance"]) == PROVENANCE
    [part] = manifest["parts"]
    assert list(part) == ["name", "sha256", "rows"]
    assert columns_of(folder.path / "index.parquet") == {"source": "int64", "part": "int64"}
    assert sorted(path.name for path in folder.path.iterdir()) == [
        *("index.parquet", part["name"], "release.json"),
    ]


def test_suggestions_files_are_pinned(tmp_path):
    suggestions = ev.suggest(a_graph(), [0, 4], 1.0, k=3, noise=SEEDED)
    for suffix in ("json", "parquet", "csv"):
        suggestions.write(tmp_path / f"s.{suffix}")
    written = json.loads((tmp_path / "s.json").read_text())
    label, columns = written["edgeveil"], written["columns"]
    assert list(label) == ["members", "friends", "k", "format", *LABEL]
    assert (label["members"], label["friends"], label["k"]) == ([0, 4], [6, 6], 3)
    assert (label["format"], label["output"]) == (2, "lists")
    assert label["provenance"]["lists"] == {"k": 3, "candidates": "all"}
    assert columns["member"] == [0, 0, 0, 4, 4, 4]
    assert columns["rank"] == [1, 2, 3] * 2
    assert columns["node"] == [16, 2, 21, 17, 21, 19]
    assert columns["reason"] == ["common_friends"] * 6
    assert columns_of(tmp_path / "s.parquet") == {
        "member": "int64",
        "rank": "int64",
        "node": "int64",
        "score": "double",
        "common": "double",
        "chance": "double",
        "reason": "large_string",
    }
    head = (tmp_path / "s.csv").read_text().splitlines()[0]
    assert head == "member,rank,node,score,common,chance,reason,guarantee"


def test_predictions_files_are_pinned(tmp_path):
    labels = {node: "ab"[node % 2] for node in range(20)}
    predictions = ev.classify(a_graph(), labels, epsilon=1.0, noise=SEEDED)
    predictions.write(tmp_path / "p.json")
    predictions.write(tmp_path / "p.parquet")
    written = json.loads((tmp_path / "p.json").read_text())
    label = written["edgeveil"]
    assert list(label) == [
        *("classes", "blocks", "noise_scale", "weights", "n_labelled", "n_trained", "n_validated"),
        *("threshold", "quality", "format", *LABEL),
    ]
    assert (label["format"], label["output"]) == (2, "predictions")
    assert list(label["weights"]) == [
        *("prior", "sums", "shares", "matrices", "bias", "scales", "units", "noise"),
    ]
    numbers = [
        *("probability", "p_a", "p_b", "without_graph_a", "without_graph_b"),
        *("round 1: a", "round 1: b", "round 2: a", "round 2: b"),
    ]
    assert list(written["columns"]) == ["node", "class", *numbers]
    assert columns_of(tmp_path / "p.parquet") == {
        "node": "int64",
        "class": "large_string",
        **dict.fromkeys(numbers, "double"),
    }


def test_choices_tables_are_pinned(tmp_path):
    Choices(tmp_path / "choices.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "choices.db")) as database:
        tables = database.execute("SELECT sql FROM sqlite_master WHERE sql <> '' ORDER BY name")
        statements = " ".join(" ".join(statement.split()) for (statement,) in tables)
    assert short_digest(statements) == "935c0191a48d62c9"
