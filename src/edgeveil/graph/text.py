"""Edge lists as text: one edge per line.

The layout is detected from the first lines. Then up to three attempts: polars parses the bytes as
two integer columns (enough for nearly every file of integers, in 0.4 of the time of the second),
and is believed if no id has a sign or zeros that this drops; it parses them as strings, without
comments and blank lines if need be; a Python loop over the lines finds the first bad one for the
error message.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgeveil.errors import InputError, ReadingWarning
from edgeveil.graph import lines
from edgeveil.graph.columns import (
    IDS,
    OTHERS,
    SAMPLE,
    ReadOptions,
    find_columns,
    is_header_of_ids,
    is_numeric,
    is_time,
)
from edgeveil.graph.edges import SHOWN, Chunk, IndexedEdges, RowError, index_columns
from edgeveil.graph.graph import Graph
from edgeveil.graph.lines import is_integer
from edgeveil.graph.nodes import INTEGER, LONGEST_ID, MISSING, NodeSet
from edgeveil.graph.tables import count_weighted

if TYPE_CHECKING:
    import polars as pl

    Kinds = list[type[pl.DataType]]

_PER_BYTE = 32  # measured: peak memory per byte of text, names included
_MOST_BYTES = 1 << 28  # larger chunks are not faster
_BLANKS = " \t\r"  # ignored around a field
_FEW = 3  # with fewer edges, names that occur once are no sign of a header


@dataclass(frozen=True)
class TextLayout:
    """How the lines of a file are split; `line` is the number of the chunk's first edge."""

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
    guessed: bool = True  # whether there is a header was guessed, not given
    time: int | None = None  # column of times, if asked for

    @property
    def in_words(self) -> str:
        """How the first line and the columns were read; empty for two columns, no header."""
        if self.names is not None:
            taken = f"columns {self.names[self.first]!r} and {self.names[self.second]!r}"
            return f"the first line is a header; ids are in the {taken} of {self.width}"
        if self.width == 2:
            return ""
        taken = f"columns {self.first} and {self.second} of {self.width}, from 0"
        return f"the first line is an edge; ids are in the {taken}"

    @property
    def ends(self) -> list[str]:
        """The two ids of the first edge, if they are there."""
        return [self.sample[i] for i in (self.first, self.second) if i < len(self.sample)]


