"""Two-hop sums of one source."""

from __future__ import annotations

import numpy as np

from edgeveil.flow.common_neighbours import two_hop_sums_of_lists
from edgeveil.graph.graph import Graph


def two_hop_sums(graph: Graph, source: int, weights: np.ndarray) -> np.ndarray:
    """Sum of the weights of the common neighbours of `source` and each node; friends' halved."""
    own = graph.neighbours(source)
    return two_hop_sums_of_lists(graph, own, np.array([0, len(own)]), weights[own])[0]
