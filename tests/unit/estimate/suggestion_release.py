"""A simulated release for the tests of suggestions: numpy noise, nothing is private here."""

from __future__ import annotations

import numpy as np

from edgeveil.estimate import suggestions
from edgeveil.graph import Graph


class SimulatedRelease:
    """Noisy degrees for everybody; `reading` draws one member's sums and reads them."""

    def __init__(self, graph: Graph, epsilon: float, seed: int = 0) -> None:
        self.graph, self.seed = graph, seed
        for_degrees, self.rate = suggestions.split(epsilon)
        noise = np.random.default_rng([seed, 1]).laplace(size=graph.n_nodes)
        self.noisy = graph.degrees + 2 / for_degrees * noise
        self.popularity = suggestions.learn(self.noisy, 2 / for_degrees)
        self.adjacency = graph.adjacency().astype(float)

    def draw(self, member: int):
        """Arguments of `read_row`, and the true sums of all nodes."""
        rng = np.random.default_rng([self.seed, 2, member])
        friends = self.graph.neighbours(member).astype(np.int64)
        counts = np.asarray(self.adjacency[friends].sum(axis=0)).ravel()
        friend_sums = counts[friends] + 2 / self.rate * rng.laplace(size=len(friends))
        weights = suggestions.friend_weights(self.popularity, friends, friend_sums, self.rate)
        sums = np.asarray(weights @ self.adjacency[friends]).ravel()
        noisy = sums + rng.laplace(size=len(sums)) / self.rate
        seen = noisy >= suggestions.threshold(len(sums), self.rate)
        seen[friends] = seen[member] = False
        nodes = np.flatnonzero(seen)
        drawn = (self.popularity, member, friends, friend_sums, weights, nodes, noisy[nodes])
        return (*drawn, self.rate), sums

    def reading(self, member: int) -> suggestions.Reading:
        return suggestions.read_row(*self.draw(member)[0])

    def score(self, member: int):
        return self.reading(member).row()