def text_chunks(path: Path, options: ReadOptions, memory: int | None) -> Iterator[Chunk]:
    """Yield the edges of a text file, all at once or in chunks for `memory` bytes."""
    layout = None
    size = 0 if memory is None else max(1, min(memory // _PER_BYTE, _MOST_BYTES))
    for line, block in lines.whole_lines(path, size) if size else [(1, lines.content(path))]:
        body = block
        if layout is None:
            first_layout = _layout_of(path, block, options)
            if not first_layout.sample:  # no edge yet
                continue
            layout = first_layout
            body = block[layout.body :]  # no copy if that is the whole block
            del block
        else:
            layout = replace(layout, line=line)
        yield _chunk(body, layout, options)


def _layout_of(path: Path, data: bytes, options: ReadOptions) -> TextLayout:
    """Detect the layout from the first lines of a file."""
    header, nodes = options.header, options.nodes
    first_lines = islice(lines.data_lines(data), SAMPLE + 1)
    head = [
        # bytes after the first edge that are not UTF-8 are reported when all lines are read
        (start, lines.decode(line, where) if i < 2 else line.decode(errors="replace"), number)
        for i, (number, start, line) in enumerate(first_lines)
        for where in [f"{path}, line {number}"]
    ]
    if not head:  # comments only
        return TextLayout(path, ",", None, 0, 1, None, 2, len(data), 1, [])
    delimiter = options.delimiter or lines.sniff_delimiter(head[0][1])
    rows = [lines.fields(line, delimiter) for _, line, _ in head]
    if header is None:
        # Two ids of the node list are an edge, whatever their names.
        are_nodes = nodes is not None and all(name in nodes for name in rows[0][:2])
        header = not are_nodes and (options.by_name or _has_header(rows))
    names = rows.pop(0) if header else None
    body, _, line = head[int(header)] if rows else (len(data), "", 1)
    width = len(names or rows[0])
    positions = find_columns(names, rows, options, str(path))
    return TextLayout(
        path=path,
        delimiter=delimiter,
        names=names,
        **positions._asdict(),
        width=width,
        body=body,
        line=line,
        sample=rows[0] if rows else [],
        guessed=options.header is None,
    )


def _has_header(rows: list[list[str]]) -> bool:
    """Whether the first line is a header, judged by its words and the lines below."""
    top, below = rows[0], rows[1] if len(rows) > 1 else []
    first_two = {name.lower() for name in top[:2]}
    usual = first_two <= IDS or (len(top) > 1 and is_header_of_ids(top[:2]))
    if len(first_two) == 2 and usual:
        # user1 and user2 are ids if one of them occurs again
        return not any(name in row[:2] for name in top[:2] for row in rows[1:])
    if len(top) > 2 and any(
        name.lower() in OTHERS and (is_numeric(text) or is_time(text))
        for name, text in zip(top, below, strict=False)
    ):
        return True
    ids = below[:2]
    return len(ids) == 2 and all(map(is_integer, ids)) and not any(map(is_integer, top[:2]))


# -- hints for the curator ----------------------------------------------------------------


def _maybe_header(layout: TextLayout, nodes: NodeSet | None) -> str:
    """A hint, if the first line was read as an edge and neither id is in the node list."""
    if nodes is None or layout.names or any(is_integer(e) or e in nodes for e in layout.ends):
        return ""
    return f"; line {layout.line} looks like a header: say header=True (--header)"


def with_notes(graph: Graph, layout: TextLayout) -> Graph:
    """The graph with a note on how its file was read; warns of a possible header."""
    guessed = graph.read_report.nodes_from_edges and layout.guessed
    taken = layout.names and [layout.names[i] for i in (layout.first, layout.second)]
    if guessed and taken and any(graph.nodes.named(name) in graph.nodes for name in taken):
        warnings.warn(
            f"{layout.path}, line {layout.line - 1} was read as a header but may be an edge: one "
            "of its words is an id in other lines; say header=False (--no-header) if it is an "
            "edge, header=True (--header) if not",
            ReadingWarning,
            stacklevel=4,
        )
    if guessed and not layout.names and _stand_alone(graph, layout.ends):
        # The words are not quoted: they may be an edge.
        warnings.warn(
            f"{layout.path}, line {layout.line} was read as an edge but may be a header: its "
            "words occur in no other line; say header=True (--header) if it is one, "
            "header=False (--no-header) if not",
            ReadingWarning,
            stacklevel=4,
        )
    return replace(graph, read_report=replace(graph.read_report, layout=layout.in_words))


def _stand_alone(graph: Graph, ends: list[str]) -> bool:
    """Whether two names have no edge but the one between them, in a graph with more edges."""
    if graph.nodes.kind != "str" or graph.n_edges < _FEW or any(map(is_integer, ends)):
        return False
    if len({end for end in ends if end in graph.nodes}) < 2:
        return False
    pair = graph.nodes.indices(ends)
    if graph.degrees[pair].tolist() != [1, 0 if graph.directed else 1]:
        return False
    # Both have degree 1, by the first line; if directed, other edges may lead to them.
    return not graph.directed or int(np.isin(graph.indices, pair).sum()) == 1


# -- the columns --------------------------------------------------------------------------


def _chunk(body: bytes, layout: TextLayout, options: ReadOptions) -> Chunk:
    """Parse lines: two columns of integers, or indexed names."""

    def explain(error: RowError) -> InputError:
        wrong_rows = iter(error.rows[:SHOWN].tolist())
        row, numbers = next(wrong_rows), []
        for i, (number, *_) in enumerate(lines.data_lines(body)):
            if i == row:
                numbers.append(layout.line - 1 + number)
                if (row := next(wrong_rows, -1)) < 0:
                    break
        numbers = numbers or [layout.line - 1]
        hint = _maybe_header(layout, options.nodes) if error.row == 0 else ""
        many = error.all_of("lines", numbers)
        return InputError(f"{layout.path}, line {numbers[0]}: {error.reason}{many}{hint}")

    weight, times = layout.weight, layout.time
    frame = None if options.as_text else _parse_integers(body, layout)
    if frame is not None:
        edges: IndexedEdges | tuple[pl.Series, pl.Series]
        edges = frame[:, layout.first], frame[:, layout.second]
        weighted = 0 if weight is None else count_weighted(frame[:, weight])
    else:
        frame = _parse_strings(body, layout)
        weighted = 0 if weight is None else _text_weights(frame[:, weight])
        try:
            edges = _index_names(frame[:, layout.first], frame[:, layout.second])
            if not options.as_text:
                edges = _to_integers(edges)
        except RowError as error:
            raise explain(error) from error
    return Chunk(edges, weighted, explain, layout, None if times is None else frame[:, times])


def _parse_integers(body: bytes, layout: TextLayout) -> pl.DataFrame | None:
    """Parse two columns of integers; None if some line is anything else."""
    import polars as pl

    sample = layout.sample
    if len(sample) != layout.width or not all(map(is_integer, layout.ends)):
        return None
    kinds: Kinds = [pl.String] * layout.width
    kinds[layout.first] = kinds[layout.second] = pl.Int64
    if layout.weight is not None and is_numeric(sample[layout.weight]):
        kinds[layout.weight] = pl.Float64
    frame = _parse(body, layout, kinds)
    if frame is None or _has_gaps(frame) or not lines.is_plain(body, layout.delimiter):
        return None
    return frame


def _parse_strings(body: bytes, layout: TextLayout) -> pl.DataFrame:
    import polars as pl

    frame = _parse(body, layout, [pl.String] * layout.width)
    if frame is None or _has_gaps(frame):
        _explain(body, layout)  # raises unless only fields other than the ids are empty
    if frame is None:
        raise InputError(f"{layout.path} cannot be read as an edge list")
    return frame


def _parse(body: bytes, layout: TextLayout, kinds: Kinds) -> pl.DataFrame | None:
    """Parse the lines as they are, or else without comments and blank lines; None if both fail."""
    import polars as pl

    with suppress(InputError):
        frame = lines.parse(body, layout.delimiter, kinds, layout.path)
        # a comment may have as many fields as an edge
        may_have_comments = kinds[0] == pl.String and (b"#" in body or b"%" in body)
        commented = may_have_comments and frame[:, 0].str.contains(r"^[ \t]*[#%]").any()
        if not (_has_gaps(frame) or commented):
            return frame
    with suppress(InputError):
        return lines.parse(lines.tidy(body, layout.delimiter), layout.delimiter, kinds, layout.path)
    return None


def _has_gaps(frame: pl.DataFrame) -> bool:
    """Whether a value is missing, by a blank or short line, an empty field or a comment."""
    return any(column.has_nulls() for column in frame)


def _index_names(first: pl.Series, second: pl.Series) -> IndexedEdges:
    """Index two columns of names, stripped of blanks; refuse empty and broken names."""
    edges = index_columns(first, second)
    if bool((edges.ids != edges.ids.str.strip_chars(_BLANKS)).any()):
        edges = index_columns(first.str.strip_chars(_BLANKS), second.str.strip_chars(_BLANKS))
    names = edges.ids
    for wrong, reason in (
        (names.is_null() | (names == ""), "an id is empty"),
        (names.str.contains("[\r\n]"), "an id holds a line break, or a quote is not closed"),
        (names.is_in(MISSING), "an id is NaN, NULL or the like, a missing value"),
        (names.str.len_bytes() > LONGEST_ID, f"an id is longer than {LONGEST_ID} bytes"),
    ):
        _refuse_rows(edges, wrong.fill_null(False), reason)
    return edges


def _refuse_rows(edges: IndexedEdges, wrong: pl.Series, reason: str) -> None:
    if wrong.any():
        bad = wrong.to_numpy()
        rows = np.flatnonzero(bad[edges.first] | bad[edges.second])
        raise RowError(reason, int(rows[0]), rows)


def _to_integers(edges: IndexedEdges) -> IndexedEdges | tuple[pl.Series, pl.Series]:
    """Two columns of integers, if every id is spelt as an integer is; else the edges."""
    import polars as pl

    if not edges.ids.str.contains(f"^{INTEGER}$").all():
        return edges
    integers = edges.ids.cast(pl.Int64, strict=False)
    if integers.has_nulls():  # more than 64 bits
        return edges
    return integers.gather(edges.first), integers.gather(edges.second)


def _text_weights(column: pl.Series) -> int:
    import polars as pl

    text = column.str.strip_chars(_BLANKS).drop_nulls()
    numbers = text.filter(text != "").cast(pl.Float64, strict=False)
    return 0 if numbers.has_nulls() else count_weighted(numbers)


def _explain(body: bytes, layout: TextLayout) -> None:
    """Raise for the first line that is not UTF-8, has too few or many fields, or no id."""
    for number, _, line in lines.data_lines(body):
        where = f"{layout.path}, line {layout.line - 1 + number}"
        row = lines.fields(lines.decode(line, where), layout.delimiter)
        if len(row) != layout.width:
            like = "the header" if layout.names else "the first line"
            raise InputError(f"{where}: {len(row)} fields where {like} has {layout.width}")
        if not (row[layout.first] and row[layout.second]):
            raise InputError(f"{where}: an id is empty")
