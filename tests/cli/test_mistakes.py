"""Wrong command lines: what was meant, and that no file is read before they are refused."""

from __future__ import annotations

import os

import pytest


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (
            "suggest f.csv --member a --eps 1",
            "suggest has no option --eps; did you mean --epsilon?",
        ),
        ("suggest f.csv --member a --epsilon 1 --eps=1", "did you mean --epsilon?"),
        ("suggest f.csv --source a --epsilon 1", "did you mean --member?"),
        ("suggest f.csv --sources a.txt --epsilon 1", "did you mean --members?"),
        ("rank f.csv --member a --epsilon 1", "did you mean --source?"),
        ("embed f.csv --members a.txt --out e.csv", "did you mean --sources?"),
        ("suggest f.csv --member a --epsilon 1 --n 5", "did you mean -k?"),
        ("rank f.csv --source a --epsilon 1 --count 5", "did you mean -k?"),
        ("rank f.csv --source a --epsilon 1 --size 5", "did you mean -k?"),
        ("rank f.csv --source a --epsilon 1 --output r.csv", "did you mean --out?"),
        ("rank f.csv --source a --epsilon 1 --out r.csv --force", "did you mean --overwrite?"),
        ("ledger create f.ledger --budget 3", "ledger create has no option --budget; did you mean"),
        ("embed f.csv --out e.csv --dimension 5", "did you mean --dim?"),
        ("rank f.csv --source a --epslon 1", "did you mean --epsilon?"),
        ("rank f.csv --source a --epsilon 1 --zzz 5", "rank has no option --zzz"),
    ],
)
def test_misspelt_option_is_corrected(run, line, meant):
    done = run(line)
    assert done.returncode == 2
    assert meant in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rank", "rank needs GRAPH (edgeveil rank --help)"),
        ("embed f.csv", "embed needs --out"),
        ("rank f.csv --source a --epsilon", "--epsilon needs a value"),
        ("rank f.csv g.csv --source a --epsilon 1", "rank does not take g.csv"),
    ],
)
def test_missing_and_extra_arguments_are_named(run, line, words):
    done = run(line)
    assert done.returncode == 2
    assert words in done.stderr


LEDGER = "--ledger missing.ledger"


@pytest.mark.parametrize(
    "line",
    [
        f"suggest missing.csv --member a --epsilon 1 -k 0 {LEDGER}",
        f"suggest missing.csv --member a --all --epsilon 1 {LEDGER}",
        f"suggest missing.csv --member a --epsilon 0 {LEDGER}",
        f"suggest missing.csv --member a --epsilon 1 --columns 1 {LEDGER}",
        f"suggest missing.csv --member a --epsilon 1 --workers 0 {LEDGER}",
        f"suggest missing.csv --member a --epsilon 1 --address x {LEDGER}",
        f"suggest missing.csv --member a --epsilon 1 --insecure-seed 1 {LEDGER}",
        f"suggest missing.csv --members missing.txt --epsilon 1 --set x=1 {LEDGER}",
        f"suggest missing.csv --all --epsilon 1 --out lists --per-member p {LEDGER}",
        f"rank missing.csv --epsilon 1 {LEDGER}",
        f"rank missing.csv --source a --epsilon 1 -k 0 {LEDGER}",
        f"rank missing.csv --source a --epsilon 1 --xi 1 --rounds 2 {LEDGER}",
        f"rank missing.csv --source a --epsilon 1 --candidates c --out r.csv {LEDGER}",
        f"rank missing.csv --source a --epsilon 1 --model public --leave-out-neighbours {LEDGER}",
        "rank missing.csv --source a --epsilon 1 --skip-exhausted",
        f"embed missing.csv --dim 0 --out e.csv {LEDGER}",
        f"embed missing.csv --dim x --out e.csv {LEDGER}",
        f"embed missing.csv --epsilon 1 --out e.csv {LEDGER}",
        "report missing.csv --epsilon 1",
        "report missing.csv --member a --epsilon 1 --accuracy --per-member p",
        f"refresh missing.csv --epsilon 0 {LEDGER}",
        f"refresh missing.csv --epsilon 1 --date yesterday {LEDGER}",
        f"refresh missing.csv --epsilon 1 --out lists.csv {LEDGER}",
        f"refresh missing.csv --epsilon 1 --columns 1 {LEDGER}",
        "refresh missing.csv --epsilon 1",
        "evaluate missing.csv -k 0",
        "evaluate missing.csv --sources 0",
        "evaluate missing.csv --min-degree -1",
        "evaluate missing.csv --epsilon 0",
        "evaluate missing.csv --sigma 1",
        "evaluate missing.csv --mechanism suggest --protocol rankings",
        "evaluate missing.csv --columns 1",
        "evaluate --over-time missing --protocol rankings",
        "evaluate --over-time missing --mechanism suggest",
        "evaluate --over-time missing --nodes n.txt",
        "ledger plan missing.ledger --members 0",
        "ledger report missing.ledger --out page.pdf",
        "history create new missing.csv",
        "history create new missing.csv --time 2 --periods never",
        "history add missing missing.csv --date never",
        "history forget missing",
        "convert missing.csv f.graph --memory 0",
        "convert missing.csv f.graph --columns 1",
        "convert missing.csv",
        "convert missing.csv missing.csv f.graph --key a",
        f"aggregate missing.csv --epsilon 0 --out s.csv {LEDGER}",
        f"classify missing.csv --labels missing --epsilon 1 --threshold 2 {LEDGER}",
        f"suggest missing.csv --member a --epsilon 1 --words a {LEDGER}",
        f"report missing.csv --member a --epsilon 1 -k 20000 {LEDGER}",
        f"refresh missing.csv --epsilon 1 --words a {LEDGER}",
        "evaluate missing.csv --features missing",
        "demo --members 0",
        f"serve missing.csv {LEDGER} --keys missing --certificate c.pem",
        f"serve missing.csv {LEDGER} --keys missing -k 0",
        "token ann --keys missing/keys.json --graph missing.csv --hours 0",
    ],
)
def test_arguments_are_refused_before_any_file_is_read(folder, run, line):
    """The files do not exist, which would be exit code 1 or 4."""
    done = run(line)
    assert done.returncode == 2, done.stderr
    assert "missing" not in done.stderr
    assert [path.name for path in folder.iterdir()] == ["follows.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_not_opened_before_arguments_are_checked(folder, run_process):
    """Nobody writes to it: whoever opens it waits."""
    os.mkfifo(folder / "pipe.csv")
    for line in ("--epsilon 1 -k 0", "--epsilon 0", "--epsilon 1 --eps 1"):
        done = run_process(f"suggest pipe.csv --nodes pipe.csv --member alice {line}")
        assert done.returncode == 2, done.stderr
