"""``edgeveil convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from edgeveil.cli.output import say

__all__ = ["convert"]


def convert(
    graph: Path,
    folder: Path,
    /,
    *,
    nodes: Annotated[Path | None, Parameter(help="File with one node id per line.")] = None,
    directed: Annotated[
        bool, Parameter(negative="", help="Read every arc as an undirected edge.")
    ] = False,
    overwrite: Annotated[
        bool, Parameter(negative="", help="Replace an older graph folder.")
    ] = False,
) -> None:
    """Turn a graph file into a folder that opens in milliseconds.

    Says what was normalised away. Example: edgeveil convert follows.csv follows.graph

    Parameters
    ----------
    graph
        Edge list (.csv, .tsv, .txt, also .gz), Parquet, .mat, MatrixMarket or a graph folder.
    folder
        The folder to write.
    """
    from edgeveil.io import read_graph, save_graph

    read = read_graph(graph, nodes=nodes, directed=directed)
    save_graph(read, folder, overwrite=overwrite)
    say(f"{folder}: {read.n_nodes:,} nodes, {read.n_edges:,} edges; {read.intake}")
