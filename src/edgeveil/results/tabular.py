"""What all results share: a table of typed columns, its guarantee, and both in files.

A label is a JSON record with guarantee and provenance. Parquet, JSON, pandas and pyarrow have a
place for it, so that copies keep it; a CSV file gets a column. Other libraries are imported late.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from edgeveil._internal.files import write_atomically
from edgeveil._internal.notebook import html_card
from edgeveil.errors import EdgeveilError, InputError, ParameterError, UnknownNodeError
from edgeveil.graph.nodes import NodeId
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.results.provenance import OutputKind, Provenance, label_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

KEY = "edgeveil"
"""Where the label is, in files and in tables of other libraries."""

_FORMAT = 2  # of files
_DAMAGED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class Tabular:
    """A result that is a table of typed columns, with a guarantee: one or more lines per source.

    A subclass defines `_columns` (the table for people and other libraries), `to_parts` and
    `_from_parts` (the table of its own files, and back), and `_headline` and `_preview`.
    """

    guarantee: Guarantee
    provenance: Provenance
    sources: tuple[NodeId, ...]
    output: OutputKind

    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        raise NotImplementedError

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The table of a file, and its label."""
        raise NotImplementedError

    @classmethod
    def _from_parts(cls, table: Mapping[str, Any], label: Mapping[str, Any]) -> Self:
        """The inverse of `to_parts`."""
        raise NotImplementedError

    def _headline(self) -> str:
        """What it holds, in a sentence."""
        raise NotImplementedError

    def _preview(self) -> str:
        """A table for notebooks, as HTML."""
        raise NotImplementedError

    def _label(self) -> dict[str, Any]:
        """The format, guarantee and provenance, as plain data."""
        return {"format": _FORMAT, **label_of(self.output, self.guarantee, self.provenance)}

    @cached_property
    def _rows(self) -> dict[NodeId, int]:
        return {source: i for i, source in enumerate(self.sources)}

    def _at(self, source: NodeId) -> int:
        """The row of a source."""
        if source not in self._rows:
            raise UnknownNodeError(f"the release has no row for {source!r}")
        return self._rows[source]

    # -- tables of other libraries -------------------------------------------------------------

    def table(self) -> pl.DataFrame:
        """The table for polars. It cannot carry the guarantee: keep this result as well."""
        import polars as pl

        columns = self._columns()
        text = {name: pl.String for name, values in columns.items() if values.dtype == object}
        plain = {
            name: values.tolist() if name in text else np.ascontiguousarray(values)
            for name, values in columns.items()
        }
        return pl.DataFrame(plain, schema_overrides=text)

    to_polars = table

    def to_pandas(self) -> pd.DataFrame:
        """The table for pandas, the guarantee in ``attrs["edgeveil"]``."""
        pandas = load_library("pandas", "to_pandas")
        # Copies: the columns may be views of the release, which must not change.
        frame = pandas.DataFrame({name: np.array(v) for name, v in self._columns().items()})
        frame.attrs[KEY] = self._label()
        return frame

    def to_arrow(self) -> pa.Table:
        """The table for pyarrow, the guarantee, as JSON, in its schema's metadata."""
        arrow = load_library("pyarrow", "to_arrow")
        columns = {
            name: arrow.array(values, type=arrow.string() if values.dtype == object else None)
            for name, values in self._columns().items()
        }
        label = {KEY: json.dumps(as_json(self._label()))}
        return arrow.table(columns).replace_schema_metadata(label)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        # For DuckDB and everything else that takes Arrow; without the guarantee.
        return self.table().__arrow_c_stream__(requested_schema)

    # -- files ---------------------------------------------------------------------------------

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write to .parquet, .json or .csv, with the guarantee, atomically; replaces a file.

        .parquet and .json keep guarantee and provenance whole, and `read` reads them back. There
        scores become one line per node and one column per source. A .csv file is for others to
        read: the table of `to_polars`, with the guarantee in a few words in its last column.
        """
        if Path(path).suffix == ".csv":
            return write_atomically(Path(path), self._csv().write_csv)
        return write_labelled_table(path, *self.to_parts())

    def _csv(self) -> pl.DataFrame:
        """The table of a CSV file; the guarantee is the last column of every line.

        Most readers fail on a comment line, and a second file gets lost. Text that a spreadsheet
        would run as a formula gets an apostrophe in front: a member may have chosen its own name,
        and other members open the file. So does text that looks like the result: two names stay
        two.
        """
        import polars as pl

        frame = self.table().with_columns(pl.lit(self.guarantee.brief).alias("guarantee"))
        text = pl.col(pl.String)
        formula = text.str.contains(r"^'*[=+\-@\t\r]")
        return frame.with_columns(pl.when(formula).then("'" + text).otherwise(text).name.keep())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `write` wrote to .parquet or .json.

        Raises
        ------
        InputError
            If the file is not such a release, or is damaged.
        """
        table, label = read_labelled_table(path)
        try:
            if label["format"] == _FORMAT:
                return cls._from_parts(table, label)
        except _DAMAGED as error:
            raise InputError(f"{path} is not a release, or is damaged") from error
        raise InputError(f"{path} was written by another version of edgeveil")

    # -- display -------------------------------------------------------------------------------

    def __str__(self) -> str:
        return f"{self._headline()} {self.guarantee}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        alarm = not self.guarantee.protects
        return html_card(self._headline(), str(self.guarantee), alarm=alarm, table=self._preview())


def read_only(array: Any, kind: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """A read-only view."""
    view = np.asarray(array, dtype=kind).view()
    view.setflags(write=False)
    return view


# -- files -----------------------------------------------------------------------------------------


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
            content = json.loads(source.read_text(encoding="utf-8"))
            return content["columns"], content[KEY]
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


def load_library(name: str, needed_by: str) -> Any:
    """Import an optional library, or say that it is missing."""
    try:
        return import_module(name)
    except ImportError:
        raise EdgeveilError(f"{needed_by} needs {name}: pip install {name}") from None
