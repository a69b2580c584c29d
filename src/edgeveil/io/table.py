"""Tables with one edge per row: Parquet files, and everything that speaks Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeveil.errors import InputError
from edgeveil.graph import Graph
from edgeveil.io.columns import RowError, graph_of_columns
from edgeveil.io.picking import SAMPLE, Columns, pick_columns
from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "count_weighted",
    "id_columns",
    "read_id_column",
    "read_parquet",
    "read_table",
    "sample_of",
]


def read_parquet(
    path: Path, *, nodes: NodeSet | None, columns: Columns | None, directed: bool
) -> Graph:
    """Read a Parquet file whose rows are edges."""
    frame = _parquet_frame(path)
    picked = pick_columns(frame.columns, sample_of(frame), columns, nodes, str(path))
    return _frame_graph(frame, picked, nodes=nodes, where=str(path), directed=directed)


def read_table(table: Any, *, nodes: NodeSet | None, directed: bool) -> Graph:
    """Read any object with ``__arrow_c_stream__`` whose rows are edges."""
    import polars as pl

    where = f"the {type(table).__module__.partition('.')[0]} table"
    if _is_labelled_matrix(table):
        raise InputError(f"{where} looks like an adjacency matrix; pass it as .to_numpy()")
    try:
        frame = pl.DataFrame(table)
    except Exception as error:
        raise InputError(f"{where} cannot be read as columns through Arrow") from error
    # pandas hands a meaningful index over as a last column; it is no weight
    kept = [name for name in frame.columns if not name.startswith("__index_level_")]
    edges = frame.select(kept)
    picked = pick_columns(edges.columns, sample_of(edges), None, nodes, where, in_memory=True)
    return _frame_graph(edges, picked, nodes=nodes, where=where, directed=directed)


def _is_labelled_matrix(table: Any) -> bool:
    """Tell whether a pandas table has its nodes as rows and as columns: no list of edges.

    Up to three columns may be an edge list all the same, with columns named 0, 1, 2.
    """
    index: Any = getattr(table, "index", None)
    columns = getattr(table, "columns", ())
    return hasattr(index, "equals") and len(columns) > 3 and bool(index.equals(columns))


def read_id_column(path: Path) -> NodeSet:
    """Read the first column of a Parquet file as a node list."""
    frame = _parquet_frame(path)
    if frame.width == 0:
        raise InputError(f"{path} has no column")
    try:
        ids = _id_column(frame.to_series(0))
    except RowError as error:
        raise InputError(f"{path}, row {error.row + 1}: {error.reason}") from error
    return NodeSet.of(ids.to_list())


def _parquet_frame(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        # A handle, not a path: polars would read * and ? in a path as a pattern
        with path.open("rb") as handle:
            return pl.read_parquet(handle)
    except (Exception, pl.exceptions.PanicException) as error:
        raise InputError(f"{path} is not a readable Parquet file") from error


def _frame_graph(
    frame: pl.DataFrame,
    picked: tuple[int, int, int | None],
    *,
    nodes: NodeSet | None,
    where: str,
    directed: bool,
) -> Graph:
    as_text = nodes is not None and nodes.kind == "str"
    try:
        a, b, weighted = id_columns(frame, picked, as_text=as_text)
        return graph_of_columns(a, b, nodes, weighted=weighted, directed=directed)
    except RowError as error:
        raise InputError(f"{where}, row {error.row + 1}: {error.reason}") from error


def sample_of(frame: pl.DataFrame) -> list[list[str]]:
    """The first rows as text, to see what their columns may be."""
    return [["" if v is None else str(v) for v in row] for row in frame.head(SAMPLE).iter_rows()]


def id_columns(
    frame: pl.DataFrame, picked: tuple[int, int, int | None], *, as_text: bool
) -> tuple[pl.Series, pl.Series, int]:
    """Give the ids of both ends, both Int64 or both String, and the number of weights."""
    import polars as pl

    first, second, weight = picked
    a, b = _id_column(frame.to_series(first)), _id_column(frame.to_series(second))
    if as_text or pl.String in (a.dtype, b.dtype):
        a, b = a.cast(pl.String), b.cast(pl.String)
    return a, b, 0 if weight is None else count_weighted(frame.to_series(weight))


def count_weighted(weights: pl.Series) -> int:
    """Count the weights other than 1; a column that holds no numbers is no weight."""
    if not weights.dtype.is_numeric():
        return 0
    return int((weights != 1).sum())


def _id_column(column: pl.Series) -> pl.Series:
    """Give the column as Int64 or String without missing values."""
    import polars as pl

    name, kind = column.name, column.dtype
    missing = column.is_null()
    if kind.is_float():
        missing |= column.is_nan().fill_null(True)
    if missing.any():
        raise RowError(f"the id in column {name!r} is missing", int(missing.arg_max() or 0))
    if kind == pl.Null:  # a table without rows
        return column.cast(pl.Int64)
    if kind.is_integer():
        ids = column.cast(pl.Int64, strict=False)
        if ids.has_nulls():
            row = int(ids.is_null().arg_max() or 0)
            raise RowError(f"the id in column {name!r} does not fit into 64 bits", row)
        return ids
    if kind not in (pl.String, pl.Categorical, pl.Enum):
        raise RowError(f"column {name!r} holds {kind}, ids must be integers or text", 0)
    ids = column.cast(pl.String)
    empty = ids == ""
    if empty.any():
        raise RowError(f"the id in column {name!r} is empty", int(empty.arg_max() or 0))
    return ids
