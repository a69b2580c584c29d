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
    header: Annotated[
        bool | None, Parameter(help="Whether the first line of a text file holds names.")
    ] = None,
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
    from edgeveil.cli.reading import read_and_say
    from edgeveil.io import save_graph

    save_graph(
        read_and_say(graph, nodes, directed, header, counts=True), folder, overwrite=overwrite
    )
    say(f"written to {folder}")
