"""--directed refuse, ignore and keep, and what the commands make of it."""

from __future__ import annotations

import json

import pytest

from edgeveil.graph.saved import open_graph

LIST = "--epsilon 1 --insecure-seed 1 --format json"


def named(result):
    assert result.returncode == 0, result.stderr
    lines = json.loads(result.stdout)["rows"]
    return {line["node"] for line in lines}


def test_directed_list_omits_followed_and_keeps_followers(run):
    assert named(run(f"suggest follows.csv --member alice {LIST}")) == {"erin"}
    directed = run(f"suggest follows.csv --directed keep --member alice {LIST}")
    assert named(directed) == {"carol", "dave", "erin"}
    assert json.loads(directed.stdout)["guarantee"]["known_edges"] == "outgoing"


def test_directed_folder_serves_suggest_and_rank_refuses_it(run, folder):
    assert run("convert follows.csv follows.graph --directed keep").returncode == 0
    assert open_graph(folder / "follows.graph").directed
    assert named(run(f"suggest follows.graph --member alice {LIST}")) == {"carol", "dave", "erin"}
    known = run(f"suggest follows.graph --knows-followers --member alice {LIST}")
    assert named(known)
    assert "known_edges" not in json.loads(known.stdout)["guarantee"]  # all that touch the member
    refused = run("rank follows.graph --source alice --epsilon 1")
    assert refused.returncode != 0
    assert "is for undirected graphs" in refused.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"suggest follows.csv --knows-followers --member alice {LIST}", "(--directed keep)"),
        (f"rank follows.csv --directed keep --source alice {LIST}", "is for undirected graphs"),
        (f"suggest plain.graph --directed keep --member alice {LIST}", "saved without directions"),
    ],
)
def test_directions_that_are_not_there_get_one_sentence(run, line, words):
    run("convert follows.csv plain.graph")
    result = run(line)
    assert result.returncode in (2, 4)
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
