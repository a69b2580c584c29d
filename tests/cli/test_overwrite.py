"""Nothing that is there is replaced without --overwrite, by any command; and nothing is charged."""

from __future__ import annotations

import os

import pytest

from edgeveil.cli import app
from edgeveil.graph.datasets import social_network
from edgeveil.graph.saved import save_graph
from edgeveil.ledger import Ledger
from edgeveil.series.suggesting import suggest

RELEASES = [
    "suggest {graph} --member alice --epsilon 1 --out x.csv",
    "suggest {graph} --all --epsilon 1 --out folder",
    "suggest {graph} --all --epsilon 1 --per-member folder",
    "rank {graph} --source alice --epsilon 1 --out x.csv",
    "embed {graph} --out x.csv",
    "embed {graph} --out folder",
    "report {graph} --member alice --epsilon 1 --out x.html",
    "report {graph} --member alice --epsilon 1 --per-member folder",
]
COMMANDS = [
    *RELEASES,
    "report {graph} --member alice --epsilon 1",
    "convert {graph} saved.graph",
    "evaluate {graph} --plot x.png",
    "ledger report {ledger} --out x.html",
    "ledger report {ledger} --out x.csv",
    "demo --out x.html",
]


@pytest.fixture
def there(folder):
    """What all commands of this file would write to."""
    names = ("x.csv", "x.html", "x.png", "edgeveil-report.html")
    for name in names:
        (folder / name).write_text("mine")
    (folder / "folder").mkdir()
    (folder / "folder" / "note").write_text("mine")
    save_graph(social_network(30, average_degree=4).graph, folder / "saved.graph")
    return names


@pytest.mark.parametrize("line", COMMANDS)
def test_existing_target_is_refused_before_reading(folder, run, there, line):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    done = run(line.format(graph="missing.csv", ledger="missing.ledger"))
    assert done.returncode == 2, done.stderr
    assert " exists" in done.stderr
    assert "--overwrite replaces " in done.stderr
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize("line", [line for line in RELEASES if not line.endswith("--out folder")])
def test_existing_target_is_refused_before_the_charge(folder, run, there, line):
    ledger = Ledger.create(folder / "f.ledger", epsilon=1)
    assert run(f"{line.format(graph='follows.csv')} --ledger f.ledger").returncode == 2
    assert ledger.charges() == []
    done = run(f"{line.format(graph='follows.csv')} --ledger f.ledger --overwrite")
    assert done.returncode == 0, done.stderr
    assert len(ledger.charges()) == 1
    written = line.split()[-1]
    if written != "folder":
        assert (folder / written).read_bytes() != b"mine"
    assert (folder / "folder" / "note").read_text() == "mine", "only files of members are replaced"


def test_a_folder_that_is_no_release_is_never_replaced(folder, run, there):
    line = "suggest follows.csv --all --epsilon 1 --out folder"
    Ledger.create(folder / "f.ledger", epsilon=1)
    for more in (" --ledger f.ledger", " --overwrite", " --overwrite --ledger f.ledger"):
        done = run(line + more)
        assert done.returncode == 2
        assert "folder exists and is not a release" in done.stderr
    assert Ledger.open(folder / "f.ledger").charges() == []
    assert (folder / "folder" / "note").read_text() == "mine"


def test_release_folder_is_replaced_only_with_overwrite(folder, run):
    lists = "suggest follows.csv --epsilon 1 --out lists"
    assert run(f"{lists} --all").returncode == 0
    assert "lists exists; --overwrite replaces it" in run(f"{lists} --member bob").stderr
    assert run(f"{lists} --member bob --overwrite").returncode == 0
    assert [path.name for path in folder.iterdir() if "unfinished" in path.name] == []
    Ledger.create(folder / "f.ledger", epsilon=1)
    paid = f"{lists} --ledger f.ledger --all"
    refused = run(paid)
    assert refused.returncode == 2
    assert "lists holds another release" in refused.stderr
    assert Ledger.open(folder / "f.ledger").charges() == []
    assert run(f"{paid} --overwrite").returncode == 0
    again = run(paid)
    assert again.returncode == 0, "the same release is left as it is"
    assert "stored already" in again.stderr


def test_dangling_link_counts_as_existing(folder, run):
    os.symlink("nowhere.csv", folder / "x.csv")
    done = run("rank follows.csv --source alice --epsilon 1 --out x.csv")
    assert "x.csv exists; --overwrite replaces it" in done.stderr
    assert not (folder / "nowhere.csv").exists()


def test_ledger_charts_are_replaced_with_overwrite(folder, run):
    ledger = Ledger.create(folder / "f.ledger", epsilon=1)
    suggest(social_network(30, average_degree=4).graph, [1], epsilon=1, ledger=ledger)
    for name in ("r.csv", "r.html"):
        (folder / name).write_text("mine")
        assert run(f"ledger report f.ledger --out {name} --overwrite").returncode == 0
        assert "suggest" in (folder / name).read_text()


def test_every_command_that_writes_to_out_has_overwrite():
    """A command that is added later cannot forget it."""
    tree = app.make_app()
    groups = {"ledger": ("report", "plan"), "history": ()}
    names = [(name,) for name in app.COMMANDS if name not in groups]
    names += [(group, name) for group, inner in groups.items() for name in inner]
    for name in names:
        command = tree
        for word in name:
            command = command[word]
        options = {n for a in command.assemble_argument_collection() for n in a.names}
        if options & {"--out", "--per-member", "--plot"}:
            assert "--overwrite" in options, name
