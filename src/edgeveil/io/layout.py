"""How the lines of a text file of edges are made: delimiter, header, columns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from edgeveil.io.columns import is_integer
from edgeveil.io.lines import data_lines, decode, fields, sniff_delimiter
from edgeveil.io.picking import (
    SAMPLE,
    Columns,
    is_number,
    looks_like_time,
    names_ids,
    names_something_else,
    pick_columns,
)
from edgeveil.nodes import NodeSet


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
    guessed: bool = True  # whether the first line is a header, rather than told

    @property
    def says(self) -> str:
        """What became of the first line and which columns count; nothing in the plain case."""
        if self.names is not None:
            taken = f"columns {self.names[self.first]!r} and {self.names[self.second]!r}"
            return f"the first line is a header; ids are in the {taken} of {self.width}"
        if self.width == 2:
            return ""
        taken = f"columns {self.first} and {self.second} of {self.width}, from 0"
        return f"the first line is an edge; ids are in the {taken}"


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
    head = [
        # what is no text after the first edge is said where all lines are read
        (start, decode(line, where) if i < 2 else line.decode(errors="replace"), number)
        for i, (number, start, line) in enumerate(islice(data_lines(data), SAMPLE + 1))
        for where in [f"{path}, line {number}"]
    ]
    if not head:  # comments only
        return Layout(path, delimiter or ",", None, 0, 1, None, 2, len(data), 1, [])
    guessed = header is None
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
    picked = pick_columns(names, rows, columns, nodes, str(path))
    sample = rows[0] if rows else []
    return Layout(path, delimiter, names, *picked, width, body, line, sample, guessed)


def _has_header(rows: list[list[str]], columns: Columns | None) -> bool:
    if columns is not None and any(isinstance(column, str) for column in columns):
        return True
    top, below = rows[0], rows[1] if len(rows) > 1 else []
    if len({name.lower() for name in top[:2]}) == 2 and names_ids(top[:2]):
        return True
    if len(top) > 2 and any(
        names_something_else(name) and (is_number(text) or looks_like_time(text))
        for name, text in zip(top, below, strict=False)
    ):
        return True
    ids = below[:2]
    return len(ids) == 2 and all(map(is_integer, ids)) and not any(map(is_integer, top[:2]))
