"""Every inequality in the proof of Theorem 3, docs/theory/tight-bounds.md, on random pairs."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal, localcontext
from itertools import combinations

import numpy as np

from edgeveil.flow import lazy_restart
from edgeveil.flow.bounds import rounds_constant


def test_every_step_of_the_proof_for_r_rounds_on_random_pairs():
    """Theorem 3 of tight-bounds.md: the sum (vi), Lemma 5, and the bounds on N_j."""
    rng = np.random.default_rng(1)
    seen = Counter()
    for _ in range(1500):
        n, rounds = int(rng.integers(3, 9)), int(rng.integers(1, 12))
        pairs = np.array(list(combinations(range(n), 2)))
        edge = pairs[int(rng.integers(len(pairs)))]
        matrix = np.zeros((n, n))
        for v, u in pairs[rng.random(len(pairs)) < rng.uniform(0.1, 0.9)]:
            matrix[v, u] = matrix[u, v] = 1.0
        matrix[edge[0], edge[1]] = matrix[edge[1], edge[0]] = 0.0
        added = matrix.copy()
        added[edge[0], edge[1]] = added[edge[1], edge[0]] = 1.0
        alpha = lazy_restart(float(rng.choice([0.05, 0.15, 0.4, 0.5, 0.7, 0.95])))
        start = rng.dirichlet(np.full(n, 0.3)) * 10 ** rng.uniform(-1, 2)  # in units of T
        # The proof needs caps of the form d T at the two ends only.
        caps = np.where(rng.random(n) < 0.5, np.inf, 10 ** rng.uniform(-1, 2, n))
        flows = [_rounds_of(m, start, alpha, rounds, caps, edge) for m in (matrix, added)]
        _check_rounds_proof(matrix, edge, alpha, rounds, *flows, seen)
    assert min(seen[k] for k in ("capped", "free", "below", "above", "jump")) >= 5, seen


def _rounds_of(matrix, start, alpha, rounds, caps, edge):
    """h and a of every round, with cap d (T = 1) at the ends of the edge: (rounds, n) each."""
    degree = matrix.sum(axis=1)
    caps = np.where(degree > 0, caps, 0.0)  # nodes without edges
    caps[edge] = degree[edge]
    share = matrix / np.maximum(degree, 1)[:, None]
    h, passed, arrived = np.zeros(len(start)), [], []
    for _ in range(rounds):
        a = start + (1 - alpha) / 2 * (h + h @ share)
        h = np.minimum(a, caps)
        passed.append(h)
        arrived.append(a)
    return np.array(passed), np.array(arrived)


def _check_rounds_proof(matrix, edge, alpha, rounds, flow, flow_added, seen):
    (h, a), (h1, a1) = flow, flow_added
    q, beta, kappa = 1 - alpha, (1 - alpha) / 2, (1 - alpha) / (1 + alpha)
    restart = 1 - kappa
    rho, mu = (kappa, restart) if restart <= 0.5 else (2 * kappa / (1 + 2 * kappa),) * 2
    tiny, degree = 1e-10, matrix.sum(axis=1)[edge]
    t, delta = h1[:, edge] / (degree + 1), (h1 - h)[:, edge]
    capped = a[:, edge] >= degree
    told = np.where(degree > 0, np.abs(t - delta), 0.0)
    m = np.clip(delta, 0, kappa)
    e = np.where(capped, np.maximum(-delta, 0), np.abs(delta - m))
    for name, hits in [
        ("capped", capped),
        ("free", ~capped),
        ("below", delta < -tiny),
        ("above", ~capped & (delta > kappa + tiny)),
        ("jump", np.diff(delta, axis=0) > 0.5),
    ]:
        seen[name] += int(hits.any())
    assert (told <= np.abs(t - m) + e + tiny).all()
    assert (np.abs(delta) <= 1 + e + tiny).all()
    assert (e[0] <= tiny).all()
    came = (a1 - a)[1:, edge] - beta * delta[:-1] - beta * t[:-1, ::-1]  # epsilon of the proof
    held = np.maximum(beta * m[:-1] + beta * t[:-1, ::-1] - m[1:], 0)
    assert (np.abs(came) >= held + e[1:] - beta * e[:-1] - tiny).all()
    weights = alpha * q ** np.arange(rounds - 2, -1, -1.0)
    total = weights @ (beta * told[:-1] - np.abs(came)).sum(axis=1)
    change = alpha * np.abs(h[-1] - h1[-1]).sum()
    assert change <= total + alpha * np.abs(delta[-1]).sum() + tiny
    net = (beta * np.abs(t - m)[:-1] - held).sum(axis=1)
    slack = np.maximum(mu - m.sum(axis=1), 0)
    assert (net <= rho + beta * slack[:-1] - slack[1:] + tiny).all()
    assert change <= 2 * alpha + weights @ net + tiny
    assert change <= rounds_constant(alpha, rounds) + tiny
    forward = alpha * np.abs(a[-1] - a1[-1]).sum()
    if rounds > 1:
        assert forward <= q * rounds_constant(alpha, rounds - 1) + tiny


def hanging_hubs_change(d, alpha, rounds):
    """Change over T for x on the source with d hubs, by classes of equal nodes, in 90 digits.

    Classes: source, x, hubs of x, their leaves, y, its leaves; each hub has 1000 d leaves. The
    cap is what x has per edge one round before the last.
    """
    leaves = 1000 * d
    size = [1, 1, d, d * leaves, 1, leaves]

    def flow(joined, cap, rounds):
        near = [[(1, 1)], [(0, 1), (2, d)], [(1, 1), (3, leaves)], [(2, 1)], [(5, leaves)]]
        near += [[(4, 1)]]
        if joined:
            near[1], near[4] = [*near[1], (4, 1)], [*near[4], (1, 1)]
        degree = [sum(count for _, count in row) for row in near]
        h = [Decimal(0)] * 6
        for _ in range(rounds):
            came = [h[v] + sum(c * h[u] / degree[u] for u, c in near[v]) for v in range(6)]
            h = [(1 - alpha) / 2 * a for a in came]
            h[0] += 1
            if cap is not None:
                h[1:] = [min(h[v], degree[v] * cap) for v in range(1, 6)]
        return h

    cap = flow(False, None, rounds - 1)[1] / (d + 1)
    rows = [flow(joined, cap, rounds) for joined in (False, True)]
    return alpha * sum(s * abs(a - b) for s, a, b in zip(size, *rows, strict=True)) / cap


def test_huge_graphs_nearly_meet_the_rounds_constant():
    """So C_R cannot be lowered by more than 1.3 % at restart 0.15 and 100 rounds."""
    with localcontext(prec=90):
        alpha = Decimal("0.15") / Decimal("1.85")
        bound = rounds_constant(float(alpha), 100)
        small, huge = (hanging_hubs_change(d, alpha, 100) for d in (10**6, 10**34))
    assert abs(float(small) / bound - 0.908) < 1e-3
    assert 0.987 < float(huge) / bound < 0.989
