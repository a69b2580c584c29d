"""What users know about nodes: labels, features, class probabilities, in whatever form they come.

Each is aligned with the public node set. All of it is public, so errors may name ids and values.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._internal.words import counted
from edgeveil.errors import InputError, ParameterError, UnknownNodeError
from edgeveil.graph import lines
from edgeveil.graph.nodes import MISSING, NodeId, NodeSet, integer_of

if TYPE_CHECKING:
    import polars as pl

Indices = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_NODE_COLUMNS = ("node", "id", "nodes", "ids", "node_id", "nodeid")
_SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".pq")
_UNLABELLED = -1


class NodeLabels(NamedTuple):
    """Labels aligned with a node set: node v has ``of[starts[v] : starts[v + 1]]``."""

    starts: Indices
    of: Indices  # indices in `classes`
    classes: tuple[NodeId, ...]  # sorted


def read_labels(obj: Any, nodes: NodeSet) -> NodeLabels:
    """Labels from a mapping, a column in the order of the nodes, pairs, a table, or a file.

    Or from a sparse matrix with a row for each node and a column for each class. None, NaN, -1 and
    empty text are no label. A node with several rows has several labels.

    Raises
    ------
    UnknownNodeError
        For a labelled node that is not in the set.
    ParameterError, InputError
        If this is nothing of the kind.
    """
    if hasattr(obj, "tocoo"):
        _check_rows(obj.shape, nodes, "labels")
        obj = obj.tocoo()
        at, entries = obj.row[obj.data != 0], obj.col[obj.data != 0].tolist()
    else:
        at, entries = _label_rows(obj, nodes)
    labelled, codes, class_names = _coded(entries)
    if len({type(name) for name in class_names}) > 1:
        raise ParameterError("labels mix numbers and text: a class is one or the other")
    classes = tuple(sorted(class_names))
    place = np.array([classes.index(name) for name in class_names], dtype=np.int64)
    # each label of a node counts once
    pairs = np.unique(at[labelled] * max(len(classes), 1) + place[codes])
    rows, of = np.divmod(pairs, max(len(classes), 1))
    counts = np.bincount(rows, minlength=len(nodes))
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return NodeLabels(starts, of, classes)


def _coded(entries: list[Any]) -> tuple[Indices, Indices, list[NodeId]]:
    """The entries that name a class, the classes as codes, and their names; once each per class."""
    number: dict[NodeId, int] = {}
    labelled, codes = list[int](), list[int]()
    for i, entry in enumerate(entries):
        for name in _classes_in(entry):
            labelled.append(i)
            codes.append(number.setdefault(name, len(number)))
    return np.array(labelled, dtype=np.int64), np.array(codes, dtype=np.int64), list(number)


def _label_rows(obj: Any, nodes: NodeSet) -> tuple[Indices, list[Any]]:
    """Node indices, and what is said of each."""
    if isinstance(obj, Mapping):
        return _indices(obj, nodes, "labels"), list(obj.values())
    if _is_table(obj):
        table, what = _read_rows(obj, nodes, "labels"), with_file("labels", obj)
        rest, names = table.rest, table.rest.columns
        if not names:
            raise ParameterError(f"{what} need a column of nodes and a column of labels, got one")
        likely = [name for name in ("label", "class", "labels", "y") if name in names]
        if rest.width > 1 and not likely:
            raise ParameterError(
                f"{what} need two columns, node and label; which of {', '.join(names)} is the "
                "label? Name it label, or pass these two columns"
            )
        column = rest.get_column(likely[0] if likely else names[0]).to_list()
        return table.at, _as_spelt(column) if isinstance(obj, str | os.PathLike) else column
    if isinstance(obj, str | bytes) or not isinstance(obj, Iterable):
        raise ParameterError(
            "labels must be a dict, a column in the order of the nodes, pairs of node and label, "
            f"a table or a path, got {type(obj).__name__}"
        )
    series: Any = obj
    if _has_own_index(series):  # a pandas Series by node
        return _indices(series.index.tolist(), nodes, "labels"), series.tolist()
    listed = series.tolist() if hasattr(obj, "tolist") else list(obj)
    if listed and all(isinstance(entry, tuple) and len(entry) == 2 for entry in listed):
        return _indices([node for node, _ in listed], nodes, "labels"), [y for _, y in listed]
    if len(listed) != len(nodes):
        raise ParameterError(
            f"a column of labels has one entry for each of the {len(nodes):,} nodes, in their "
            f"order; got {len(listed):,}"
        )
    return np.arange(len(nodes)), listed


def _as_spelt(names: list[str | None]) -> list[Any]:
    """Text from a file as integers, if every entry is spelt as one."""
    numbers = [None if name is None else integer_of(name) for name in names]
    same = all((a is None) == (b is None) for a, b in zip(names, numbers, strict=True))
    return numbers if same else list(names)


def _classes_in(value: Any) -> list[NodeId]:
    """The classes that an entry names; none if it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, float):
        if math.isnan(value):
            return []
        if not value.is_integer():
            raise ParameterError(f"a class is an integer or text, got {value!r}")
        value = int(value)
    if isinstance(value, int):
        return [] if value == _UNLABELLED else [int(value)]
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [name for part in value for name in _classes_in(part)]
    if value is None:
        return []
    if value is _pandas_missing():
        return []
    raise ParameterError(f"a class is an integer or text, got {value!r}")


