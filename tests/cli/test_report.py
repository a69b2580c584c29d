"""`edgeveil report`: the page of one's own graph, and who may have it."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

import pytest

from edgeveil.graph.datasets import social_network

KINDS = {"friends.csv": "", "follows_too.csv": "--directed keep"}


@pytest.fixture
def graphs(folder):
    """A graph with names: friends, and who follows whom."""
    network = social_network(120, average_degree=14, seed=2)
    names = [f"{name} {i}" for i, name in enumerate(network.names)]
    u, v = network.graph.adjacency().nonzero()
    pairs = [f"{names[a]},{names[b]}\n" for a, b in zip(u, v, strict=True)]
    (folder / "friends.csv").write_text("".join(pairs))
    (folder / "follows_too.csv").write_text("".join(pairs[::2]))
    (folder / "members.txt").write_text("\n".join(names))
    return names


def _data(file: str) -> dict:
    match = re.search(r'id="data">(.*?)</script>', Path(file).read_text("utf-8"), re.DOTALL)
    return json.loads(match.group(1))


@pytest.mark.parametrize("graph", KINDS)
def test_report_page_holds_the_release_and_no_curator_data(run, graphs, graph):
    words = f"{graph} --nodes members.txt --member '{graphs[0]}' --member '{graphs[7]}'"
    done = run(f"report {words} {KINDS[graph]} --epsilon 1 --top 6 --out page.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{Path('page.html').resolve()}\n"
    data = _data("page.html")
    assert [entry["member"] for entry in data["lists"]] == [graphs[0], graphs[7]]
    for entry in data["lists"]:
        assert entry["private"]
        assert entry["alone"]
        assert (entry["truth"], entry["epsilon"]) == ("", 1)
        assert len(entry["rows"]) == 6
        assert all(why and 0 <= chance <= 1 for _, _, _, _, why, _, chance, _ in entry["rows"])
        assert {row[5] for row in entry["rows"]} == {None}
        assert "Protected: every edge" in entry["promise"]
    assert (data["results"]["rows"], data["notes"], data["charges"]) == ([], [], None)
    assert "--per-member" in done.stderr
    assert stat.S_IMODE(os.stat("page.html").st_mode) == 0o600


@pytest.mark.parametrize("graph", KINDS)
def test_accuracy_is_added_on_request_and_said_to_be_not_private(run, graphs, graph):
    words = f"{graph} --nodes members.txt --member '{graphs[0]}' {KINDS[graph]}"
    done = run(f"report {words} --epsilon 1.5 --accuracy --top 5 --out page.html")
    assert done.returncode == 0, done.stderr
    assert "NOT private" in done.stderr
    data = _data("page.html")
    epsilons = {row[data["results"]["columns"].index("epsilon")] for row in data["results"]["rows"]}
    assert epsilons == {None, 0.25, 0.5, 1, 1.5, 2, 4}
    assert [entry["mechanism"] for entry in data["lists"]] == [
        "suggest", "without privacy", "popularity",
    ]  # fmt: skip


def test_a_ledger_is_charged_once_and_its_charges_shown(run, graphs):
    run("ledger create f.ledger --epsilon 4")
    words = f"friends.csv --nodes members.txt --member '{graphs[3]}' --epsilon 1 --ledger f.ledger"
    assert run(f"suggest {words} --out lists.json").returncode == 0
    done = run(f"report {words} --out page.html --per-member pages")
    assert "costs nothing" in done.stderr
    data, own = _data("page.html"), _data(f"pages/{graphs[3]}.html")
    assert [total for _, total in data["charges"]["steps"]] == [1]
    stored = json.loads(Path("lists.json").read_text())["columns"]["node"]
    assert [row[0] for row in data["lists"][0]["rows"]] == stored
    assert own["lists"][0]["rows"] == data["lists"][0]["rows"]
    assert own["charges"] is None
    assert own["summary"] == []
    assert "was charged epsilon = 1 " in own["lists"][0]["charged"]
    refused = run(f"report {words.replace('--epsilon 1', '--epsilon 5')} --out other.html")
    assert refused.returncode == 3
    assert not Path("other.html").exists()


def test_a_members_page_names_nobody_elses_list(run, graphs):
    Path("some.txt").write_text("\n".join(graphs[:3]))
    words = "friends.csv --nodes members.txt --members some.txt --epsilon 1 --top 3"
    done = run(f"report {words} --per-member pages")
    assert (done.returncode, done.stdout) == (0, "")
    assert not Path("edgeveil-report.html").exists()
    for name in graphs[:3]:
        file = Path(f"pages/{name}.html")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert [entry["member"] for entry in _data(file)["lists"]] == [name]
    refused = run(f"report {words} --accuracy --per-member others")
    assert refused.returncode == 2
    assert not Path("others").exists()


def test_a_tiny_graph_has_a_page(run):
    done = run("report follows.csv --member erin --epsilon 1 --accuracy")
    assert done.returncode == 0, done.stderr
    assert "accuracy is not measured" in done.stderr
    data = _data("edgeveil-report.html")
    assert data["results"]["rows"] == []
    assert 0 < len(data["lists"][0]["rows"]) < 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--epsilon 1", "say for whom"),
        ("--member bob", "--epsilon 1"),
        ("--member bob --epsilon 1 --out page.pdf", ".html"),
        ("--member bob --epsilon 1 --out nowhere/page.html", "there is no folder"),
        ("--member zoe --epsilon 1", "zoe"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_charged(run, words, said):
    run("ledger create f.ledger --epsilon 4")
    done = run(f"report follows.csv {words} --ledger f.ledger")
    assert done.returncode == 2
    assert said in done.stderr
    assert not list(Path().glob("*.html"))
    assert json.loads(run("ledger report f.ledger --format json").stdout)["rows"] == []


def test_more_members_than_a_page_can_show_are_refused(run, folder):
    Path("many.csv").write_text("".join(f"{i},{i + 1}\n" for i in range(1001)))
    Path("all.txt").write_text("\n".join(map(str, range(1001))))
    done = run("report many.csv --no-header --members all.txt --epsilon 1")
    assert done.returncode == 2
    assert "at most 1,000 members" in done.stderr


def test_seeded_noise_is_shown_as_not_private(run):
    run("report follows.csv --member bob --epsilon 1 --insecure-seed 1 --out page.html")
    [entry] = _data("page.html")["lists"]
    assert not entry["private"]
    assert entry["promise"].startswith("NOT PRIVATE")


def test_a_configuration_file_cannot_ask_for_the_curators_part(run):
    Path("c.toml").write_text("[report]\naccuracy = true\n")
    done = run("report follows.csv --member bob --epsilon 1 --config c.toml")
    assert done.returncode == 2
    assert "accuracy" in done.stderr


def test_words_of_other_graphs_are_on_the_page(folder, run):
    line = "report follows.csv --member alice --member bob --epsilon 1 --out page.html"
    assert run(f"{line} --words accounts,payments").returncode == 0
    page = (folder / "page.html").read_text()
    assert "Suggested to 2 accounts, privately" in page
    assert "Show this list only to the account it was made for" in page
    assert run(f"{line} --overwrite --words accounts").returncode == 2
