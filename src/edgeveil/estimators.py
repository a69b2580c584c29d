"""PrivateEmbedding: private node embeddings as an estimator of scikit-learn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from edgeveil.advice import recommended
from edgeveil.engine import release
from edgeveil.engine.question import graph_of
from edgeveil.errors import EdgeveilError, ParameterError
from edgeveil.graph import Graph
from edgeveil.io.matrices import read_matrix
from edgeveil.postprocess import embed
from edgeveil.privacy.noise import NoiseSource

if TYPE_CHECKING:
    from edgeveil.ledger import Ledger
    from edgeveil.mechanisms.base import Mechanism
    from edgeveil.privacy.guarantee import Guarantee
    from edgeveil.releases import Release

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
except ImportError:
    # The name must be there all the same, or `from edgeveil import *` would fail. (mypy sees
    # scikit-learn's classes, or none, and objects to a second definition.)
    class BaseEstimator:  # type: ignore[no-redef]
        """Stands where scikit-learn's class would."""

        def __new__(cls, *_: Any, **__: Any) -> Any:
            """Say what is missing."""
            raise EdgeveilError(
                f"{cls.__name__} needs scikit-learn: pip install 'edgeveil[sklearn]'"
            )

    ClassNamePrefixFeaturesOutMixin = type("ClassNamePrefixFeaturesOutMixin", (), {})
    TransformerMixin = type("TransformerMixin", (), {})


class PrivateEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Embed the nodes of a private graph; every fit is a release.

    Like `sklearn.manifold.SpectralEmbedding` it embeds the nodes it is fitted on and has no
    ``transform``: ``fit_transform`` gives one row per node.

    **With** ``model="public"`` **a fit costs n times epsilon by default**, n being the number of
    nodes: 1,000 nodes at epsilon 1 charge a ledger 1,000, and without a ledger nobody tells you but
    ``guarantee_``. See `model` for what costs epsilon in all.

    Parameters
    ----------
    epsilon : float
        Privacy loss of one embedding. There is no default: nobody else can choose it.
    dimension : int, optional
        Length of an embedding; by default the mechanism's own.
    model : {"joint", "public"}
        Who may see a row: its node's owner alone, or anyone. **Training one classifier on the
        rows of many owners is not covered by the joint model**: its predictions are the
        curator's. In the public model each of the n rows costs epsilon by default;
        ``mechanism=EdgeFlipping(epsilon=..., model="public")`` costs epsilon for all rows
        together, and is useful where n / (1 + e^epsilon) is small beside the degrees.
    mechanism : Mechanism, optional
        What to use instead of `edgeveil.recommended`. It brings its own parameters; then
        `epsilon` and `model` must be the same as its own, and rows of scores are hashed to
        `dimension` columns.
    ledger : Ledger, optional
        The budget to charge. A clone of the estimator has the same ledger. Fitting again on the
        same graph gives the stored release and costs nothing; a changed graph is a new snapshot
        (`Ledger.advance`). **Without a ledger every fit draws fresh noise and nobody keeps
        count**: a grid search makes many releases.
    label : str
        With a ledger: the public name of the graph, if the ledger is for several.
    directed : bool
        Allow a matrix that is not symmetric, and read every arc as an undirected edge.
    insecure_seed : int, optional
        Seeded noise, for tests and demonstrations: **nothing is private then**, and
        ``guarantee_`` says so. There is no ``random_state``, which would promise the same
        result twice from noise that nobody may know.

    Attributes
    ----------
    embedding_ : array of shape (n_nodes, dimension)
        One row per node.
    guarantee_ : Guarantee
        What is protected, from whom, and how strongly.
    release_ : Release
        The rows with their guarantee; `write` it to keep both together. Its ``to_scipy()`` is
        the same as `embedding_`, sparse: what a classifier should be fitted on.
    n_features_in_ : int
        Number of nodes.
    feature_names_in_ : array of str
        Names of the columns, if the matrix came as a table with names.

    Examples
    --------
    >>> from edgeveil.datasets import social_network
    >>> graph = social_network(120, average_degree=8).graph
    >>> private = PrivateEmbedding(epsilon=1.0, dimension=16)
    >>> private.fit_transform(graph.adjacency()).shape
    (120, 16)
    >>> private.guarantee_.brief
    'joint, epsilon = 1'
    >>> PrivateEmbedding(epsilon=1.0, dimension=16, model="public").fit(graph).guarantee_.brief
    'public, epsilon = 120'
    """

    def __init__(
        self,
        *,
        epsilon: float,
        dimension: int | None = None,
        model: Literal["joint", "public"] = "joint",
        mechanism: Mechanism | None = None,
        ledger: Ledger | None = None,
        label: str = "",
        directed: bool = False,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.dimension = dimension
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
            The private graph; also one of networkx and others, or a path. In a matrix every entry
            that is not 0 is an edge; weights and the diagonal are ignored.
        y : ignored
            For the interface only.
        """
        graph = self._graph(X)
        seed = self.insecure_seed
        made = release(
            graph,
            self._mechanism(),
            graph.nodes,
            ledger=self.ledger,
            label=self.label,
            noise=None if seed is None else NoiseSource.insecure(seed),
        )
        width: dict[str, Any] = {} if self.dimension is None else {"dimension": self.dimension}
        self.release_: Release = made if made.gives == "embeddings" else embed(made, **width)
        self.embedding_: npt.NDArray[np.float64] = self.release_.to_numpy()
        self.guarantee_: Guarantee = made.guarantee
        return self

    def fit_transform(self, X: Any, y: object = None) -> npt.NDArray[np.float64]:
        """`fit`, then give ``embedding_``."""
        return self.fit(X).embedding_

    def _graph(self, X: Any) -> Graph:
        # What is no matrix is a graph of some library, or a path to one.
        if not (hasattr(X, "shape") or hasattr(X, "__array__") or isinstance(X, list | tuple)):
            graph = graph_of(X)
            self.n_features_in_ = graph.n_nodes
            return graph
        from sklearn.utils.validation import validate_data

        matrix = validate_data(self, X, accept_sparse="csr", dtype="numeric")
        return read_matrix(matrix, nodes=None, directed=self.directed, what="X")

    def _mechanism(self) -> Mechanism:
        chosen = self.mechanism
        if chosen is None:
            best = recommended(epsilon=self.epsilon, model=self.model, gives="embeddings")
            if self.dimension is None:
                return best
            # Every mechanism is a dataclass, which its protocol cannot say.
            return replace(best, dimension=self.dimension)  # type: ignore[type-var]
        claimed = chosen.guarantee(1)
        if (claimed.epsilon, claimed.model) != (self.epsilon, self.model):
            raise ParameterError(
                f"the mechanism has epsilon = {claimed.epsilon:g} in the {claimed.model} model, "
                f"the estimator {self.epsilon!r} in the {self.model} model"
            )
        return chosen

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        tags.input_tags.sparse = True
        tags.non_deterministic = self.insecure_seed is None
        return tags
