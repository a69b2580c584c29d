"""Every algorithm of `flow` once more: slow, readable, line by line as in the paper.

These are the tests' truth. Nothing here is optimised, vectorised or clever. One decision the
paper leaves open: a node without neighbours has nowhere to send flow, so it keeps the share
that others would send on (its row of W is the identity's).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgeveil.graph.graph import Graph

__all__ = [
    "Trace",
    "capped_recursion",
    "capped_sweep",
    "fixed_point",
    "forward_flow",
    "neighbour_sum",
    "pagerank",
    "push_flow",
    "push_flow_cap",
]

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """All rounds of a push flow: entry i of each list is the state after round i."""

    p: list[list[float]]
    r: list[list[float]]
    h: list[list[float]]
    f: list[list[float]]

    @property
    def output(self) -> Vector:
        """The vector p^(R)."""
        return np.array(self.p[-1])


def pagerank(graph: Graph, source: int, alpha: float) -> Vector:
    """Solve p = alpha s + (1 - alpha) p W densely; alpha is the lazy walk's."""
    n = graph.n_nodes
    walk = np.zeros((n, n))
    for v in range(n):
        neighbours = graph.neighbours(v)
        if len(neighbours) == 0:
            walk[v, v] = 1
            continue
        walk[v, v] = 1 / 2
        for u in neighbours:
            walk[v, u] += 1 / (2 * len(neighbours))
    start = np.zeros(n)
    start[source] = 1
    solution = np.linalg.solve((np.eye(n) - (1 - alpha) * walk).T, alpha * start)
    return solution.astype(np.float64)


def push_flow(graph: Graph, source: int, alpha: float, rounds: int) -> Trace:
    """Algorithm 1."""
    n = graph.n_nodes
    reached = {source}
    p = [[0.0] * n]
    r = [[0.0] * n]
    r[0][source] = 1.0
    for i in range(1, rounds + 1):
        p.append(list(p[i - 1]))
        r.append([0.0] * n)
        for v in sorted(reached):
            flow = r[i - 1][v]
            neighbours = graph.neighbours(v)
            p[i][v] = p[i - 1][v] + alpha * flow
            if len(neighbours) == 0:
                r[i][v] += (1 - alpha) * flow
                continue
            r[i][v] += (1 - alpha) / 2 * flow
            for u in neighbours:
                r[i][u] += (1 - alpha) / 2 * flow / len(neighbours)
                reached.add(int(u))
    return Trace(p=p, r=r, h=[], f=[])


def push_flow_cap(
    graph: Graph,
    source: int,
    alpha: float,
    rounds: int,
    edge_cap: float,
    joint: bool,
    prepush: bool = False,
) -> Trace:
    """Algorithm 2 with T_u = `edge_cap`, and the extra start of the paper's Section 6."""
    n = graph.n_nodes
    p = [[0.0] * n]
    r = [[0.0] * n]
    h = [[0.0] * n]
    f = [[0.0] * n]
    r[0][source] = 1.0
    first = graph.neighbours(source)
    if prepush and len(first) > 0:
        restart = 2 * alpha / (1 + alpha)  # the source pushes until empty: docs/theory
        r[0][source] = 0.0
        p[0][source] = restart
        for u in first:
            p[0][u] = restart * (1 - restart) / len(first)
            r[0][u] = (1 - restart) ** 2 / len(first)
    reached = {v for v in range(n) if r[0][v] > 0}
    for i in range(1, rounds + 1):
        p.append(list(p[i - 1]))
        r.append(list(r[i - 1]))
        h.append(list(h[i - 1]))
        f.append([0.0] * n)
        for v in reached:
            degree = len(graph.neighbours(v))
            cap = math.inf if joint and v == source else degree * edge_cap
            f[i][v] = min(r[i - 1][v], cap - h[i - 1][v])
            h[i][v] = h[i - 1][v] + f[i][v]
            r[i][v] = r[i - 1][v] - f[i][v]
        for v in sorted(reached):
            flow = f[i][v]
            if flow <= 0:
                continue
            neighbours = graph.neighbours(v)
            p[i][v] += alpha * flow
            if len(neighbours) == 0:
                r[i][v] += (1 - alpha) * flow
                continue
            r[i][v] += (1 - alpha) / 2 * flow
            for u in neighbours:
                r[i][u] += (1 - alpha) / 2 * flow / len(neighbours)
                reached.add(int(u))
    return Trace(p=p, r=r, h=h, f=f)


