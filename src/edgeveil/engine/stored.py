"""What a ledger's files hold: the noised numbers that a campaign shares, and rows of a batch."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.engine.tasks import Computed
from edgeveil.errors import LedgerError
from edgeveil.nodes import NodeSet
from edgeveil.privacy.statistic import Noised, NoisedTail

_KINDS: dict[str, type[Noised]] = {"numbers": Noised, "tail": NoisedTail}


class StoredRows(NamedTuple):
    """Rows of some sources (indices)."""

    sources: npt.NDArray[np.int64]
    made: Computed


def write_shared(path: Path, numbers: Noised | None, nodes: NodeSet) -> None:
    """Write noised numbers, or that there are none, and what the indices in rows stand for."""
    held: dict[str, Any] = {f"node_{name}": array for name, array in nodes.arrays.items()}
    if numbers is not None:
        kind = next(name for name, cls in _KINDS.items() if type(numbers) is cls)
        held |= {kind: True} | {f.name: getattr(numbers, f.name) for f in fields(numbers)}
    _write(path, held)


def read_shared(path: Path) -> Noised | None:
    """What `write_shared` wrote."""
    held = _read(path)
    for name, cls in _KINDS.items():
        if name in held:
            given = {f.name: held[f.name] for f in fields(cls)}
            return cls(**given | {"scale": float(given["scale"])})
    return None


def write_rows(path: Path, rows: StoredRows) -> None:
    """Write the rows of a batch."""
    held = {"sources": rows.sources, "rows": rows.made.rows}
    if rows.made.uncertainty is not None:
        held["uncertainty"] = rows.made.uncertainty
    _write(path, held)


def read_rows(path: Path) -> StoredRows:
    """What `write_rows` wrote."""
    held = _read(path)
    return StoredRows(held["sources"], Computed(held["rows"], held.get("uncertainty")))


def _write(path: Path, held: dict[str, Any]) -> None:
    with path.open("xb") as file:
        np.savez(file, **held)


def _read(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as held:
            return dict(held)
    except (OSError, ValueError, KeyError) as error:
        raise LedgerError(f"{path} is not what this edgeveil stores: {error}") from error
