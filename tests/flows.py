"""Forward flow by itself, as `DPForwardCap` computes it before its noise."""

from __future__ import annotations

from experiments.forward_cap import forward_recursion, forward_rows


def forward_flow(graph, sources, *, sigma, model="joint", restart=0.15, rounds=None):
    return forward_rows(graph, sources, forward_recursion(sigma, model, restart, rounds))