def capped_recursion(
    graph: Graph,
    start: Vector,
    source: int,
    alpha: float,
    rounds: int,
    edge_cap: float,
    joint: bool,
) -> Vector:
    """Give h^(R) by the paper's recursion lemma, from the initial residual `start`."""
    n = graph.n_nodes
    h = np.zeros(n)
    for _ in range(rounds):
        new = np.zeros(n)
        for v in range(n):
            neighbours = graph.neighbours(v)
            degree = len(neighbours)
            cap = math.inf if joint and v == source else degree * edge_cap
            kept = h[v] if degree else 2 * h[v]
            inflow = kept + sum(h[u] / len(graph.neighbours(u)) for u in neighbours)
            new[v] = min(start[v] + (1 - alpha) / 2 * inflow, cap)
        h = new
    return h


def forward_flow(
    graph: Graph, source: int, alpha: float, rounds: int, edge_cap: float, joint: bool
) -> Vector:
    """Absorb all that arrives, cap what is passed on: `rounds` - 1 pushes, then alpha a."""
    n = graph.n_nodes
    arrived = [0.0] * n
    pushed = [0.0] * n
    arrived[source] = 1.0
    for _ in range(rounds - 1):
        flow = [0.0] * n
        for v in range(n):
            cap = math.inf if joint and v == source else len(graph.neighbours(v)) * edge_cap
            flow[v] = min(arrived[v], cap) - pushed[v]
            pushed[v] += flow[v]
        for v in range(n):
            neighbours = graph.neighbours(v)
            if len(neighbours) == 0:
                arrived[v] += (1 - alpha) * flow[v]
                continue
            arrived[v] += (1 - alpha) / 2 * flow[v]
            for u in neighbours:
                arrived[u] += (1 - alpha) / 2 * flow[v] / len(neighbours)
    return alpha * np.array(arrived)


def fixed_point(
    graph: Graph, start: Vector, source: int, restart: float, edge_cap: float, joint: bool
) -> tuple[Vector, Vector]:
    """Solve H = min(A, d T~), A = start + (1 - restart) P^T H; give H and A.

    By Howard's policy iteration: guess who is capped, solve the linear system, guess anew.
    The solutions fall until the guess stays.
    """
    n = graph.n_nodes
    walk = np.zeros((n, n))
    caps = np.zeros(n)
    for v in range(n):
        neighbours = graph.neighbours(v)
        caps[v] = len(neighbours) * edge_cap
        if len(neighbours) == 0:
            walk[v, v] = 1  # matters for an uncapped source only: all others are capped at 0
        for u in neighbours:
            walk[v, u] = 1 / len(neighbours)
    if joint:
        caps[source] = math.inf
    follow = (1 - restart) * walk.T
    capped = np.zeros(n, dtype=bool)
    while True:
        system = np.where(capped[:, None], np.eye(n), np.eye(n) - follow)
        h = np.linalg.solve(system, np.where(capped, caps, start))
        arrived = start + follow @ h
        new = arrived > caps
        # A tie, which float error may break either way, must not keep the loop alive.
        tie = np.isclose(arrived, caps, rtol=1e-13, atol=0)
        if ((new == capped) | tie).all():
            return h, arrived
        capped = new


def neighbour_sum(terms: list[float]) -> float:
    """Sum in the order that `_lanes.sum_rows` fixes, bit for bit."""
    total = 0.0
    whole = len(terms) - len(terms) % 8
    for chunk in range(0, whole, 512):
        sums = [0.0] * 8
        for k in range(chunk, min(chunk + 512, whole)):
            sums[k % 8] += terms[k]
        while len(sums) > 1:
            sums = [a + b for a, b in zip(sums[::2], sums[1::2], strict=True)]
        total += sums[0]
    for k in range(whole, len(terms)):
        total += terms[k]
    return total


def capped_sweep(
    rows: list[list[int]],
    start: list[float],
    caps: list[float],
    follow: float,
    omega: float,
    g: list[float],
) -> float:
    """Relax g = min(start + follow * mean of the neighbours, caps) in place, row by row.

    Gives the certificate: the L1 norm of d (F(g) - g) is no larger.
    """
    bound = 0.0
    for v, neighbours in enumerate(rows):
        share = 1 / len(neighbours) if neighbours else 0.0
        inflow = neighbour_sum([g[u] for u in neighbours]) * share
        target = min(start[v] + follow * inflow, caps[v])
        old = g[v]
        g[v] = max(min(old + omega * (target - old), caps[v]), 0.0)
        bound += len(neighbours) * (abs(target - g[v]) + follow * abs(g[v] - old))
    return bound
