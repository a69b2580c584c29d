"""``./run reproduce``: repeat the paper's experiments and our own; write tables and figures.

After an interruption, the same command resumes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import scipy.sparse as sp

from edgeveil._internal.words import counted
from edgeveil.cli.interrupts import watching
from edgeveil.cli.output import say
from edgeveil.errors import EdgeveilError
from edgeveil.graph.datasets import LabelledGraph, load_blogcatalog, load_pos
from edgeveil.graph.read import read_graph
from edgeveil.report import write_page
from experiments import EXPERIMENTS, reproduce
from experiments.attributed import load_attributed
from experiments.page import reproduction_page

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiments that a command line names; gives an exit code."""
    parser = argparse.ArgumentParser(
        prog="./run reproduce",
        description="Repeat the paper's experiments and our own; write tables and figures. "
        "After an interruption, the same command resumes.",
        epilog="experiments: " + "; ".join(f"{e.name}: {e.summary}" for e in EXPERIMENTS.values()),
    )
    parser.add_argument("name", choices=[*EXPERIMENTS, "all"], metavar="NAME")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("data"),
        help="folder with POS.mat and blogcatalog.mat; for suggestions and time amherst.mat, "
        "reed.mat, company_L1.csv, athletes.csv and blogcatalog.mat; for classification "
        "amherst.mat, reed.mat, blogcatalog.mat, facebook_pages.npz, cora.npz, citeseer.npz and "
        "twitch_es.npz (data)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results"), help="folder for the results (results)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="smaller experiments, under two minutes each"
    )
    parser.add_argument(
        "--sources",
        type=int,
        help="at most so many; a later run with more continues from these",
    )
    asked = parser.parse_args(arguments)
    try:
        with watching():
            _run(asked.name, asked.data, asked.out, asked.quick, asked.sources)
    except EdgeveilError as error:
        say(f"reproduce: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _run(chosen: str, data: Path, out: Path, quick: bool, sources: int | None) -> None:
    names = list(EXPERIMENTS) if chosen == "all" else [chosen]
    kinds = {EXPERIMENTS[name].data for name in names}
    labelled = _labelled(data) if "labelled" in kinds else {}
    friends = _friends(data) if "friends" in kinds else {}
    attributed = load_attributed(data) if "attributed" in kinds else {}
    by_kind: dict[str, Mapping[str, LabelledGraph]] = {"friends": friends, "attributed": attributed}
    for name in names:
        datasets = by_kind.get(EXPERIMENTS[name].data, labelled)
        limited = sources is not None and "sources" in EXPERIMENTS[name].settings(quick)
        settings = {"sources": sources} if limited else None
        try:
            results = reproduce(name, datasets, out, quick=quick, settings=settings)
        except KeyboardInterrupt:
            say(f"{name}: interrupted; the same command resumes")
            raise
        say(f"{name}: {counted(len(results), 'result')} in {out / name}")
    write_page(out / "page.html", reproduction_page(out, labelled))
    say(f"the page: {out / 'page.html'}")


def _labelled(data: Path) -> dict[str, LabelledGraph]:
    """The paper's data sets."""
    return {"POS": load_pos(data), "BlogCatalog": load_blogcatalog(data)}


def _friends(data: Path) -> dict[str, LabelledGraph]:
    """Networks whose labels, if there are any, do not matter."""
    graphs = {
        "Amherst": read_graph(data / "amherst.mat", key="A"),
        "Reed": read_graph(data / "reed.mat", key="A"),
        "company L1": read_graph(data / "company_L1.csv", header=True),
        "athletes": read_graph(data / "athletes.csv", header=True),
        "BlogCatalog": load_blogcatalog(data).graph,
    }
    none = {name: sp.csr_array((graph.n_nodes, 0), dtype=bool) for name, graph in graphs.items()}
    return {
        name: LabelledGraph(graph=graph, labels=none[name], label_names=())
        for name, graph in graphs.items()
    }


if __name__ == "__main__":
    sys.exit(main())
