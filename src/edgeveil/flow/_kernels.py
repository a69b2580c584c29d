"""Compiled loops of push flow and PageRank: arrays in and out, no Python objects.

The state is g = h / d, flow per edge: a neighbour's contribution is then g itself, and the cap
d(v) T of every node is the same number T. A block computes B sources side by side, one per lane
(`_lanes`). Lanes never mix and every sum has a fixed order, so a source's result is the same bits
in whichever block or thread it is computed, alone or not.

n nodes, nnz stored entries. IN arrays may be read-only. Most nodes start with 0 and have the common
cap. Those that differ (sources) have slot[v] = i > 0: their start and cap are row i of two small
tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from edgeveil._internal.compiled import compiled
from edgeveil.flow._lanes import (
    absolute,
    load,
    maximum,
    minimum,
    splat,
    store,
    sum_rows,
    to_float64,
)

LANES, SINGLE_LANES = 8, 16  # a row of float64, of float32: one cache line


class Layout(NamedTuple):
    """The graph's CSR rows, reordered: node v is row row_of[v], row i is node node_at[i]."""

    indptr: Any  # (n + 1)
    indices: Any  # (nnz)
    degree: Any  # (n) as float
    inverse_degree: Any  # (n) 1 / d, 0 where d = 0
    node_at: Any  # (n)
    row_of: Any  # (n)

    def neighbours(self, row: int) -> Any:
        """Rows of the neighbours of a row's node."""
        return self.indices[self.indptr[row] : self.indptr[row + 1]]


@dataclass(frozen=True)
class Kernels:
    """The loops for one width of a block."""

    lanes: int
    capped_rounds: Any
    capped_sweep: Any
    exact_sweep: Any


def _make(lanes: int) -> Kernels:
    """Make the loops for blocks of this width; they are compiled at their first call."""

    @compiled
    def capped_rounds(
        layout: Layout,  # IN
        slot: Any,  # IN  (n)
        start: Any,  # IN  (slots, B) initial residual / d
        cap: Any,  # IN  (slots, B)
        edge_cap: float,  # T, the common cap
        beta: float,  # (1 - alpha) / 2 lazy, 1 - restart ordinary
        to_self: float,  # 1 for the lazy walk, which stays at a node half of the time; else 0
        rounds: int,
        g: Any,  # IN  (n, B) flow per edge before; the result if `rounds` is even
        g_next: Any,  # OUT (n, B) the result if `rounds` is odd
    ) -> None:
        """Rounds of g_v <- min(start_v + beta (to_self g_v + sum_u g_u / d_v), cap_v)."""
        indptr, indices = layout.indptr, layout.indices
        common, factor = splat(lanes, edge_cap, g), splat(lanes, beta, g)
        lazy = splat(lanes, to_self, g)
        for _ in range(rounds):
            for v in range(len(indptr) - 1):
                share = splat(lanes, layout.inverse_degree[v], g)
                inflow = sum_rows(lanes, g, indices, indptr[v], indptr[v + 1]) * share
                inflow = factor * (lazy * load(lanes, g, v) + inflow)
                if slot[v]:
                    inflow = load(lanes, start, slot[v]) + inflow
                    store(minimum(inflow, load(lanes, cap, slot[v])), g_next, v)
                else:
                    store(minimum(inflow, common), g_next, v)
            g, g_next = g_next, g

    @compiled
    def capped_sweep(
        layout: Layout,  # IN
        slot: Any,  # IN  (n)
        start: Any,  # IN  (slots, B) initial residual / d
        cap: Any,  # IN  (slots, B)
        edge_cap: float,  # the common cap
        follow: float,  # 1 - restart
        omega: float,  # relaxation
        g: Any,  # INOUT (n, B)
        residual: Any,  # OUT (1, B) at least the L1 norm of d * (F(g) - g)
    ) -> None:
        """One sweep of projected over-relaxation towards g = F(g) = min(start + ..., cap)."""
        indptr, indices = layout.indptr, layout.indices
        common, zero = splat(lanes, edge_cap, g), splat(lanes, 0.0, g)
        factor, relax = splat(lanes, follow, g), splat(lanes, omega, g)
        bound = splat(lanes, 0.0, residual)
        for v in range(len(indptr) - 1):
            share = splat(lanes, layout.inverse_degree[v], g)
            inflow = sum_rows(lanes, g, indices, indptr[v], indptr[v + 1]) * share
            target = factor * inflow
            limit = common
            if slot[v]:
                target = load(lanes, start, slot[v]) + target
                limit = load(lanes, cap, slot[v])
            target = minimum(target, limit)
            old = load(lanes, g, v)
            new = maximum(minimum(old + relax * (target - old), limit), zero)
            store(new, g, v)
            # The residual of v itself, and what its change adds to those of nodes swept before.
            off = absolute(target - new) + factor * absolute(new - old)
            bound = bound + to_float64(splat(lanes, layout.degree[v], g) * off)
        store(bound, residual, 0)

    @compiled
    def exact_sweep(
        layout: Layout,  # IN
        component: Any,  # IN  (n) label of v's connected component
        slot: Any,  # IN  (n)
        start: Any,  # IN  (slots, B) restart * e_s / d
        drift: Any,  # IN  (distinct components of the block + 1, B) see below; row 0 is 0
        drift_row: Any,  # IN  (components) row of `drift`
        follow: float,  # 1 - restart
        omega: float,  # relaxation
        g: Any,  # INOUT (n, B)
        residual: Any,  # OUT (1, B) at least the L1 norm of d * (F(g + c) - (g + c))
        mass: Any,  # OUT (1, B) sum of d * g
    ) -> None:
        """One sweep of over-relaxation towards x = start + follow * D^-1 A x, x = g + c.

        c is constant on the component of the lane's source and 0 elsewhere; in the equation of a
        node it appears as drift = follow * c - c = -restart * c.
        """
        indptr, indices = layout.indptr, layout.indices
        factor, relax = splat(lanes, follow, g), splat(lanes, omega, g)
        bound, total = splat(lanes, 0.0, residual), splat(lanes, 0.0, mass)
        for v in range(len(indptr) - 1):
            row = drift_row[component[v]]
            if row == 0:
                continue  # no source of the block is in this component
            share = splat(lanes, layout.inverse_degree[v], g)
            inflow = sum_rows(lanes, g, indices, indptr[v], indptr[v + 1]) * share
            target = factor * inflow
            target = target + load(lanes, drift, row)
            if slot[v]:
                target = load(lanes, start, slot[v]) + target
            old = load(lanes, g, v)
            new = old + relax * (target - old)
            store(new, g, v)
            off = absolute(target - new) + factor * absolute(new - old)
            weight = splat(lanes, layout.degree[v], g)
            bound = bound + to_float64(weight * off)
            total = total + to_float64(weight * new)
        store(bound, residual, 0)
        store(total, mass, 0)

    return Kernels(lanes, capped_rounds, capped_sweep, exact_sweep)


