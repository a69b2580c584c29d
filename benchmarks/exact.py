"""Exact PageRank of many sources: edgeveil and other libraries at the same true L1 error."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.graphs import described, large_graph, small_graph
from benchmarks.measure import interleaved, ratios, show, summary
from benchmarks.peers import MAKERS, NOT_ON_LARGE, TUNED, Contender
from benchmarks.problem import Problem, l1_error
from benchmarks.settings import ERROR, Settings

__all__ = ["run"]


def run(settings: Settings) -> dict[str, Any]:
    """Measure on the small and the large graph."""
    name, graph = small_graph(settings)
    small = _compare(Problem.of(graph, settings.block, 4), settings.rounds, (), settings)
    small["graph"] = described(name, graph)
    if not settings.rounds_large:
        return {"error_wanted": ERROR, "graphs": [small]}
    name, graph = large_graph(settings)
    problem = Problem.of(graph, settings.block, 2)
    large = _compare(problem, settings.rounds_large, NOT_ON_LARGE, settings)
    large["graph"] = described(name, graph)
    return {"error_wanted": ERROR, "graphs": [small, large]}


def _compare(
    problem: Problem, rounds: int, left_out: tuple[str, ...], settings: Settings
) -> dict[str, Any]:
    contenders: list[Contender] = []
    absent = ["graph-tool"]  # not on the package index; see the page
    for library, make in MAKERS.items():
        if library not in left_out:
            try:
                contenders += make(problem)
            except ImportError:
                absent.append(library)
    print(f"\nexact PageRank, {problem.graph!r}, block of {len(problem.sources)}")
    tuned = {c.name: (c, *_tune(c, problem)) for c in contenders}

    def task(contender: Contender, setting: Any) -> Any:
        sources = problem.sources if contender.block else problem.sources[:1]
        return lambda: contender.solve(sources, setting)

    tasks = {name: task(c, setting) for name, (c, setting, _) in tuned.items()}
    # tuning has warmed all of them up
    times = interleaved(tasks, rounds=rounds, seconds=2.0 if settings.tiny else 200.0, warm=True)
    share = {n: len(problem.sources) if c.block else 1 for n, (c, _, _) in tuned.items()}
    per_source = {name: [t / share[name] for t in values] for name, values in times.items()}
    rows = []
    for name, (contender, setting, error) in tuned.items():
        row = {
            "name": name,
            "kind": contender.kind,
            "sources_per_call": share[name],
            "setting": f"{contender.what} {setting:g}"
            if isinstance(setting, (int, float))
            else f"{contender.what}: {setting}",
            "error": error,
            "seconds": summary(per_source[name]),
            "times_ours": ratios(per_source[name], per_source["edgeveil"]),
            "times_tuned": ratios(per_source[name], per_source[TUNED]),
        }
        rows.append(row)
        print(
            f"  {name:<32} {row['seconds']['median'] * 1e3:10.2f} ms   L1 error {error:8.1e}   "
            f"{show(row['times_ours'])}   {row['setting']}"
        )
    print(f"  absent: {', '.join(absent)}; left out here: {', '.join(left_out) or 'none'}")
    return {
        "block": len(problem.sources),
        "power_rounds": problem.power_rounds,
        "contenders": rows,
        "absent": absent,
        "left_out": list(left_out),
    }


def _tune(contender: Contender, problem: Problem) -> tuple[Any, float]:
    """Find the loosest setting that reaches the wanted error, or the best one affordable."""
    sources = problem.checked if contender.block else problem.checked[:1]
    truth = problem.truth[:, : len(sources)]
    tried: list[tuple[float, Any]] = []
    for setting in contender.settings:
        start = time.process_time()
        result = contender.solve(sources, setting)
        spent = time.process_time() - start
        tried.append((l1_error(contender.rows(result), truth), setting))
        if tried[-1][0] <= ERROR or spent > contender.patience:
            break
        # a peer that no longer gains from a stricter setting has another limit of its own
        if contender.kind == "peer" and len(tried) > 1 and tried[-1][0] >= tried[-2][0]:
            break
    error, setting = min(tried, key=lambda pair: pair[0])
    return setting, error