def _pandas_missing() -> Any:
    import sys

    pandas = sys.modules.get("pandas")
    return getattr(pandas, "NA", math)  # `math`: nothing that occurs


def read_features(
    obj: Any, nodes: NodeSet, what: str = "features", *, of_all: bool = True
) -> tuple[Any, tuple[str, ...]]:
    """Numbers of all nodes: a dense array or a csr_array, one row per node, and column names.

    A table with a column of nodes has a row for each of them; unless it need not be `of_all`: then
    nodes without a row have zeros.

    Raises
    ------
    ParameterError
        For a wrong shape, text, missing or infinite values, or nodes without a row.
    """
    if hasattr(obj, "tocsr"):
        import scipy.sparse as sp

        matrix = sp.csr_array(obj.tocsr(), dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        _check_rows(matrix.shape, nodes, what)
        if not np.isfinite(matrix.data).all():
            raise ParameterError(f"{what} must be finite: some are NaN or infinite")
        return matrix, ()
    if _is_table(obj):
        rows, what = _read_rows(obj, nodes, what), with_file(what, obj)
        _one_row_each(rows, nodes, what, of_all=of_all)
        names = rows.rest.columns
        if not names:
            raise ParameterError(f"{what} need a column of numbers beside {rows.whose}")
        table = np.zeros((len(nodes), len(names)))
        for i, name in enumerate(names):
            table[rows.at, i] = _numbers(rows.rest.get_column(name), what)
        return table, tuple(names)
    try:
        array = np.array(obj, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ParameterError(f"{what} must be numbers, one row per node") from None
    if array.ndim == 1:
        array = array[:, None]
    _check_rows(array.shape, nodes, what)
    if not np.isfinite(array).all():
        raise ParameterError(f"{what} must be finite: some are NaN or infinite")
    return array, ()


def read_prior(obj: Any, nodes: NodeSet, classes: tuple[NodeId, ...]) -> Floats:
    """Class probabilities of all nodes, one row per node and one column per class."""
    table, names = read_features(obj, nodes, "prior")
    prior: Floats = np.asarray(table.toarray() if hasattr(table, "tocsr") else table)
    columns = [str(name) for name in classes]
    if names:
        named = [name.removeprefix("p_") for name in names]
        if sorted(named) != sorted(columns):
            raise ParameterError(
                f"{with_file('prior', obj)} needs one column for each class: {', '.join(columns)}; "
                f"got {', '.join(names)}"
            )
        prior = prior[:, [named.index(name) for name in columns]]
    if prior.shape[1] != len(classes):
        raise ParameterError(
            f"prior needs one column for each of the {len(classes)} classes "
            f"({', '.join(columns[:5])}{', ...' * (len(columns) > 5)}), got {prior.shape[1]}"
        )
    totals = prior.sum(axis=1)
    if (prior < 0).any() or not (totals > 0).all():
        raise ParameterError("prior holds probabilities: at least 0, and not all of a row 0")
    scaled: Floats = prior / totals[:, None]
    return scaled


def _check_rows(shape: tuple[int, ...], nodes: NodeSet, what: str) -> None:
    if len(shape) != 2 or shape[0] != len(nodes):
        raise ParameterError(
            f"{what} must have one row for each of the {len(nodes):,} nodes, in their order, "
            f"got shape {shape}"
        )


def _one_row_each(rows: _Rows, nodes: NodeSet, what: str, *, of_all: bool) -> None:
    counts = np.bincount(rows.at, minlength=len(nodes))
    for wrong, words in ((counts > 1, "more than one row"), ((counts == 0) & of_all, "no row")):
        if wrong.any():
            example = nodes[int(np.flatnonzero(wrong)[0])]
            many = counted(int(wrong.sum()), "node", "have")
            raise ParameterError(
                f"{what}: {many} {words}, for example {example!r}; nodes are in {rows.whose}"
            )


def _numbers(column: pl.Series, what: str) -> Floats:
    import polars as pl

    numbers = column
    if column.dtype == pl.String:  # from a text file
        numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    elif column.dtype.is_numeric() or column.dtype == pl.Boolean:
        numbers = column.cast(pl.Float64)
    else:
        raise ParameterError(f"{what}: column {column.name!r} holds {column.dtype}, not numbers")
    values = numbers.fill_null(math.nan).to_numpy().astype(np.float64)
    if not np.isfinite(values).all():
        wrong = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ParameterError(
            f"{what}: column {column.name!r} must hold finite numbers, got {column[wrong]!r}; "
            "make numbers of text (a column for each value), and fill in what is missing"
        )
    return values


# -- tables with a column of nodes -----------------------------------------------------------------


def _is_table(obj: Any) -> bool:
    return _is_path(obj) or (hasattr(obj, "columns") and hasattr(obj, "shape"))


def _is_path(obj: Any) -> bool:
    if isinstance(obj, str):
        return obj.lower().removesuffix(".gz").endswith(_SUFFIXES)
    return isinstance(obj, os.PathLike)


def _has_own_index(obj: Any) -> bool:
    """Whether this is a pandas Series whose index is not simply 0, 1, 2, ..."""
    index = getattr(obj, "index", None)
    if not hasattr(obj, "tolist") or not hasattr(index, "equals"):
        return False
    return type(index).__name__ != "RangeIndex"


class _Rows(NamedTuple):
    """A table with a column of nodes."""

    at: Indices  # the node of each row
    rest: pl.DataFrame  # the other columns; those of a text file are text
    whose: str  # which column the nodes are in, in words


def with_file(what: str, obj: Any) -> str:
    """What was given, with the name of its file if it is one.

    >>> with_file("labels", "folder/classes.csv")
    'labels (classes.csv)'
    """
    return f"{what} ({Path(obj).name})" if _is_path(obj) else what


def _read_rows(obj: Any, nodes: NodeSet, what: str) -> _Rows:
    """The rows of a table or file; UnknownNodeError if one is of no node."""
    import polars as pl

    is_text, what = False, with_file(what, obj)
    if isinstance(obj, str | os.PathLike):
        frame, is_text = _frame_of(Path(obj), nodes)
    else:
        try:
            frame = pl.DataFrame(obj)
        except Exception as error:
            raise InputError(f"{what}: the table cannot be read as columns") from error
        frame = frame.drop([n for n in frame.columns if n.startswith("__index_level_")])
    if frame.width == 0:
        raise InputError(f"{what}: the table has no columns")
    lower = {name.strip().lower(): name for name in reversed(frame.columns)}
    name = next((lower[word] for word in _NODE_COLUMNS if word in lower), frame.columns[0])
    whose = f"the column {name!r}"
    ids: list[Any] = frame.get_column(name).to_list()
    if is_text:
        ids = [nodes.named(text or "") for text in ids]
    try:
        return _Rows(_indices(ids, nodes, what), frame.drop(name), whose)
    except UnknownNodeError as error:
        raise UnknownNodeError(f"{error}; nodes are in {whose}") from None


def _frame_of(path: Path, nodes: NodeSet) -> tuple[pl.DataFrame, bool]:
    """A file's table, and whether all of it is text."""
    import polars as pl

    lines.check_readable(path)
    suffix = lines.suffix_of(path)
    try:
        if suffix in (".parquet", ".pq"):
            return pl.read_parquet(path, glob=False), False
        raw = lines.content(path)
        head = lines.decode(raw.partition(b"\n")[0], str(path))
        separator = "\t" if suffix == ".tsv" else lines.sniff_delimiter(head)
        if separator == " " and suffix == ".csv":
            separator = ","
        first = lines.fields(head, separator)[0]
        header = nodes.find(nodes.named(first.strip())) is None
        frame = pl.read_csv(
            raw, separator=separator, infer_schema=False, has_header=header, encoding="utf8"
        )
    except (InputError, OSError):
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        raise InputError(
            f"{path} cannot be read as a table: .csv, .tsv or .parquet, with a column of nodes"
        ) from error
    text = pl.col(pl.String).str.strip_chars()
    missing = text.is_in([*MISSING, ""])
    return frame.with_columns(pl.when(missing).then(None).otherwise(text).name.keep()), True


def _indices(ids: Iterable[Any], nodes: NodeSet, what: str) -> Indices:
    try:
        return nodes.indices(ids)
    except UnknownNodeError as error:
        raise UnknownNodeError(f"{what}: {error}") from None
