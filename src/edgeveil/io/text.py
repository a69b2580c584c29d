"""Edge lists as text: one edge per line.

Three steps, each only if the one before did not do: polars reads the bytes as two integer columns
(nearly every file of integers); the bytes are read as strings, tidied if need be; a plain loop
over the lines finds the first bad one and says what is wrong with it.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from edgeveil.errors import InputError, ReadingWarning
from edgeveil.graph import Graph
from edgeveil.io.columns import INTEGER, Edges, Indexed, Piece, RowError, index_columns, is_integer
from edgeveil.io.layout import Layout
from edgeveil.io.lines import data_lines, decode, fields, parse, tidy
from edgeveil.io.table import count_weighted
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

_BLANKS = " \t\r"  # around a field they mean nothing
_FEW = 3  # edges: among fewer, names that occur once are nothing strange


def text_piece(body: bytes, layout: Layout, nodes: NodeSet | None, *, as_text: bool) -> Piece:
    """Read lines of edges; `layout.line` is the number of the first."""

    def explain(error: RowError) -> InputError:
        line = layout.line - 1 + next(islice(data_lines(body), error.row, None), (0, 0, b""))[0]
        hint = _maybe_header(layout, nodes) if error.row == 0 else ""
        return InputError(f"{layout.path}, line {line}: {error.reason}{hint}")

    try:
        return Piece(*_edges_of(body, layout, as_text=as_text), explain, layout)
    except RowError as error:
        raise explain(error) from error


def _maybe_header(layout: Layout, nodes: NodeSet | None) -> str:
    """A hint, if the first line was read as an edge and neither of its ends is a node."""
    ends = [layout.sample[i] for i in (layout.first, layout.second) if i < len(layout.sample)]
    if nodes is None or layout.names or any(map(is_integer, ends)) or any(e in nodes for e in ends):
        return ""
    return f"; line {layout.line} looks like a header: say header=True (--header)"


def noted(graph: Graph, layout: Layout) -> Graph:
    """The graph of a text file, with what its curator should know about how this was read."""
    if graph.intake.nodes_from_edges and not layout.names and layout.guessed:
        ends = [layout.sample[i] for i in (layout.first, layout.second)]
        if _stand_alone(graph, ends):
            # The words are not quoted: they may be an edge.
            warnings.warn(
                f"{layout.path}, line {layout.line} was read as an edge but may be a header: its "
                "words occur in no other line; say header=True (--header) if it is one, "
                "header=False (--no-header) if not",
                ReadingWarning,
                stacklevel=4,
            )
    return replace(graph, intake=replace(graph.intake, layout=layout.says))


def _stand_alone(graph: Graph, ends: list[str]) -> bool:
    """Whether two names are joined to each other only, in a graph of some more edges."""
    if (
        graph.nodes.kind != "str"
        or graph.n_edges < _FEW
        or sum(end in graph.nodes for end in set(ends)) < 2
    ):
        return False
    pair = graph.nodes.indices(ends)
    if graph.degrees[pair].tolist() != [1, 0 if graph.directed else 1]:
        return False
    # Degree 1 twice, and the first line joins the two; of directed edges others may lead to them.
    return not graph.directed or int(np.isin(graph.indices, pair).sum()) == 1


# -- the columns --------------------------------------------------------------------------


def _edges_of(body: bytes, layout: Layout, *, as_text: bool) -> tuple[Edges, int]:
    """Read lines: two columns of integers, or names indexed; and the number of weights."""
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
