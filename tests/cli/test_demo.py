"""The demo: whom six members may know, beside the truth and popularity, and the page of it."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import edgeveil.graph.datasets
from edgeveil.cli.app import main
from edgeveil.evaluation.hits import HiddenEdges, hide_edges
from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet

EPSILONS = ["0.25", "0.5", "1", "2", "4"]


@dataclass
class Shown:
    """What the demo printed, said and wrote, and the network that it did this for."""

    lines: list[str]
    said: str
    page: dict
    years: dict
    split: HiddenEdges


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "edgeveil-demo.html"
    out.write_text("the page of an earlier demo")
    small = partial(social_network, 800, average_degree=30)
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()) as printed,
        redirect_stderr(io.StringIO()) as said,
    ):
        patch.setattr(edgeveil.graph.datasets, "social_network", small)
        patch.chdir(out.parent)
        assert main(["demo", "--members", "3"]) == 0
    second = out.with_name("edgeveil-demo-years.html")
    assert printed.getvalue().endswith(f"\n{out}\n{second}\n")
    lines = printed.getvalue().splitlines()[:-2]
    page, years = (
        json.loads(re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)[1])
        for path in (out, second)
    )
    network = small()
    u, v = network.graph.adjacency().nonzero()
    split = hide_edges(Graph.from_edges(u, v, NodeSet.of_strings(network.names)))
    return Shown(lines, said.getvalue(), page, years, split)


def _cells(shown: Shown, start: str) -> list[list[str]]:
    """The six columns of the lines that start like this."""
    lines = [line for line in shown.lines if re.match(start, line)]
    return [[line[at:][:12].strip() for at in range(8, 80, 12)] for line in lines]


def test_terminal_and_page_lists_agree_with_hidden_marked(shown):
    [names] = _cells(shown, "rank ")
    [counts] = _cells(shown, r"private +\d")
    places = _cells(shown, r"\d+ ")
    lists = {
        entry["member"]: entry["rows"] for entry in shown.page["lists"] if entry["epsilon"] == 1.0
    }
    assert list(lists) == names
    assert (len(names), len(places)) == (6, 10)
    for column, (member, rows) in enumerate(lists.items()):
        at = shown.split.left.nodes.index(member)
        friends, hidden = (
            set(part.nodes.take(part.neighbours(at)))
            for part in (shown.split.left, shown.split.hidden)
        )
        nodes = [row[0] for row in rows]
        printed = [cells[column] for cells in places]
        assert printed == [f"{node}{'*' * (node in hidden)}" for node in nodes]
        assert counts[column] == f"{len(hidden & set(nodes))}* of {len(hidden)}"
        assert not {*nodes} & {*friends, member}
        assert all(why and 0 <= chance <= 1 for _, _, _, _, why, _, chance, _ in rows)


def test_hits_are_printed_against_epsilon_and_drawn(shown):
    [head] = [line for line in shown.lines if line.startswith("members with")]
    assert head.split()[2:] == [*EPSILONS, "popular", "exact"]
    columns = shown.page["results"]["columns"]
    rows = [dict(zip(columns, row, strict=True)) for row in shown.page["results"]["rows"]]
    assert {row["metric"] for row in rows} == {"hits@20"}
    by_line = {}
    for row in rows:
        by_line.setdefault(row["mechanism"], set()).add(row["epsilon"])
    steps = {float(epsilon) for epsilon in EPSILONS}
    assert by_line == {
        "popularity": {None}, "without privacy": {None}, "private lists": steps, "limit": steps,
    }  # fmt: skip
    for group in {row["scope"] for row in rows}:
        [line] = [line for line in shown.lines if line.startswith(f"{group} ")]
        ours = [r for r in rows if (r["scope"], r["mechanism"]) == (group, "private lists")]
        assert line.split()[2:7] == [f"{r['mean']:.2f}" for r in ours]


def test_80_columns_are_enough_and_the_promise_is_said(shown):
    assert max(map(len, shown.lines)) <= 80
    assert "protects from that member every friendship between other people" in shown.said
    assert any(line.startswith("By chance, a private list can find more") for line in shown.lines)


def test_years_are_predicted_from_those_of_the_others(shown):
    predictions = shown.years["predictions"]
    assert predictions["n_nodes"] + predictions["n_labelled"] == 800
    assert predictions["classes"] == [str(year) for year in range(2016, 2026)]
    assert (predictions["private"], predictions["epsilon"]) == (True, 1.0)
    [row] = [line.split() for line in shown.lines if line.startswith("  in truth")]
    right = [float(cell) for cell in row[2:]]
    assert len(right) == 4
    assert right[-1] > 0.5, "a year in ten is right by chance"
    assert "years that members have told are not protected" in shown.said


def test_pages_of_an_earlier_demo_stay_unless_told_otherwise(run):
    Path("mine-years.html").write_text("mine")
    done = run("demo --out mine.html")
    assert done.returncode == 2
    assert "mine-years.html exists; --overwrite replaces it" in done.stderr
    assert Path("mine-years.html").read_text() == "mine"


def test_nobody_to_measure_is_refused(run):
    done = run("demo --members 0")
    assert done.returncode == 2
    assert "members must be" in done.stderr
