"""Defaults from a TOML file: only if named, always said, never what must be said by hand."""

from __future__ import annotations

import json

import pytest

from edgeveil.ledger import Ledger


def test_unnamed_config_file_is_not_read(folder, run):
    (folder / "edgeveil.toml").write_text("[rank]\nepsilon = 100\n")
    done = run("rank follows.csv --source alice")
    assert done.returncode == 2
    assert "--epsilon" in done.stderr


def test_settings_of_a_named_config_are_printed_with_it(folder, run, monkeypatch):
    (folder / "mine.toml").write_text(
        '[rank]\nepsilon = 0.5\ntop = 2\nformat = "json"\nsource = ["alice"]\n[embed]\ndim = 8\n'
    )
    done = run("rank follows.csv --config mine.toml --top 3")
    assert done.returncode == 0
    said = json.loads(done.stdout)
    assert said["guarantee"]["epsilon"] == 0.5
    assert len(said["rows"]) == 3, "the command line wins"
    assert done.stderr.splitlines() == [
        "mine.toml sets --epsilon to 0.5",
        "mine.toml sets --format to json",
        "mine.toml sets --source to ['alice']",
        "No --ledger given: this release was not counted against any budget.",
    ]
    monkeypatch.setenv("EDGEVEIL_CONFIG", "mine.toml")
    assert "mine.toml (EDGEVEIL_CONFIG) sets --epsilon to 0.5" in run("rank follows.csv").stderr


def test_config_sets_ledger_and_directed(folder, run):
    Ledger.create(folder / "f.ledger", epsilon=1)
    (folder / "c.toml").write_text(
        '[rank]\nledger = "f.ledger"\ndirected = "ignore"\nepsilon = 1\n'
    )
    done = run("rank follows.csv --source alice --config c.toml")
    assert done.returncode == 0
    assert "c.toml sets --ledger to f.ledger" in done.stderr
    assert Ledger.open(folder / "f.ledger").account("alice").left == 0


def test_the_address_of_a_database_is_not_printed(folder, run):
    (folder / "c.toml").write_text('[rank]\nledger = "postgresql://me:secret@nowhere.invalid/x"\n')
    done = run("rank follows.csv --source alice --epsilon 1 --config c.toml")
    assert done.returncode == 1
    assert "--ledger to postgresql://..." in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("[rank]\nepsilom = 1\n", 2, "rank has no option 'epsilom'; did you mean epsilon?"),
        ("[rank]\ngraph = 'x'\n", 2, "no option 'graph'"),
        ("[rnak]\nepsilon = 1\n", 2, "did you mean rank?"),
        ("epsilon = 1\n", 2, "'epsilon' is not the table of a command"),
        ("[rank]\nepsilon = 'x'\n", 2, "c.toml"),
        ("[rank]\nepsilon = {a = 1}\n", 2, "must be a text, a number"),
        ("[rank]\nepsilon = 1979-05-27\n", 2, "must be a text, a number"),
        ("[rank]\nepsilon = -1\n", 2, "epsilon must be a positive number"),
        ("[rank]\nyes = true\n", 2, "yes has to be given on the command line"),
        ("[rank]\noverwrite = true\n", 2, "overwrite has to be given on the command line"),
        ("[rank]\ninsecure_seed = 1\n", 2, "insecure_seed has to be given"),
        ("[rank]\nepsilon = 1\nepsilon = 2\n", 4, "is not a TOML file"),
        ("[rank", 4, "is not a TOML file"),
        ("x = " + "[" * 5000, 4, "is not a TOML file"),
        ("x = " + "9" * 5000, 4, "is not a TOML file"),
    ],
)
def test_wrong_config_is_refused_in_one_sentence(folder, run, text, code, words):
    (folder / "c.toml").write_text(text)
    done = run("rank follows.csv --source alice --config c.toml")
    assert done.returncode == code
    assert words in done.stderr.splitlines()[-1]
    assert done.stdout == ""


def test_missing_config_exits_as_unreadable_input(run):
    done = run("rank follows.csv --source alice --epsilon 1 --config no.toml")
    assert done.returncode == 4
    assert "no.toml cannot be read" in done.stderr
