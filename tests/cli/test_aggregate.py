"""`edgeveil aggregate`: private sums for everybody, in a file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from edgeveil import Ledger, Release

AGGREGATE = "aggregate follows.csv --values ages.csv --epsilon 1"


@pytest.fixture(autouse=True)
def ages(folder):
    names = ["alice", "bob", "carol", "dave", "erin"]
    rows = "".join(f"{name},{10 * i + 10},{i % 2}\n" for i, name in enumerate(names))
    (folder / "ages.csv").write_text(f"node,age,member\n{rows}")
    (folder / "members.txt").write_text("\n".join(names))


def test_aggregate_writes_a_row_per_node_with_the_guarantee(run):
    done = run(f"{AGGREGATE} --nodes members.txt --bound 51 --out sums.csv")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(Path("sums.csv").read_text())))
    assert list(rows[0]) == ["source", "age", "member", "guarantee"]
    assert [row["source"] for row in rows] == ["alice", "bob", "carol", "dave", "erin"]
    assert {row["guarantee"] for row in rows} == {"public, epsilon = 1"}
    assert "Not protected: the values that are summed up" in done.stderr
    assert "sums.csv: 5 rows." in done.stderr


def test_the_charge_is_for_everybody_once_and_a_dry_run_shows_it(run):
    ledger = Ledger.create("f.ledger", epsilon=1.5)
    line = f"{AGGREGATE} --ledger f.ledger"
    [row] = json.loads(run(f"{line} --out x.csv --dry-run --format json").stdout)["rows"]
    assert (row["for_whom"], row["epsilon"], row["left_after"]) == ("everybody", 1.0, 0.5)
    assert "price of aggregation for everybody" in run(f"{line} --out x.csv --dry-run").stdout
    assert ledger.charges() == []
    assert "Charged 1 to everybody" in run(f"{line} --out one.json").stderr
    assert "costs nothing" in run(f"{line} --out two.json").stderr
    assert (Release.read("one.json").values == Release.read("two.json").values).all()
    assert run(f"{line} --bound 2 --out x.csv").returncode == 3
    assert len(ledger.charges()) == 1


def test_without_values_rows_are_public_embeddings(run):
    assert run("aggregate follows.csv --epsilon 1 --dim 6 --out e.parquet").returncode == 0
    embeddings = Release.read("e.parquet")
    assert embeddings.values.shape == (5, 6)
    assert embeddings.guarantee.model == "public"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("aggregate follows.csv --values ages.csv --out x.csv", "--epsilon is required"),
        (f"{AGGREGATE} --out folder", "--out must end in"),
        (f"{AGGREGATE} --out ages.csv", "--out would replace the input"),
        (f"{AGGREGATE} --out x.csv --dim 4", "dimension is for rows without values"),
        (f"{AGGREGATE} --out x.csv --bound 0", "--bound must be a positive number, got 0"),
        (f"{AGGREGATE} --out x.csv --workers 0", "--workers must be an integer >= 1, got 0"),
        (
            f"{AGGREGATE} --out x.csv --skip-exhausted --ledger f.ledger",
            "to everybody: nobody can be left out",
        ),
    ],
)
def test_a_mistake_gets_one_sentence_and_costs_nothing(run, folder, line, told):
    ledger = Ledger.create("f.ledger", epsilon=4)
    done = run(line)
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert ledger.charges() == []
    assert not (folder / "x.csv").exists()


def test_help_says_that_the_values_are_not_protected(run):
    said = " ".join(run("aggregate --help").stdout.split())
    assert "The values are NOT protected" in said
    assert "must not be computed from the graph" in said
