"""The command line as a person uses it, with real files."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from typing import get_args

import pytest

import edgeveil
from edgeveil.cli import app as cli_app
from edgeveil.cli.options import EmbeddingMechanism, ListMechanism, ScoreMechanism
from edgeveil.graph.saved import open_graph


def test_rank_gives_json_with_its_guarantee(folder):
    line = "rank follows.csv --source alice --epsilon 1 --top 20 --format json"
    command = [sys.executable, "-m", "edgeveil", *line.split()]  # as a person does
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert {row["node"] for row in said["rows"]} == {"alice", "bob", "carol", "dave", "erin"}
    assert [row["rank"] for row in said["rows"]] == [1, 2, 3, 4, 5]
    assert said["guarantee"]["epsilon"] == 1
    assert "every edge that does not touch that member" in said["says"]
    counted = "No --ledger given: this release was not counted against any budget.\n"
    assert done.stderr == counted, "an exact count of edges tells about an edge"
    assert "who appears" in said["says"], "no node list was given"


def test_rank_gives_csv_with_nothing_but_data_on_standard_output(folder, run):
    done = run("rank follows.csv --source bob --epsilon 2 --format csv --top 3")
    rows = list(csv.reader(io.StringIO(done.stdout)))
    assert rows[0] == ["rank", "node", "score", "uncertainty", "first", "last"]
    assert len(rows) == 4
    assert all(float(row[3]) > 0 and 1 <= int(row[4]) <= int(row[5]) <= 5 for row in rows[1:])


def test_a_table_says_which_ranks_cannot_be_told_apart(run):
    asked = "rank follows.csv --source alice --epsilon 1 --mechanism push-flow-cap"
    private = run(f"{asked} --insecure-seed 1").stdout
    assert "could be rank" in private
    assert re.search(r"│ \d-5 +│", private)
    assert re.search(r"alice .*│ 1 +│", private), "alice's own score is far above the noise"
    exact = run("rank follows.csv --source alice --mechanism own-neighbours").stdout
    assert not re.search(r"\d-\d", exact)


def test_rank_leaves_out_neighbours_in_the_joint_model_only(folder, run):
    asked = "rank follows.csv --source alice --epsilon 1 --format csv"

    def nodes(extra: str) -> set[str]:
        return {row[1] for row in list(csv.reader(io.StringIO(run(f"{asked} {extra}").stdout)))[1:]}

    assert nodes("") == {"alice", "bob", "carol", "dave", "erin"}
    assert nodes("--leave-out-source") == {"bob", "carol", "dave", "erin"}
    assert nodes("--leave-out-source --leave-out-neighbours") == {"erin"}
    (folder / "some.txt").write_text("bob\nerin\n")
    assert nodes("--candidates some.txt") == {"bob", "erin"}
    public = run(f"{asked} --model public --leave-out-neighbours")
    assert public.returncode == 2
    assert "joint" in public.stderr
    (folder / "some.txt").write_text("bob\nzed\n")
    edgeveil.Ledger.create(folder / "f.ledger", epsilon=1)
    assert run(f"{asked} --candidates some.txt --ledger f.ledger").returncode == 2
    assert edgeveil.Ledger.open(folder / "f.ledger").charges() == []
    assert run(f"{asked} --leave-out-source --out r.csv").returncode == 2


def test_with_a_node_list_the_guarantee_has_no_reservation(folder, run):
    (folder / "members.txt").write_text("alice\nbob\ncarol\ndave\nerin\nfay\n")
    ask = "rank follows.csv --nodes members.txt --source fay --epsilon 1 --format json"
    done = run(ask + " --verbose")
    said = json.loads(done.stdout)
    assert len(said["rows"]) == 6
    assert "who appears" not in said["says"]
    assert "6 nodes, 6 edges" in done.stderr


@pytest.mark.parametrize("style", ["table", "csv", "json"])
def test_what_is_not_private_says_so_on_standard_output(folder, run, style):
    for line in ("--epsilon 1 --insecure-seed 3", "--mechanism non-private"):
        done = run(f"rank follows.csv --source alice {line} --format {style}")
        assert "NOT PRIVATE" in done.stdout
        if style == "json":
            json.loads(done.stdout, parse_constant=pytest.fail)  # Infinity is no JSON
    private = run(f"rank follows.csv --source alice --epsilon 1 --format {style}")
    assert "NOT PRIVATE" not in private.stdout


def test_exceeded_budget_across_commands_exits_with_3(folder, run):
    assert run("ledger create f.ledger --epsilon 2").returncode == 0
    ask = "rank follows.csv --source alice --epsilon 1 --format json --ledger f.ledger"
    first, again = run(ask), run(ask)
    assert first.stdout == again.stdout, "the same question is answered once, and charged once"
    embed = (
        "embed follows.csv --mechanism instant-embedding --epsilon 1 --dim 128 "
        "--out emb.parquet --ledger f.ledger"
    )
    assert run(embed).returncode == 0
    assert edgeveil.Release.read(folder / "emb.parquet").values.shape == (5, 128)
    refused = run(ask.replace("epsilon 1", "epsilon 0.5"))
    assert refused.returncode == 3
    assert refused.stdout == ""
    assert refused.stderr == (
        "edgeveil: the budget does not allow this: it needs epsilon 0.5, "
        "0 of 2 is left for member 'alice'\n"
    )
    shown = run("ledger show f.ledger").stdout
    assert "'alice': 2 charged, 0 left" in shown
    assert run("ledger verify f.ledger").returncode == 0


def test_embed_source_embeds_only_these_by_class_name(folder, run):
    line = "embed follows.csv --source bob --source dave --mechanism DPInstantEmbedding --epsilon 1"
    assert run(f"{line} --dim 4 --out e.json").returncode == 0
    assert set(json.loads((folder / "e.json").read_text())["columns"]["source"]) == {"bob", "dave"}
    said = run("rank follows.csv --source bob --mechanism TwoHop --epsilon 1 --format json")
    assert json.loads(said.stdout)["guarantee"]["epsilon"] == 1
    asked = run("rank follows.csv --source bob --epsilon 1 --set alpha=0.1 --mechanism TwoHop")
    assert "takes no alpha: say restart=" in asked.stderr
    asked = run("rank follows.csv --source bob --epsilon 1 --set R=9 --mechanism DPPushFlowCap")
    assert "takes no R: say rounds=9" in asked.stderr


def test_an_embedding_of_the_own_list_costs_nothing_and_says_so(folder, run):
    assert run("ledger create f.ledger --epsilon 1").returncode == 0
    for width, columns in (("", 1024), (" --dim 8", 8), (" --dim nodes", 5)):
        done = run(f"embed follows.csv{width} --out own.parquet --ledger f.ledger")
        assert done.returncode == 0
        assert "no such edge is used, so this costs nothing" in " ".join(done.stderr.split())
        embeddings = edgeveil.Release.read(folder / "own.parquet")
        assert embeddings.values.shape == (5, columns)
        assert embeddings.guarantee.epsilon == 0
        (folder / "own.parquet").unlink()
    assert edgeveil.Ledger.open(folder / "f.ledger").account("alice").charged_nano == 0
    assert "counted against" not in run("embed follows.csv --out own.parquet").stderr


def test_an_old_backup_that_was_put_back_is_noticed(folder, run):
    run("ledger create f.ledger --epsilon 2")
    ask = "rank follows.csv --source alice --epsilon 1 --ledger f.ledger"
    done = run("ledger backup f.ledger old.ledger")
    assert done.returncode == 0
    misspelt = run(f"ledger verify f.ledger --known-head {done.stdout.strip()[:-1]}")
    assert (misspelt.returncode, "--known-head takes the 64" in misspelt.stderr) == (2, True)
    assert run(f"ledger verify f.ledger --known-head {done.stdout.strip()}").returncode == 0
    run(ask)
    os.replace(folder / "old.ledger", folder / "f.ledger")
    for line in (f"{ask} --mechanism two-hop --restart 0.2", "ledger verify f.ledger"):
        refused = run(line)
        assert refused.returncode == 1
        assert "restored from an older copy" in refused.stderr
    assert run("ledger backup f.ledger follows.csv").returncode == 1
    again = run("ledger backup f.ledger new.ledger")
    assert f"ledger alone. Copy {folder / 'f.ledger.artifacts'}, too." in again.stderr


def test_convert_makes_a_folder_that_ranks_the_same_graph(folder, run):
    assert run("convert follows.csv f.graph").returncode == 0
    seeded = "--source alice --epsilon 1 --insecure-seed 3 --format json"
    from_file = run(f"rank follows.csv {seeded}")
    from_folder = run(f"rank f.graph {seeded}")
    assert from_file.stdout == from_folder.stdout
    assert "NOT PRIVATE" in from_file.stdout
    assert run("convert follows.csv f.graph").returncode == 2
    assert run("convert follows.csv f.graph --overwrite").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("rank missing.csv --source a --epsilon 1", 4, "there is no file"),
        ("rank follows.csv --source zed --epsilon 1", 2, "public nodes"),
        ("rank follows.csv --source alice --epsilon -1", 2, "--epsilon must be a positive number"),
        ("rank follows.csv --source alice --epsilon nan", 2, "epsilon must be"),
        ("rank follows.csv --source alice", 2, "--epsilon"),
        ("rank follows.csv --source alice --epsilon x", 2, "epsilon"),
        (
            "rank follows.csv --source alice --epsilon 1 --mechanism magic",
            2,
            "There are: two-hop, degree-prior, push-flow-cap",
        ),
        ("rank follows.csv --source a --epsilon 1 --mechanism twohops", 2, "mean two-hop?"),
        (
            "rank follows.csv --source a --mechanism own-list-embedding",
            2,
            "gives embeddings; scores",
        ),
        ("rank follows.csv --source a --epsilon 1 --mechanism push-flow", 2, "promised-min-degree"),
        (
            "rank follows.csv --source a --epsilon 1 --ledger no.ledger",
            1,
            "no.ledger; edgeveil ledger create",
        ),
        ("rank follows.csv --source a --epsilon 1 --sigma 1", 2, "name it with --mechanism"),
        ("embed follows.csv --epsilon 1 --out e.csv", 2, "costs nothing: leave epsilon out"),
        ("embed follows.csv --model public --out e.csv", 2, "--epsilon is required"),
        (
            "embed follows.csv --epsilon 1 --mechanism instant-embedding --dim nodes --out e.csv",
            2,
            "--dim nodes is for the own list",
        ),
        ("embed follows.csv --dim 0 --out e.csv", 2, "--dim must be an integer >= 1, got 0"),
        (
            "refresh follows.csv --epsilon 1 --ledger f.ledger --date yesterday",
            2,
            "date must be like 2026-11-16, got 'yesterday'",
        ),
        ("embed s3://bucket/follows.csv --out e.csv", 4, "s3:// is a URL"),
        ("embed follows.csv --out emb.xyz", 2, ".parquet, .json or .csv"),
        ("embed follows.csv --out follows.csv", 2, "would replace the input"),
        ("embed follows.csv --out no/emb.csv", 2, "there is no folder no"),
        ("rank follows.csv --epsilon 1", 2, "say for which node"),
        ("rank follows.csv --sorce a --epsilon 1", 2, "--source"),
        ("rnak follows.csv", 2, 'Did you mean "rank"?'),
        ("ledger verfy x", 2, 'Did you mean "verify"?'),
        ("evaluate follows.csv --protocol rankings --top 4", 2, "lower min_degree"),
        ("evaluate follows.csv", 2, "k must be less than the number of nodes"),
        ("mechanisms --format jsn", 2, 'Did you mean "json"?'),
        ("rank cut.parquet --source a --epsilon 1", 4, "cut.parquet"),
        ("rank ragged.csv --source a --epsilon 1", 4, "line 3"),
        ("rank empty.csv --source a --epsilon 1", 4, "empty"),
        ("rank bytes.csv --source a --epsilon 1", 4, "bytes.csv"),
        ("rank cut.csv.gz --source a --epsilon 1", 4, "cut.csv.gz"),
        ("rank follows.docx --source a --epsilon 1", 4, ".docx"),
        ("demo --out no/demo.html", 2, "there is no folder no"),
        ("demo --out .", 2, "is a folder"),
        ("nonsense", 2, "nonsense"),
        ("ledger create x.ledger --epsilon 0", 2, "epsilon must be"),
    ],
)
def test_a_mistake_gets_one_sentence_and_its_exit_code(folder, run, arguments, code, words):
    (folder / "ragged.csv").write_text("a,b\nb,c\nc,d,e,f,g\n")
    (folder / "empty.csv").write_text("")
    (folder / "bytes.csv").write_bytes(b"a,b\n\xff\xfe,c\n")
    (folder / "cut.csv.gz").write_bytes(b"\x1f\x8b\x08\x00\x00\x00")
    (folder / "cut.parquet").write_bytes(b"PAR1" + bytes(60) + b"PAR1")
    (folder / "follows.docx").write_text("x")
    before = sorted(path.name for path in folder.iterdir())
    done = run(arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sum(line.startswith("edgeveil: ") for line in done.stderr.splitlines()) == 1
    assert len(done.stderr.splitlines()) == 1 or "(exact counts: do not publish)" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == before, "nothing half written"


def test_every_command_has_help_with_summary_and_example(run):
    listed = run("").stdout
    assert run("--help").stdout == listed
    for name, summary in cli_app.COMMANDS.items():
        assert name in listed
        said = " ".join(run(f"{name} --help").stdout.split())
        assert summary in said
        assert f"Example: edgeveil {name}" in said
    for name in ("create", "show", "verify", "backup"):
        assert f"Example: edgeveil ledger {name}" in run(f"help ledger {name}").stdout


def test_names_on_the_command_line_are_those_of_the_mechanisms():
    from edgeveil.mechanisms import MECHANISMS

    names = [
        *get_args(ScoreMechanism),
        *get_args(EmbeddingMechanism),
        *get_args(ListMechanism),
    ]
    assert sorted(names) == sorted(kind.name for kind in MECHANISMS)
    for kind in MECHANISMS:
        words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]+", kind.__name__.removeprefix("DP"))
        assert kind.name == "-".join(words).lower()
        assert (kind.name in get_args(ScoreMechanism)) == (kind.output == "scores")


def test_a_name_cannot_steer_the_terminal_or_the_table(folder, run):
    (folder / "odd.csv").write_text("alice,[/red]\nalice,[bold]x\nalice,\x1b]0;title\x07\n")
    shown = run("rank odd.csv --source alice --epsilon 1").stdout
    assert "[/red]" in shown
    assert "[bold]x" in shown
    assert r"\x1b]0;title\x07" in shown
    unknown = run("rank odd.csv --source '\x1b\n' --epsilon 1")
    assert unknown.returncode == 2
    assert len(unknown.stderr.splitlines()) == 1


def test_unexpected_error_is_one_line_without_its_message(monkeypatch, run):
    def fail(*_, **__):
        raise RuntimeError("alice and bob are joined")

    monkeypatch.setattr("edgeveil.cli.mechanisms._protects", fail)
    monkeypatch.delenv("EDGEVEIL_TRACEBACK", raising=False)
    done = run("mechanisms")
    assert done.returncode == 1
    assert "RuntimeError in edgeveil.cli.mechanisms" in done.stderr
    assert "alice" not in done.stderr
    monkeypatch.setenv("EDGEVEIL_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        run("mechanisms")


def test_rankings_for_many_sources_go_to_a_file(folder, run):
    (folder / "some.txt").write_text("alice\nbob\n")
    asked = "rank follows.csv --sources some.txt --source erin --epsilon 1"
    assert run(f"{asked} --out r.parquet").returncode == 0
    assert edgeveil.Release.read(folder / "r.parquet").sources == ("erin", "alice", "bob")
    shown = json.loads(run(f"{asked} --top 2 --format json").stdout)
    assert [row["source"] for row in shown["rows"]] == ["erin"] * 2 + ["alice"] * 2 + ["bob"] * 2


def test_colours_only_where_they_are_wanted(run_process):
    plain = {"NO_COLOR": "1", "TERM": "xterm"}
    for extra in (plain, plain | {"FORCE_COLOR": "1"}):
        done = run_process("rank follows.csv --source alice --epsilon 1", **extra)
        assert done.returncode == 0
        assert "\x1b[3" not in done.stdout


def test_help_is_fast():
    command = [sys.executable, "-m", "edgeveil", "--help"]
    before = os.times()
    for _ in range(2):
        subprocess.run(command, capture_output=True, check=True)
    after = os.times()  # of the processor: tests run beside each other
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    assert used / 2 < 0.8  # 0.25 s where nothing else runs


def test_mechanisms_lists_all_of_them(folder, run):
    said = json.loads(run("mechanisms --format json").stdout)
    from edgeveil.mechanisms import DATA_MECHANISMS, MECHANISMS

    assert [row["name"] for row in said["rows"]] == [
        kind.name for kind in (*MECHANISMS, *DATA_MECHANISMS)
    ]
    assert all(row["use"] for row in said["rows"])


def test_audit_of_predictions_uses_an_example(folder, run):
    done = run("audit node-classes --epsilon 2 --trials 100")
    assert "claimed epsilon 2.000: exact loss of the noised numbers 2.000" in done.stdout
    assert done.stdout.endswith("consistent\n")


def test_audit_of_predictions_refuses_parameters(folder, run):
    done = run("audit node-classes --epsilon 2 --set seed=3")
    assert (done.returncode, "give --epsilon alone" in done.stderr) == (2, True)


def test_audit_prints_its_verdict(folder, run):
    done = run("audit own-neighbours --trials 100 --confidence 0.9999999")
    assert done.returncode == 0
    assert "consistent" in done.stdout


def test_output_that_nobody_reads_is_no_error(folder, run):
    command = f"{sys.executable} -m edgeveil mechanisms --format csv | head -n 1"
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    assert done.stderr == ""


def test_ctrl_c_in_the_middle_ends_with_130_and_no_traceback(on_a_terminal):
    line = "audit edge-flipping --trials 2000000"
    code, said = on_a_terminal(line, "\x03", cue=b"/4000000")
    assert code == 130
    assert "edgeveil: interrupted" in said
    assert "Traceback" not in said


def test_convert_builds_one_folder_from_parts(folder, run):
    lines = (folder / "follows.csv").read_text().splitlines(keepends=True)
    (folder / "a.csv").write_text("".join(lines[:3]))
    (folder / "b.csv").write_text(lines[0] + "".join(lines[3:]))
    assert run("convert follows.csv one.graph").returncode == 0
    done = run("convert a.csv b.csv parts.graph --memory 0.1")
    assert done.returncode == 0
    assert "2 parts: 5 nodes, 6 edges" in done.stderr
    assert open_graph("parts.graph") == open_graph("one.graph")
    assert run("convert follows.csv by-pieces.graph --memory 1e-9").returncode == 0
    assert open_graph("by-pieces.graph") == open_graph("one.graph")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("a.csv", "name the graph file, or all its parts"),
        ("follows.csv follows.csv f.graph --memory -1", "--memory must be a positive number"),
        ("follows.csv missing.csv f.graph", "there is no file missing.csv"),
        ("follows.csv follows.csv", "exists and is no saved graph"),
    ],
)
def test_convert_refuses_in_words(run, arguments, words):
    done = run(f"convert {arguments}")
    assert done.returncode in (2, 4)
    assert words in done.stderr
