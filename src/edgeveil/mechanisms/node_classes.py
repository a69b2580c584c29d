"""NodeClasses: classes of nodes from noisy sums of what their neighbours name, once for all."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import check_int
from edgeveil.errors import ParameterError
from edgeveil.estimate import quality
from edgeveil.estimate.classification import (
    ROUNDS,
    ClassificationFit,
    Labels,
    Matrix,
    Messages,
    Roles,
    denominator,
    fit_classes,
    message_rounds,
)
from edgeveil.estimate.public import AlignedData, NodeData
from edgeveil.flow.neighbour_sums import neighbour_sums
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.mechanisms.base import (
    LocalViews,
    OnceForAll,
    Rows,
    Statistics,
)
from edgeveil.mechanisms.hard_pairs import Pair
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import Calibration, calibrate_whole
from edgeveil.privacy.statistic import Noised, Statistic
from edgeveil.results.predictions import LabelledListeners, Predictions
from edgeveil.results.provenance import Metadata

NOT_PROTECTED = "labels, features and who has a label, which are used as they are"


class NodeClasses(OnceForAll):
    """Everybody names one class, once; listeners hear noisy sums, which predict their classes.

    Public model: anyone may see the sums, the weights and the predictions. An edge between two
    listeners moves a sum of each by 1/2, because listeners are half as loud as others; an edge
    between a listener and a node that does not listen moves one sum by 1; nodes that do not
    listen have no sums. Who speaks in which round, and what it says, follows from public data and
    from sums that were released before, and nobody speaks twice. So all rounds together move by
    at most 1, and Laplace noise of scale 1 / epsilon on every sum protects each edge at epsilon,
    for all nodes and rounds together. Neighbouring graphs differ in one edge (directed: one arc).
    **Labels and features are not protected, and must not come from the edges.** Proof:
    docs/theory/classification.md. Cost: O(m + n classes) for each of two rounds.

    Parameters
    ----------
    epsilon : float
        Privacy loss of everything that is released, for any edge.
    data : NodeData
        What is public about the nodes; `edgeveil.classify` makes it.
    directed : bool
        Whether the graph is directed: then those whom a node follows, and its followers, are heard
        apart.
    seed : int
        Public; chooses folds. The noise has a secret of its own.
    """

    name = "node-classes"
    output = "predictions"
    when_to_use = "classes of nodes, learnt from the whole graph and public; edgeveil classify"
    theorem = "docs/theory/classification.md"
    model = "public"
    shared_rounds = ROUNDS

    epsilon: float
    data: NodeData
    directed: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("seed", self.seed, 0)
        if not isinstance(self.data, NodeData):
            raise ParameterError(
                f"data must be what edgeveil.classify makes of labels and features, "
                f"got {type(self.data).__name__}"
            )

    @property
    def blocks(self) -> int:
        """Blocks of columns in a round: directed graphs have one for each direction."""
        return 2 if self.directed else 1

    @property
    def dimension(self) -> int:
        """Numbers in a row: a probability and the released sums of both rounds for each class."""
        return len(self.data.classes) * (1 + 2 * self.blocks)

    def guarantee(self, n_members: int) -> Guarantee:
        """Epsilon, once for everything; labels and features are not protected."""
        return replace(super().guarantee(n_members), not_protected=NOT_PROTECTED)

    def check_nodes(self, nodes: NodeSet) -> None:
        """Refuse other nodes than the data's, and calibrate once before the charge."""
        if nodes != self.data.nodes:
            raise ParameterError("the labels were given for another node set than the graph's")
        self._noise(self.data.on(nodes))

    def _noise(self, data: AlignedData) -> Calibration:
        """One edge moves the sums of all rounds together by at most 1, in units of 1/D: by D."""
        listeners = int(data.roles.listens.sum())
        return calibrate_whole(
            coordinates=max(listeners * len(self.data.classes) * self.blocks, 1),
            sensitivity=denominator(data.labels),
            epsilon=exact_epsilon(self.epsilon),
        )

    def shared(self, graph: Graph) -> Statistics:
        """What every listener hears in each round."""
        data = self.data.on(graph.nodes)
        noise, classes = self._noise(data), len(self.data.classes)
        unit, rounds = denominator(data.labels), self.rounds(data)
        spoken, heard = np.zeros(graph.n_nodes, dtype=bool), None
        for _ in range(ROUNDS):  # what all rounds tell is left to `fit_shared`
            messages = rounds.send(heard)  # type: ignore[arg-type]  # first: None
            check_messages(messages, spoken, data.roles, unit)
            spoken |= messages.speaks
            sums = neighbour_sums(graph, *messages, classes, data.roles.listens)
            noised = yield Statistic(sums.reshape(1, -1), noise, rounds_of="words")
            heard = self._heard(noised, data)

    def rounds(self, data: AlignedData) -> Generator[Messages, Matrix, Any]:
        """Yield the messages of each round, and take the sums that were released in it.

        It is made of public data and has no reference to the graph, so what is said in a round
        is a function of public data and released sums, as the theorem wants.
        """
        return message_rounds(
            data.labels, data.roles, data.log_prior,
            self._noise(data).noise_scale / denominator(data.labels),
            blocks=self.blocks, seed=self.seed,
        )  # fmt: skip

    def _heard(self, noised: Noised, data: AlignedData) -> Matrix:
        """The released sums of a round, one row for each listener."""
        width = len(self.data.classes) * self.blocks
        return noised.values.reshape(int(data.roles.listens.sum()), width)

    def fit_shared(self, noised: tuple[Noised, ...], nodes: NodeSet) -> ClassificationFit:
        """Weights and class probabilities from the sums of all rounds."""
        data = self.data.on(nodes)
        unit = denominator(data.labels)
        heard = [self._heard(sums, data) / unit for sums in noised]
        scale = self._noise(data).noise_scale / unit
        return fit_classes(
            data.labels, data.roles, data.log_prior, heard, scale,
            blocks=self.blocks, seed=self.seed,
        )  # fmt: skip

    def estimate(
        self, noised: tuple[Noised, ...], shared: ClassificationFit, views: LocalViews
    ) -> Rows:
        """The probabilities of a node's classes, then what it heard: 0 if it does not listen."""
        at = np.full(len(views.nodes), -1, dtype=np.int64)
        listeners = self.data.on(views.nodes).roles.listeners
        at[listeners] = np.arange(len(listeners))
        row = at[views.sources]
        heard = np.zeros((len(row), self.dimension - len(self.data.classes)))
        listens = row >= 0
        heard[listens] = np.hstack([sums[row[listens]] for sums in shared.heard])
        return np.hstack((np.exp(shared.log_probabilities[views.sources]), heard))

    def published(
        self, shared: ClassificationFit, nodes: NodeSet, metadata: Metadata
    ) -> Predictions:
        """The predictions for the targets: who listens and has no label."""
        data, roles = self.data, self.data.roles
        labels, rows = data.labels, roles.listeners
        is_target = ~labels.labelled[rows]
        targets, labelled = rows[is_target], rows[~is_target]
        tested = np.flatnonzero(roles.validates)
        validation = None
        if len(tested):
            with_graph = np.exp(shared.log_probabilities[tested])
            validation = labels.shares(tested), with_graph, np.exp(shared.log_prior[tested])
        directions = (", followed", ", followers") if self.directed else ("",)
        return Predictions(
            nodes=NodeSet.of(data.nodes.ids[targets]),
            classes=data.classes,
            probabilities=np.exp(shared.log_probabilities[targets]),
            without_graph=np.exp(shared.log_prior[targets]),
            sums=self._sums(shared, is_target),
            blocks=tuple(f"round {t + 1}{way}" for t in range(ROUNDS) for way in directions),
            noise_scale=shared.noise,
            weights=shared.weights,
            n_labelled=int(labels.labelled.sum()),
            n_trained=int(roles.trains.sum()),
            n_validated=len(tested),
            validation=validation,
            quality=None if validation is None else quality.measure_quality(*validation),
            labelled_listeners=LabelledListeners(
                nodes=NodeSet.of(data.nodes.ids[labelled]),
                labels=labels.shares(labelled),
                without_graph=np.exp(shared.log_prior[labelled]),
                sums=self._sums(shared, ~is_target),
                validates=roles.validates[labelled],
            ),
            **metadata._asdict(),
        )

    def _sums(self, fit: ClassificationFit, chosen: npt.NDArray[np.bool_]) -> Matrix:
        """What these listeners heard, of shape (listeners, rounds and directions, classes)."""
        rounds = [np.split(sums[chosen], self.blocks, axis=1) for sums in fit.heard]
        return np.stack([block for blocks in rounds for block in blocks], axis=1)

    def hard_pairs(self) -> Iterator[Pair]:
        """A listener gets joined to a node that does not listen, or to another listener.

        Both ends speak in one of the rounds, so sums move by 1 in all: the loss is epsilon.
        """
        listens, nodes = self.data.roles.listens, self.data.nodes
        listening, silent = np.flatnonzero(listens)[:2], np.flatnonzero(~listens)[:1]
        for ends in ([*listening[:1], *silent], listening):
            if len(ends) == 2:
                two = NodeSet.of(nodes.take(ends))
                none = np.empty(0, dtype=np.int64)
                before = Graph.from_edges(none, none, two, directed=self.directed)
                yield Pair(graph=before, neighbour=before.with_edge_flipped(0, 1), source=0)

    @classmethod
    def example(
        cls, *, epsilon: float, directed: bool = False, n_nodes: int = 24, trains: bool = False
    ) -> Self:
        """With made-up labels of nodes 0, 1, ...: for audits.

        Of three nodes one has no label, one listens although it has one, and one only speaks.
        `trains`: weights are learnt, which takes most of the time.
        """
        at = np.arange(n_nodes)
        labels = Labels.single(np.where(at % 3, at // 3 % 2, -1), 2)
        listens, labelled = at % 3 != 1, at % 3 == 2
        none = np.zeros(n_nodes, dtype=bool)
        roles = Roles(listens, labelled, none) if trains else Roles(listens, none, labelled)
        data = NodeData(nodes=NodeSet.range(n_nodes), classes=(0, 1), labels=labels, roles=roles)
        return cls(epsilon=epsilon, directed=directed, data=data)

    @classmethod
    def tight_case(cls) -> tuple[Self, Pair]:
        """At any epsilon, for any data with a listener that has a neighbour to hear."""
        mechanism = cls.example(epsilon=1.0)
        return mechanism, next(mechanism.hard_pairs())


def check_messages(
    messages: Messages, spoken: npt.NDArray[np.bool_], roles: Roles, unit: int
) -> None:
    """Refuse messages on which the theorem does not hold: all of them are public.

    Nobody speaks twice, and a node says at most its loudness: `unit`, or half of it if it listens.
    """
    if (messages.speaks & spoken).any():
        raise ParameterError("a node speaks in two rounds")
    loudness = np.add.reduceat(np.abs(messages.units), messages.starts[:-1][messages.speaks])
    if (loudness > np.where(roles.listens, unit // 2, unit)[messages.speaks]).any():
        raise ParameterError("a node says more than its loudness")
