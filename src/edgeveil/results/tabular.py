"""What `Release` and `Suggestions` share: a table of typed columns, its files, its guarantee."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from edgeveil._internal.notebook import html_card
from edgeveil.errors import InputError, UnknownNodeError
from edgeveil.graph import exports
from edgeveil.graph.nodes import NodeId
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.results.provenance import OutputKind, Provenance, label_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_DAMAGED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class Tabular:
    """A result that is a table of typed columns, with a guarantee: one or more lines per source.

    A subclass defines `_columns` (the table for people and other libraries), `labelled` and
    `_from_parts` (the table of its own files, and back), and `_what` and `_shown` (for display).
    `edgeveil.graph.exports` makes the tables.
    """

    formats: ClassVar[tuple[int, ...]]  # of files that can be read; the last one is written
    guarantee: Guarantee
    provenance: Provenance
    sources: tuple[NodeId, ...]
    output: OutputKind

    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        raise NotImplementedError

    def labelled(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The table of a file, and its label."""
        raise NotImplementedError

    @classmethod
    def _from_parts(cls, table: Mapping[str, Any], label: Mapping[str, Any]) -> Self:
        """The inverse of `labelled`."""
        raise NotImplementedError

    def _what(self) -> str:
        raise NotImplementedError

    def _shown(self) -> str:
        """A table for notebooks, as HTML."""
        raise NotImplementedError

    def _label(self) -> dict[str, Any]:
        """The format, guarantee and provenance, as plain data."""
        about = label_of(self.output, self.guarantee, self.provenance)
        return {"format": self.formats[-1], **about}

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
        return exports.polars_frame(self._columns())

    to_polars = table

    def to_pandas(self) -> pd.DataFrame:
        """The table for pandas, the guarantee in ``attrs["edgeveil"]``."""
        return exports.pandas_frame(self._columns(), self._label())

    def to_arrow(self) -> pa.Table:
        """The table for pyarrow, the guarantee in its schema's metadata."""
        return exports.arrow_table(self._columns(), self._label())

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
            return exports.write_csv(Path(path), self._columns(), self.guarantee.brief)
        return exports.write_labelled_table(path, *self.labelled())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `write` wrote to .parquet or .json.

        Raises
        ------
        InputError
            If the file is not such a release, or is damaged.
        """
        table, label = exports.read_labelled_table(path)
        try:
            if label["format"] in cls.formats:
                return cls._from_parts(table, label)
        except _DAMAGED as error:
            raise InputError(f"{path} is not a release, or is damaged") from error
        raise InputError(f"{path} was written by a newer version of edgeveil")

    # -- display -------------------------------------------------------------------------------

    def __str__(self) -> str:
        return f"{self._what()} {self.guarantee}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        alarm = not self.guarantee.protects
        return html_card(self._what(), str(self.guarantee), alarm=alarm, table=self._shown())


def about_of(label: Mapping[str, Any]) -> dict[str, Any]:
    """Guarantee and provenance of a label."""
    return {
        "guarantee": Guarantee.from_dict(label["guarantee"]),
        "provenance": Provenance(**label["provenance"]),
    }


def read_only(array: Any, kind: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """A read-only view."""
    view = np.asarray(array, dtype=kind).view()
    view.setflags(write=False)
    return view
