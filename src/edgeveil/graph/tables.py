"""Tables with one edge per row: Parquet files, and objects with the Arrow interface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeveil._internal.checks import is_number
from edgeveil.errors import InputError
from edgeveil.graph.columns import SAMPLE, ColumnPositions, ReadOptions, find_columns
from edgeveil.graph.edges import SHOWN, Chunk, RowError, graph_of_chunk
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import LONGEST_ID, MISSING, NodeSet

if TYPE_CHECKING:
    import polars as pl

PARQUET = (".parquet", ".pq")

_PER_ROW = 256  # measured: peak memory per row of a chunk, names included
_MOST_ROWS = 1 << 25  # larger chunks are not faster


def read_table(table: Any, options: ReadOptions, *, directed: bool) -> Graph:
    """Read any object with ``__arrow_c_stream__``, or a dict of columns, whose rows are edges."""
    import polars as pl

    library = type(table).__module__.partition(".")[0]
    where = "the dict" if library == "builtins" else f"the {library} table"
    index: Any = getattr(table, "index", None)
    columns = getattr(table, "columns", ())
    # pandas with the nodes as rows and as columns; up to three columns may be 0, 1, 2 by chance
    if hasattr(index, "equals") and len(columns) > 3 and index.equals(columns):
        raise InputError(f"{where} looks like an adjacency matrix; pass it as .to_numpy()")
    try:
        frame = pl.DataFrame(table)
    except Exception as error:
        raise InputError(
            f"{where} cannot be read as columns through Arrow; a column that mixes integers and "
            "text cannot, for instance"
        ) from error
    # pandas passes a named index as the last column; it is no weight
    edges = frame.select(n for n in frame.columns if not n.startswith("__index_level_"))
    return _read_frame(edges, options, where, directed=directed)


def _read_frame(edges: pl.DataFrame, options: ReadOptions, where: str, *, directed: bool) -> Graph:
    positions = find_columns(edges.columns, _sample_of(edges), options, where, in_memory=True)
    return graph_of_chunk(
        _chunk(edges, positions, where, options), options, where, directed=directed
    )


def read_rows(rows: Sequence[Any], options: ReadOptions, *, directed: bool) -> Graph:
    """Read a list of edges: pairs of ids, triples with a weight, or records (dicts)."""
    import polars as pl

    where = "the list"
    if rows and all(isinstance(row, dict) for row in rows):
        try:
            frame = pl.DataFrame(rows, infer_schema_length=None)
        except Exception as error:
            raise InputError(f"{where} cannot be read as records with the same fields") from error
        return _read_frame(frame, options, where, directed=directed)
    weighted = 0
    for number, row in enumerate(rows, 1):
        if isinstance(row, list | tuple):
            if len(row) == 2:
                continue
            if len(row) == 3 and is_weight(row[2]):
                weighted += weight_of(row[2]) != 1
                continue
        raise InputError(
            f"{where}, entry {number}: an edge in a list is a pair of ids, (a, b), or a triple "
            "with a weight, (a, b, 0.5); pass a matrix or an edge_index as a numpy array"
        )
    may_be_matrix = len(rows) in (2, *({len(row) for row in rows} & {3}))
    if may_be_matrix and not any(isinstance(row, tuple) for row in rows):
        raise InputError(
            f"{where} has {len(rows)} lists: it may be a matrix or {len(rows)} edges; write edges "
            "as tuples, [(a, b), (c, d)], or pass a matrix as a numpy array"
        )
    try:
        ids = [pl.Series(name, [row[i] for row in rows]) for i, name in enumerate("ab")]
        kinds = [column.dtype for column in ids]
        if pl.String in kinds and any(kind.is_integer() for kind in kinds):
            raise TypeError("7 and '7' would become one node")
    except Exception as error:
        raise InputError(f"{where} mixes ids of several kinds; ids are integers or text") from error
    chunk = replace(
        _chunk(pl.DataFrame(ids), ColumnPositions(0, 1), where, options), weighted=weighted
    )
    return graph_of_chunk(chunk, options, where, directed=directed)


def is_weight(value: Any) -> bool:
    """Whether the third part of a triple is a weight: a number, or attributes as in networkx."""
    return is_number(value) or isinstance(value, bool | dict)


def weight_of(value: Any) -> Any:
    """The weight of an edge with this number or these attributes; 1 if there is none."""
    return value.get("weight", 1) if isinstance(value, dict) else value


def collect(frame: pl.LazyFrame, otherwise: str = "the polars LazyFrame cannot be read") -> Any:
    """Run a query of polars, or raise an InputError that says what went wrong otherwise."""
    import polars as pl

    try:
        return frame.collect()
    except (Exception, pl.exceptions.PanicException) as error:
        raise InputError(otherwise) from error


def parquet_chunks(path: Path, options: ReadOptions, memory: int | None) -> Iterator[Chunk]:
    """Yield the edges of a Parquet file, all at once or in chunks for `memory` bytes."""
    import polars as pl

    file, unreadable = pl.scan_parquet(path, glob=False), f"{path} is not a readable Parquet file"
    total = int(collect(file.select(pl.len()), unreadable).item())
    rows = max(1, total if memory is None else min(memory // _PER_ROW, _MOST_ROWS))
    head = collect(file.limit(SAMPLE), unreadable)
    positions = find_columns(head.columns, _sample_of(head), options, str(path))
    needed = sorted({i for i in positions if i is not None})
    columns = file.select(head.columns[i] for i in needed)
    places = ColumnPositions(*(None if i is None else needed.index(i) for i in positions))  # type: ignore[arg-type]
    for start in range(0, total, rows):
        frame = collect(columns.slice(start, rows), unreadable)
        yield _chunk(frame, places, str(path), options, start)


def read_id_column(path: Path) -> NodeSet:
    """Read the first column of a Parquet file as a node list."""
    import polars as pl

    frame = collect(pl.scan_parquet(path, glob=False), f"{path} is not a readable Parquet file")
    if frame.width == 0:
        raise InputError(f"{path} has no column")
    try:
        ids = _id_column(frame.to_series(0))
    except RowError as error:
        many = error.all_of("rows", (error.rows[:SHOWN] + 1).tolist())
        raise InputError(f"{path}, row {error.row + 1}: {error.reason}{many}") from error
    return NodeSet.of(ids.to_list())


def _sample_of(frame: pl.DataFrame) -> list[list[str]]:
    """The first rows as text, to detect what the columns are."""
    return [["" if v is None else str(v) for v in row] for row in frame.head(SAMPLE).iter_rows()]


def _chunk(
    frame: pl.DataFrame,
    positions: ColumnPositions,
    where: str,
    options: ReadOptions,
    start: int = 0,
) -> Chunk:
    """The edges of a table whose first row is row `start` of `where`."""
    import polars as pl

    def explain(error: RowError) -> InputError:
        rows = (start + error.rows[:SHOWN] + 1).tolist()
        return InputError(f"{where}, row {rows[0]}: {error.reason}{error.all_of('rows', rows)}")

    try:
        a, b = (_id_column(frame.to_series(place)) for place in positions[:2])
    except RowError as error:
        raise explain(error) from error
    if options.as_text or pl.String in (a.dtype, b.dtype):
        a, b = a.cast(pl.String), b.cast(pl.String)
    weighted = 0 if positions.weight is None else count_weighted(frame.to_series(positions.weight))
    times = None if positions.time is None else frame.to_series(positions.time)
    return Chunk((a, b), weighted, explain, times=times)


def count_weighted(weights: pl.Series) -> int:
    """Count weights other than 1; a column without numbers is no weight."""
    if not weights.dtype.is_numeric():
        return 0
    return int((weights != 1).sum())


def _id_column(column: pl.Series) -> pl.Series:
    """The column as Int64 or String, without missing values."""
    import polars as pl

    name, kind = column.name, column.dtype
    missing = column.is_null()
    if kind.is_float():
        missing |= column.is_nan().fill_null(True)
    if missing.any():
        raise _rows_error(f"the id in column {name!r} is missing", missing)
    if kind == pl.Null:  # a table without rows
        return column.cast(pl.Int64)
    if kind.is_integer():
        ids = column.cast(pl.Int64, strict=False)
        if ids.has_nulls():
            row = int(ids.is_null().arg_max() or 0)
            raise RowError(f"the id in column {name!r} does not fit into 64 bits", row)
        return ids
    if kind not in (pl.String, pl.Categorical, pl.Enum):
        hint = "; cast it to integers" if kind.is_float() else ""
        raise RowError(f"column {name!r} holds {kind}, ids must be integers or text{hint}", 0)
    ids = column.cast(pl.String)
    for wrong, reason in (
        (ids == "", "empty"),
        (ids.is_in(MISSING), "NaN, NULL or the like, a missing value"),
        (ids.str.len_bytes() > LONGEST_ID, f"longer than {LONGEST_ID} bytes"),
    ):
        if wrong.any():
            raise _rows_error(f"the id in column {name!r} is {reason}", wrong)
    return ids


def _rows_error(reason: str, wrong: pl.Series) -> RowError:
    rows = wrong.arg_true().to_numpy()
    return RowError(reason, int(rows[0]), rows)
