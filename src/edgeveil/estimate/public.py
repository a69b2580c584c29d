"""What is public about the nodes: labels, roles, features, vectors. Large, so known by digests.

A mechanism may have such data as a parameter. Files, a ledger's questions and noise keys then hold
the digest.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._internal.flat_rows import row_sums, take_rows
from edgeveil.errors import ParameterError
from edgeveil.estimate.classification import (
    Indices,
    Labels,
    Matrix,
    Messages,
    Roles,
    frequencies,
    from_features,
    from_prior,
)
from edgeveil.graph.nodes import NodeId, NodeSet

_MOST_UNITS = 1 << 20  # in which a vector of the largest norm is counted
_MOST_NAMED = 2_000  # characters of the names of columns


class PublicData(ABC):
    """Public data of the nodes, compared by their digest."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of all of it."""

    @property
    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """What it is, as plain data: with the digest, what a release records."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicData) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.digest[:16]})"

    def __deepcopy__(self, memo: dict[int, Any]) -> PublicData:
        return self  # nothing in it changes


class AlignedData(NamedTuple):
    """What the rounds of classification start from, for the nodes of one graph."""

    labels: Labels
    roles: Roles
    log_prior: Matrix


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NodeData(PublicData):
    """Labels, roles, and features or class probabilities of the nodes.

    Nothing here may come from the edges (docs/theory/classification.md, Conditions).

    Attributes
    ----------
    nodes : NodeSet
        The nodes, in the order of the rows.
    classes : tuple of ids
        Names of the classes.
    labels : Labels
        Who has which labels.
    roles : Roles
        Who listens, and which labelled nodes do.
    features : array or csr_array of shape (nodes, columns), optional
        A model without the graph is fitted to them.
    prior : array of shape (nodes, classes), optional
        Instead of features: class probabilities of a model of the user's own.
    """

    nodes: NodeSet
    classes: tuple[NodeId, ...]
    labels: Labels
    roles: Roles
    features: Any = None
    prior: Matrix | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of nodes, classes, labels, roles, and features or prior."""
        digest = self.nodes.digest(json.dumps(self.classes).encode())
        labels, roles = self.labels, self.roles
        arrays = [labels.starts, labels.classes, roles.listens, roles.trains, roles.validates]
        _add(digest, "labels and roles", *arrays)
        if self.features is not None:
            _add(digest, "features", *arrays_of(self.features))
        if self.prior is not None:
            _add(digest, "prior", self.prior)
        return digest.hexdigest()

    @property
    def summary(self) -> dict[str, Any]:
        """How many have labels, and which role."""
        source = (
            "features" if self.features is not None else "prior" if self.prior is not None else ""
        )
        return {
            "classes": len(self.classes),
            "labelled": int(self.labels.labelled.sum()),
            "trained": int(self.roles.trains.sum()),
            "validated": int(self.roles.validates.sum()),
            "listen": int(self.roles.listens.sum()),
            "without_graph": source or "class frequencies",
        }

    @cached_property
    def log_prior(self) -> Matrix:
        """Log probabilities of the classes without the graph; out of fold for labelled nodes."""
        if self.prior is not None:
            return from_prior(self.prior)
        if self.features is not None:
            return from_features(self.features, self.labels)
        return frequencies(self.labels, len(self.nodes))

    def on(self, nodes: NodeSet) -> AlignedData:
        """For these nodes, found by their ids.

        An audit runs on small graphs of its own, which may have other nodes: they have no label,
        and listen.
        """
        if nodes == self.nodes:
            return AlignedData(self.labels, self.roles, self.log_prior)
        at = _indices_in(self.nodes, nodes)
        present = at >= 0

        def marked(mask: npt.NDArray[np.bool_], otherwise: bool) -> npt.NDArray[np.bool_]:
            return np.where(present, mask[at], otherwise)

        roles = self.roles
        log_prior = np.full((len(at), len(self.classes)), -np.log(len(self.classes)))
        log_prior[present] = self.log_prior[at[present]]
        return AlignedData(
            self.labels.at(at),
            Roles(
                marked(roles.listens, True),
                marked(roles.trains, False),
                marked(roles.validates, False),
            ),
            log_prior,
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NodeVectors(PublicData):
    """A vector of whole numbers for each node: ``units[j]`` in column ``columns[j]``.

    j runs over ``starts[v] : starts[v + 1]``. Nothing here may come from the edges.

    Attributes
    ----------
    nodes : NodeSet
        The nodes, in the order of the rows.
    names : tuple of str
        Names of the columns; empty if they have none.
    width : int
        Number of columns.
    starts, columns, units : arrays of int
        The vectors; the units of a node have absolute values that add up to at most `most`.
    most : int
        How many units a node may say in all.
    unit : float
        What a unit stands for.
    clipped : float
        Share of the nodes whose vector was scaled down to fit.
    """

    nodes: NodeSet
    names: tuple[str, ...]
    width: int
    starts: Indices
    columns: Indices
    units: Indices
    most: int
    unit: float
    clipped: float = 0.0

    def __post_init__(self) -> None:
        # What an edge moves is counted in `most`: the theorem does not hold with longer vectors
        single = self.units.clip(-self.most, self.most)
        if (single != self.units).any() or (self.lengths > self.most).any():
            raise ParameterError(f"a vector has more than {self.most:,} units in all")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of nodes, names and vectors."""
        digest = self.nodes.digest(json.dumps([self.names, self.width, self.most]).encode())
        _add(digest, repr(self.unit), self.starts, self.columns, self.units)
        return digest.hexdigest()

    @property
    def summary(self) -> dict[str, Any]:
        """Names, bound, and how much was clipped."""
        few = sum(map(len, self.names)) <= _MOST_NAMED  # a ledger's notes are small
        return {
            "columns": (list(self.names) if few else []) or self.width,
            "bound": self.unit * self.most,
            "clipped": self.clipped,
        }

    @property
    def lengths(self) -> Indices:
        """The L1 norm of every vector, in units."""
        return row_sums(self.starts, np.abs(self.units))

    def on(self, nodes: NodeSet) -> Messages:
        """The vectors of these nodes, found by their ids.

        An audit runs on small graphs of its own: nodes that are not here have a vector of 0.
        """
        if nodes == self.nodes:
            return Messages(self.starts, self.columns, self.units)
        at = _indices_in(self.nodes, nodes)
        starts, places = take_rows(self.starts, at)
        return Messages(starts, self.columns[places], self.units[places])

    @classmethod
    def clip(cls, nodes: NodeSet, names: tuple[str, ...], values: Any, bound: float) -> NodeVectors:
        """Vectors of L1 norm at most `bound`, longer ones scaled down, in units of bound / 2**20.

        Entries are rounded toward 0, so that the units of a node add up to at most 2**20: exactly,
        in whole numbers.
        """
        import scipy.sparse as sp

        matrix = sp.csr_array(values, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        counts = np.diff(matrix.indptr)
        norms = np.asarray(abs(matrix).sum(axis=1)).ravel()
        share = bound / np.maximum(norms, bound)
        entries = matrix.data * np.repeat(share, counts) / bound
        units = np.trunc(entries * _MOST_UNITS).astype(np.int64)
        excess = row_sums(matrix.indptr, np.abs(units)) > _MOST_UNITS
        if excess.any():  # float sums are a hair too long: one unit less in every entry
            less = np.repeat(excess, counts)
            units[less] -= np.sign(units[less])
        return cls(
            nodes=nodes,
            names=names,
            width=matrix.shape[1],
            starts=matrix.indptr.astype(np.int64),
            columns=matrix.indices.astype(np.int64),
            units=units,
            most=_MOST_UNITS,
            unit=bound / _MOST_UNITS,
            clipped=float((norms > bound * (1 + 2.0**-40)).mean()) if len(norms) else 0.0,
        )


def _indices_in(own: NodeSet, nodes: NodeSet) -> Indices:
    """The index in `own` of each of these nodes, -1 if it has none."""
    return np.array([-1 if (i := own.find(node)) is None else i for node in nodes], np.int64)


def arrays_of(matrix: Any) -> Iterable[npt.NDArray[Any]]:
    """The arrays of a dense matrix, or of a sparse one in its canonical form."""
    if not hasattr(matrix, "tocsr"):
        return (np.asarray(matrix),)
    return (np.array(matrix.shape), matrix.indptr, matrix.indices, matrix.data)


def _add(digest: hashlib._Hash, name: str, *arrays: npt.NDArray[Any]) -> None:
    digest.update(name.encode())
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape};".encode())
        digest.update(np.ascontiguousarray(array).data)
