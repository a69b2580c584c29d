"""``edgeveil suggest``: whom it is for, what it shows, where it writes, what it charges."""

from __future__ import annotations

import csv
import io
import json

import pytest

from edgeveil.ledger import Ledger
from edgeveil.results.suggestions import Suggestions


def test_a_list_is_shown_without_the_member_and_its_friends(run):
    done = run("suggest follows.csv --member alice --epsilon 1 --format csv")
    assert done.returncode == 0
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert list(rows[0]) == ["rank", "node", "score", "common", "chance", "why"]
    assert [row["node"] for row in rows] == ["erin"]  # all others are friends
    assert "of 1 name stand" in done.stderr
    assert "to 1 member" not in done.stderr, "that is for many lists"
    assert "Protected: every edge that does not touch that member" in done.stderr


def test_suggest_json_carries_guarantee_and_summary(run):
    done = run("suggest follows.csv --member carol --epsilon 0.5 --format json")
    told = json.loads(done.stdout)
    assert told["member"] == "carol"
    assert told["guarantee"]["epsilon"] == 0.5
    assert "distinct people" in told["summary"]
    remark = "with 2 friends this list is mostly what everybody gets"
    popular = sum(row["why"] == "popular" for row in told["rows"])
    assert (remark in done.stderr.lower()) == (2 * popular > len(told["rows"]))


def test_everybody_gets_a_list_in_a_file_or_in_a_folder_of_parts(run, folder):
    assert run("suggest follows.csv --all --epsilon 1 --out lists.parquet").returncode == 0
    assert Suggestions.read(folder / "lists.parquet").members == (
        *("alice", "bob", "carol", "dave", "erin"),
    )
    assert run("suggest follows.csv --all --epsilon 1 --out parts").returncode == 0
    assert (folder / "parts" / "release.json").is_file()


def test_per_member_files_are_private_and_charged_once(run, folder):
    ledger = Ledger.create(folder / "f.ledger", epsilon=2)
    (folder / "some.txt").write_text("alice\nerin\n")
    line = "suggest follows.csv --members some.txt --epsilon 1 --ledger f.ledger --per-member own"
    assert run(line).returncode == 0
    assert run(f"{line} --overwrite").returncode == 0
    assert sorted(path.name for path in (folder / "own").iterdir()) == ["alice.csv", "erin.csv"]
    assert (folder / "own" / "erin.csv").stat().st_mode & 0o777 == 0o600
    assert len(ledger.charges()) == 1
    assert run(f"{line} --dry-run").returncode == 0
    assert run(line.replace("--epsilon 1", "--epsilon 1.5 --overwrite")).returncode == 3


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("suggest follows.csv --epsilon 1", "--member alice, --members FILE or --all"),
        ("suggest follows.csv --all --member bob --epsilon 1", "one of them"),
        ("suggest follows.csv --member bob", "--epsilon is required (for example --epsilon 1)"),
        ("suggest follows.csv --member bob --epsilon 1 --top 0", "-k must be an integer from 1"),
        ("suggest follows.csv --member zoe --epsilon 1", "is not one of the 5 public nodes"),
        ("suggest follows.csv --all --epsilon 1 --out x --per-member y", "do not go together"),
    ],
)
def test_a_mistake_gets_one_sentence_and_costs_nothing(run, line, sentence):
    done = run(line)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stdout == ""


def test_id_unfit_for_a_file_name_is_refused_before_charge(run, folder):
    ledger = Ledger.create(folder / "f.ledger", epsilon=2)
    (folder / "odd.csv").write_text("a,b\nAnn,ann\nAnn,x/y\nann,x/y\n")
    for members in ("Ann\nann\n", "x/y\n"):
        (folder / "some.txt").write_text(members)
        line = "suggest odd.csv --members some.txt --epsilon 1 --ledger f.ledger --per-member own"
        done = run(line)
        assert done.returncode == 2, done.stderr
        assert "use --out instead" in done.stderr
    assert ledger.charges() == []


def test_error_reports_a_charge_only_after_it_was_made(run, folder, monkeypatch):
    ledger = Ledger.create(folder / "f.ledger", epsilon=1)
    line = "suggest follows.csv --member alice --epsilon 1 --ledger f.ledger --out lists.json"
    honest = Suggestions.write

    def full(self, path):
        if str(path) == "lists.json":
            raise OSError(28, "No space left on device")
        honest(self, path)

    monkeypatch.setattr(Suggestions, "write", full)
    done = run(line)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "f.ledger: the release is charged and stored: the same command again" in done.stderr
    assert len(ledger.charges()) == 1
    monkeypatch.setattr(Suggestions, "write", honest)
    shorter = run(line.replace("alice", "alice -k 3"))  # made of what is stored
    assert shorter.returncode == 0, shorter.stderr
    assert "costs nothing" in shorter.stderr
    refused = run(line.replace("epsilon 1", "epsilon 0.9 --overwrite"))
    assert refused.returncode == 3
    assert len(refused.stderr.splitlines()) == 1


def test_table_shows_no_strength_for_popular_names(run):
    done = run("suggest follows.csv --all --epsilon 0.01 --insecure-seed 1")
    rows = [line.split("│")[1:-1] for line in done.stdout.splitlines() if "│" in line]
    cells = [[cell.strip() for cell in row] for row in rows]
    popular = [row[3:5] for row in cells if row[4] == "popular"]
    assert popular, "five nodes at this epsilon: nearly everything is noise"
    assert ["popular", "popular"] not in popular


def test_words_are_used_in_tables_and_reasons_and_not_in_json(folder, run):
    names = "alice,bob;alice,carol;alice,dave;bob,carol;bob,erin;carol,erin;dave,erin"
    (folder / "pay.csv").write_text("payer,payee\n" + names.replace(";", "\n") + "\n")
    line = "suggest pay.csv --member alice --member erin --epsilon 9 --insecure-seed 1"
    shown = run(f"{line} --words accounts,payments")
    assert "suggestions for 2 accounts" in shown.stdout
    assert "account" in shown.stdout.splitlines()[3]
    assert "to 2 accounts" in shown.stderr
    assert not {"friend", "people"} & set((shown.stdout + shown.stderr).split())
    machine = json.loads(run(f"{line} --words accounts,payments --format json").stdout)
    assert {row["member"] for row in machine["rows"]} <= {"alice", "erin"}
    assert run(f"{line} --words accounts").returncode == 2
