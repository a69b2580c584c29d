"""A simulated release for the tests of suggestions: numpy noise, nothing is private here."""

from __future__ import annotations

import numpy as np

from edgeveil.estimate import suggestions
from edgeveil.estimate.rows import OwnLists
from edgeveil.graph import Graph
from tests.unit.estimate import plain_suggestions as plain


class SimulatedRelease:
    """Noisy degrees for everybody; `draw` draws one member's sums."""

    def __init__(self, graph: Graph, epsilon: float, seed: int = 0) -> None:
        self.graph, self.seed = graph, seed
        for_degrees, self.rate = suggestions.split(epsilon)
        noise = np.random.default_rng([seed, 1]).laplace(size=graph.n_nodes)
        self.noisy = graph.in_degrees + 2 / for_degrees * noise
        self.popularity = suggestions.learn(self.noisy, 2 / for_degrees)
        self.adjacency = graph.adjacency().astype(float)

    def draw(self, member: int):
        """Arguments of the plain `read_row`, and the true sums of all nodes."""
        rng = np.random.default_rng([self.seed, 2, member])
        friends = self.graph.neighbours(member).astype(np.int64)
        counts = np.asarray(self.adjacency[friends].sum(axis=0)).ravel()
        friend_sums = counts[friends] + 2 / self.rate * rng.laplace(size=len(friends))
        weights = self.weights(friends, friend_sums)
        sums = np.asarray(weights @ self.adjacency[friends]).ravel()
        noisy = sums + rng.laplace(size=len(sums)) / self.rate
        seen = noisy >= suggestions.threshold(len(sums), self.rate)
        seen[friends] = seen[member] = False
        nodes = np.flatnonzero(seen)
        drawn = (self.popularity, member, friends, friend_sums, weights, nodes, noisy[nodes])
        return (*drawn, self.rate), sums

    def weights(self, friends, friend_sums):
        own = own_lists_of(self.graph, 0, friends)
        return suggestions.friend_weights(self.popularity, own, friend_sums, self.rate)

    def reading(self, member: int) -> plain.Reading:
        return plain.read_row(*self.draw(member)[0])

    def score(self, member: int):
        return self.reading(member).row()

    def top(self, member: int, k: int, **more):
        """The list that the kernels make, with the values in columns."""
        return Columns(list_of(self.graph, *self.draw(member)[0], k=k, **more))


class Columns:
    """One list by what its columns mean."""

    def __init__(self, rows) -> None:
        self.rows = rows = rows[~np.isnan(rows[:, 0])]
        self.nodes, self.first, self.last = (rows[:, c].astype(np.int64) for c in (0, 2, 3))
        self.scores, self.common, self.shared = rows[:, 1], rows[:, 4], rows[:, 5] == 1

    @property
    def mostly_popularity(self) -> bool:
        return 2 * int(self.shared.sum()) < len(self.nodes)


def own_lists_of(graph, member, friends, followers=None):
    known = () if followers is None else (np.asarray(followers),)
    return OwnLists(
        np.array([member]), np.asarray(friends), np.array([0, len(friends)]), graph.nodes, known
    )


def list_of(
    graph, popularity, member, friends, friend_sums, weights, nodes, sums, rate, *,
    k, friend_rate=None, followers=None, candidates=None,
):  # fmt: skip
    """`suggestions.lists` for one member, with the arguments of the plain `read_row`."""
    released = suggestions.Released(
        friend_sums, weights, nodes, sums, np.array([0, len(nodes)]),
        rate, rate / 2 if friend_rate is None else friend_rate,
    )  # fmt: skip
    own = own_lists_of(graph, member, friends, followers)
    return suggestions.lists(popularity, own, released, k, candidates)[0]
