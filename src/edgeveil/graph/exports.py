"""Rows of a release -> tables and files: Parquet and JSON with a label, CSV, other libraries.

The label is a JSON record with guarantee and provenance, stored in the file itself, so that copies
keep it. Each function says whether its target has a place for a label. Other libraries are
imported only here, and late.
"""

from __future__ import annotations

import io
import json
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edgeveil._internal.files import write_atomically
from edgeveil.errors import EdgeveilError, InputError, ParameterError
from edgeveil.graph.nodes import NodeId, NodeSet

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Columns = dict[str, npt.NDArray[Any]]
Floats = npt.NDArray[np.float64]

KEY = "edgeveil"
"""Where the label is, in files and in tables of other libraries."""


def write_labelled_table(
    path: str | os.PathLike[str], columns: Mapping[str, Any], label: Mapping[str, Any]
) -> None:
    """Write columns of equal length and their label, atomically, to .parquet or .json."""
    target = Path(path)
    if target.suffix not in (".parquet", ".json"):
        raise ParameterError(
            f"a release is written to .parquet, .json or .csv, got {target.name!r}"
        )

    def write(path: Path) -> None:
        if target.suffix == ".parquet":
            # Through memory: polars does not report a full disk reliably.
            path.write_bytes(parquet_bytes(columns, label))
        else:
            listed = {
                name: values.tolist() if hasattr(values, "tolist") else list(values)
                for name, values in columns.items()
            }
            path.write_text(json.dumps({KEY: as_json(label), "columns": listed}), encoding="utf-8")

    write_atomically(target, write)


def parquet_bytes(columns: Mapping[str, Any], label: Mapping[str, Any]) -> bytes:
    """The content of a Parquet file with these columns and their label."""
    import polars as pl

    buffer = io.BytesIO()
    pl.DataFrame(dict(columns)).write_parquet(buffer, metadata={KEY: json.dumps(as_json(label))})
    return buffer.getvalue()


def as_json(value: Any) -> Any:
    """Plain data that JSON can hold: infinity, which it cannot, becomes the text "inf".

    Text and not null: where null is compared with a number it often counts as 0, and an
    epsilon of 0 would be the best of all guarantees.
    """
    if isinstance(value, (int, str)):  # first: most of a label is ids
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): as_json(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(part) for part in value]
    return value


def read_labelled_table(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns (as arrays or lists) and the label of a file."""
    source = Path(path)
    try:
        if source.suffix == ".json":
            whole = json.loads(source.read_text(encoding="utf-8"))
            return whole["columns"], whole[KEY]
        import polars as pl

        label = json.loads(pl.read_parquet_metadata(source)[KEY])
        # glob=False: a name like "a[1].parquet" is a name
        frame = pl.read_parquet(source, glob=False)
        return {c.name: c.to_numpy() if c.dtype.is_numeric() else c.to_list() for c in frame}, label
    except FileNotFoundError:
        raise InputError(f"there is no file {source}") from None
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a damaged file makes polars raise or even panic
        raise InputError(f"{source} is not a release, or is damaged") from error


def score_columns(
    sources: Sequence[NodeId],
    nodes: NodeSet,
    scores: Floats,
    uncertainty: Floats | None,
    shown: npt.NDArray[np.bool_] | None,
) -> Columns:
    """One line per source and node: source, node, score, and the uncertainty if there is one.

    The same columns for any number of sources, so that tables can be put under one another.
    Lines go source by source, nodes in the order of the node set, without those not shown.
    """
    kept = np.ones(len(nodes), dtype=np.bool_) if shown is None else shown
    columns: Columns = {
        "source": np.repeat(NodeSet.of(sources).ids, kept.sum()),
        "node": np.tile(nodes.ids[kept], len(sources)),
        "score": scores[:, kept].ravel(),
    }
    if uncertainty is not None:
        columns["uncertainty"] = np.broadcast_to(uncertainty, scores.shape)[:, kept].ravel()
    return columns


def embedding_columns(
    sources: Sequence[NodeId], embeddings: Floats, names: Sequence[str]
) -> Columns:
    """One line per source: source, and its numbers."""
    columns: Columns = {"source": NodeSet.of(sources).ids}
    return columns | dict(zip(names, embeddings.T, strict=True))


def polars_frame(columns: Columns) -> pl.DataFrame:
    """A polars table; it has no place for a label."""
    import polars as pl

    schema = {n: pl.String for n, values in columns.items() if values.dtype == object}
    plain = {n: v.tolist() if n in schema else np.ascontiguousarray(v) for n, v in columns.items()}
    return pl.DataFrame(plain, schema_overrides=schema)


def pandas_frame(columns: Columns, label: Mapping[str, Any]) -> pd.DataFrame:
    """A pandas table with the label in ``attrs``."""
    pandas = load_library("pandas", "to_pandas")
    # Copies: the columns may be views of the release, which must not change.
    frame = pandas.DataFrame({name: np.array(values) for name, values in columns.items()})
    frame.attrs[KEY] = dict(label)
    return frame


def arrow_table(columns: Columns, label: Mapping[str, Any]) -> pa.Table:
    """A pyarrow table with the label, as JSON, in the metadata of its schema."""
    arrow = load_library("pyarrow", "to_arrow")
    kinds = {n: arrow.string() if v.dtype == object else None for n, v in columns.items()}
    table = arrow.table({n: arrow.array(v, type=kinds[n]) for n, v in columns.items()})
    return table.replace_schema_metadata({KEY: json.dumps(as_json(label))})


def load_library(name: str, needed_by: str) -> Any:
    """Import an optional library, or say that it is missing."""
    try:
        return import_module(name)
    except ImportError:
        raise EdgeveilError(f"{needed_by} needs {name}: pip install {name}") from None


def csv_frame(columns: Columns, guarantee: str) -> pl.DataFrame:
    """The table of a CSV file; `guarantee` is the last column of every line.

    Most readers fail on a comment line, and a second file gets lost. Text that a spreadsheet would
    run as a formula gets an apostrophe in front: a member may have chosen its own name, and other
    members open the file. So does text that looks like the result: two names stay two.
    """
    import polars as pl

    frame = polars_frame(columns).with_columns(pl.lit(guarantee).alias("guarantee"))
    text = pl.col(pl.String)
    return frame.with_columns(
        pl.when(text.str.contains(r"^'*[=+\-@\t\r]")).then("'" + text).otherwise(text).name.keep()
    )


def write_csv(path: Path, columns: Columns, guarantee: str) -> None:
    """Write a CSV file with a header; see `csv_frame`."""
    write_atomically(path, csv_frame(columns, guarantee).write_csv)


def write_word2vec(
    path: Path, sources: Sequence[NodeId], embeddings: Floats, *, warning: str
) -> None:
    """Write word2vec's text format: a line ``rows dimensions``, then ``id x0 x1 ...``.

    The file has no place to say `warning`, which is given as such.
    """
    names = [str(source) for source in sources]
    odd = [name for name in names if not name or any(letter.isspace() for letter in name)]
    if odd:
        raise ParameterError(
            f"word2vec text cannot hold an id that is empty or has white space, such as "
            f"{odd[0]!r}; rename the nodes, or write .parquet"
        )
    if warning:
        warnings.warn(warning, stacklevel=3)

    def write(part: Path) -> None:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.write(f"{embeddings.shape[0]} {embeddings.shape[1]}\n")
            for name, row in zip(names, embeddings, strict=True):
                file.write(" ".join([name, *map(repr, row.tolist())]) + "\n")

    write_atomically(path, write)
