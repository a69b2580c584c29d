"""``edgeveil convert``."""

from __future__ import annotations

from pathlib import Path

from edgeveil.cli.options import GRAPH_FILE, Flag, FollowsFile, GraphFile
from edgeveil.cli.output import say

__all__ = ["convert"]


def convert(
    graph: Path,
    folder: Path,
    /,
    *,
    reading: GraphFile = GRAPH_FILE,
    keep_directions: Flag = False,
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
    keep_directions
        Keep who follows whom, for `edgeveil suggest`; other commands refuse the folder.
    overwrite
        Replace an older graph folder.
    """
    from edgeveil.cli.reading import read_and_say
    from edgeveil.errors import ParameterError
    from edgeveil.io import save_graph

    if keep_directions:
        if reading.directed:
            raise ParameterError("--directed drops directions: leave it or --keep-directions out")
        reading = FollowsFile(nodes=reading.nodes, directed=True, header=reading.header)

    save_graph(read_and_say(graph, reading, counts=True), folder, overwrite=overwrite)
    say(f"written to {folder}")
