"""Friend suggestions: people whom a member may know but is not connected to yet.

Joint model: a list is for its member only, who knows their own friends. It protects every
friendship between two other people.

    python examples/friend_recommendation.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from textwrap import fill

import numpy as np

import edgeveil as ev

MEMBERS = 40  # who get suggestions
SHOWN = 20  # suggestions for each member
HIDDEN = 0.1  # share of the friendships that is hidden, to see whether lists find them

Lists = dict[int, list[int]]


def main() -> None:
    """Suggest at three epsilons, beside popularity and lists without privacy."""
    network = ev.datasets.social_network(3000, average_degree=30, communities=10, seed=4)
    graph, hidden = hide_some(network.graph)
    rng = np.random.default_rng(0)  # chooses whom we look at; draws no noise
    asked = np.flatnonzero((graph.degrees >= 20) & (hidden.degrees >= 1))
    members = [int(m) for m in rng.choice(asked, MEMBERS, replace=False)]
    print(f"A network of {graph.n_nodes:,} members. {MEMBERS} of them ask whom they may know.")
    print("A tenth of all friendships is hidden. How many of a member's hidden friends are among")
    print(f"{SHOWN} suggestions, and how many distinct people are suggested to all members?\n")
    print(f"  {'':34}{'found':>7}{'people':>9}")

    report("most popular (not private)", popular(graph, members), hidden)
    with tempfile.TemporaryDirectory() as folder:
        # The budget comes first: whatever is released later, the charges to one member never
        # exceed 3.5.
        ledger = ev.Ledger.create(Path(folder) / "friends.ledger", epsilon=3.5)
        for epsilon in (0.5, 1.0, 2.0):
            made = ev.suggest(graph, members, epsilon=epsilon, k=SHOWN, ledger=ledger)
            lists = {m: [int(s.node) for s in made.for_member(m)] for m in members}
            report(f"private, epsilon = {epsilon:g}", lists, hidden)
        report("common friends (not private)", by_common_friends(graph, members), hidden)

        # One member's list: give the member this and nothing else.
        mine = made.only(members[0])
        print(f"\nMember {members[0]} gets:")
        for line in mine.for_member(members[0])[:5]:
            by_chance = f"{100 * line.chance:.0f} of 100 such names are there by chance"
            print(f"  {line.rank}. {network.names[int(line.node)]:12} {line.why}, {by_chance}")
        print(f"\n{fill(str(mine.guarantee), 88)}\n")

        # Charges add up: 0.5 + 1 + 2 = 3.5. The next list is refused before noise is drawn.
        try:
            ev.suggest(graph, members[0], epsilon=0.1, ledger=ledger)
        except ev.errors.BudgetError as refused:
            print(f"One more: {refused}")


def hide_some(graph: ev.Graph) -> tuple[ev.Graph, ev.Graph]:
    """The graph without a tenth of its edges, and these edges as a graph of their own."""
    ends = np.repeat(np.arange(graph.n_nodes), graph.degrees), np.asarray(graph.indices)
    once = ends[0] < ends[1]
    u, v = ends[0][once], ends[1][once]
    out = np.random.default_rng(1).random(len(u)) < HIDDEN
    return (
        ev.Graph.from_edges(u[~out], v[~out], graph.nodes),
        ev.Graph.from_edges(u[out], v[out], graph.nodes),
    )


def popular(graph: ev.Graph, members: list[int]) -> Lists:
    """The same list for everybody: the members with the most friends."""
    return {m: best(graph, m, graph.degrees.astype(float)) for m in members}


def by_common_friends(graph: ev.Graph, members: list[int]) -> Lists:
    """By the exact number of common friends. For the curator only."""
    adjacency = graph.adjacency()
    counts = (adjacency[members] @ adjacency).toarray()
    return {m: best(graph, m, row) for m, row in zip(members, counts, strict=True)}


def best(graph: ev.Graph, member: int, scores: np.ndarray) -> list[int]:
    """The strangers with the highest scores."""
    scores = scores.astype(float)
    scores[[member, *graph.neighbours(member)]] = -1.0
    return [int(node) for node in np.argsort(-scores, kind="stable")[:SHOWN]]


def report(name: str, lists: Lists, hidden: ev.Graph) -> None:
    """Measure against the truth. This is not private: the output is for the curator only."""
    found = [len(set(lists[m]) & set(hidden.neighbours(m).tolist())) for m in lists]
    most = [min(SHOWN, int(hidden.degrees[m])) for m in lists]
    share = np.mean(np.array(found) / np.array(most))
    people = len({node for listed in lists.values() for node in listed})
    print(f"  {name:34}{share:7.0%}{people:9}")


if __name__ == "__main__":
    main()
