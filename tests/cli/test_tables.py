"""Tables for people fit into 80 columns, and no word in them is broken for it."""

from __future__ import annotations

import pytest

from edgeveil.cli.output import print_table

WIDE = [f"column_number_{i}" for i in range(12)]
RANKINGS = ["mechanism", "epsilon", "recall@100", "recall@100 non-neighbours", "ndcg@100", "lift_x"]


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def printed(capsys, columns, rows, **options) -> str:
    print_table(columns, rows, **options)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    return text


def test_words_stay_whole_where_blanks_can_be_spared(capsys):
    rows = [("push-flow-cap (paper)", 0.1, 0.4464646, 0.1240001, 0.9310001, 0.111111)]
    text = printed(capsys, RANKINGS, rows)
    assert "push-flow-cap" in text
    assert "non-neighbours" in text


@pytest.mark.parametrize("columns", [60, 66, 72, 80, 100])
def test_no_table_loses_its_right_edge(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    names = ["mechanism", "epsilon", "recall@20", "recall@20 non-neighbours", "recall@20 lift"]
    rows = [("own neighbours", None, 0.796, 0.071, 0.721), ("two-hop", 3.0, 0.923, 0.75, 0.857)]
    print_table([*names, "ndcg@20"], [(*row, 0.959) for row in rows], title="friends.csv")
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert max(map(len, lines)) <= columns
    table = [line.rstrip() for line in lines if line[:1] in "┃┏┡│└"]
    assert not table or {line[-1] for line in table} <= set("┃┓┩│┘")
    assert text.count("0.959") == 2


def test_what_has_too_many_columns_becomes_a_paragraph_per_row(capsys):
    rows = [[f"row {row} cell {i}" for i in range(12)] for row in range(2)]
    text = printed(capsys, WIDE, rows, title="charges")
    assert text.splitlines()[:3] == [
        "charges",
        "column number 0: row 0 cell 0",
        "  column number 1: row 0 cell 1",
    ]
    assert text.count("column number 11: row") == 2


def test_long_ids_are_folded_and_lose_no_letter(capsys):
    text = printed(capsys, ["rank", "node"], [(1, "x" * 200)])
    assert text.count("x") == 200


def test_a_table_without_rows_is_one(capsys):
    assert "rank" in printed(capsys, ["rank", "node"], [])


def test_the_ledger_report_can_be_read(run):
    run("ledger create f.ledger --epsilon 2")
    run("suggest follows.csv --member bob --epsilon 1 --ledger f.ledger --purpose trial")
    text = run("ledger report f.ledger").stdout
    assert "purpose: trial" in text
    assert max(map(len, text.splitlines())) <= 80
