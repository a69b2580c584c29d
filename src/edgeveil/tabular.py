"""Tables of results for other libraries: the base of `Release` and `Suggestions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from edgeveil.io import exports
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.provenance import Gives, Provenance, label_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Tabular:
    """A result that is a table of typed columns, with a guarantee.

    A subclass defines `_columns`; `edgeveil.io.exports` makes the tables.
    """

    guarantee: Guarantee
    provenance: Provenance
    gives: Gives

    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        raise NotImplementedError

    def _label(self) -> dict[str, Any]:
        """Guarantee and provenance, as plain data."""
        return label_of(self.gives, self.guarantee, self.provenance)

    def table(self) -> pl.DataFrame:
        """The table for polars. It has no place for the guarantee: keep this result."""
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
