"""`classify`: classes of nodes, learnt from the whole graph for one epsilon, for anybody to see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np

from edgeveil._internal.checks import check_int
from edgeveil._internal.words import counted
from edgeveil.errors import ParameterError
from edgeveil.estimate.classification import Labels, choose_roles
from edgeveil.estimate.public import NodeData
from edgeveil.graph.graph import Graph
from edgeveil.graph.node_tables import read_features, read_labels, read_prior, with_file
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs.job import release
from edgeveil.jobs.request import Options, check_listed, graph_of
from edgeveil.mechanisms.node_classes import NodeClasses
from edgeveil.results.predictions import Predictions


def classify(
    graph: Graph,
    labels: Any,
    *,
    epsilon: float,
    features: Any = None,
    prior: Any = None,
    targets: Iterable[NodeId] | None = None,
    seed: int = 0,
    **options: Unpack[Options],
) -> Predictions:
    """Predict the classes of nodes from the whole graph, privately, for anybody to see.

    Public model: the predictions, the weights and the noisy sums behind them may be published, and
    every edge is protected with epsilon in all, whatever the number of nodes. **Labels and features
    are not protected**: predictions are made from them. Neither they, nor `prior`, nor who is
    labelled or asked for may come from the edges (no degrees, no PageRank, no embedding of this
    graph): otherwise the guarantee would not hold.

    Parameters
    ----------
    graph : Graph
        The private graph, or anything that `edgeveil.as_graph` or `edgeveil.read_graph` takes.
        In a directed graph those whom a node follows, and its followers, count apart.
    labels : dict, column, pairs, table, sparse matrix or path
        The classes of some nodes: a dict of node and class, a column in the order of
        ``graph.nodes``, pairs (node, class), a table with a column of nodes and one of classes, or
        a .csv, .tsv or .parquet file of it. No label: absent, None, NaN or -1. A dict of lists,
        repeated rows, or a sparse matrix of nodes and classes give a node several labels. Classes
        are integers or text.
    epsilon : float
        Privacy loss of everything that comes out, for any edge.
    features : array, sparse matrix, table or path, optional
        Numbers that are known of every node: rows in the order of ``graph.nodes``, or a table with
        a column of nodes. A logistic regression on them is fitted first.
    prior : array, table or path, optional
        Instead of features: class probabilities of every node, by a model of your own. For labelled
        nodes they should come from a model that did not see their labels. Columns in the order of
        the classes, sorted; in a table by their names.
    targets : iterable of ids, optional
        Whom to predict; by default everybody without a label. Nodes that need no prediction can say
        more, so fewer targets may be predicted better.
    seed : int
        Public: chooses which labelled nodes teach the weights and which are set aside to measure
        accuracy. The noise has a secret of its own.

    Other Parameters
    ----------------
    ledger, label, generation, purpose, operator, noise, engine, progress : optional
        As for `edgeveil.release`. With a ledger, epsilon is charged once, to everybody, and the
        noisy sums are stored: the same call is free, and gives the same predictions. The sums are
        computed here, also with an engine for several machines.

    Returns
    -------
    Predictions

    Raises
    ------
    ParameterError, UnknownNodeError, InputError
        If labels, features or targets do not fit; nothing was charged or drawn.
    BudgetError
        If the ledger refuses; nothing was drawn.

    Examples
    --------
    >>> import edgeveil as ev
    >>> network = ev.datasets.social_network(400, average_degree=20)
    >>> labels = {node: network.labels[[node]].indices for node in range(0, 400, 2)}
    >>> predictions = ev.classify(network.graph, labels, epsilon=1.0)
    >>> len(predictions.nodes), predictions.guarantee.brief
    (200, 'public, epsilon = 1')
    >>> predictions.table().columns[:3]
    ['node', 'class', 'probability']
    """
    graph = graph_of(graph)
    mechanism = classifier(
        graph, labels, epsilon=epsilon, features=features, prior=prior, targets=targets, seed=seed
    )
    return release(graph, mechanism, **options)


def classifier(
    graph: Graph,
    labels: Any,
    *,
    epsilon: float,
    features: Any = None,
    prior: Any = None,
    targets: Iterable[NodeId] | None = None,
    seed: int = 0,
) -> NodeClasses:
    """Read and check what `classify` is given, without looking at an edge; parameters as there.

    The mechanism can be priced (`edgeveil.price`) and audited.
    """
    nodes = graph.nodes
    check_int("seed", seed, 0)
    table = read_labels(labels, nodes)
    counts = np.bincount(table.of, minlength=len(table.classes))
    _check_classes(table.classes, counts, with_file("labels", labels))
    node_labels = Labels(table.starts, table.of, len(table.classes))
    if features is not None and prior is not None:
        raise ParameterError("give features or prior, not both")
    targeted = None
    if targets is not None:
        check_listed("targets", targets)
        targeted = np.zeros(len(nodes), dtype=bool)
        targeted[nodes.indices(targets)] = True
        if not targeted.any():
            raise ParameterError("targets must name at least one node, got none")
        if (overlap := targeted & node_labels.labelled).any():
            raise ParameterError(
                f"{counted(int(overlap.sum()), 'target', 'have')} a label already, for example "
                f"{nodes[int(overlap.argmax())]!r}: name nodes without one"
            )
    elif node_labels.labelled.all():
        raise ParameterError("every node has a label: there is nobody to predict")
    return NodeClasses(
        epsilon=epsilon,
        directed=graph.directed,
        seed=seed,
        data=NodeData(
            nodes=nodes,
            classes=table.classes,
            labels=node_labels,
            roles=choose_roles(node_labels, targeted, seed=seed),
            features=None if features is None else read_features(features, nodes)[0],
            prior=None if prior is None else read_prior(prior, nodes, table.classes),
        ),
    )


def _check_classes(classes: tuple[NodeId, ...], counts: Any, what: str) -> None:
    if len(classes) < 2:
        described = f"one, {classes[0]!r}" if classes else "none"
        raise ParameterError(f"{what} need at least two classes, got {described}")
    if (counts < 2).any():
        alone = classes[int(counts.argmin())]
        raise ParameterError(
            f"{what}: a class needs at least two nodes to learn from; {alone!r} has one: leave its "
            "label out, or give it to more nodes"
        )
