"""Friend recommendation: whom a member might know that is not on their list yet.

Joint model. The recipient is the member: they know their own friends, and the recommendations
go to nobody else. Protected is every friendship between two other people.

    python examples/friend_recommendation.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from textwrap import fill

import numpy as np

import edgeveil as ev

MEMBERS = 25  # who ask for recommendations
SHOWN = 20  # recommendations for each


def main() -> None:
    """Recommend at three prices, beside what costs nothing and beside the truth."""
    network = ev.datasets.social_network(3000, average_degree=30, communities=10, seed=4)
    graph = network.graph
    rng = np.random.default_rng(0)  # whom we look at, nothing private
    members = [int(m) for m in rng.choice(np.flatnonzero(graph.degrees >= 20), MEMBERS, False)]
    print(f"A network of {graph.n_nodes:,} members. {MEMBERS} of them ask whom they might know.\n")

    with tempfile.TemporaryDirectory() as folder:
        # The budget comes first: no member will ever learn more than 6 about a friendship
        # of others, whatever is released later.
        ledger = ev.Ledger.create(Path(folder) / "friends.ledger", epsilon=6)

        print("Of the 20 recommended, how many are among the 20 that exact PageRank would name,")
        print("and how many share a community with the member (mean over members):\n")
        print(f"  {'':34}{'as exact':>9}{'community':>11}")
        report(network, "most popular (not private)", popular(graph, members))
        for epsilon in (0.5, 1.0, 2.5):
            made = ev.release(graph, ev.mechanisms.TwoHop(epsilon=epsilon), members, ledger=ledger)
            report(network, f"two-hop, epsilon = {epsilon:g}", recommend(graph, made))
        mechanism = ev.mechanisms.TwoHop(epsilon=2.0, score="lift")
        made = ev.release(graph, mechanism, members, ledger=ledger)
        report(network, "two-hop by lift, epsilon = 2", recommend(graph, made))
        exact = ev.release(graph, ev.mechanisms.NonPrivate(), members)
        report(network, "exact (for the curator only)", recommend(graph, exact))

        # One member's share of it: this is all that may be handed to them.
        member = members[0]
        mine = made.only(member)
        friends = friends_of(graph, member)
        print(f"\nMember {member} has {len(friends)} friends and gets, by lift:")
        print(" ", ", ".join(str(n) for n, _ in mine.top(8, without=[member, *friends])))
        print(f"\n{fill(str(mine.guarantee), 88)}\n")

        # Releases add up: 0.5 + 1 + 2.5 + 2 = 6. The next one is refused, and nothing is drawn.
        try:
            ev.rank(graph, member, epsilon=0.1, ledger=ledger)
        except ev.errors.BudgetError as refused:
            print(f"One more: {refused}")


def friends_of(graph: ev.Graph, member: int) -> list[int]:
    """A member's own list. In the joint model its owner may use it freely: it is theirs."""
    return [int(node) for node in graph.neighbours(member)]


def recommend(graph: ev.Graph, made: ev.Release) -> dict[int, list[int]]:
    """The best of each row without the member and the friends they have already."""
    lists = {}
    for member in map(int, made.sources):
        best = made.top(SHOWN, member, without=[member, *friends_of(graph, member)])
        lists[member] = [int(node) for node, _ in best]
    return lists


def popular(graph: ev.Graph, members: list[int]) -> dict[int, list[int]]:
    """The same list for everybody: the members with the most friends."""
    by_degree = [int(node) for node in np.argsort(-graph.degrees, kind="stable")]
    return {
        member: [n for n in by_degree if n not in {member, *friends_of(graph, member)}][:SHOWN]
        for member in members
    }


def report(network: ev.datasets.LabelledGraph, name: str, lists: dict[int, list[int]]) -> None:
    """Measure against the truth. What is printed here is the curator's: it is not private."""
    labels = network.labels.toarray()
    exact = recommend(
        network.graph, ev.release(network.graph, ev.mechanisms.NonPrivate(), list(lists))
    )
    same = np.mean([len(set(lists[m]) & set(exact[m])) for m in lists])
    shared = np.mean([(labels[lists[m]] & labels[m]).any(axis=1).mean() for m in lists])
    print(f"  {name:34}{same:9.1f}{shared:11.0%}")


if __name__ == "__main__":
    main()
