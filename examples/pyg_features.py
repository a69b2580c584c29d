"""Private sums in your own network: PyTorch Geometric, or whatever you train models with.

A graph neural network reads the edges in every layer, so the trained network tells about them. Here
the edges are read once, with noise: `aggregate` adds up the public vectors of each node's
neighbours (what they say about themselves, and their labels). The sums are ordinary columns
afterwards. Any network may be trained on them, as long and as often as one likes, and handed out:
every edge is protected with epsilon in all.

Two things to keep in mind:

- Leave `edge_index` out of the `Data` that you train on. A layer that passes messages along the
  private edges would read them again, without noise, and the guarantee would be gone.
- The vectors are not protected, and must not be computed from the edges.

With PyTorch Geometric the network is one of its models; without it, one of scikit-learn's.

    python examples/pyg_features.py       (needs torch and torch_geometric, or scikit-learn)
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

import edgeveil as ev

MEMBERS, GROUPS, EPSILON = 2000, 8, 2.0
HIDDEN, EPOCHS = 64, 150


def main() -> None:
    """Train the same network on features alone, on private sums, and on exact ones."""
    network = ev.datasets.social_network(MEMBERS, average_degree=30, communities=GROUPS, seed=1)
    graph, group = network.graph, network.labels.toarray().argmax(axis=1)
    rng = np.random.default_rng(1)
    train = rng.random(MEMBERS) < 0.5
    own = np.eye(GROUPS)[
        np.where(rng.random(MEMBERS) < 0.3, group, rng.integers(GROUPS, size=MEMBERS))
    ]
    told = np.eye(GROUPS)[group] * train[:, None]  # labels that are known, as vectors

    made = ev.aggregate(graph, told, epsilon=EPSILON)
    exact = graph.adjacency() @ told

    if find_spec("torch") and find_spec("torch_geometric"):
        fit = train_in_pyg
        print("The network is torch_geometric.nn.MLP.\n")
    else:
        fit = train_in_sklearn
        print("PyTorch Geometric is not installed (torch, torch_geometric): the network is")
        print("scikit-learn's MLPClassifier, on the same columns.\n")
    print(f"  {'columns':44}right")
    for name, columns in (
        ("features alone", own),
        (f"features and private sums, epsilon = {EPSILON:g}", np.hstack((own, made.values))),
        ("features and exact sums (not private)", np.hstack((own, exact))),
    ):
        predicted = fit(standardised(columns), group, train)
        print(f"  {name:44}{np.mean(predicted[~train] == group[~train]):.0%}")
    print(f"\n{made.guarantee}")


def standardised(columns: np.ndarray) -> np.ndarray:
    """Columns in comparable units; released sums are public, so this is post-processing."""
    return (columns - columns.mean(axis=0)) / np.maximum(columns.std(axis=0), 1e-9)


def train_in_pyg(columns: np.ndarray, group: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Train PyTorch Geometric's MLP on a `Data` without edges."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.nn import MLP

    torch.manual_seed(0)
    data = Data(x=torch.tensor(columns, dtype=torch.float32), y=torch.tensor(group))
    data.train_mask = torch.tensor(train)
    model = MLP([columns.shape[1], HIDDEN, GROUPS], dropout=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(EPOCHS):
        model.train()
        optimizer.zero_grad()
        out = model(data.x)
        loss = torch.nn.functional.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return model(data.x).argmax(dim=1).numpy()


def train_in_sklearn(columns: np.ndarray, group: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Train scikit-learn's network of the same size."""
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier(HIDDEN, alpha=1.0, max_iter=EPOCHS, early_stopping=True, random_state=0)
    return model.fit(columns[train], group[train]).predict(columns)


if __name__ == "__main__":
    main()
