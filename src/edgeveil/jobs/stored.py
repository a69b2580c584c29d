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
    held = dict[str, Any]()
    for number, noised in enumerate(numbers):
        kind = next(name for name, cls in _KINDS.items() if type(noised) is cls)
        held |= {f"{number}_{kind}": True}
        held |= {f"{number}_{f.name}": getattr(noised, f.name) for f in fields(noised)}
    _write(path, held)


def read_shared(path: Path) -> tuple[Noised, ...]:
    """The noised shared statistics of a campaign, round by round."""
    held, numbers = read_arrays(path), list[Noised]()
    while kind := next((name for name in _KINDS if f"{len(numbers)}_{name}" in held), None):
        cls = _KINDS[kind]
        given = {f.name: held[f"{len(numbers)}_{f.name}"] for f in fields(cls)}
        numbers.append(cls(**given | {"scale": float(given["scale"])}))
    return tuple(numbers)


def write_rows(path: Path, made: RowBlock) -> None:
    """Write the rows of a batch; for suggestions, the evidence rather than the lists."""
    if isinstance(made.rows, Evidence):
        _write(path, {"sources": made.sources, **vars(made.rows)})
    else:
        _write(path, {name: array for name, array in made._asdict().items() if array is not None})


def _write(path: Path, held: dict[str, Any]) -> None:
    with path.open("xb") as file:
        np.savez(file, **held)


def read_arrays(path: Path) -> dict[str, Any]:
    """The arrays of an artifact; LedgerError if it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as held:
            return dict(held)
    except (OSError, ValueError, KeyError) as error:
        raise LedgerError(f"{path} is damaged, or from another version: {error}") from error
