"""PrivateEmbedding: private node embeddings as an estimator of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from edgeveil.errors import EdgeveilError, InputError, ParameterError
from edgeveil.graph.graph import Directed, Graph, check_directed
from edgeveil.graph.matrices import read_matrix
from edgeveil.jobs import release
from edgeveil.jobs.choice import mechanism_for_embeddings
from edgeveil.jobs.request import graph_of
from edgeveil.privacy.noise import NoiseSource

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from edgeveil.ledger import Ledger
    from edgeveil.mechanisms.base import Mechanism
    from edgeveil.privacy.guarantee import Guarantee
    from edgeveil.results.release import Release

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.base import ClassifierMixin as ClassifierMixin
except ImportError:
    # The name must exist, or `from edgeveil import *` would fail. (mypy sees scikit-learn's
    # classes, or none, and objects to a second definition.)
    class BaseEstimator:  # type: ignore[no-redef]
        """Placeholder for scikit-learn's class."""

        def __new__(cls, *_: Any, **__: Any) -> Any:
            """Say what is missing."""
            raise EdgeveilError(
                f"{cls.__name__} needs scikit-learn: pip install 'edgeveil[sklearn]'"
            )

    ClassifierMixin = type("ClassifierMixin", (), {})
    ClassNamePrefixFeaturesOutMixin = type("ClassNamePrefixFeaturesOutMixin", (), {})
    TransformerMixin = type("TransformerMixin", (), {})


Rows: TypeAlias = "npt.NDArray[np.float64] | csr_array"


