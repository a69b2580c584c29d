"""One's own file on the command line: which columns, which line, which nodes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io
import scipy.sparse

CALLS = "timestamp,from_user,to_user\n" + "".join(
    f"2024-03-0{day},{u},{v}\n"
    for day, (u, v) in enumerate(
        [("alice", "bob"), ("bob", "carol"), ("carol", "alice"), ("dave", "alice")], 1
    )
)


@pytest.fixture
def calls(folder):
    (folder / "calls.csv").write_text(CALLS)
    return folder


@pytest.mark.parametrize(
    "line",
    [
        "rank calls.csv --source alice --epsilon 1",
        "suggest calls.csv --member alice --epsilon 1",
        "embed calls.csv --dim 8 --out e.csv",
        "convert calls.csv g",
    ],
)
def test_every_command_asks_which_columns_and_takes_them(calls, run, line):
    asked = run(line)
    assert asked.returncode == 4
    assert "--columns from_user,to_user" in asked.stderr
    assert "alice" not in asked.stderr
    assert run(f"{line} --columns from_user,to_user").returncode == 0


@pytest.mark.parametrize("columns", ["from_user", "a,b,c", ",to_user"])
def test_columns_option_takes_exactly_two(calls, run, columns):
    said = run(f"convert calls.csv g --columns {columns}")
    assert said.returncode == 2
    assert "--columns takes two" in said.stderr


def test_convert_of_parts_takes_columns_too(calls, run):
    (calls / "more.csv").write_text(CALLS)
    said = run("convert calls.csv more.csv g --columns 1,2 --header")
    assert said.returncode == 0
    assert "4 nodes" in said.stderr


def test_terminal_reports_how_line_1_was_read(calls, on_a_terminal):
    line = "rank calls.csv --source alice --epsilon 1 --columns from_user,to_user"
    said = " ".join(on_a_terminal(line, "", 200)[1].split())
    taken = "the first line is a header; ids are in the columns 'from_user' and 'to_user' of 3."
    assert taken in said


def test_a_suspected_header_is_said_anywhere(calls, run):
    words = CALLS.replace("2024-03-0", "").splitlines()[1:]
    edges = [line.split(",", 1)[1] for line in words]
    (calls / "two.csv").write_text("\n".join(["user_a,user_b", *edges]))
    said = run("rank two.csv --source alice --epsilon 1")
    assert said.returncode == 0
    assert "two.csv, line 1 was read as an edge but may be a header" in said.stderr
    assert "may be" not in run("rank two.csv --source alice --epsilon 1 --header").stderr


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("rank follows.csv --source alise --epsilon 1", 2, "did you mean 'alice'?"),
        ("rank follows.csv --source alice --epsilon 1 --top 0", 2, "-k must be an integer"),
        ("evaluate follows.csv -k 0", 2, "-k must be an integer"),
        (
            "suggest follows.csv --member alice",
            2,
            "--epsilon is required",
        ),
        ("rank follows.csv --source bob --mechanism two-hop", 2, "--epsilon is required"),
        ("rank follows.csv --sources alice --epsilon 1", 4, "the file of --sources cannot be read"),
        ("suggest follows.csv --members no.txt --epsilon 1", 4, "the file of --members cannot"),
        (
            "suggest follows.csv --members bad.txt --epsilon 1",
            2,
            "--members, bad.txt: 'who' is not",
        ),
        ("embed follows.csv --sources bad.txt --out e.csv", 2, "is a header"),
        ("suggest follows.csv --member bob --epsilon 1 --candidates none.csv", 2, "names no node"),
        ("rank follows.csv --source bob --epsilon 1 --candidates none.csv", 2, "--candidates, no"),
        ("suggest follows.csv --members none.csv --epsilon 1", 2, "--members, none.csv, names no"),
        ("embed follows.csv --sources none.csv --out e.csv", 2, "names no node"),
        ("rank follows.csv --source bob --epsilon 1 --out /proc/x.csv", 2, "cannot write to the"),
        ("suggest follows.csv --all --epsilon 1 --per-member /proc/a/b", 2, "--per-member: cannot"),
        ("suggest follows.csv --all --epsilon 1 --per-member bad.txt", 2, "there is no folder"),
    ],
)
def test_errors_name_the_path_as_given(folder, run, line, code, said):
    (folder / "bad.txt").write_text("who\nalice\n")
    (folder / "none.csv").write_text("id\n")  # nothing but a header
    answer = run(line)
    assert answer.returncode == code
    assert said in answer.stderr


def test_public_embeddings_state_price_and_alternatives(run):
    line = "embed follows.csv --model public --epsilon 1 --dim 8 --out e.csv --dry-run"
    said = run(f"{line} --mechanism instant-embedding").stderr
    assert "5 embeddings cost epsilon = 5. For nothing: leave out --epsilon" in said
    assert "For 1 in all: leave out --mechanism" in said
    for cheaper in (line, "embed follows.csv --dim 8 --out e.csv --dry-run"):
        done = run(cheaper)
        assert done.returncode == 0
        assert "in all:" not in done.stderr


def test_mat_file_of_two_matrices_is_read_by_its_key(folder, run):
    matrix = scipy.sparse.csc_array(np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    scipy.io.savemat(folder / "two.mat", {"A": matrix, "B": matrix @ matrix})
    asked = run("convert two.mat a.graph")
    assert (asked.returncode, "--key A" in asked.stderr) == (4, True)
    assert run("convert two.mat a.graph --key A").returncode == 0
    for line in ("convert follows.csv follows.csv g", "history create h follows.csv --time 0"):
        refused = run(f"{line} --key A")
        assert (refused.returncode, "--key is for a .mat file" in refused.stderr) == (2, True)
