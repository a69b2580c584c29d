"""Released values with a seeded source are pinned: the streams of the noise must not move."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.test_every_mechanism import INSTANCES, a_graph
from tests.seam import run

PINNED = json.loads(Path(__file__).with_name("golden.json").read_text())


def released_by(mechanism) -> list[list[float]]:
    """Some values of two rows."""
    rows = run(mechanism, a_graph(), [0, 4], seed=7)
    return rows[:, [0, -1, rows.shape[1] // 2]].tolist()


@pytest.mark.parametrize("name", PINNED)
def test_seeded_release_equals_pinned_values(name):
    for row, pinned in zip(released_by(INSTANCES[name]), PINNED[name], strict=True):
        assert row == pytest.approx(pinned, rel=1e-9, abs=1e-15, nan_ok=True)
