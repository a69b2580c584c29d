"""The model of `edgeveil.estimate.rows`, written a second time for comparison."""

from __future__ import annotations

import math

import numpy as np

from edgeveil.estimate.rows import CLOSURE_EXCESS


def best_degree_floor(own_degrees, n, epsilon):
    floors = np.unique(np.quantile(own_degrees, np.linspace(0, 1, 41)))
    cut = np.maximum(1 / own_degrees[None, :] - 1 / floors[:, None], 0.0)
    lost = 4.0 / n * (cut**2 * own_degrees[None, :]).sum(axis=1)
    noise = 2 / (floors * epsilon) / (floors * epsilon)
    return float(floors[np.argmin(lost + noise)])


def expected_sums(own, degrees, weights, grid=None):
    low, high = degrees.min(), degrees.max()
    at = np.geomspace(low, high, 64) if grid is None else grid
    joined = -np.expm1(-np.outer(at, degrees[own] / degrees.sum()))
    expected = np.interp(degrees, at, joined @ weights)
    return expected * ((weights @ degrees[own]) / expected.sum())


def prior_row(n, source, own, degrees, restart, known_hops=1):
    row = np.zeros(n)
    if known_hops and len(own) == 0:
        row[source] = 1.0
        return row
    friends, far = prior_shares(own, degrees, restart, known_hops)
    row += far * degrees / degrees.sum()
    row[own] += friends / max(len(own), 1)
    row[source] += restart
    return row


def prior_shares(own, degrees, restart, known_hops):
    follow = 1 - restart
    if not known_hops:
        return 0.0, follow
    friends = restart * follow * (1 + follow**2 * np.mean(1 / degrees[own]))
    friends += CLOSURE_EXCESS * (restart * follow**2 + follow**3 * persistent_share(restart))
    return min(friends, follow), max(follow - friends, 0.0)


def persistent_share(restart, closure=1.0):
    more = max(closure - 1, 0.0)
    persists = 0.5 + 0.3 * more**2 / (more**2 + 9)
    return sum(restart * (1 - restart) ** j * persists ** (j + 1) for j in range(300))


def two_hop_shares(own, degrees, weights, restart):
    follow, k = 1 - restart, len(own)
    carried = min(weights @ degrees[own] / k, 1.0)
    back = restart * follow**3 * np.mean(1 / degrees[own])
    back += restart * follow**2 * (1 - carried) * CLOSURE_EXCESS
    far = follow**3 + restart * follow**2 * (1 - carried) - back
    return restart * follow**2 / k, restart * follow + back, far


def complete_row(noisy, source, own, estimates, weights, floor, scale, restart):
    """From noisy sums in units of 1 / floor, friends' halved, to a row of PageRank."""
    degrees, n = estimates.degrees_seen_by(own), len(noisy)
    if len(own) == 0:
        return prior_row(n, source, own, degrees, restart)
    noisy, scales = noisy.copy(), np.full(n, scale)
    scales[own] = 2 * scale
    mass = weights @ degrees[own]
    grain = weights**2 @ degrees[own] / mass
    prior = expected_sums(own, degrees, weights, estimates.grid)
    noisy[own] *= 2
    belief = 0.01 / (0.01 + (2 * scales[own] ** 2).sum() / mass**2)
    measured = (noisy[own].sum() - prior[own].sum()) / mass
    closed = belief * measured + (1 - belief) * CLOSURE_EXCESS
    more = max(closed, 0.0) * min(mass / len(own), floor)
    prior[own] += more
    sums = shrink(noisy, scales, prior, grain)
    sums[source] = weights.sum()
    return two_hop_row(source, own, degrees, weights / floor, sums / floor, restart, estimates.grid)


def shrink(noisy, scales, prior, grain):
    spread, noise = prior * grain, 2 * scales**2
    surplus = (noisy - prior) ** 2 - noise
    weight = 1 / (noise + 6 * spread) ** 2
    certainty = (weight * spread**2).sum()
    fitted = (weight * spread * surplus).sum() / certainty
    variance = 5 * (weight**2 * spread**2 * (noise + 3 * spread) ** 2).sum() / certainty**2
    belief = 9 / (9 + variance)
    tau = np.clip(belief * fitted + (1 - belief) * 3, 0.0, 50.0)
    trust = tau * spread / (tau * spread + noise)
    return np.maximum(prior + trust * (noisy - prior), 0.0)


def two_hop_row(source, own, degrees, weights, sums, restart, grid=None):
    direct, friends, far = two_hop_shares(own, degrees, weights, restart)
    closure = sums[own].sum() / expected_sums(own, degrees, weights, grid)[own].sum()
    share = persistent_share(restart, closure)
    by_degree = degrees / degrees.sum()
    seen = sums.copy()
    seen[source] = 0.0
    seen = seen / seen.sum() if seen.sum() > 0 else by_degree
    row = direct * sums + far * ((1 - share) * by_degree + share * seen)
    row[own] += friends / len(own)
    row[source] += restart
    return row


def fit_tau(sums, prior, spread, scales):
    """By bisection, to the last bit."""
    noise, above = 2 * scales**2, sums > prior
    seen = 2 * ((sums - prior)[above] ** 2 / spread[above]).sum()
    low, high = 0.0, 200.0
    for _ in range(100):
        tau = (low + high) / 2
        if (tau**2 * spread / (tau * spread + noise)).sum() < seen:
            low = tau
        else:
            high = tau
    weight = 1 / (noise + 6 * spread) ** 2
    scatter = (weight**2 * spread**2 * 5 * (noise + tau * spread) ** 2).sum()
    return tau, math.sqrt(scatter) / (weight * spread**2).sum()


def sums_uncertainty(sums, prior, spread, scales, tau, wider, largest):
    noise = 2 * scales**2
    trust = tau * spread / (tau * spread + noise)
    off = 3.0 * np.sqrt((1 - trust) ** 2 * wider * spread + trust**2 * noise)
    above = sums - prior
    far = (trust > 1e-6) & (above > trust * math.log(max(len(sums) / 20, 1)) * scales)
    trust = np.where(far, trust, 1.0)
    pulled = above / trust - above + math.log(20) * scales
    off = np.where(far, np.maximum(off, pulled), off)
    return np.minimum(off, np.maximum(sums, largest - sums))
