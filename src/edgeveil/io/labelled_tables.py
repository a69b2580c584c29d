"""Tables with a label: a Parquet or JSON file that carries one JSON record about itself.

Releases are kept this way, so that a table of numbers and the guarantee that belongs to it
cannot be parted by copying a file.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgeveil._files import write_atomically
from edgeveil.errors import InputError, ParameterError

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
            # Through memory, because polars does not say reliably that a disk is full.
            path.write_bytes(parquet_bytes(columns, label))
        else:
            listed = {
                name: values.tolist() if hasattr(values, "tolist") else list(values)
                for name, values in columns.items()
            }
            path.write_text(json.dumps({KEY: as_json(label), "columns": listed}))

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
    if isinstance(value, (int, str)):  # first: most of a label are the ids of its rows
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): as_json(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(part) for part in value]
    return value


def read_labelled_table(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give the columns (as arrays or lists) and the label of a file; InputError if it is none."""
    source = Path(path)
    try:
        if source.suffix == ".json":
            whole = json.loads(source.read_text())
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
