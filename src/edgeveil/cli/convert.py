"""``edgeveil convert``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

from edgeveil._internal.checks import positive
from edgeveil._internal.words import counted
from edgeveil.cli.options import GRAPH_FILE, Flag, GraphFile, checked, default
from edgeveil.cli.output import say
from edgeveil.errors import ParameterError

# Bytes that reading takes at the peak, for every byte of a file; packed text unpacks to 10 times
_TEXT, _PARQUET, _PACKED = 8, 16, 80


def convert(
    *paths: Path,
    reading: GraphFile = GRAPH_FILE,
    memory: Annotated[
        float | None, default("half of the machine's"), checked(partial(positive, "--memory"))
    ] = None,
    overwrite: Flag = False,
) -> None:
    """Convert a graph file, or many, to a folder that opens in milliseconds.

    It prints what was normalised. Parts, and a file that does not fit into memory,
    are read piece by piece. After an interruption, run the same command again: it
    goes on where it was.
    Example: edgeveil convert follows.csv f.graph
    Example: edgeveil convert 2024/*.csv f.graph

    Parameters
    ----------
    paths
        The graph file, or all its parts, and then the folder to write. Edge lists (.csv, .tsv,
        .txt, also .gz) and Parquet may come in parts.
    memory
        GB of memory for parts and large files. The program itself takes 0.3 more.
    overwrite
        Replace a graph folder that exists.
    """
    from edgeveil._internal.memory import total_memory
    from edgeveil.cli.reading import read_and_say, say_what_was_read
    from edgeveil.graph.building import build_graph
    from edgeveil.graph.saved import check_target, open_graph, save_graph

    if len(paths) < 2:
        raise ParameterError("name the graph file, or all its parts, and then the folder to write")
    *parts, folder = paths
    check_target(folder, overwrite)
    limit = total_memory() // 2 if memory is None else int(memory * 1e9)
    if len(parts) == 1 and _fits(parts[0], limit):
        graph = read_and_say(parts[0], reading, counts=True)
        save_graph(graph, folder, overwrite=overwrite)
    else:
        options = reading.of_edge_lists
        with _bars() as bars:
            build_graph(parts, folder, **options, memory=limit, overwrite=overwrite, progress=bars)
        say_what_was_read(counted(len(parts), "part"), open_graph(folder), counts=True)
    say(f"written to {folder}")


def _fits(path: Path, memory: int) -> bool:
    """Whether reading a file at once takes at most this much memory."""
    from edgeveil.graph.lines import TEXT, is_gzip, suffix_of
    from edgeveil.graph.tables import PARQUET

    if not path.is_file() or suffix_of(path) not in (*TEXT, *PARQUET):
        return True  # a format that cannot be read in pieces
    factor = _PARQUET if suffix_of(path) in PARQUET else _PACKED if is_gzip(path) else _TEXT
    return factor * path.stat().st_size <= memory


@contextmanager
def _bars() -> Iterator[Callable[[str, int, int], None]]:
    """One progress bar for each step; plain lines without a terminal."""
    from edgeveil.cli.output import counting

    with ExitStack() as bar:
        bars: dict[str, Callable[[int, int], None]] = {}

        def told(what: str, done: int, total: int) -> None:
            if what not in bars:
                bar.close()
                bars.clear()
                bars[what] = bar.enter_context(counting(what, lines=True))
            bars[what](done, total)

        yield told
