"""The command line as a person uses it: real processes, real files."""

from __future__ import annotations

import csv
import inspect
import io
import json
import signal
import subprocess
import sys
import time

import pytest

import edgeveil
from edgeveil.cli import app as cli_app

FOLLOWS = "follower,followed\nalice,bob\nbob,carol\ncarol,alice\ndave,alice\ndave,bob\nerin,dave\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "follows.csv").write_text(FOLLOWS)
    return tmp_path


def run(folder, line: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edgeveil", *line.split()]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_rank_gives_json_with_its_guarantee(folder):
    done = run(folder, "rank follows.csv --source alice --epsilon 1 --top 20 --format json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert {row["node"] for row in said["rows"]} == {"alice", "bob", "carol", "dave", "erin"}
    assert [row["rank"] for row in said["rows"]] == [1, 2, 3, 4, 5]
    assert said["guarantee"]["epsilon"] == 1
    assert "every edge that does not touch that source" in said["says"]
    assert "5 nodes" in done.stderr
    assert "edges;" not in done.stderr, "an exact count of edges tells about an edge"
    assert "who appears" in said["says"], "no node list was given"


def test_rank_gives_csv_with_nothing_but_data_on_standard_output(folder):
    done = run(folder, "rank follows.csv --source bob --epsilon 2 --format csv --top 3")
    rows = list(csv.reader(io.StringIO(done.stdout)))
    assert rows[0] == ["rank", "node", "score"]
    assert len(rows) == 4


def test_with_a_node_list_the_guarantee_has_no_reservation(folder):
    (folder / "members.txt").write_text("alice\nbob\ncarol\ndave\nerin\nfay\n")
    ask = "rank follows.csv --nodes members.txt --source fay --epsilon 1 --format json"
    done = run(folder, ask + " --verbose")
    said = json.loads(done.stdout)
    assert len(said["rows"]) == 6
    assert "who appears" not in said["says"]
    assert "6 nodes, 6 edges" in done.stderr


@pytest.mark.parametrize("style", ["table", "csv", "json"])
def test_what_is_not_private_says_so_on_standard_output(folder, style):
    for line in ("--epsilon 1 --insecure-seed 3", "--mechanism non-private"):
        done = run(folder, f"rank follows.csv --source alice {line} --format {style}")
        assert "NOT PRIVATE" in done.stdout
    private = run(folder, f"rank follows.csv --source alice --epsilon 1 --format {style}")
    assert "NOT PRIVATE" not in private.stdout


def test_the_budget_is_kept_over_commands_and_refused_with_exit_code_3(folder):
    assert run(folder, "ledger create f.ledger --epsilon 2").returncode == 0
    ask = "rank follows.csv --source alice --epsilon 1 --format json --ledger f.ledger"
    first, again = run(folder, ask), run(folder, ask)
    assert first.stdout == again.stdout, "the same question is answered once, and charged once"
    embed = "embed follows.csv --epsilon 1 --dim 128 --out emb.parquet --ledger f.ledger"
    assert run(folder, embed).returncode == 0
    assert edgeveil.Release.read(folder / "emb.parquet").values.shape == (5, 128)
    refused = run(folder, ask.replace("epsilon 1", "epsilon 0.5"))
    assert refused.returncode == 3
    assert refused.stdout == ""
    assert refused.stderr.strip().splitlines()[-1] == (
        "edgeveil: the budget is spent: this release needs epsilon 0.5, "
        "0 of 2 is left for recipient 'alice'"
    )
    shown = run(folder, "ledger show f.ledger").stdout
    assert "'alice': 2 spent, 0 left" in shown
    assert run(folder, "ledger verify f.ledger").returncode == 0


def test_convert_makes_a_folder_that_ranks_the_same_graph(folder):
    assert run(folder, "convert follows.csv f.graph").returncode == 0
    seeded = "--source alice --epsilon 1 --insecure-seed 3 --format json"
    from_file = run(folder, f"rank follows.csv {seeded}")
    from_folder = run(folder, f"rank f.graph {seeded}")
    assert from_file.stdout == from_folder.stdout
    assert "NOT PRIVATE" in from_file.stdout
    assert run(folder, "convert follows.csv f.graph").returncode == 2
    assert run(folder, "convert follows.csv f.graph --overwrite").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("rank missing.csv --source a --epsilon 1", 4, "there is no file"),
        ("rank follows.csv --source zed --epsilon 1", 2, "public nodes"),
        ("rank follows.csv --source alice --epsilon -1", 2, "epsilon must be a positive number"),
        ("rank follows.csv --source alice --epsilon nan", 2, "epsilon must be"),
        ("rank follows.csv --source alice", 2, "--epsilon"),
        ("rank follows.csv --source alice --epsilon x", 2, "epsilon"),
        (
            "rank follows.csv --source alice --epsilon 1 --mechanism magic",
            2,
            "there is no mechanism",
        ),
        ("rank follows.csv --source a --epsilon 1 --mechanism two-hop-embedding", 2, "embeddings"),
        ("rank follows.csv --source a --epsilon 1 --mechanism push-flow", 2, "promised-min-degree"),
        ("rank follows.csv --source a --epsilon 1 --ledger no.ledger", 1, "no.ledger"),
        ("rank follows.csv --source a --epsilon 1 --sigma 1", 2, "no option --sigma"),
        ("embed follows.csv --epsilon 1 --out emb.xyz", 2, ".parquet or .json"),
        ("rank ragged.csv --source a --epsilon 1", 4, "line 3"),
        ("rank empty.csv --source a --epsilon 1", 4, "empty"),
        ("rank bytes.csv --source a --epsilon 1", 4, "bytes.csv"),
        ("rank cut.csv.gz --source a --epsilon 1", 4, "cut.csv.gz"),
        ("rank follows.docx --source a --epsilon 1", 4, ".docx"),
        ("nonsense", 2, "nonsense"),
        ("ledger create x.ledger --epsilon 0", 2, "epsilon must be"),
    ],
)
def test_a_mistake_gets_one_sentence_and_its_exit_code(folder, arguments, code, words):
    (folder / "ragged.csv").write_text("a,b\nb,c\nc,d,e,f,g\n")
    (folder / "empty.csv").write_text("")
    (folder / "bytes.csv").write_bytes(b"a,b\n\xff\xfe,c\n")
    (folder / "cut.csv.gz").write_bytes(b"\x1f\x8b\x08\x00\x00\x00")
    (folder / "follows.docx").write_text("x")
    before = sorted(path.name for path in folder.iterdir())
    done = run(folder, arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sorted(path.name for path in folder.iterdir()) == before, "nothing half written"


def test_every_command_has_help_with_an_example_and_a_summary_that_is_true(folder):
    listed = run(folder, "--help").stdout
    for name in cli_app.COMMANDS:
        assert name in listed
        module = __import__(f"edgeveil.cli.{name}", fromlist=[name])
        command = getattr(module, name)
        if inspect.isfunction(command):
            first = (command.__doc__ or "").splitlines()[0]
            assert first == cli_app.COMMANDS[name]
            assert "Example: edgeveil" in run(folder, f"{name} --help").stdout


def test_help_is_fast():
    command = [sys.executable, "-m", "edgeveil", "--help"]
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    assert min(times) < 1.0  # 0.3 s on a quiet machine; tests run beside each other


def test_mechanisms_lists_all_of_them(folder):
    said = json.loads(run(folder, "mechanisms --format json").stdout)
    from edgeveil.mechanisms import MECHANISMS

    assert [row["name"] for row in said["rows"]] == [kind.name for kind in MECHANISMS]
    assert all(row["when to use it"] for row in said["rows"])


def test_audit_prints_its_verdict(folder):
    done = run(folder, "audit own-neighbours --trials 100")
    assert done.returncode == 0
    assert "consistent" in done.stdout


def test_output_that_nobody_reads_is_no_error(folder):
    command = f"{sys.executable} -m edgeveil mechanisms --format csv | head -n 1"
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    assert done.stderr == ""


def test_ctrl_c_ends_with_130_and_no_traceback(folder):
    process = subprocess.Popen(
        [sys.executable, "-m", "edgeveil", "audit", "edge-flipping", "--trials", "2000000"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in words
