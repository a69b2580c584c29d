"""Fraud ring: which accounts are close to a flagged one, and who may be told.

A clearing house holds the payments between the accounts of several banks (the private graph).
One account is flagged. It belongs to a ring: accounts that never pay one another, but pay out
through the same few mules. What may be answered depends on who asks:

- The clearing house's own analyst is the curator, who may use exact values but not pass them on.
- The bank that holds the flagged account gets a list in the *joint* model. It already knows this
  account's payments; all payments between other accounts are protected from it. The bank has two
  duties. The list stays in the bank, because it does not protect the flagged account's payments
  from anybody else. And lists for several of its accounts add up, because the bank reads them
  all. The ledger counts by account, so the cap that limits a bank is `pooled_epsilon`.
- Anyone else (another bank, an outside analyst) knows none of these payments and may only get
  results in the *public* model. At small epsilon these say who is busy, and no more.

Finding the ring is no leak: a ring is many payments, and epsilon protects each single one.

    python examples/fraud_ring.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from textwrap import fill

import numpy as np

import edgeveil as ev

ACCOUNTS, RING, MULES, PAYOUTS = 4000, 14, 30, 16
SHOWN = 20


def main() -> None:
    """Look for the ring as the clearing house, as the bank, and as anyone else."""
    graph, ring = payments()
    flagged, accomplices = ring[0], set(ring[1:])
    known = [flagged, *(int(a) for a in graph.neighbours(flagged))]  # the bank's own records
    print(f"{graph.n_nodes:,} accounts; account {flagged} is flagged. Its {RING - 1} accomplices")
    print(f"are unknown. How many of them are in a list of {SHOWN}?\n")

    def show(who: str, how: str, made: ev.Release | ev.Suggestions) -> None:
        if isinstance(made, ev.Suggestions):
            listed = {suggestion.node for suggestion in made.for_member(flagged)}
        else:
            listed = {node for node, _ in made.top(SHOWN, without=known)}
        print(f"  {who:34}{how:42}{len(listed & accomplices):3}")

    exact = ev.release(graph, ev.mechanisms.NonPrivate(), [flagged])
    show("the clearing house", "exact PageRank", exact)

    with tempfile.TemporaryDirectory() as folder:
        ledger = ev.Ledger.create(Path(folder) / "bank.ledger", epsilon=6, pooled_epsilon=6)
        bank = "the flagged account's bank"
        for epsilon in (1.0, 2.0):
            lists = ev.suggest(graph, flagged, epsilon=epsilon, k=SHOWN, ledger=ledger)
            show(bank, f"joint, suggestions, epsilon = {epsilon:g}", lists)
        lift = ev.mechanisms.TwoHop(epsilon=3.0, score="lift")
        made = ev.release(graph, lift, [flagged], ledger=ledger)
        show(bank, "joint, lift, epsilon = 3", made)
        # Not charged, because this is a trial: before these are handed out, charge them.
        for name, outside in (
            ("degree prior, epsilon = 3", ev.mechanisms.DegreePrior(epsilon=3, model="public")),
            ("flipped graph, epsilon = 8", ev.mechanisms.EdgeFlipping(epsilon=8, model="public")),
        ):
            show("anyone else", f"public, {name}", ev.release(graph, outside, [flagged]))

        print("\nSuggestions count common payees, which accounts of a ring have. Lift divides a")
        print("PageRank score by popularity, because these accounts are not popular.")
        print(f"\nWhat the bank is told about its list:\n{fill(str(made.guarantee), 88)}")

        # The bank was charged 6 of 6. It would also read a list for another of its accounts.
        other = int(graph.neighbours(flagged)[0])
        try:
            ev.release(graph, ev.mechanisms.TwoHop(epsilon=1.0), [other], ledger=ledger)
        except ev.errors.BudgetError as refused:
            print(f"\nA second account of the same bank: {refused}")


def payments() -> tuple[ev.Graph, list[int]]:
    """Ordinary payments, and a ring whose members share mules. Generated: nobody's data."""
    ordinary = ev.datasets.social_network(ACCOUNTS, average_degree=24, communities=12, seed=3).graph
    rng = np.random.default_rng(3)
    ends = rng.choice(ACCOUNTS, RING + MULES, replace=False)
    ring, mules = ends[:RING], ends[RING:]
    payers = np.repeat(np.arange(ACCOUNTS), ordinary.degrees)
    to_mules = np.concatenate([rng.choice(mules, PAYOUTS, replace=False) for _ in ring])
    graph = ev.Graph.from_edges(
        np.concatenate([payers, np.repeat(ring, PAYOUTS)]),
        np.concatenate([ordinary.indices, to_mules]),
        ordinary.nodes,
    )
    return graph, [int(account) for account in ring]


if __name__ == "__main__":
    main()