class GraphEstimator(BaseEstimator):  # type: ignore[misc]
    """Base for estimators that tell about the nodes of the graph they are fitted on."""

    directed: Directed
    insecure_seed: int | None
    _another_graph = ""  # the message for a graph that it was not fitted on

    def _fitted(self, graph: Graph) -> None:
        self._fitted_on = graph.fingerprint

    def _check_fitted_on(self, X: Any) -> None:
        """Refuse (ParameterError) another graph than the one it was fitted on."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        try:
            graph = self._graph(X, fitting=False)
        except InputError as error:  # some rows of a matrix, for instance: a part of a split
            raise ParameterError(self._another_graph) from error
        same_edges = graph.fingerprint == getattr(self, "_fitted_on", graph.fingerprint)
        if not same_edges or graph.n_nodes != self.n_features_in_:
            raise ParameterError(self._another_graph)

    def __getstate__(self) -> dict[str, Any]:
        # With a digest of the edges, a reader of the pickle could confirm guesses about them.
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_fitted_on"}

    def _graph(self, X: Any, *, fitting: bool = True) -> Graph:
        if not _is_matrix(X):
            graph = graph_of(X)
            if fitting:
                self.n_features_in_ = graph.n_nodes
            return graph
        from sklearn.utils.validation import validate_data

        matrix = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=fitting)
        return read_matrix(matrix, nodes=None, directed=check_directed(self.directed), what="X")

    def _noise(self) -> NoiseSource | None:
        seed = self.insecure_seed
        return None if seed is None else NoiseSource.insecure(seed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        tags.input_tags.sparse = True
        tags.non_deterministic = self.insecure_seed is None
        return tags


class PrivateEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GraphEstimator):  # type: ignore[misc]
    """Embed the nodes of a private graph; every fit is a release.

    By default a row is its member's own friend list, hashed: joint model, epsilon 0, no budget.

    Like `sklearn.manifold.SpectralEmbedding`, it embeds the nodes that it is fitted on:
    ``fit_transform`` returns one row per node, and ``transform`` returns the same rows again for
    the same graph. So it can be a step of a pipeline if the labels of all nodes are known. To
    predict the labels of some nodes, embed first and split the rows, not the graph::

        X = PrivateEmbedding(sparse=True).fit_transform(graph)
        model.fit(X[train], y[train]).predict(X[test])

    With ``model="public"`` a fit costs epsilon for all rows together, and anyone may see them; so
    one model may be trained on all of them and handed out. To predict classes,
    `PrivateNodeClassifier` gets more out of the same epsilon.

    Parameters
    ----------
    epsilon : float, optional
        Privacy loss of one embedding, in the public model of all together. Not allowed for the own
        list, which needs none; otherwise required, because there is no safe default.
    dimension : int or "nodes", optional
        Length of an embedding; by default 1,024 for the own list, 64 in the public model.
        ``"nodes"``: the own list without a hash, one column per node.
    sparse : bool
        Return ``embedding_`` as a sparse scipy matrix. An own list has at most as many non-zero
        values as its member has friends, so linear models train much faster.
    model : {"joint", "public"}, optional
        Who may see a row: only its member (the default), or anyone. **The joint model does not
        cover training one classifier on the rows of many members**: its predictions are for the
        curator only.
    mechanism : Mechanism or str, optional
        Use this instead of `edgeveil.recommended`. It has its own epsilon and model; if you give
        them here as well, they must be the same. By its name ("edge-flipping" or "EdgeFlipping")
        it gets them from here. Rows of scores are hashed to `dimension` columns.
    ledger : Ledger, optional
        The budget to charge. A clone of the estimator has the same ledger. Fitting again on the
        same graph returns the stored release and charges nothing; when the graph has changed,
        declare its next generation (`Ledger.advance`). **Without a ledger every fit draws fresh
        noise and is not counted**: a grid search makes many releases.
    label : str
        With a ledger: the public name of the graph, if the ledger holds several.
    directed : {"refuse", "ignore"}
        How to treat a matrix that is not symmetric: refuse it, or read every arc as an undirected
        edge.
    insecure_seed : int, optional
        Seeded noise, for tests and demonstrations: **then nothing is private**, and
        ``guarantee_`` says so. There is no ``random_state``, because noise that can be repeated
        protects nothing.

    Attributes
    ----------
    embedding_ : array or csr_array of shape (n_nodes, dimension)
        One row per node.
    guarantee_ : Guarantee
        What is protected, from whom, and how strongly.
    release_ : Release
        The rows with their guarantee; its `write` keeps both together.
    n_features_in_ : int
        Number of nodes.
    feature_names_in_ : array of str
        Names of the columns, if the matrix came as a table with names.

    Examples
    --------
    >>> from edgeveil.graph.datasets import social_network
    >>> graph = social_network(120, average_degree=8).graph
    >>> private = PrivateEmbedding()
    >>> private.fit_transform(graph.adjacency()).shape
    (120, 1024)
    >>> private.guarantee_.brief
    'joint, epsilon = 0'
    >>> PrivateEmbedding(epsilon=1.0, dimension=16, model="public").fit(graph).guarantee_.brief
    'public, epsilon = 1'
    """

    _another_graph = (
        "PrivateEmbedding embeds the nodes of the graph it was fitted on, and this is another "
        "graph; to predict labels of some nodes, embed the whole graph and split its rows: "
        "X = PrivateEmbedding().fit_transform(graph), then "
        "model.fit(X[train], y[train]).predict(X[test])"
    )

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        dimension: int | Literal["nodes"] | None = None,
        sparse: bool = False,
        model: Literal["joint", "public"] | None = None,
        mechanism: Mechanism | str | None = None,
        ledger: Ledger | None = None,
        label: str = "",
        directed: Directed = "refuse",
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.dimension = dimension
        self.sparse = sparse
        self.model = model
        self.mechanism = mechanism
        self.ledger = ledger
        self.label = label
        self.directed = directed
        self.insecure_seed = insecure_seed

    def fit(self, X: Any, y: object = None) -> PrivateEmbedding:
        """Release embeddings of all nodes.

        Parameters
        ----------
        X : Graph, or array or sparse matrix of shape (n_nodes, n_nodes)
            The private graph; also anything else that `edgeveil.as_graph` takes (a graph of
            networkx and other libraries, an edge_index, a table or list of edges), or a path. In a
            matrix every non-zero entry is an edge; weights and the diagonal are ignored.
        y : ignored
            Only for compatibility with scikit-learn.
        """
        graph = self._graph(X)
        rows = release(
            graph,
            mechanism_for_embeddings(
                graph, self.mechanism, self.epsilon, self.model, self.dimension, or_scores=True
            ),
            graph.nodes,
            ledger=self.ledger,
            label=self.label,
            noise=self._noise(),
        )
        width: dict[str, Any] = {} if self.dimension is None else {"dimension": self.dimension}
        self.release_: Release = rows if rows.output == "embeddings" else rows.embed(**width)
        self.embedding_: Rows = (
            self.release_.to_scipy() if self.sparse else self.release_.to_numpy()
        )
        self.guarantee_: Guarantee = rows.guarantee
        self._fitted(graph)
        return self

    def fit_transform(self, X: Any, y: object = None) -> Rows:
        """`fit`, then give ``embedding_``."""
        return self.fit(X).embedding_

    def transform(self, X: Any) -> Rows:
        """Return ``embedding_`` for the graph it was fitted on; nothing new is released.

        Raises
        ------
        ParameterError
            If X is another graph. A pickle holds no fingerprint of the graph, so after unpickling
            only the number of nodes is compared. It does hold ``embedding_``, by default every
            member's friend list: protect it like the graph.
        """
        self._check_fitted_on(X)
        return self.embedding_

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own_list = self.mechanism is None and self.model != "public"  # without noise
        tags.non_deterministic &= not own_list
        return tags


def _is_matrix(X: Any) -> bool:
    """Whether X is an adjacency matrix, or wrong in a way that scikit-learn reports.

    Everything else is for `edgeveil.as_graph`: edge lists, two columns or two rows, are not square.
    """
    if isinstance(X, list | tuple):
        return not (len(X) and isinstance(X[0], tuple) and len(X[0]) in (2, 3))
    shape: Sequence[int] = getattr(X, "shape", ())
    if len(shape) != 2 or shape[0] == shape[1]:
        return hasattr(X, "shape") or hasattr(X, "__array__")
    is_table = hasattr(X, "__arrow_c_stream__") and shape[1] in (2, 3)
    return not (is_table or shape[0] == 2)
