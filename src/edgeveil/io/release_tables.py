"""How the scores of a release lie in a labelled table: one column of each kind per source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.nodes import NodeId

__all__ = ["score_of", "shown_from", "uncertainty_from", "uncertainty_table"]

Floats = npt.NDArray[np.float64]


def score_of(source: NodeId) -> str:
    """Name of the column with the scores of a source."""
    return f"score of {source}"


def _uncertainty_of(source: NodeId) -> str:
    return f"uncertainty of {source}"


def uncertainty_table(
    sources: Sequence[NodeId], uncertainty: Floats | None, shown: npt.NDArray[np.bool_] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns for the table and entries for its label; one number per row goes to the label."""
    columns: dict[str, Any] = {} if shown is None else {"shown": shown}
    if uncertainty is None:
        return columns, {}
    if uncertainty.shape[1] == 1:
        return columns, {"uncertainty": uncertainty[:, 0].tolist()}
    columns |= {_uncertainty_of(s): half for s, half in zip(sources, uncertainty, strict=True)}
    return columns, {}


def uncertainty_from(
    table: Mapping[str, Any], label: Mapping[str, Any], sources: Iterable[NodeId]
) -> Floats | None:
    """The uncertainty in a table or its label, if there is one; LookupError if part is missing."""
    if "uncertainty" in label:
        return np.array(label["uncertainty"], dtype=np.float64)[:, None]
    names = [_uncertainty_of(source) for source in sources]
    if not any(name in table for name in names):
        return None
    return np.array([table[name] for name in names], dtype=np.float64)


def shown_from(table: Mapping[str, Any]) -> npt.NDArray[np.bool_] | None:
    """Which nodes are shown, if the table says so."""
    return np.array(table["shown"]) if "shown" in table else None
