"""Rows of a release -> tables and files of other libraries, which are imported only here and late.

A guarantee travels where the target has a place for it, as each function says.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edgeveil._files import write_atomically
from edgeveil.errors import EdgeveilError, ParameterError
from edgeveil.io.labelled_tables import KEY, as_json
from edgeveil.nodes import NodeId, NodeSet

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = [
    "KEY",
    "arrow_table",
    "embedding_columns",
    "load_library",
    "pandas_frame",
    "polars_frame",
    "score_columns",
    "write_csv",
    "write_word2vec",
]


Columns = dict[str, npt.NDArray[Any]]
Floats = npt.NDArray[np.float64]


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


def embedding_columns(sources: Sequence[NodeId], embeddings: Floats) -> Columns:
    """One line per source: source, x0, x1, ..."""
    columns: Columns = {"source": NodeSet.of(sources).ids}
    return columns | {f"x{i}": column for i, column in enumerate(embeddings.T)}


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
    """Import a library that edgeveil does not bring, or say that it is missing."""
    try:
        return import_module(name)
    except ImportError:
        raise EdgeveilError(f"{needed_by} needs {name}: pip install {name}") from None


def write_csv(path: Path, columns: Columns, guarantee: str) -> None:
    """Write a CSV file with a header; `guarantee` is the last column of every line.

    A comment line would stop most readers, a second file gets lost; a column does neither.
    """
    import polars as pl

    frame = polars_frame(columns).with_columns(pl.lit(guarantee).alias("guarantee"))
    write_atomically(path, frame.write_csv)


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
            f"{len(odd)} ids are empty or hold white space, such as {odd[0]!r}: word2vec text "
            "cannot hold them; rename the nodes, or write .parquet"
        )
    if warning:
        warnings.warn(warning, stacklevel=3)

    def write(part: Path) -> None:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.write(f"{embeddings.shape[0]} {embeddings.shape[1]}\n")
            for name, row in zip(names, embeddings, strict=True):
                file.write(" ".join([name, *map(repr, row.tolist())]) + "\n")

    write_atomically(path, write)
