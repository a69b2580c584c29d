"""Capped flow: edgeveil, the same recursion on other libraries' products, and plain Python."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.graphs import described, large_graph, small_graph, some_sources
from benchmarks.measure import interleaved, ratios, show, summary
from benchmarks.ours import call
from benchmarks.paper_python import as_lists, count_pushes, push_lists, push_rows
from benchmarks.peers import mkl_product, torch_matrix
from benchmarks.settings import RESTART, ROUNDS, SIGMA, Settings
from edgeveil import Graph
from edgeveil.flow import lazy_restart, push_flow_cap
from edgeveil.flow.bounds import edge_cap

__all__ = ["run"]

ALPHA = lazy_restart(RESTART)
CAP = edge_cap(SIGMA, ALPHA, ROUNDS)
BETA = (1 - ALPHA) / 2

Task = Callable[[], Any]


def run(settings: Settings) -> dict[str, Any]:
    """Measure on the small and the large graph; plain Python on the small one only."""
    name, graph = small_graph(settings)
    small = _compare(graph, settings.block, settings.rounds, settings)
    small["graph"] = described(name, graph)
    small["plain_python"] = _plain_python(graph, settings, small["contenders"][0]["seconds"])
    if not settings.rounds_large:
        return {"sigma": SIGMA, "rounds": ROUNDS, "graphs": [small]}
    name, graph = large_graph(settings)
    # blocks of 64 take more than ten minutes a call here, and memory beyond the gain
    large = _compare(graph, min(settings.block, 8), settings.rounds_large, settings)
    large["graph"] = described(name, graph)
    return {"sigma": SIGMA, "rounds": ROUNDS, "graphs": [small, large]}


def _compare(graph: Graph, block: int, rounds: int, settings: Settings) -> dict[str, Any]:
    sources = some_sources(graph, block)
    first = sources[:1]
    capped, fixed = call("capped", graph)[0], call("fixed point", graph)[0]
    tasks: dict[str, tuple[str, int, Task]] = {
        "edgeveil, R = 100": ("ours", block, lambda: capped(sources)),
        "edgeveil, fixed point": ("ours", block, lambda: fixed(sources)),
    }
    spread = graph.adjacency()
    spread.data = (BETA / np.maximum(graph.degrees, 1))[spread.indices]
    absent = []
    for library, make in (("scipy", _scipy), ("torch", _torch), ("MKL", _mkl)):
        try:
            product, minimum, zeros = make(spread)
        except ImportError:
            absent.append(library)
            continue
        recursion = _recursion(graph, product, minimum, zeros)
        if library != "MKL":
            key = f"{library}, one source"
            tasks[key] = ("peer", 1, lambda recursion=recursion: recursion(first))
        tasks[f"{library}, block"] = (
            "peer",
            block,
            lambda recursion=recursion: recursion(sources),
        )
    print(f"\ncapped flow, sigma = {SIGMA:g}, {graph!r}, block of {block}")
    truth = np.asarray(push_flow_cap(graph, first, sigma=SIGMA, rounds=ROUNDS))[0]
    # the check is the call that warms up
    flows = {name: np.asarray(task()) for name, (_, _, task) in tasks.items()}
    times = interleaved(
        {name: task for name, (_, _, task) in tasks.items()},
        rounds=rounds,
        seconds=2.0 if settings.tiny else 60.0,
        warm=True,
    )
    per_source = {name: [t / tasks[name][1] for t in values] for name, values in times.items()}
    rows = []
    for name, (kind, share, _) in tasks.items():
        row = {
            "name": name,
            "kind": kind,
            "sources_per_call": share,
            "seconds": summary(per_source[name]),
            "times_ours": ratios(per_source[name], per_source["edgeveil, R = 100"]),
            "times_fixed_point": ratios(per_source[name], per_source["edgeveil, fixed point"]),
        }
        if kind == "peer":
            row["l1_from_ours"] = float(np.abs(ALPHA * flows[name][:, 0] - truth).sum())
        rows.append(row)
        print(
            f"  {name:<24} {row['seconds']['median'] * 1e3:10.2f} ms   "
            f"times R = 100: {show(row['times_ours'])}   "
            + (f"L1 from ours {row['l1_from_ours']:.1e}" if kind == "peer" else "")
        )
    return {"block": block, "contenders": rows, "absent": absent}


def _recursion(
    graph: Graph, product: Callable[[Any], Any], minimum: Any, zeros: Any
) -> Callable[[Any], Any]:
    """h <- min(s + beta h + beta A D^-1 h, caps), R times, on some library's arrays."""
    degrees = graph.degrees * CAP

    def solve(sources: Any) -> Any:
        lanes = np.arange(len(sources))
        caps = np.repeat(degrees[:, None], len(sources), axis=1)
        caps[sources, lanes] = np.inf
        caps, h = zeros(caps), zeros(np.zeros_like(caps))
        for _ in range(ROUNDS):
            new = product(h)
            h *= BETA
            new += h
            new[sources, lanes] += 1.0
            h = minimum(new, caps)
        return h

    return solve


def _scipy(spread: sp.csr_array) -> tuple[Any, Any, Any]:
    return (
        lambda h: spread @ h,
        lambda new, caps: np.minimum(new, caps, out=new),
        lambda array: array,
    )


def _torch(spread: sp.csr_array) -> tuple[Any, Any, Any]:
    import torch

    torch.set_num_threads(1)
    matrix = torch_matrix(spread)
    return (
        lambda h: matrix @ h,
        lambda new, caps: torch.minimum(new, caps, out=new),
        torch.from_numpy,
    )


def _mkl(spread: sp.csr_array) -> tuple[Any, Any, Any]:
    product, matrix = mkl_product(), sp.csr_matrix(spread)
    return (
        lambda h: product(matrix, h),
        lambda new, caps: np.minimum(new, caps, out=new),
        lambda array: array,
    )


def _plain_python(graph: Graph, settings: Settings, ours: dict[str, float]) -> list[dict[str, Any]]:
    """Some rounds of plain Python, and what all rounds would take by the flow they push."""
    source = int(some_sources(graph, 1)[0])
    rounds = min(settings.paper_rounds, ROUNDS)
    lists = as_lists(graph)
    whole = count_pushes(graph, source, ROUNDS)
    part = count_pushes(graph, source, rounds)
    rows = []
    for name, unit, push in (
        (
            "numpy state, a matrix row sliced per node",
            "nodes",
            lambda: push_rows(graph, source, rounds),
        ),
        ("dictionary of lists", "edges", lambda: push_lists(lists, source, rounds)),
    ):
        start = time.process_time()
        done = push()
        seconds = time.process_time() - start
        if np.abs(done.output - part["output"]).sum() > 1e-9:
            raise AssertionError("plain Python and the recursion disagree")
        estimate = seconds * whole[unit] / getattr(done, unit)
        rows.append(
            {
                "name": name,
                "rounds_run": rounds,
                "measured_seconds": seconds,
                "pushes_measured": getattr(done, unit),
                "pushes_of_all_rounds": whole[unit],
                "unit": unit,
                "seconds_of_all_rounds": estimate,
                "times_ours": estimate / ours["median"],
            }
        )
        print(
            f"  plain Python, {name}: {rounds} rounds {seconds:.1f} s, all {ROUNDS}: "
            f"{estimate:.1f} s = {estimate / ours['median']:,.0f} times ours"
            + ("" if rounds == ROUNDS else " (extrapolated)")
        )
    return rows
