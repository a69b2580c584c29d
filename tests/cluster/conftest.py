"""A real Ray cluster of several workers on this machine, for the tests of this folder."""

from __future__ import annotations

import os

import pytest

# Before Ray is imported anywhere: no reports, and no token file in somebody's home.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_MODE"] = "disabled"
# Seven workers on two processors are wanted here.
os.environ["RAY_DISABLE_MEMORY_MONITOR"] = "1"

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")  # an idle cluster takes a twentieth of a processor
def cluster():
    ray.init(
        num_cpus=3,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        object_store_memory=200 << 20,
    )
    yield ray
    ray.shutdown()
