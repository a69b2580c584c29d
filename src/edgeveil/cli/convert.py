"""``edgeveil convert``."""

from __future__ import annotations

from pathlib import Path

from edgeveil.cli.options import GRAPH_FILE, Flag, GraphFile
from edgeveil.cli.output import say

__all__ = ["convert"]


def convert(
    graph: Path,
    folder: Path,
    /,
    *,
    reading: GraphFile = GRAPH_FILE,
    overwrite: Flag = False,
) -> None:
    """Turn a graph file into a folder that opens in milliseconds.

    Says what was normalised away. Example: edgeveil convert follows.csv follows.graph

    Parameters
    ----------
    graph
        Edge list (.csv, .tsv, .txt, also .gz), Parquet, .mat, MatrixMarket or a graph folder.
    folder
        The folder to write.
    overwrite
        Replace an older graph folder.
    """
    from edgeveil.cli.reading import read_and_say
    from edgeveil.io import save_graph

    save_graph(read_and_say(graph, reading, counts=True), folder, overwrite=overwrite)
    say(f"written to {folder}")
