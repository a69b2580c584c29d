"""Forward flow by itself, as `DPForwardCap` computes it before its noise."""

from __future__ import annotations

from edgeveil.flow.push_flow import capped_recursion, capped_rows


def forward_flow(graph, sources, *, sigma, model="joint", restart=0.15, rounds=None):
    return capped_rows(
        graph, sources, capped_recursion(sigma, model, restart, rounds, forward=True)
    )
