"""The public node list: ids in memory, or a file with one id per line or in its first column."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from edgeveil._internal.words import counted
from edgeveil.errors import InputError
from edgeveil.graph import lines
from edgeveil.graph.columns import is_header_of_nodes
from edgeveil.graph.edges import SHOWN
from edgeveil.graph.lines import is_integer
from edgeveil.graph.nodes import MISSING, Ids, NodeSet, check_ids, integer_of
from edgeveil.graph.tables import read_id_column

Nodes = NodeSet | Iterable[Any] | str | os.PathLike[str]

_MISSING = frozenset(MISSING)


def read_nodes(
    nodes: Nodes | None, called: str = "the node list", *, ids: Ids = "auto"
) -> NodeSet | None:
    """The node set that the caller described, or None for None.

    A path leads to a text file (``.txt``, ``.nodes``: the whole line is the id), a ``.csv`` or
    ``.tsv`` (the first field), each also ``.gz``, or a ``.parquet`` (the first column). In text,
    lines that start with ``#`` or ``%`` are comments; a first line that is ``id``, ``user_id`` or
    the like, or no integer while all others are, is a header. Ids in text are integers if every one
    is spelt as an integer is, and `ids` does not say otherwise. `called`: what an error calls it.
    """
    as_text = check_ids(ids)
    if nodes is None:
        return nodes
    if not isinstance(nodes, (str, os.PathLike)):
        return node_set(nodes).as_text() if as_text else node_set(nodes)
    path = Path(nodes)
    try:
        if lines.suffix_of(path) in (".parquet", ".pq"):
            lines.check_readable(path)
            column = read_id_column(path)
            return column.as_text() if as_text else column
        return _text_nodes(path, as_text=as_text)
    except InputError as error:
        raise InputError(f"{called} cannot be read: {error}") from error


def node_set(ids: Iterable[Any]) -> NodeSet:
    """The node set of ids in memory, in their order."""
    try:
        listed = ids if isinstance(ids, NodeSet | np.ndarray | range) else list(ids)
        nodes = NodeSet.of(listed)
    except UnicodeEncodeError as error:
        raise InputError("a node id is not valid Unicode text") from error
    except TypeError as error:
        raise InputError(
            f"nodes must be node ids or a path to a file of them, got {type(ids).__name__}"
        ) from error
    if nodes is not ids and nodes.kind == "str":
        missing = sum(map(_MISSING.__contains__, listed))
        if missing:
            are = counted(missing, "node id", "are")
            raise InputError(f"{are} NaN, NULL or the like, a missing value")
    return nodes


def _text_nodes(path: Path, *, as_text: bool) -> NodeSet:
    ids, missing = [], []
    in_columns = lines.suffix_of(path) in (".csv", ".tsv")
    delimiter: str | None = None
    for number, _, line in lines.data_lines(lines.content(path)):
        text = lines.decode(line, f"{path}, line {number}").strip(" \t\r")
        if in_columns:
            delimiter = delimiter or lines.sniff_delimiter(text)
            if delimiter != " ":
                text = lines.fields(text, delimiter)[0]
        if text in ("", '""'):
            raise InputError(f"{path}, line {number}: the id is empty")
        if text in _MISSING:
            missing.append(number)
        ids.append(text)
    if missing:
        first = ", ".join(map(str, missing[:SHOWN])) + (", ..." if missing[SHOWN:] else "")
        many = f" ({len(missing)} lines: {first})" if missing[1:] else ""
        raise InputError(
            f"{path}, line {missing[0]}: the id is NaN, NULL or the like, a missing value{many}"
        )
    if not ids:
        raise InputError(f"{path} holds no node id")
    rest_is_integer = all(map(is_integer, ids[1:]))
    if is_header_of_nodes(ids[0]) or (len(ids) > 1 and rest_is_integer and not is_integer(ids[0])):
        del ids[0]
    numbers = None if as_text else [integer_of(text) for text in ids]
    return NodeSet.of(ids if numbers is None or None in numbers else numbers)
