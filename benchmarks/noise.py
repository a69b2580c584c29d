"""Noise throughput: our exact sampler and numpy's unsafe Laplace side by side, interleaved.

python -m benchmarks noise
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import interleaved, quartiles, ratios
from edgeveil.privacy.noise import NoiseSource, add_laplace, calibrate, discrete_laplace

SIZES = (1_000, 100_000, 1_000_000, 10_000_000)


def _opendp(size: int) -> dict[str, float]:
    """OpenDP's discrete Laplace, the careful alternative; a few runs are enough."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measurement, zeros = dp.m.make_laplace(*space, scale=float(2**30)), [0] * size
    times = []
    for _ in range(5):
        start = time.perf_counter()
        measurement(zeros)
        times.append(time.perf_counter() - start)
    return quartiles(times)


def run() -> dict[str, Any]:
    """Measure, print and return."""
    generator, noise = np.random.default_rng(), NoiseSource.secure()
    start = time.perf_counter()
    discrete_laplace(2**30, 1, noise)
    result: dict[str, Any] = {
        "first_call_seconds": time.perf_counter() - start,
        "sizes": {},
    }
    print(f"first call (loads the compiler and its cache): {result['first_call_seconds']:.2f} s")
    print(f"{'n':>10}  {'task':<34} {'median ms':>10} {'M/s':>7}   ratio to numpy (quartiles)")
    for size in SIZES:
        values = generator.random(size)
        calibration = calibrate(coordinates=size, sensitivity=1e-6, epsilon=1.0)
        scale = calibration.noise_scale
        tasks: dict[str, Callable[[], object]] = {
            "numpy laplace (not private)": lambda n=size: generator.laplace(scale=2.0**30, size=n),
            "discrete_laplace": lambda n=size: discrete_laplace(2**30, n, noise),
            "values + numpy laplace (not private)": lambda v=values, s=scale: (
                v + generator.laplace(scale=s, size=v.size)
            ),
            "add_laplace": lambda v=values, c=calibration: add_laplace(v, c, noise),
        }
        times = interleaved(tasks)
        names = list(tasks)
        rows = result["sizes"][str(size)] = {}
        for name, base in zip(names, [names[0], names[0], names[2], names[2]], strict=True):
            ratio = ratios(times[base], times[name])
            seconds = quartiles(times[name])
            rows[name] = {"seconds": seconds, "draws_per_second_to_numpy": ratio}
            print(
                f"{size:>10}  {name:<34} {seconds['median'] * 1e3:>10.3f} "
                f"{size / seconds['median'] / 1e6:>7.1f}   "
                f"{ratio['median']:.2f} ({ratio['q1']:.2f} ... {ratio['q3']:.2f})"
            )
    oracle = result["opendp_10000"] = _opendp(10_000)
    print(f"{10_000:>10}  {'OpenDP discrete laplace':<34} {oracle['median'] * 1e3:>10.3f}")
    return result
