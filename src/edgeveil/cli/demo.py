"""``edgeveil demo``: the main job on the built-in network, and a page to look at."""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path

from edgeveil.cli.output import say
from edgeveil.cli.progress import counting

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
    from edgeveil.engine import rank
    from edgeveil.evaluation.own_graph import evaluate
    from edgeveil.evaluation.ranking import choose_sources
    from edgeveil.report import page_from_releases, write_page
    from edgeveil.report.demo import measure_embeddings, notes, summary

    check_place(out)
    start = time.perf_counter()
    network = social_network(seed=seed)
    graph = network.graph
    say(f"Built-in social network: {graph.n_nodes:,} members, {graph.n_edges:,} friendships.")
    say("Ranking and embedding, privately; measuring against the truth ...")
    with counting("rankings measured", lines=True) as progress:
        measured = evaluate(graph, _EPSILONS, sources=sources, name=_NAME, progress=progress)
    with counting("embeddings", lines=True) as progress:
        learnt = measure_embeddings(_NAME, network, _EMBEDDING_EPSILONS, progress)
    results = [*measured.results, *learnt]
    members = choose_sources(graph, min_degree=50, limit=_MEMBERS, seed=seed)
    page = page_from_releases(
        [rank(graph, graph.nodes[v], epsilon) for v in members for epsilon in _EPSILONS],
        graph,
        title=f"edgeveil: private rankings and embeddings of the {_NAME}",
        name=_NAME,
        results=results,
        summary=summary(graph, results),
        facts={
            "cores": str(os.cpu_count()),
            "python": platform.python_version(),
            "seconds": f"{time.perf_counter() - start:.1f}",
        },
        notes=notes(results),
    )
    write_page(out, page)
    for line in page.summary:
        say(line)
    say(f"Done in {time.perf_counter() - start:.0f} s. Open this page in a browser:")
    sys.stdout.write(f"{out.resolve()}\n")
