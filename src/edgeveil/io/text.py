"""Edge lists as text: one edge per line.

Four steps, each only if the one before did not do: compiled loops read a large file of two plain
columns; polars reads the bytes as two integer columns (nearly every other file); the bytes are
tidied and read as strings; a plain loop over the lines finds the first bad one and says what is
wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import InputError
from edgeveil.graph import Graph
from edgeveil.io import plain_text
from edgeveil.io.factors import Factors, factorise
from edgeveil.io.indexing import (
    INTEGER,
    RowError,
    graph_of_codes,
    graph_of_integers,
    graph_of_names,
    is_integer,
    join,
)
from edgeveil.io.lines import (
    BYTE_ORDER_MARK,
    content,
    data_lines,
    decode,
    fields,
    parse,
    read_bytes,
    sniff_delimiter,
    tidy,
)
from edgeveil.io.plain_names import Names, names_as_strings, read_plain_names
from edgeveil.io.plain_text import Integers, Source
from edgeveil.io.tables import Columns, count_weighted, pick_columns
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_edge_list"]

_Pair = tuple[npt.NDArray[Any], npt.NDArray[Any]]
_Edges = Integers | Names | Factors | _Pair

_BEGINNING = 1 << 20  # bytes

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
class _Layout:
    """How the lines of one file are made."""

    path: Path
    delimiter: str
    names: list[str] | None  # of the header, None if there is none
    first: int
    second: int
    weight: int | None
    width: int  # fields in every line
    body: int  # offset of the first edge
    sample: list[str]  # fields of the first edge, empty if there is none


def read_edge_list(
    path: Path,
    *,
    nodes: NodeSet | None,
    header: bool | None,
    columns: Columns | None,
    delimiter: str | None,
) -> Graph:
    """Read a text file with one edge per line; see `edgeveil.read_graph`."""
    text = _open(path)
    layout = _layout(path, text.begin, header=header, columns=columns, delimiter=delimiter)
    if not layout.sample and nodes is None:
        raise InputError(f"{path} holds no edge; give nodes= to read a graph without edges")
    try:
        as_text = nodes is not None and nodes.kind == "str"
        edges, weighted = _columns(text, layout, as_text=as_text)
        del text  # as large as the columns; read again in the rare case that a line is bad
        if isinstance(edges, Integers):
            span = (edges.low, edges.high)
            return graph_of_integers(edges.parts, nodes, weighted=weighted, span=span)
        if isinstance(edges, Names) and nodes is None:
            return graph_of_codes(edges.parts, edges.nodes, weighted=weighted)
        if isinstance(edges, Names):
            edges = _factors(edges, layout.delimiter)
        if isinstance(edges, Factors):
            return graph_of_names(edges, nodes, weighted=weighted)
        return graph_of_integers([edges], nodes, weighted=weighted)
    except RowError as error:
        number = _line_number(layout, error.row)
        raise InputError(f"{path}, line {number}: {error.reason}") from error


@dataclass(frozen=True)
class _Text:
    """A text file, of which only the beginning need be in memory."""

    path: Path
    begin: bytes  # without a byte order mark
    whole: bool  # whether that is everything
    mark: int = 0  # bytes of the byte order mark
    size: int = 0  # bytes of the file

    def source(self, body: int) -> Source:
        """Give everything from an offset on, in memory or not."""
        if self.whole:
            return Source(self.begin, body, len(self.begin))
        return Source(self.path, self.mark + body, self.size)

    def everything(self) -> bytes:
        return self.begin if self.whole else content(self.path)


def _open(path: Path) -> _Text:
    """Read a file, or of a large one the beginning if it holds two lines at least."""
    size = path.stat().st_size
    if size >= plain_text.LARGE and path.suffix.lower() != ".gz":
        begin = read_bytes(path, _BEGINNING)
        mark = len(BYTE_ORDER_MARK) if begin.startswith(BYTE_ORDER_MARK) else 0
        begin = begin[mark : begin.rfind(b"\n") + 1]
        if len(list(islice(data_lines(begin), 2))) == 2:
            return _Text(path, begin, whole=False, mark=mark, size=size)
    return _Text(path, content(path), whole=True)


# -- the layout ---------------------------------------------------------------------------


def _layout(
    path: Path,
    data: bytes,
    *,
    header: bool | None,
    columns: Columns | None,
    delimiter: str | None,
) -> _Layout:
    if not data or data.isspace():
        raise InputError(f"{path} is empty")
    head = [
        (start, decode(line, f"{path}, line {number}"))
        for number, start, line in islice(data_lines(data), 2)
    ]
    if not head:  # comments only
        return _Layout(path, delimiter or ",", None, 0, 1, None, 2, len(data), [])
    delimiter = delimiter or sniff_delimiter(head[0][1])
    rows = [fields(line, delimiter) for _, line in head]
    if header is None:
        header = _has_header(rows, columns)
    names = rows.pop(0) if header else None
    body = head[1][0] if header and len(head) > 1 else len(data) if header else head[0][0]
    width = len(names or rows[0])
    first, second, weight = pick_columns(names, width, columns, str(path))
    return _Layout(
        path, delimiter, names, first, second, weight, width, body, rows[0] if rows else []
    )


def _has_header(rows: list[list[str]], columns: Columns | None) -> bool:
    if columns is not None and any(isinstance(column, str) for column in columns):
        return True
    top = rows[0][:2]
    if len({name.lower() for name in top} & _HEADERS) == 2:
        return True
    below = rows[1][:2] if len(rows) > 1 else []
    return (
        len(below) == 2
        and all(map(is_integer, below))
        and not any(is_integer(name) for name in top)
    )


# -- the columns --------------------------------------------------------------------------


def _columns(text: _Text, layout: _Layout, *, as_text: bool) -> tuple[_Edges, int]:
    """Give the two columns, and how many weights are not 1."""
    if not layout.sample:
        none = np.empty(0, dtype=np.int64)
        return (Factors.of_nothing() if as_text else (none, none)), 0
    # Two columns of many rows may go by without polars
    source = text.source(layout.body) if layout.width == 2 else None
    if source is not None and source.stop - source.start < plain_text.LARGE:
        source = None
    ids = (layout.first, layout.second)
    body: bytes | None = None
    plain = not as_text and len(layout.sample) == layout.width
    if plain and all(is_integer(layout.sample[i]) for i in ids):
        if source is not None:
            narrow = all(len(field) < 10 for field in layout.sample)
            integers = plain_text.read_plain_integers(source, layout.delimiter, narrow=narrow)
            if integers is not None:
                return integers._replace(parts=_turned(integers.parts, layout)), 0
        body = text.everything()[layout.body :]
        edges = _read_integers(body, layout)
        if edges is None:
            body = tidy(body, layout.delimiter)
            edges = _read_integers(body, layout)
        if edges is not None:
            return edges
    names = read_plain_names(source, layout.delimiter) if source is not None else None
    if names is not None:
        names = names._replace(parts=_turned(names.parts, layout))
        if not names.is_nan and (as_text or not names.is_integer):
            return names, 0
        factors, weighted = _factors(names, layout.delimiter), 0
    else:
        factors, weighted = _read_factors(
            text.everything()[layout.body :] if body is None else body, layout
        )
    _refuse_bad_names(factors)
    if not as_text and bool(factors.names.str.contains(INTEGER).all()):
        return _to_integers(factors), weighted
    return factors, weighted


def _turned(parts: list[_Pair], layout: _Layout) -> list[_Pair]:
    return [(b, a) for a, b in parts] if layout.first else parts


def _factors(names: Names, delimiter: str) -> Factors:
    return Factors(names_as_strings(names.nodes, delimiter), *join(names.parts))


def _read_factors(body: bytes, layout: _Layout) -> tuple[Factors, int]:
    """Read any two columns as strings; give the number of weights other than 1 too."""
    frame = _read_strings(body, layout)
    first, second = (frame.to_series(i) for i in (layout.first, layout.second))
    factors = factorise(first, second)
    if bool((factors.names != factors.names.str.strip_chars(_BLANKS)).any()):
        first, second = first.str.strip_chars(_BLANKS), second.str.strip_chars(_BLANKS)
        factors = factorise(first, second)
    weighted = 0
    if layout.weight is not None:
        weighted = _count_text_weights(frame.to_series(layout.weight))
    return factors, weighted


def _read_integers(body: bytes, layout: _Layout) -> tuple[_Pair, int] | None:
    """Read the plain case; None for everything that is not wholly plain."""
    import polars as pl

    kinds: list[type[pl.DataType]] = [pl.String] * layout.width
    kinds[layout.first] = kinds[layout.second] = pl.Int64
    if layout.weight is not None and _is_number(layout.sample[layout.weight]):
        kinds[layout.weight] = pl.Float64
    try:
        frame = parse(body, layout.delimiter, kinds, layout.path)
    except InputError:
        return None
    # A missing value is a blank line, an empty field or a short line: not plain
    if any(column.has_nulls() for column in frame):
        return None
    weighted = 0 if layout.weight is None else count_weighted(frame.to_series(layout.weight))
    first, second = (frame.to_series(i).to_numpy() for i in (layout.first, layout.second))
    return (first, second), weighted


def _read_strings(body: bytes, layout: _Layout) -> pl.DataFrame:
    import polars as pl

    kinds: list[type[pl.DataType]] = [pl.String] * layout.width
    try:
        frame = parse(body, layout.delimiter, kinds, layout.path)
    except InputError:
        frame = None
    if frame is not None and _is_plain(frame):
        return frame
    try:
        frame = parse(tidy(body, layout.delimiter), layout.delimiter, kinds, layout.path)
    except InputError as error:
        _explain(layout)
        raise InputError(f"{layout.path} cannot be read as an edge list") from error
    if any(column.has_nulls() for column in frame):
        _explain(layout)  # an empty field beyond the ids is no fault, a short line is one
    return frame


def _is_plain(frame: pl.DataFrame) -> bool:
    if any(column.has_nulls() for column in frame):
        return False
    # a comment with as many fields as an edge would look like one
    return not frame.to_series(0).str.contains(r"^[ \t]*[#%]").any()


def _refuse_bad_names(factors: Factors) -> None:
    names = factors.names
    for wrong, reason in (
        (names.is_null() | (names == "").fill_null(False), "an id is empty"),
        (names.str.contains("[\r\n]"), "an id holds a line break, or a quote is not closed"),
        (names.str.to_lowercase() == "nan", "an id is NaN, a missing value"),
    ):
        if wrong.any():
            bad = wrong.fill_null(False).to_numpy()
            raise RowError(reason, int((bad[factors.first] | bad[factors.second]).argmax()))


def _to_integers(factors: Factors) -> _Pair:
    import polars as pl

    integers = factors.names.cast(pl.Int64, strict=False)
    missing = integers.is_null().to_numpy()
    if missing.any():
        for column in (factors.first, factors.second):
            if missing[column].any():
                row = int(missing[column].argmax())
                raise RowError(
                    "an integer id does not fit into 64 bits; give nodes= as strings", row
                )
    values = integers.to_numpy()
    return values[factors.first], values[factors.second]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _count_text_weights(column: pl.Series) -> int:
    import polars as pl

    text = column.str.strip_chars(_BLANKS).drop_nulls()
    numbers = text.filter(text != "").cast(pl.Float64, strict=False)
    return 0 if numbers.has_nulls() else count_weighted(numbers)


# -- the first bad line -------------------------------------------------------------------


def _explain(layout: _Layout) -> None:
    """Raise for the first line that is not UTF-8, too short, too long or without an id."""
    data = content(layout.path)
    for number, start, line in data_lines(data):
        if start < layout.body:
            continue
        where = f"{layout.path}, line {number}"
        found = fields(decode(line, where), layout.delimiter)
        if len(found) != layout.width:
            like = "the header" if layout.names else "the first line"
            raise InputError(f"{where}: {len(found)} fields where {like} has {layout.width}")
        if not (found[layout.first] and found[layout.second]):
            raise InputError(f"{where}: an id is empty")


def _line_number(layout: _Layout, row: int) -> int:
    """Give the line number of the row-th edge (from 0)."""
    edges = (line for line in data_lines(content(layout.path)) if line[1] >= layout.body)
    return next(islice(edges, row, None), (0, 0, b""))[0]
