"""``edgeveil demo``: the main job on the built-in network, and a page to look at."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from edgeveil.cli.output import say

__all__ = ["demo"]

_NAME = "built-in network"
_EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
_EMBEDDING_EPSILONS = (0.1, 1.0, 5.0)
_MEMBERS = 3


def demo(*, out: Path = Path("edgeveil-demo.html"), sources: int = 30, seed: int = 0) -> None:
    """Rank and embed the members of a built-in social network; make a page of it.

    Private rankings for a few members and private embeddings of all, measured against the
    truth, beside the paper's mechanisms. It takes about a minute.
    Example: edgeveil demo --out demo.html

    Parameters
    ----------
    out
        The page to write: one file, opens offline.
    sources
        Members whose rankings are measured.
    seed
        Which network to generate. The noise of the rankings shown is always fresh.
    """
    from edgeveil.cli.reading import check_place
    from edgeveil.datasets import social_network
    from edgeveil.evaluation.ranking import choose_sources
    from edgeveil.evaluation.results import machine_facts
    from edgeveil.evaluation.runs import Cells
    from edgeveil.evaluation.showcase import classification_results, ranking_results
    from edgeveil.report import write_page
    from edgeveil.report.showcase import showcase_page, summary

    check_place(out)
    start = time.perf_counter()
    network = social_network(seed=seed)
    graph = network.graph
    say(f"Built-in social network: {graph.n_nodes:,} members, {graph.n_edges:,} friendships.")
    say("Ranking and embedding, privately; measuring against the truth ...")
    with tempfile.TemporaryDirectory() as folder:
        cells = Cells(folder, {"seed": seed})
        results = ranking_results(_NAME, network, _EPSILONS, sources, cells)
        results += classification_results(_NAME, network, _EMBEDDING_EPSILONS, cells)
    facts = machine_facts(time.perf_counter() - start, {})
    shown = {name: str(facts[name]) for name in ("cpu", "cores", "python", "seconds")}
    members = choose_sources(graph, min_degree=50, limit=_MEMBERS, seed=seed)
    write_page(out, showcase_page(_NAME, graph, results, members, _EPSILONS, shown))
    for line in summary(graph, results):
        say(line)
    say(f"Done in {time.perf_counter() - start:.0f} s. Open this page in a browser:")
    sys.stdout.write(f"{out.resolve()}\n")
