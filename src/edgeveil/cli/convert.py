"""``edgeveil convert``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from edgeveil.cli.options import GRAPH_FILE, ArcsAsEdges, Flag, GraphFile
from edgeveil.cli.output import say

if TYPE_CHECKING:
    from edgeveil.graph import Directed

__all__ = ["convert"]


def convert(
    graph: Path,
    folder: Path,
    /,
    *,
    reading: GraphFile = GRAPH_FILE,
    directed: ArcsAsEdges = False,
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

    if keep_directions and directed:
        raise ParameterError("--directed drops directions: leave it or --keep-directions out")
    arcs: Directed = "keep" if keep_directions else directed
    read = read_and_say(graph, reading, directed=arcs, counts=True)
    save_graph(read, folder, overwrite=overwrite)
    say(f"written to {folder}")
