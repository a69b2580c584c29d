"""Two columns of strings -> their distinct values and the index of each row among them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edgeveil.nodes import NodeSet

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Factors",
    "factorise",
    "index_type_for",
    "node_set_of_text",
    "string_indices",
    "strings_of",
]

# From so many rows on compiled loops pay
_LARGE = 1 << 20


def index_type_for(size: int) -> type[np.int32 | np.int64]:
    """Give the narrowest of int32 and int64 that can count up to `size`."""
    return np.int32 if size <= np.iinfo(np.int32).max else np.int64


@dataclass(frozen=True)
class Factors:
    """Two columns of strings as their sorted distinct values and the index of each row."""

    names: pl.Series
    first: npt.NDArray[Any]
    second: npt.NDArray[Any]

    @classmethod
    def of_nothing(cls) -> Factors:
        """Two columns without rows."""
        import polars as pl

        none = np.empty(0, dtype=np.int32)
        return cls(pl.Series("id", [], dtype=pl.String), none, none)


def factorise(first: pl.Series, second: pl.Series) -> Factors:
    """Factorise two columns of strings together.

    By hashes, which is several times faster than by the strings themselves; the names are
    compared in the end, so that two names with one hash are never taken for one node.
    """
    import polars as pl

    both = pl.concat([first.alias("id"), second.alias("id")])
    codes, count = _number_hashes(_hashes(both))
    chosen = np.empty(count, dtype=codes.dtype)
    chosen[codes] = np.arange(len(codes), dtype=codes.dtype)  # any one row of each hash
    names = both.gather(chosen)
    order = names.arg_sort().to_numpy()  # by UTF-8 bytes: the order of code points
    names = names.gather(order)
    rank = np.empty(count, dtype=codes.dtype)
    rank[order] = np.arange(count, dtype=codes.dtype)
    index: npt.NDArray[Any] = rank[codes]
    del codes
    if not names.gather(index).eq_missing(both).all():
        names = both.unique().sort()
        index = string_indices(both, names)
    return Factors(names, index[: len(first)], index[len(first) :])


def _hashes(column: pl.Series) -> npt.NDArray[np.uint64]:
    return column.hash().to_numpy()


def _number_hashes(hashes: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[Any], int]:
    """Give every hash a number from 0 on, and how many there are."""
    if len(hashes) < _LARGE:
        distinct, codes = np.unique(hashes, return_inverse=True)
        return codes, len(distinct)
    from edgeveil.io._index_kernels import hash_table, number_integers

    codes = np.empty(len(hashes), dtype=index_type_for(len(hashes)))
    count, _ = number_integers(hashes.view(np.int64), *hash_table(), 0, codes)
    return codes, count


def node_set_of_text(names: pl.Series) -> NodeSet:
    """Make a node set of distinct strings through two arrays, without a loop over them."""
    if len(names) == 0:
        return NodeSet.range(0)
    offsets = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum(names.str.len_bytes().to_numpy(), out=offsets[1:])
    step = 1 << 20  # one polars string holds at most 4 GB
    text = b"".join(
        names.slice(start, step).str.join("").item().encode()
        for start in range(0, len(names), step)
    )
    arrays: dict[str, npt.NDArray[Any]] = {
        "text": np.frombuffer(text, dtype=np.uint8),
        "offsets": offsets,
    }
    return NodeSet.from_arrays("str", arrays)


def strings_of(nodes: NodeSet) -> pl.Series:
    """Give the ids of nodes that are strings."""
    import polars as pl

    text, offsets = nodes.arrays["text"].tobytes(), nodes.arrays["offsets"].tolist()
    decoded = [text[i:j].decode() for i, j in pairwise(offsets)]
    return pl.Series("id", decoded, dtype=pl.String)


def string_indices(column: pl.Series, names: pl.Series) -> npt.NDArray[Any]:
    """Give the index of every string in `names`, -1 where there is none."""
    import polars as pl

    known = names.alias("id").to_frame().with_row_index("index").lazy()
    found = (
        column.alias("id")
        .to_frame()
        .lazy()
        .join(known, on="id", how="left", maintain_order="left", nulls_equal=True)
        .select(pl.col("index").cast(pl.Int64).fill_null(-1))
        .collect()
    )
    return found["index"].to_numpy().astype(index_type_for(len(names)), copy=False)
