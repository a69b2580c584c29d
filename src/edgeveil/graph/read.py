"""`read_graph`: a path -> Graph, by the suffix of its name."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgeveil.errors import InputError, ParameterError
from edgeveil.graph.columns import Columns, ReadOptions
from edgeveil.graph.edges import Chunk, graph_of_chunk, with_text_ids
from edgeveil.graph.graph import Directed, Graph, check_directed
from edgeveil.graph.lines import TEXT, check_readable, is_gzip, suffix_of
from edgeveil.graph.matrices import load_adjacency, load_mat, read_matrix, read_matrix_market
from edgeveil.graph.node_lists import Nodes, read_nodes
from edgeveil.graph.nodes import Ids, check_ids
from edgeveil.graph.saved import open_graph
from edgeveil.graph.tables import PARQUET, parquet_chunks
from edgeveil.graph.text import text_chunks, with_notes


def read_graph(
    path: str | os.PathLike[str],
    *,
    nodes: Nodes | None = None,
    directed: Directed = "refuse",
    header: bool | None = None,
    columns: Columns | None = None,
    delimiter: str | None = None,
    key: str | None = None,
    ids: Ids = "auto",
    one_kind: bool = False,
) -> Graph:
    r"""Read a graph from a file.

    =========================================== ===============================================
    ``.csv .tsv .txt .edges .edgelist`` (+.gz)  an edge list: one edge per line
    ``.parquet .pq``                            an edge list: one edge per row
    ``.mat``                                    a MATLAB file (5 to 7.2) with a sparse matrix
    ``.mtx`` (+.gz)                             a MatrixMarket matrix
    a folder                                    what `save_graph` wrote
    =========================================== ===============================================

    In an edge list every line is an undirected edge, (a, b) and (b, a) the same one, unless
    directions are kept. Ids are integers if every one is spelt as an integer is; one id such as
    ``007``, ``+7`` or ``ann``, among the edges or in the node list, makes all of them strings, so
    that ``7`` and ``007`` stay two nodes. A third column, if numeric, is a weight: it is ignored,
    and counted in ``graph.read_report.weighted`` unless it is 1; a line with weight 0 is an edge,
    too. Further columns are ignored. Lines that start with ``#`` or ``%`` are comments.
    A matrix must be symmetric unless `directed` says otherwise; a stored zero is not an edge.

    Parameters
    ----------
    path : path
        The file or folder.
    nodes : NodeSet, iterable of ids, or path, optional
        The public node set, in the order that results will have, including nodes without an
        edge. A path leads to a file with one id per line or in its first column. For a matrix: the
        names of its rows. **Give it whenever membership is known independently of the edges.**
        Without it the node set is taken from the file (the ids that occur, sorted; 0 .. n-1 for a
        matrix). It then depends on the private edges but is treated as public: a node whose only
        edge is removed would visibly disappear. Every guarantee then says so.
    directed : {"refuse", "ignore", "keep"}
        "refuse": refuse a matrix that is not symmetric. "ignore": read every arc of a matrix as
        an undirected edge. With both, every line of an edge list is an undirected edge.
        "keep": keep directions, from the first id of a line to the second, or from row to column
        of a matrix (a follows b). Only `edgeveil.suggest` and `edgeveil.refresh` take such a
        graph. No effect on a saved graph.
    header : bool, optional
        Whether the first line of a text file is a header. By default it is one if its first two
        fields are not integers but those of the next line are, if they are names such as source
        and target, if it has a name such as weight or timestamp above a number or a time, or if
        `columns` are given by name. Declare any other header above string ids; a first line whose
        words never occur again causes a warning.
    columns : pair of str or int, optional
        The two id columns of an edge list, by name or by position from 0. Default: the first two.
        If there are three or more columns, the first two must be recognisable as ids: by their
        names, because the node list holds them, or because they are two columns of integers, or
        two columns of names before a number, and not times. A column ``weight`` is then the weight.
    delimiter : str, optional
        One character; ``" "`` is any run of blanks and tabs. By default the first of tab, comma
        and semicolon that occurs in the first line, else blanks.
    key : str, optional
        The name of the matrix in a ``.mat`` file. Default: ``network``, or the only square one.
    ids : {"auto", "text"}
        "text": ids are strings in any case.
    one_kind : bool
        Both columns of an edge list hold the same kind of nodes. By default columns with names of
        two kinds (``userId,itemId``), or 20 edges or more whose columns share no id, are refused.

    Returns
    -------
    Graph

    Raises
    ------
    InputError
        If the file cannot be read as a graph. The message names the file and, if possible, the
        line, and never quotes an edge. It is for the curator only.
    ParameterError
        If an option does not apply to the format.

    Notes
    -----
    A ``.gz`` file may unpack to 256 MB, or to 100 times its size if that is more; unpack others
    yourself, and read the plain file.

    Read ``.parquet`` only from sources you trust: a forged file can crash polars' reader, and
    with it the process. Truncated files, and damaged text, .mat and MatrixMarket files and saved
    graphs (``open_graph(path, verify=True)``), raise an InputError.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "friends.csv")
    ...     _ = path.write_text("source,target\nann,bob\nbob,cem\n")
    ...     read_graph(path, nodes=["ann", "bob", "cem", "dan"])
    Graph(4 nodes, 2 edges)
    """
    path = Path(path)
    check_directed(directed)
    as_text = check_ids(ids)
    given = {"header": header, "columns": columns, "delimiter": delimiter, "key": key}
    if path.is_dir():
        _refuse_others(given | {"nodes": nodes}, (), "a saved graph")
        graph = open_graph(path)
        if directed == "keep" and not graph.directed:
            raise InputError(f"the graph in {path} was saved without directions: none can be kept")
        return with_text_ids(graph) if as_text else graph
    suffix = suffix_of(path)
    suffixes = (*TEXT, ".mtx") if is_gzip(path) else (*TEXT, *PARQUET, ".mat", ".mtx")
    check_readable(path)
    if suffix not in suffixes:
        raise InputError(
            f"{path} has the unknown suffix {path.suffix!r}; known are {', '.join(suffixes)}"
            f" and folders of edgeveil.save_graph. {_how_to_convert(path)}"
        )
    node_set = read_nodes(nodes, ids=ids)
    if suffix == ".mat":
        _refuse_others(given, ("key",), "a .mat file")
        key, matrix = load_adjacency(path) if key is None else (key, load_mat(path, key))
        graph = read_matrix(matrix, nodes=node_set, directed=directed, what=f"{key} in {path}")
        return with_text_ids(graph) if as_text else graph
    if suffix == ".mtx":
        _refuse_others(given, (), "a MatrixMarket file")
        graph = read_matrix_market(path, nodes=node_set, directed=directed)
        return with_text_ids(graph) if as_text else graph
    if suffix in PARQUET:
        _refuse_others(given, ("columns",), "a Parquet file")
    _refuse_others(given, ("header", "columns", "delimiter"), "a text file")
    options = ReadOptions(
        nodes=node_set,
        header=header,
        columns=columns,
        delimiter=delimiter,
        text=as_text,
        one_kind=one_kind,
    )
    chunk = next(chunks_of(path, options), None)
    if chunk is not None:
        graph = graph_of_chunk(chunk, options, str(path), directed=directed == "keep")
        return graph if chunk.layout is None else with_notes(graph, chunk.layout)
    if node_set is None:
        raise InputError(f"{path} holds no edge; nodes= (--nodes) reads a graph without edges")
    return Graph.from_edges([], [], node_set, directed=directed == "keep")


def check_edge_list(path: Path) -> None:
    """Refuse a file that `chunks_of` does not read."""
    check_readable(path)
    suffixes = TEXT if is_gzip(path) else (*TEXT, *PARQUET)
    if suffix_of(path) not in suffixes:
        raise InputError(f"{path} is no list of edges; known are {', '.join(suffixes)}")


def chunks_of(path: Path, options: ReadOptions, memory: int | None = None) -> Iterator[Chunk]:
    """Yield the edges of a file, all at once or in chunks for `memory` bytes; none if empty."""
    chunks = parquet_chunks if suffix_of(path) in PARQUET else text_chunks
    return chunks(path, options, memory)


# By suffix: what reads such a file, in Python, and what it has to import
_READERS = {
    ".json": ("json.loads(pathlib.Path({0}).read_bytes())", "json, pathlib"),
    ".graphml": ("networkx.read_graphml({0})", "networkx"),
    ".gml": ("networkx.read_gml({0})", "networkx"),
    ".gexf": ("networkx.read_gexf({0})", "networkx"),
    ".net": ("networkx.Graph(networkx.read_pajek({0}))", "networkx"),
    ".adjlist": ("networkx.read_adjlist({0})", "networkx"),
    ".xlsx": ("polars.read_excel({0})", "polars"),
    ".xls": ("polars.read_excel({0})", "polars"),
    ".ods": ("polars.read_ods({0})", "polars"),
    ".jsonl": ("polars.read_ndjson({0})", "polars"),
    ".ndjson": ("polars.read_ndjson({0})", "polars"),
    ".arrow": ("polars.read_ipc({0})", "polars"),
    ".feather": ("polars.read_ipc({0})", "polars"),
    ".npz": ("scipy.sparse.load_npz({0})", "scipy.sparse"),
    ".npy": ("numpy.load({0})", "numpy"),
}


def _how_to_convert(path: Path) -> str:
    """What turns a file of another format into a folder: one command, if the format is known."""
    read, module = _READERS.get(suffix_of(path), ("", ""))
    if is_gzip(path) or not read:
        return (
            "Read others with their own library, pass what that gives to edgeveil.as_graph, and "
            "save it as a folder (edgeveil.save_graph)"
        )
    folder = repr(str(path.with_suffix(".graph")))
    graph = f"edgeveil.as_graph({read.format(repr(str(path)))})"
    code = f"import edgeveil, {module}; edgeveil.save_graph({graph}, {folder})"
    quoted = shlex.quote(code) if set(code) & set('"$`\\!%') else f'"{code}"'
    return f"This command converts it: python -c {quoted}"


def _refuse_others(given: dict[str, Any], allowed: tuple[str, ...], what: str) -> None:
    """Refuse options that are given but have no meaning for this format."""
    for name, value in given.items():
        if value is not None and name not in allowed:
            raise ParameterError(f"{name}= has no meaning for {what}")
