"""The distinct ids of many pieces -> the node set, and the place of every piece's ids in it.

A piece's ids are a Parquet file, sorted and without repeats (a run). All runs are cut at the same
ids into ranges that fit the memory; a range is sorted, numbered and appended to the node set, and
the numbers of each run's own ids to its map.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeveil.io.columns import index_columns, text_of
from edgeveil.io.growing import GrowingArray

if TYPE_CHECKING:
    import polars as pl

__all__ = ["merge_runs", "read_map", "write_run"]

_SAMPLES = 256  # ids that are looked at per range


def write_run(ids: pl.Series, file: Path) -> None:
    """Write the sorted, distinct ids of a piece."""
    # groups of rows with their least and largest value: a range is read without the others
    ids.alias("id").to_frame().write_parquet(file, row_group_size=1 << 16, compression_level=1)


def read_map(file: Path) -> Any:
    """Give the indices, in the node set, of the ids of a run."""
    return np.fromfile(_map_of(file), dtype=np.int32)


def merge_runs(runs: Sequence[Path], folder: Path, rows: int) -> tuple[str, int]:
    """Write the node set of all runs, and the map of each; give the kind of ids and how many.

    Parameters
    ----------
    runs : sequence of Path
        Files of `write_run`, at least one.
    folder : Path
        Where the arrays of the node set go.
    rows : int
        How many ids may be held at a time, about.
    """
    import polars as pl

    for run in runs:
        _map_of(run).unlink(missing_ok=True)
    kind = "str" if _scan(runs[0]).collect_schema()["id"] == pl.String else "int"
    count, first, last, characters = 0, None, None, 0
    with ExitStack() as files:
        names = {"ids": np.int64} if kind == "int" else {"text": np.uint8, "offsets": np.int64}
        out = {
            name: files.enter_context(GrowingArray(folder / f"{name}.npy", dtype))
            for name, dtype in names.items()
        }
        for low, high in pairwise([None, *_cuts(runs, rows), None]):
            ids = _number_range(runs, low, high, count)
            if kind == "int":
                out["ids"].append(ids.to_numpy())
                first, last = (ids[0] if count == 0 else first), ids[-1]
            else:
                arrays = text_of(ids)
                out["text"].append(arrays["text"])
                out["offsets"].append(arrays["offsets"][count > 0 :] + characters)
                characters += len(arrays["text"])
            count += len(ids)
    if kind == "int" and (first, last) == (0, count - 1):
        (folder / "ids.npy").unlink()
        kind = "range"
    return kind, count


def _scan(run: Path) -> pl.LazyFrame:
    import polars as pl

    return pl.scan_parquet(run, glob=False)


def _map_of(run: Path) -> Path:
    return run.with_suffix(".map")


def _cuts(runs: Sequence[Path], rows: int) -> list[Any]:
    """Give the ids at which all runs are cut into ranges of about so many ids."""
    import polars as pl

    total = sum(_scan(run).select(pl.len()).collect().item() for run in runs)
    ranges = -(-total // rows)
    if ranges <= 1:
        return []
    step = max(1, total // (ranges * _SAMPLES))
    looked_at = [_scan(run).collect().to_series().gather_every(step) for run in runs]
    sample = pl.concat(looked_at).sort()
    # every range but the first begins with one of these; a cut at the least id would leave
    # the first range empty
    places = [len(sample) * i // ranges for i in range(1, ranges)]
    cuts = sample.gather(places).unique().sort()
    return cuts.filter(cuts > sample[0]).to_list()


def _number_range(runs: Sequence[Path], low: Any, high: Any, before: int) -> pl.Series:
    """Give the distinct ids in a range, and append their indices to the maps of the runs."""
    import polars as pl

    slices = []
    for run in runs:
        frame = _scan(run)
        if low is not None:
            frame = frame.filter(pl.col("id") >= low)
        if high is not None:
            frame = frame.filter(pl.col("id") < high)
        slices.append(frame.collect().to_series())
    found = pl.concat(slices)
    ids, codes, _ = index_columns(found, found.head(1))
    end = 0
    for run, part in zip(runs, slices, strict=True):
        start, end = end, end + len(part)
        with _map_of(run).open("ab") as handle:
            (codes[start:end] + before).astype(np.int32).tofile(handle)
    return ids
