"""Fraud ring: which accounts to look at next, in a list that may be given to others.

A clearing house holds the payments between the accounts of several banks (the private graph).
Half of the accounts were looked into, and some were flagged: they belong to rings, whose accounts
pay one another. Who else does? What each account told about itself when it was opened (public to
the banks: the *features*) says a little; whom it pays says much more.

- `classify` predicts every account's class from all payments, for one epsilon in all. Its result
  is in the *public* model: every bank, and everybody else, may see all of it, and each single
  payment is protected from all of them.
- `aggregate` releases private features: of each account, how many of those that it pays or is paid
  by were flagged and cleared, with noise. Whoever has them may train any model and hand it out.

Both protect payments, and nothing else. Flags, features and who was looked into are used as they
are, and none of them was computed from the payments: otherwise the guarantee would not hold.
Finding a ring is no leak: a ring is many payments, and epsilon protects each single one.

    python examples/fraud_ring.py       (needs scikit-learn)
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

import edgeveil as ev

ACCOUNTS, RINGS, RING, PAID = 4000, 10, 15, 5
SHOWN = 50


class Payments(NamedTuple):
    """Accounts, their payments, what is known of them, and the truth."""

    graph: ev.Graph
    features: np.ndarray
    flags: dict[int, str]
    fraud: np.ndarray


def main() -> None:
    """Look for the rings without payments, with private ones, and with exact ones."""
    graph, features, flags, fraud = payments()
    others = np.array([account for account in graph.nodes if account not in flags])
    print(f"{graph.n_nodes:,} accounts; {len(flags):,} were looked into, and")
    print(f"{sum(flag == 'flagged' for flag in flags.values())} of them flagged. Of the others, "
          f"{fraud[others].sum()} belong to a ring.\n")  # fmt: skip
    print(f"  {'':40}{f'of the first {SHOWN}':>16}{'average precision':>20}")

    def show(name: str, score: np.ndarray) -> None:
        found = fraud[others[np.argsort(-score)[:SHOWN]]].sum()
        print(f"  {name:40}{found:16}{average_precision_score(fraud[others], score):20.2f}")

    with tempfile.TemporaryDirectory() as folder:
        ledger = ev.Ledger.create(Path(folder) / "payments.ledger", epsilon=4)
        made = ev.classify(graph, flags, epsilon=2.0, features=features, ledger=ledger)
        flagged = made.classes.index("flagged")
        show("features alone", made.without_graph[:, flagged])
        show("classify, epsilon = 2", made.probabilities[:, flagged])

        counts = ev.aggregate(graph, known(flags), epsilon=2.0, ledger=ledger)
        show(
            "own model, private features, epsilon = 2",
            own_model(features, counts.values, flags, others),
        )
        exact = graph.adjacency() @ known(flags)
        show("own model, exact (not private)", own_model(features, exact, flags, others))

        print("\nWhy an account is on the list, from released values only:")
        print(made.explain(made.nodes[int(made.probabilities[:, flagged].argmax())]))
        print(f"\nWhat everybody may be told:\n{fill(str(made.guarantee), 88)}")
        try:
            ev.classify(graph, flags, epsilon=0.5, features=features, ledger=ledger)
        except ev.errors.BudgetError as refused:
            print(f"\nOnce more, with other noise: {refused}")


def known(flags: dict[int, str]) -> np.ndarray:
    """What is added up over the accounts that an account pays: flagged ones, and cleared ones."""
    values = np.zeros((ACCOUNTS, 2))
    for account, flag in flags.items():
        values[account, int(flag != "flagged")] = 1.0
    return values


def own_model(
    features: np.ndarray, counts: np.ndarray, flags: dict[int, str], others: np.ndarray
) -> np.ndarray:
    """Train an ordinary classifier on all accounts looked into, and score the others."""
    columns = np.hstack((features, counts))
    looked = np.array(list(flags))
    model = LogisticRegression(max_iter=1000, class_weight="balanced")
    model.fit(columns[looked], [flags[account] == "flagged" for account in looked])
    return model.predict_proba(columns[others])[:, 1]


def payments() -> Payments:
    """Ordinary payments, and rings whose accounts pay one another. Generated: nobody's data."""
    rng = np.random.default_rng(3)
    network = ev.datasets.social_network(ACCOUNTS, average_degree=16, communities=12, seed=3)
    rings = rng.choice(ACCOUNTS, (RINGS, RING), replace=False)
    payers = np.repeat(rings, PAID)
    paid = np.concatenate(
        [rng.choice(ring[ring != payer], PAID, replace=False) for ring in rings for payer in ring]
    )
    u, v = network.graph.adjacency().nonzero()
    graph = ev.Graph.from_edges(np.append(u, payers), np.append(v, paid), network.graph.nodes)
    fraud = np.zeros(ACCOUNTS, dtype=bool)
    fraud[rings] = True
    # A ring's accounts are a little younger, and opened with a little more money, than others.
    features = rng.normal(size=(ACCOUNTS, 4)) + 0.7 * fraud[:, None] * [1, 1, 1, 0]
    looked = np.flatnonzero(rng.random(ACCOUNTS) < 0.5).tolist()
    flags = {account: "flagged" if fraud[account] else "cleared" for account in looked}
    return Payments(graph, features, flags, fraud)


if __name__ == "__main__":
    main()
