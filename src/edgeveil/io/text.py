"""Edge lists as text: one edge per line.

Three steps, each only if the one before did not do: polars reads the bytes as two integer columns
(nearly every file of integers); the bytes are read as strings, tidied if need be; a plain loop
over the lines finds the first bad one and says what is wrong with it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from edgeveil.errors import InputError
from edgeveil.graph import Graph
from edgeveil.io.columns import (
    INTEGER,
    Indexed,
    RowError,
    graph_of_columns,
    graph_of_indexed,
    index_columns,
    is_integer,
)
from edgeveil.io.lines import content, data_lines, decode, fields, parse, sniff_delimiter, tidy
from edgeveil.io.table import Columns, count_weighted, pick_columns
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

    Edges = Indexed | tuple[pl.Series, pl.Series]

__all__ = ["Layout", "edges_of", "layout_of", "line_number", "read_edge_list"]

_BLANKS = " \t\r"  # around a field they mean nothing
_HEADERS = {
    *("source", "target", "src", "dst", "from", "to", "source_id", "target_id", "from_id", "to_id"),
    *("fromnodeid", "tonodeid", "node1", "node2", "node_1", "node_2", "id1", "id2", "id_1", "id_2"),
    *("follower", "followed", "followee", "following", "user", "friend", "user_id", "friend_id"),
    *("user1", "user2", "user_1", "user_2", "person1", "person2", "member1", "member2"),
    *("caller", "callee", "sender", "receiver", "recipient", "payer", "payee", "node_a", "node_b"),
    *("origin", "destination", "head", "tail", "person_1", "person_2", "member_1", "member_2"),
}


@dataclass(frozen=True)
class Layout:
    """How the lines of one file are made; `line` is that of the first edge in what is read."""

    path: Path
    delimiter: str
    names: list[str] | None  # of the header, None if there is none
    first: int
    second: int
    weight: int | None
    width: int  # fields in every line
    body: int  # offset of the first edge
    line: int  # number of its line
    sample: list[str]  # fields of the first edge, empty if there is none


def read_edge_list(
    path: Path,
    *,
    nodes: NodeSet | None,
    header: bool | None,
    columns: Columns | None,
    delimiter: str | None,
    directed: bool,
) -> Graph:
    """Read a text file with one edge per line; see `edgeveil.read_graph`."""
    data = content(path)
    layout = layout_of(path, data, header=header, columns=columns, delimiter=delimiter, nodes=nodes)
    if not layout.sample:
        if nodes is None:
            raise InputError(f"{path} holds no edge; give nodes= to read a graph without edges")
        return Graph.from_edges([], [], nodes, directed=directed)
    body = data[layout.body :]  # no copy if that is all of it
    del data
    try:
        return _graph(body, layout, nodes, directed)
    except RowError as error:
        number = line_number(body, layout, error.row)
        raise InputError(f"{path}, line {number}: {error.reason}") from error


# -- the layout ---------------------------------------------------------------------------


def layout_of(
    path: Path,
    data: bytes,
    *,
    header: bool | None,
    columns: Columns | None,
    delimiter: str | None,
    nodes: NodeSet | None,
) -> Layout:
    """Find out how the lines of a file are made, from its beginning."""
    if (not data or data.isspace()) and nodes is None:
        raise InputError(f"{path} is empty")
    head = [
        (start, decode(line, f"{path}, line {number}"), number)
        for number, start, line in islice(data_lines(data), 2)
    ]
    if not head:  # comments only
        return Layout(path, delimiter or ",", None, 0, 1, None, 2, len(data), 1, [])
    delimiter = delimiter or sniff_delimiter(head[0][1])
    rows = [fields(line, delimiter) for _, line, _ in head]
    if header is None:
        # With a node list two members are an edge, whatever their names are.
        known = nodes is not None and all(name in nodes for name in rows[0][:2])
        header = not known and _has_header(rows, columns)
    names = rows.pop(0) if header else None
    first_edge = head[int(header) : int(header) + 1]
    body, _, line = first_edge[0] if first_edge else (len(data), "", 1)
    width = len(names or rows[0])
    picked = pick_columns(names, width, columns, str(path))
    return Layout(path, delimiter, names, *picked, width, body, line, rows[0] if rows else [])


def _has_header(rows: list[list[str]], columns: Columns | None) -> bool:
    if columns is not None and any(isinstance(column, str) for column in columns):
        return True
    top = rows[0][:2]
    if len({name.lower() for name in top} & _HEADERS) == 2:
        return True
    below = rows[1][:2] if len(rows) > 1 else []
    return len(below) == 2 and all(map(is_integer, below)) and not any(map(is_integer, top))


# -- the columns --------------------------------------------------------------------------


def _graph(body: bytes, layout: Layout, nodes: NodeSet | None, directed: bool) -> Graph:
    as_text = nodes is not None and nodes.kind == "str"
    edges, weighted = edges_of(body, layout, as_text=as_text)
    if not isinstance(edges, Indexed):
        return graph_of_columns(*edges, nodes, weighted=weighted, directed=directed)
    return graph_of_indexed(edges, nodes, weighted=weighted, directed=directed)


def edges_of(body: bytes, layout: Layout, *, as_text: bool) -> tuple[Edges, int]:
    """Read lines: two columns of integers, or names indexed; and the number of weights.

    Raises
    ------
    RowError
        If an id is none; `line_number` tells where.
    """
    plain = not as_text and len(layout.sample) == layout.width
    if plain and all(is_integer(layout.sample[i]) for i in (layout.first, layout.second)):
        found = _read_integers(body, layout) or _read_integers(tidy(body, layout.delimiter), layout)
        if found is not None:
            return found
    edges, weighted = _read_names(body, layout)
    if not as_text and bool(edges.ids.str.contains(INTEGER).all()):
        return _to_integers(edges), weighted
    return edges, weighted


def _read_integers(body: bytes, layout: Layout) -> tuple[Edges, int] | None:
    """Read the plain case; None for everything that is not wholly plain."""
    import polars as pl

    kinds: list[type[pl.DataType]] = [pl.String] * layout.width
    kinds[layout.first] = kinds[layout.second] = pl.Int64
    if layout.weight is not None:
        with suppress(ValueError):  # text is no weight
            float(layout.sample[layout.weight])
            kinds[layout.weight] = pl.Float64
    try:
        frame = parse(body, layout.delimiter, kinds, layout.path)
    except InputError:
        return None
    # A missing value is a blank line, an empty field or a short line: not plain
    if any(column.has_nulls() for column in frame):
        return None
    weighted = 0 if layout.weight is None else count_weighted(frame.to_series(layout.weight))
    return (frame.to_series(layout.first), frame.to_series(layout.second)), weighted


def _read_names(body: bytes, layout: Layout) -> tuple[Indexed, int]:
    """Read any two columns as strings; give the number of weights other than 1 too."""
    frame = _read_strings(body, layout)
    weighted = 0 if layout.weight is None else _text_weights(frame.to_series(layout.weight))
    first, second = (frame.to_series(i) for i in (layout.first, layout.second))
    edges = index_columns(first, second)
    if bool((edges.ids != edges.ids.str.strip_chars(_BLANKS)).any()):
        edges = index_columns(first.str.strip_chars(_BLANKS), second.str.strip_chars(_BLANKS))
    names = edges.ids
    for wrong, reason in (
        (names.is_null() | (names == ""), "an id is empty"),
        (names.str.contains("[\r\n]"), "an id holds a line break, or a quote is not closed"),
        (names.str.to_lowercase() == "nan", "an id is NaN, a missing value"),
    ):
        _refuse_rows(edges, wrong.fill_null(False), reason)
    return edges, weighted


def _read_strings(body: bytes, layout: Layout) -> pl.DataFrame:
    import polars as pl

    kinds: list[type[pl.DataType]] = [pl.String] * layout.width
    try:
        frame = parse(body, layout.delimiter, kinds, layout.path)
    except InputError:
        frame = None
    # a comment with as many fields as an edge would look like one
    if frame is not None and not any(column.has_nulls() for column in frame):
        may_have_comments = b"#" in body or b"%" in body
        if not (may_have_comments and frame.to_series(0).str.contains(r"^[ \t]*[#%]").any()):
            return frame
    try:
        frame = parse(tidy(body, layout.delimiter), layout.delimiter, kinds, layout.path)
    except InputError as error:
        _explain(body, layout)
        raise InputError(f"{layout.path} cannot be read as an edge list") from error
    if any(column.has_nulls() for column in frame):
        _explain(body, layout)  # an empty field beyond the ids is no fault, a short line is one
    return frame


def _refuse_rows(edges: Indexed, wrong: pl.Series, reason: str) -> None:
    if wrong.any():
        bad = wrong.to_numpy()
        raise RowError(reason, int((bad[edges.first] | bad[edges.second]).argmax()))


def _to_integers(edges: Indexed) -> tuple[pl.Series, pl.Series]:
    import polars as pl

    integers = edges.ids.cast(pl.Int64, strict=False)
    reason = "an integer id does not fit into 64 bits; give nodes= as strings"
    _refuse_rows(edges, integers.is_null(), reason)
    return integers.gather(edges.first), integers.gather(edges.second)


def _text_weights(column: pl.Series) -> int:
    import polars as pl

    text = column.str.strip_chars(_BLANKS).drop_nulls()
    numbers = text.filter(text != "").cast(pl.Float64, strict=False)
    return 0 if numbers.has_nulls() else count_weighted(numbers)


# -- the first bad line -------------------------------------------------------------------


def _explain(body: bytes, layout: Layout) -> None:
    """Raise for the first line that is not UTF-8, too short, too long or without an id."""
    for number, _, line in data_lines(body):
        where = f"{layout.path}, line {layout.line - 1 + number}"
        found = fields(decode(line, where), layout.delimiter)
        if len(found) != layout.width:
            like = "the header" if layout.names else "the first line"
            raise InputError(f"{where}: {len(found)} fields where {like} has {layout.width}")
        if not (found[layout.first] and found[layout.second]):
            raise InputError(f"{where}: an id is empty")


def line_number(body: bytes, layout: Layout, row: int) -> int:
    """Give the line number of the row-th edge (from 0)."""
    return layout.line - 1 + next(islice(data_lines(body), row, None), (0, 0, b""))[0]
