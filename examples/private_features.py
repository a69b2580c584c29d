"""Private features: a classifier predicts a member's community from the graph.

`ev.classify` learns from the whole graph, and anyone may have what it gives. Where a model of your
own is wanted, there are three kinds of features, and each may be held by other people:

- Joint embeddings: each is for its own member. Here one classifier is trained on all of them.
  That measures how good they are, but it is not a joint release: every edge touches one of the
  members whose rows are combined, and a row does not protect the edges of its own member.
- Features of a flipped graph (public model): anyone may hold them and train on them, at one
  epsilon for all rows together.
- Exact features: for the curator only.

    python examples/private_features.py       (needs scikit-learn)
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

import edgeveil as ev
from edgeveil.mechanisms import DPInstantEmbedding, NonPrivate

DIMENSION = 256


def main() -> None:
    """Train the same classifier on each kind of feature and print its accuracy."""
    network = ev.datasets.social_network(1000, average_degree=16, communities=8, seed=1)
    graph = network.graph
    label = network.labels.toarray().argmax(axis=1)  # the first of a member's communities
    split = train_test_split(
        np.arange(graph.n_nodes), train_size=0.5, random_state=0, stratify=label
    )
    print(f"{graph.n_nodes:,} members, {len(network.label_names)} communities, half to train on.\n")
    print(f"  {'features':38}{'who may hold them':20}{'accuracy':>9}   one model on all")

    train, test = split
    majority = np.bincount(label[train]).argmax()
    show("most frequent community", "anyone", float(np.mean(label[test] == majority)), None)

    for dimension in (DIMENSION, "nodes"):
        own = ev.embed(graph, dimension=dimension)
        name = f"own friend list, {own.values.shape[1]:,} dimensions"
        show(name, "each member", accuracy(own, label, split), own)
    paper = DPInstantEmbedding(epsilon=5.0, dimension=DIMENSION, prepush=True)
    made = ev.embed(graph, mechanism=paper)
    show("InstantEmbedding, epsilon = 5", "each member", accuracy(made, label, split), made)
    flipping = ev.mechanisms.EdgeFlipping(epsilon=5.0, model="public")
    flipped = ev.release(graph, flipping, graph.nodes).embed(dimension=DIMENSION)
    show("flipped graph, epsilon = 5", "anyone", accuracy(flipped, label, split), flipped)
    known = {int(node): int(label[node]) for node in train}
    for epsilon in (1.0, 2.0):
        found = ev.classify(graph, known, epsilon=epsilon)
        right = float(np.mean([found.class_of(int(node)) == label[node] for node in test]))
        show(f"ev.classify, epsilon = {epsilon:g}", "anyone", right, found)
    exact = ev.release(graph, NonPrivate(), graph.nodes).embed(dimension=DIMENSION)
    show("exact PageRank", "the curator", accuracy(exact, label, split), exact)

    print(
        "\nA member's own friend list is free, so an embedding that is charged must beat it. To"
        "\nlearn from everybody, use ev.classify, or the flipped graph: their epsilon holds for all"
        "\nrows together. Joint embeddings are for models that see one member's row only."
    )


def accuracy(made: ev.Release, label: np.ndarray, split: tuple[np.ndarray, np.ndarray]) -> float:
    """Share of the test nodes whose community a logistic regression finds."""
    features = normalize(made.values)
    train, test = split
    model = LogisticRegression(max_iter=1000).fit(features[train], label[train])
    return float(np.mean(model.predict(features[test]) == label[test]))


def show(name: str, who: str, share: float, made: ev.Release | ev.Predictions | None) -> None:
    """Print one row; its last column is the guarantee for a model trained on all rows."""
    if made is None:
        promise = "-"
    elif made.guarantee.model == "public":
        promise = f"epsilon = {made.guarantee.epsilon:g}"
    else:
        promise = "no promise"
    print(f"  {name:38}{who:20}{share:9.1%}   {promise}")


if __name__ == "__main__":
    main()
