"""Read the graph that a command names, and say what was found."""

from __future__ import annotations

from pathlib import Path

from edgeveil.cli.output import say
from edgeveil.graph import Graph
from edgeveil.io import read_graph

__all__ = ["read_and_say"]


def read_and_say(
    path: Path, nodes: Path | None, directed: bool, header: bool | None, *, counts: bool
) -> Graph:
    """Read a graph and say how many nodes it has; with `counts` all that the reader counted.

    The number of nodes is public. The counts tell about edges: they are for commands whose
    words only the curator sees, and for ``--verbose``.
    """
    text = {".csv", ".tsv", ".txt", ".edges", ".edgelist"} & set(path.suffixes)
    if not text:
        header = None  # other formats know for themselves
    graph = read_graph(path, nodes=nodes, directed=directed, header=header)
    if counts:
        say(f"{path}: {graph.n_nodes:,} nodes, {graph.n_edges:,} edges; {graph.intake} (curator)")
    else:
        say(f"{path}: {graph.n_nodes:,} nodes")
    if graph.intake.nodes_from_edges:
        say("No node list was given (--nodes): who appears at all is taken to be public.")
    return graph
