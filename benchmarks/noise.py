"""Noise throughput: our exact sampler and numpy's unsafe Laplace side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import interleaved, ratios, show, summary
from benchmarks.settings import Settings
from edgeveil.privacy.noise import NoiseSource, add_laplace, calibrate, discrete_laplace

__all__ = ["run"]

SIZES = (1_000, 100_000, 1_000_000, 10_000_000)
DRAW, NUMPY_DRAW = "discrete_laplace", "numpy laplace (not private)"
ADD, NUMPY_ADD = "add_laplace", "values + numpy laplace (not private)"


def run(settings: Settings) -> dict[str, Any]:
    """Measure, print and return."""
    generator, noise = np.random.default_rng(), NoiseSource.secure()
    result: dict[str, Any] = {"sizes": {}}
    print("\nnoise: CPU time; draws per second as a multiple of numpy's")
    for size in SIZES[:1] if settings.tiny else SIZES:
        values = generator.random(size)
        calibration = calibrate(coordinates=size, sensitivity=1e-6, epsilon=1.0)
        scale, repeat = calibration.noise_scale, max(1, 1_000_000 // size)
        tasks: dict[str, Callable[[], object]] = {
            NUMPY_DRAW: lambda n=size: generator.laplace(scale=2.0**30, size=n),
            DRAW: lambda n=size: discrete_laplace(2**30, n, noise),
            NUMPY_ADD: lambda v=values, s=scale: v + generator.laplace(scale=s, size=v.size),
            ADD: lambda v=values, c=calibration: add_laplace(v, c, noise),
        }
        # a run is a million draws at least: the clock must not be what is measured
        repeated = {
            name: lambda task=task, k=repeat: [task() for _ in range(k)]
            for name, task in tasks.items()
        }
        times = interleaved(repeated, rounds=2 * settings.rounds)
        rows = result["sizes"][str(size)] = {}
        for name in tasks:
            base = NUMPY_DRAW if name in (DRAW, NUMPY_DRAW) else NUMPY_ADD
            rows[name] = {
                "seconds": summary(t / repeat for t in times[name]),
                "speed_to_numpy": ratios(times[base], times[name]),
            }
            print(
                f"  {size:>10,}  {name:<38} {rows[name]['seconds']['median'] * 1e3:>10.3f} ms   "
                f"{show(rows[name]['speed_to_numpy'])}"
            )
    result["opendp_10000"] = _opendp(10_000)
    return result


def _opendp(size: int) -> dict[str, float] | None:
    """OpenDP's discrete Laplace, the careful alternative; a few runs are enough."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measurement, zeros = dp.m.make_laplace(*space, scale=float(2**30)), [0] * size
    times = []
    for _ in range(5):
        start = time.process_time()
        measurement(zeros)
        times.append(time.process_time() - start)
    print(f"  {size:>10,}  {'OpenDP discrete laplace':<38} {min(times) * 1e3:>10.3f} ms")
    return summary(times)
