"""What is said, and how: wrapped for people, whole for programs, with defaults and names."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from edgeveil._internal import words as _words
from edgeveil.cli import output
from edgeveil.cli.app import COMMANDS, make_app

CLI_PAGE = Path(__file__).parents[2] / "docs" / "cli.md"

# Left out, these are simply not there, or their own help says what is needed.
WITHOUT_A_DEFAULT = {
    "--source",
    "--member",
    "--members",
    "--per-member",
    "--label",
    "--sources",
    "--epsilon",
    "--out",
    "--promised-min-degree",
    "--purpose",
    "--operator",
    "--pooled-epsilon",
    "--known-head",
    "--set",
    "--features",
    "--labels",
    "--prior",
    "--page",
    "--plot",
}


@pytest.mark.parametrize("columns", [50, 100])
def test_a_terminal_gets_lines_that_fit_and_a_pipe_gets_one(run_process, columns, on_a_terminal):
    line = "rank follows.csv --source alice --epsilon 1"
    code, said = on_a_terminal(line, "", columns)
    assert code == 0
    said = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", said).replace("\r", "")
    start = said.index("Show each list")
    assert max(map(len, said[start:].splitlines())) <= columns
    assert said[start:].count("\n") > 5
    piped = run_process(line).stderr.splitlines()
    assert len(piped) == 2, "about the ledger that was not named, and the guarantee"
    assert piped[-1] == " ".join(said[start:].split())


def test_what_is_to_be_copied_stays_whole(on_a_terminal):
    name = "a-folder-with-hyphens-and-a-name-that-is-longer-than-the-terminal/follows.csv"
    assert name in on_a_terminal(f"rank {name} --source a --epsilon 1", "", 40)[1]


def test_counts_of_one_are_singular(folder, run):
    assert [_words.counted(n, "node") for n in (0, 1, 1000)] == ["0 nodes", "1 node", "1,000 nodes"]
    assert (
        "r.csv: 1 ranking of 5 nodes."
        in run("rank follows.csv --source alice --epsilon 1 --out r.csv").stderr
    )
    (folder / "one.txt").write_text("alice\n")
    assert "e.csv: 1 embedding." in run("embed follows.csv --sources one.txt --out e.csv").stderr


GROUPS = {
    "ledger": ("create", "advance", "renew", "plan", "report", "show", "verify", "backup"),
    "history": ("create", "add", "show", "forget"),
}
INNER = [f"{group} {name}" for group, names in GROUPS.items() for name in names]


@pytest.mark.parametrize("name", [*(name for name in COMMANDS if name not in GROUPS), *INNER])
def test_help_says_what_happens_without_an_option(run, name):
    options: list[str] = []
    for line in run(f"{name} --help").stdout.splitlines():
        if " --" in line[:8]:
            options.append("")
        if options:
            options[-1] += f" {line.strip('│ *')}"
    app = make_app()
    for word in name.split():
        app = app[word]
    for argument in app.assemble_argument_collection():
        [option, *_] = [n for n in argument.names if n.startswith("--")] or [""]
        if not option or not argument.show or argument.children:
            continue
        [said] = [words for words in options if re.match(rf" {option}\b(?!-)", words)]
        flag = argument.hint is bool
        assert flag or option in WITHOUT_A_DEFAULT or re.search(r"\[(default:|required)", said)
        assert "None" not in said


@pytest.mark.parametrize("name", [*(name for name in COMMANDS if name not in GROUPS), *INNER])
def test_help_docstring_lines_fit_80_columns(name):
    app = make_app()
    for word in name.split():
        app = app[word]
    described = inspect.cleandoc(app.default_command.__doc__).partition("\nParameters\n")[0]
    for line in described.splitlines():
        assert len(line) <= 80 or line.startswith("Example: ")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("suggest", "Edges to a member are then not protected from it, and its followers may rank"),
        ("ledger verify", "part of the ledger. Only this finds every ledger that was restored"),
    ],
)
def test_help_flows_over_the_line_ends_of_docstrings(run_process, name, words):
    shown = run_process(f"{name} --help", COLUMNS="300").stdout.splitlines()
    [line] = [line_shown for line_shown in shown if words[:20] in line_shown]
    assert words in line


def keys_on_the_page() -> dict[str, list[str]]:
    lines = re.findall(r"^\| `([^`]+)` \| (.+) \|$", CLI_PAGE.read_text("utf-8"), re.MULTILINE)
    return {command: re.findall(r"`(\w+)`", keys) for command, keys in lines}


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("rank", "rank follows.csv --source alice --epsilon 1"),
        ("--dry-run", "rank follows.csv --source alice --epsilon 1 --dry-run"),
        ("audit", "audit own-neighbours --confidence 0.9999999"),
        ("mechanisms", "mechanisms"),
        ("ledger show", "ledger show f.ledger"),
    ],
)
def test_the_names_in_json_and_csv_are_the_documented_ones(folder, run, command, line):
    run("ledger create f.ledger --epsilon 1")
    said = json.loads(run(f"{line} --format json").stdout)
    head = run(f"{line} --format csv").stdout.splitlines()[0].split(",")
    assert head == list(said["rows"][0])
    assert [*head, *(name for name in said if name != "rows")] == keys_on_the_page()[command]


def test_a_long_audit_says_how_far_it_is_also_in_a_file(run, monkeypatch):
    monkeypatch.setattr(output, "_SECONDS_BETWEEN_LINES", 0.0)
    said = run("audit push-flow-cap --trials 2000 --confidence 0.9999999").stderr.splitlines()
    assert re.fullmatch(r"1,024 of 8,000 releases, about \d+ s left", said[0])
    assert said[-1] == "8,000 of 8,000 releases, about 0 s left"


def test_how_fast_a_private_graph_is_ranked_stands_in_no_log(run, monkeypatch):
    monkeypatch.setattr(output, "_SECONDS_BETWEEN_LINES", 0.0)
    assert "left" not in run("rank follows.csv --source alice --epsilon 1").stderr