# By the width of a block. Made once at import, so that threads share them.
KERNELS = {lanes: _make(lanes) for lanes in (1, LANES, SINGLE_LANES)}


def lane_blocks(count: int, lanes: int = LANES) -> Iterator[tuple[slice, Kernels]]:
    """Split `count` sources into blocks of at most `lanes`.

    A single source takes half the time in kernels of one lane as in a block with empty lanes.
    """
    for first in range(0, count, lanes):
        part = slice(first, min(first + lanes, count))
        yield part, KERNELS[1 if part.stop - first == 1 else lanes]


@compiled
def reorder(
    indptr: Any,  # IN  (n + 1)
    indices: Any,  # IN  (nnz)
    node_at: Any,  # IN  (n) node of each new row
    row_of: Any,  # IN  (n) new row of each node
    new_indptr: Any,  # IN  (n + 1)
    new_indices: Any,  # OUT (nnz)
) -> None:
    """Permute the rows of a graph; entries keep their order within a row."""
    for row in range(len(node_at)):
        first = indptr[node_at[row]]
        to = new_indptr[row]
        for k in range(new_indptr[row + 1] - to):
            new_indices[to + k] = row_of[indices[first + k]]


@compiled
def label_components(
    indptr: Any,  # IN  (n + 1)
    indices: Any,  # IN  (nnz)
    label: Any,  # INOUT (n) -1 everywhere, then 0, 1, ... by the components' first nodes
    stack: Any,  # OUT (n) working memory
) -> int:
    """Label connected components and count them; the graph is undirected."""
    count = 0
    for root in range(len(label)):
        if label[root] >= 0:
            continue
        label[root], stack[0], size = count, root, 1
        while size > 0:  # a node is pushed once: when it gets its label
            size -= 1
            v = stack[size]
            for k in range(indptr[v], indptr[v + 1]):
                if label[indices[k]] < 0:
                    label[indices[k]], stack[size] = count, indices[k]
                    size += 1
        count += 1
    return count


@compiled
def unload(
    g: Any,  # IN  (n, B)
    lanes: Any,  # IN  which ones
    layout: Layout,  # IN
    factor: float,
    out: Any,  # OUT (B, n) in the order of the nodes
) -> None:
    """Write factor * (g * d), in the order of the nodes; reads each row of g once."""
    for node in range(len(layout.row_of)):
        v = layout.row_of[node]
        for lane in lanes:
            out[lane, node] = factor * (g[v, lane] * layout.degree[v])


@compiled
def unload_exact(
    g: Any,  # IN  (n, B)
    lanes: Any,  # IN  which ones
    layout: Layout,  # IN
    component: Any,  # IN  (n)
    own: Any,  # IN  (B) component of each lane's source
    level: Any,  # IN  (B) constant to add there
    out: Any,  # OUT (B, n) in the order of the nodes
) -> None:
    """Write d * (g + level) on a lane's component, 0 elsewhere and where negative."""
    for node in range(len(layout.row_of)):
        v = layout.row_of[node]
        for lane in lanes:
            reached = component[v] == own[lane]
            mass = (g[v, lane] + level[lane]) * layout.degree[v]
            out[lane, node] = max(mass, 0.0) if reached else 0.0
