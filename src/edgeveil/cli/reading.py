"""Read the graph that a command names, and tell the curator what was found."""

from __future__ import annotations

from pathlib import Path

from edgeveil.cli.output import say
from edgeveil.graph import Graph
from edgeveil.io import read_graph

__all__ = ["read_and_say"]


def read_and_say(path: Path, nodes: Path | None, directed: bool, header: bool | None) -> Graph:
    """Read a graph; one line to the curator says how many nodes and edges it has.

    That line is not private: it goes to standard error, never into a release.
    """
    text = {".csv", ".tsv", ".txt", ".edges", ".edgelist"} & set(path.suffixes)
    if not text:
        header = None  # other formats know for themselves
    graph = read_graph(path, nodes=nodes, directed=directed, header=header)
    say(f"{path}: {graph.n_nodes:,} nodes, {graph.n_edges:,} edges; {graph.intake} (curator only)")
    return graph
