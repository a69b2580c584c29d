"""PrivateNodeClassifier: `classify` as an estimator of scikit-learn and scikit-network."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import ParameterError
from edgeveil.graph.graph import Directed, Graph
from edgeveil.graph.node_tables import NodeLabels, read_labels
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs.choice import SAY_EPSILON
from edgeveil.jobs.classifying import classify
from edgeveil.jobs.estimators import ClassifierMixin, GraphEstimator
from edgeveil.mechanisms.node_classes import NodeClasses

if TYPE_CHECKING:
    from edgeveil.ledger import Ledger
    from edgeveil.privacy.guarantee import Guarantee
    from edgeveil.results.predictions import Predictions


class PrivateNodeClassifier(ClassifierMixin, GraphEstimator):  # type: ignore[misc]
    """Predict the classes of a private graph's nodes; every fit is a public release.

    After the conventions of `sklearn.semi_supervised`: X is the graph, y has a class for some nodes
    and -1 for the others, and ``transduction_`` has a class for all of them. It also fits as
    classifiers of scikit-network do, ``fit(graph, labels)`` with a dict. Anyone may see what it
    learns: every edge is protected with epsilon in all, labels and features are not
    (`edgeveil.classify`). It cannot predict nodes of another graph: new nodes need a new fit.

    Parameters
    ----------
    epsilon : float
        Privacy loss of a fit, for any edge. Required: there is no safe default.
    seed : int
        Public; chooses which labelled nodes teach and which measure. Not the noise.
    ledger : Ledger, optional
        The budget to charge. A clone of the estimator has the same ledger. Fitting again with the
        same graph and labels charges nothing. **Without a ledger every fit draws fresh noise and
        is not counted**: a cross-validation makes many releases.
    label : str
        With a ledger: the public name of the graph, if the ledger holds several.
    directed : {"refuse", "ignore", "keep"}
        How to treat a matrix that is not symmetric: refuse it, read every arc as an undirected
        edge, or keep directions.
    insecure_seed : int, optional
        Seeded noise, for tests and demonstrations: **then nothing is private**.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    transduction_ : array of shape (n_nodes,)
        The class of every node: as given, or predicted.
    label_distributions_ : array of shape (n_nodes, n_classes)
        Class probabilities; of a labelled node its labels.
    predictions_ : Predictions or None
        The nodes without a label, with measures and reasons; None if every node has one.
    guarantee_ : Guarantee
        What is protected.
    n_features_in_ : int
        Number of nodes.

    Examples
    --------
    >>> from edgeveil.graph.datasets import social_network
    >>> network = social_network(200, average_degree=16, communities=2)
    >>> y = network.labels[:, [0]].toarray()[:, 0].astype(int)
    >>> y[100:] = -1
    >>> model = PrivateNodeClassifier(epsilon=2.0).fit(network.graph, y)
    >>> model.transduction_.shape, model.guarantee_.brief
    ((200,), 'public, epsilon = 2')
    """

    _another_graph = (
        "PrivateNodeClassifier predicts the nodes of the graph it was fitted on, and this is "
        "another graph; fit it on the whole graph, with y = -1 for nodes to be predicted"
    )

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        seed: int = 0,
        ledger: Ledger | None = None,
        label: str = "",
        directed: Directed = "refuse",
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.seed = seed
        self.ledger = ledger
        self.label = label
        self.directed = directed
        self.insecure_seed = insecure_seed

    def fit(
        self, X: Any, y: Any = None, *, features: Any = None, prior: Any = None
    ) -> PrivateNodeClassifier:
        """Learn from the whole graph and predict the nodes without a label.

        Parameters
        ----------
        X : Graph, or array or sparse matrix of shape (n_nodes, n_nodes)
            The private graph; also anything else that `edgeveil.as_graph` takes, or a path. In a
            matrix every non-zero entry is an edge.
        y : array of shape (n_nodes,), or what `edgeveil.classify` takes as labels
            Classes; -1, None or NaN for nodes to be predicted.
        features, prior : optional
            As for `edgeveil.classify`.
        """
        if self.epsilon is None:
            raise ParameterError(SAY_EPSILON)
        graph = self._graph(X)
        given = self._labels(y)
        node_labels = read_labels(given, graph.nodes)
        counts = np.diff(node_labels.starts)
        if (counts > 0).all():
            self._nothing_to_predict(node_labels, graph)
        else:
            self.predictions_: Predictions | None = classify(
                graph, given, epsilon=self.epsilon, features=features, prior=prior,
                seed=self.seed, ledger=self.ledger, label=self.label, noise=self._noise(),
            )  # fmt: skip
            self.guarantee_: Guarantee = self.predictions_.guarantee
        self.classes_ = np.array(node_labels.classes)
        shares = np.zeros((graph.n_nodes, len(node_labels.classes)))
        rows = np.repeat(np.arange(graph.n_nodes), counts)
        shares[rows, node_labels.of] = 1 / counts[rows]
        if self.predictions_ is not None:
            shares[graph.nodes.indices(self.predictions_.nodes)] = self.predictions_.probabilities
        self.label_distributions_: npt.NDArray[np.float64] = shares
        self.transduction_: npt.NDArray[Any] = self.classes_[shares.argmax(axis=1)]
        self._unlabelled = counts == 0
        self._fitted(graph)
        return self

    def _labels(self, y: Any) -> Any:
        """Checked as scikit-learn does, if it is a column."""
        if y is None:
            raise ParameterError(
                "PrivateNodeClassifier requires y to be passed, but the target y is None"
            )
        of_other_kind = hasattr(y, "tocoo") or hasattr(y, "columns") or hasattr(y, "index")
        if of_other_kind or not hasattr(y, "__array__"):
            return y
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import column_or_1d

        column = column_or_1d(np.asarray(y), warn=True)
        if column.dtype.kind == "f":
            check_classification_targets(column[~np.isnan(column)])
        return column.astype(object) if column.dtype.kind in "US" else column

    def _nothing_to_predict(self, labels: NodeLabels, graph: Graph) -> None:
        """Every node has a label: nothing of the graph is used."""
        if len(labels.classes) < 2:
            raise ParameterError("labels need at least two classes, got one class")
        self.predictions_ = None
        claim = NodeClasses.example(epsilon=1.0).guarantee(graph.n_nodes)
        self.guarantee_ = replace(claim, epsilon=0.0)

    def predict(self, X: Any = None) -> npt.NDArray[Any]:
        """The class of every node of the graph it was fitted on; nothing new is released.

        Raises
        ------
        ParameterError
            If X is another graph.
        """
        self._check_fitted_on_or_none(X)
        return self.transduction_

    def predict_proba(self, X: Any = None) -> npt.NDArray[np.float64]:
        """Class probabilities of every node of the graph it was fitted on."""
        self._check_fitted_on_or_none(X)
        return self.label_distributions_

    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> npt.NDArray[Any]:
        """`fit`, then give ``transduction_``."""
        return self.fit(X, y, **options).transduction_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on the nodes that had no label in `fit`; on all nodes if every one had.

        Entries of y that are -1 are left out.
        """
        predicted = self.predict(X)
        labels = read_labels(self._labels(y), NodeSet.range(len(predicted)))
        labelled = np.diff(labels.starts) > 0
        scored = labelled & self._unlabelled if self._unlabelled.any() else labelled
        true = np.array(
            [labels.classes[labels.of[labels.starts[v]]] for v in np.flatnonzero(scored)]
        )
        right = predicted[scored] == true
        weights = None if sample_weight is None else np.asarray(sample_weight)[scored]
        if not len(right):
            raise ParameterError("y has no class of a node that was predicted")
        return float(np.average(right, weights=weights))

    def _check_fitted_on_or_none(self, X: Any) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        if X is not None:
            self._check_fitted_on(X)
