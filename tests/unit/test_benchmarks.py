"""The harness runs, its figures have their shape, and the page is what the figures say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import billion, classify
from benchmarks.__main__ import _earlier_figures
from benchmarks.exact import _tune
from benchmarks.graphs import draw_edges, draw_spread_ends
from benchmarks.measure import interleaved, machine_facts, ratios, summary
from benchmarks.page import LINES, SECTIONS, committed, overview, page, table
from benchmarks.paper_python import as_lists, push_lists, push_rows
from benchmarks.peers import MAKERS
from benchmarks.problem import Problem
from benchmarks.scale import exponent
from benchmarks.settings import ERROR, ROUNDS, SIGMA, Settings
from edgeveil.flow import push_flow_cap
from edgeveil.graph.datasets import social_network

ROOT = Path(__file__).resolve().parents[2]


# The harness, with its work in fresh processes done in this one but for two kinds.
IN_ONE_PROCESS = """
import benchmarks.__main__ as harness
from benchmarks import children

real = children.in_child

def near(function, arguments, environment=None):
    module, name = function.split(":")
    if name in ("build", "open_folder"):
        return real(function, arguments, environment)
    return getattr(harness.import_module(f"benchmarks.{module}"), name)(**arguments)

children.in_child = near
harness.main()
"""


def test_all_parts_on_tiny_graphs(tmp_path: Path) -> None:
    """One test, so that a run on several workers does the work once."""
    sizes = ["--tiny", "--rounds", "2", "--max-edges", "2000", "--work", str(tmp_path / "work")]
    file = tmp_path / "figures.json"
    subprocess.run(
        [sys.executable, "-c", IN_ONE_PROCESS, *sizes, "--json", str(file)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    figures = json.loads(file.read_text())
    assert set(figures) == {"machine", "parts"}
    assert len(figures["parts"]) == 9
    assert not any(str(path) in file.read_text() for path in (ROOT, tmp_path))
    _check_contenders(figures["parts"])
    parts = {
        name: part | {"machine": figures["machine"]} for name, part in figures["parts"].items()
    }
    text = page(parts)
    for title in ("Exact PageRank", "Capped flow", "Noise", "Reading", "Scale"):
        assert f"\n## {title}\n" in text
    assert "exact PageRank, one row of 64" in overview(parts)


def test_classify_has_time_memory_and_ratios_of_every_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def near(function: str, arguments: dict[str, Any]) -> dict[str, Any]:
        measured: dict[str, Any] = getattr(classify, function.split(":")[1])(**arguments)
        return measured

    monkeypatch.setattr(classify, "in_child", near)
    asked = Settings(work=tmp_path, tiny=True, max_edges=8_000, rounds_large=1)
    part = classify.run(asked)
    heading, _, rows, growth = SECTIONS["classify"](part)
    assert heading == "Classification"
    assert "| 2,000 |" in rows
    assert "| 8,000 |" in rows
    assert growth.startswith("CPU time grows like edges^")
    assert [line["section"] for line in LINES["classify"](part)] == ["classification"] * 2


def _check_contenders(parts: dict[str, Any]) -> None:
    contenders = {c["name"]: c for c in parts["exact"]["graphs"][0]["contenders"]}
    assert {"edgeveil", "scipy, one source", "scipy, block", "networkx"} <= set(contenders)
    assert all(c["error"] <= ERROR for c in contenders.values())
    assert contenders["edgeveil"]["times_ours"]["median"] == 1
    assert contenders["scipy, block"]["sources_per_call"] == 8
    capped = parts["capped"]["graphs"][0]["contenders"]
    assert all(c["l1_from_ours"] < 1e-12 for c in capped if c["kind"] == "peer")


def test_empty_file_of_figures_is_filled(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    assert _earlier_figures(file) == {"machine": machine_facts(), "parts": {}}
    file.touch()
    assert _earlier_figures(file) == {"machine": machine_facts(), "parts": {}}


@pytest.mark.parametrize("text", ["{", "[]", "{}", '"text"'])
def test_file_without_figures_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "figures.json"
    file.write_text(text)
    with pytest.raises(SystemExit, match=r"figures\.json holds no figures"):
        _earlier_figures(file)


def test_committed_pages_are_those_of_the_committed_figures() -> None:
    """Otherwise: ./run bench docs."""
    parts = committed()
    assert len([name for name in SECTIONS if name in parts]) >= 14
    assert len(set(LINES) & set(parts)) >= 11
    assert (ROOT / "docs" / "benchmarks.md").read_text("utf-8") == overview(parts)
    assert (ROOT / "benchmarks" / "results" / "README.md").read_text("utf-8") == page(parts)


def test_a_figure_that_was_not_measured_is_a_dash() -> None:
    rows = [{"a": 1}, {"a": 2, "b": 3}]
    text = table(rows, {"a": lambda r: str(r["a"]), "b": lambda r: str(r["b"])})
    assert text.splitlines() == ["| a | b |", "| --- | ---: |", "| 1 | – |", "| 2 | 3 |"]


def test_edges_are_drawn_built_opened_and_lists_made(tmp_path: Path) -> None:
    job = {"folder": str(tmp_path), "edges": 20_000}
    assert billion.draw(**job)["parts"] == 1
    built = billion.build(**job, memory=1 << 20)
    assert {"parts read", "buckets of rows"} <= set(built["steps"])
    assert 10_000 < built["n_edges"] < 20_000
    assert billion.open_again(**job)["seconds"]["runs"] == billion.OPENED
    assert billion.make_lists(**job)["median_degree"] > 10


def test_names_of_drawn_nodes_are_all_different() -> None:
    ends = np.empty(50_000, dtype=np.int32)
    draw_spread_ends(500, 1, ends)
    degrees = np.bincount(ends, minlength=500)
    assert len(degrees) == 500
    assert degrees.min() > 0
    assert 10 * np.median(degrees) < degrees.max()


def test_plain_python_is_the_paper_s_algorithm() -> None:
    graph = social_network(60, average_degree=6).graph
    ours = push_flow_cap(graph, [3], sigma=SIGMA, rounds=ROUNDS)[0]
    rows, lists = push_rows(graph, 3, ROUNDS), push_lists(as_lists(graph), 3, ROUNDS)
    np.testing.assert_allclose(rows.output, ours, rtol=0, atol=1e-15)
    np.testing.assert_allclose(lists.output, ours, rtol=0, atol=1e-15)
    assert (rows.nodes, rows.edges) == (lists.nodes, lists.edges)


def test_tuning_takes_the_loosest_setting_that_does() -> None:
    problem = Problem.of(social_network(100, average_degree=8).graph, block=4, checked=4)
    vector = next(c for c in MAKERS["scipy"](problem) if c.name == "scipy, block")
    assert _tune(vector, problem)[0] == problem.power_rounds
    looser = type(vector)(**{**vector.__dict__, "settings": range(1, 100)})
    assert _tune(looser, problem)[0] == problem.power_rounds


def test_slow_tasks_sit_out_and_ratios_compare_the_same_rounds() -> None:
    now = 0.0

    def spend(seconds: float) -> None:
        nonlocal now
        now += seconds

    tasks = {"fast": lambda: spend(1.0), "slow": lambda: spend(50.0)}
    times = interleaved(tasks, rounds=4, seconds=60.0, clock=lambda: now)
    assert times == {"fast": [1.0] * 4, "slow": [50.0] * 2}
    assert ratios(times["slow"], [1.0, 2.0, 5.0]) == summary([50.0, 25.0])
    assert summary([2.0])["median"] == 2.0


def test_generated_degrees_and_exponent() -> None:
    u, v = draw_edges(1000, 10_000)
    degrees = np.bincount(np.concatenate([u, v]), minlength=1000)
    assert 10 * np.median(degrees) < degrees.max()
    assert exponent([10, 100, 1000], [3.0, 30.0, 300.0]) == pytest.approx(1.0)
