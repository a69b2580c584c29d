"""Calls on a small graph that compile most loops: python -m tests.compile_first lists|rows.

The two halves have as little in common as can be, and what they have, each does at another time.
"""

from __future__ import annotations

import sys

from edgeveil.datasets import social_network
from edgeveil.engine import release
from edgeveil.mechanisms import (
    DegreePrior,
    DPForwardCap,
    DPPushFlow,
    DPPushFlowCap,
    EdgeFlipping,
    NonPrivate,
    Suggest,
    TwoHop,
)

PARTS = {
    "lists": [Suggest(epsilon=1)],
    "rows": [
        DegreePrior(epsilon=1),
        NonPrivate(),
        TwoHop(epsilon=1),
        DPForwardCap(epsilon=1),
        DPPushFlowCap(epsilon=1),
        DPPushFlowCap(epsilon=1, rounds=None),
        DPPushFlow(epsilon=1, promised_min_degree=1),
        EdgeFlipping(epsilon=1),
    ],
}

if __name__ == "__main__":
    graph = social_network(200, average_degree=8).graph
    some = list(graph.nodes)[:40]
    for mechanism in PARTS[sys.argv[1]]:
        for sources in (some[:1], some):  # one has loops of its own
            release(graph, mechanism, sources)
