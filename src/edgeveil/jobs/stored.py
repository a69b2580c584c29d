"""Artifacts of a ledger: the noised shared statistics of a campaign, and the rows of a batch."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from edgeveil.errors import LedgerError
from edgeveil.estimate.lists import Evidence
from edgeveil.jobs.tasks import RowBlock
from edgeveil.privacy.statistic import Noised, NoisedTail

_KINDS: dict[str, type[Noised]] = {"numbers": Noised, "tail": NoisedTail}


def write_shared(path: Path, numbers: tuple[Noised, ...]) -> None:
    """Write the noised numbers of every round; no ids, which somebody may want to be forgotten."""
    arrays = dict[str, Any]()
    for number, noised in enumerate(numbers):
        kind = next(name for name, cls in _KINDS.items() if type(noised) is cls)
        arrays |= {f"{number}_{kind}": True}
        arrays |= {f"{number}_{f.name}": getattr(noised, f.name) for f in fields(noised)}
    _write(path, arrays)


def read_shared(path: Path) -> tuple[Noised, ...]:
    """The noised shared statistics of a campaign, round by round."""
    arrays, numbers = read_arrays(path), list[Noised]()
    while kind := next((name for name in _KINDS if f"{len(numbers)}_{name}" in arrays), None):
        cls = _KINDS[kind]
        values = {f.name: arrays[f"{len(numbers)}_{f.name}"] for f in fields(cls)}
        numbers.append(cls(**values | {"scale": float(values["scale"])}))
    return tuple(numbers)


def write_rows(path: Path, block: RowBlock) -> None:
    """Write the rows of a batch; for suggestions, the evidence rather than the lists."""
    if isinstance(block.rows, Evidence):
        _write(path, {"sources": block.sources, **vars(block.rows)})
    else:
        _write(path, {name: array for name, array in block._asdict().items() if array is not None})


def _write(path: Path, arrays: dict[str, Any]) -> None:
    with path.open("xb") as file:
        np.savez(file, **arrays)


def read_arrays(path: Path) -> dict[str, Any]:
    """The arrays of an artifact; LedgerError if it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError, KeyError) as error:
        raise LedgerError(f"{path} is damaged, or from another version: {error}") from error
