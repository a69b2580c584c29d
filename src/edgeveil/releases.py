"""Release: values, the guarantee they carry, and where they come from. Frozen."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from edgeveil.errors import InputError, ParameterError, UnknownNodeError
from edgeveil.io.labelled_tables import read_labelled_table, write_labelled_table
from edgeveil.nodes import NodeId, NodeSet
from edgeveil.privacy.guarantee import Guarantee

__all__ = ["Provenance", "Release"]

_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """How a release was made: all of it public.

    Attributes
    ----------
    mechanism : str
        Name of the mechanism, and of each post-processing step after it.
    parameters : mapping
        The mechanism's parameters.
    version : str
        Version of edgeveil.
    noise : str
        Where the random bits came from.
    ledger : bool
        Whether a ledger was charged.
    """

    mechanism: str
    parameters: Mapping[str, Any]
    version: str
    noise: str
    ledger: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """Rows of scores or embeddings, one per source, with their guarantee.

    Attributes
    ----------
    values : array of shape (sources, columns), read-only
        Row i belongs to source i.
    sources : tuple of ids
        The source nodes.
    columns : NodeSet
        What a column means: the public nodes, or the dimensions 0 .. k-1.
    kind : {"nodes", "dimensions"}
        Which of the two.
    guarantee : Guarantee
        What is protected; travels with everything made from the release.
    provenance : Provenance
        How it was made.
    """

    values: npt.NDArray[np.float64]
    sources: tuple[NodeId, ...]
    columns: NodeSet
    kind: Literal["nodes", "dimensions"]
    guarantee: Guarantee
    provenance: Provenance

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64).view()
        if values.shape != (len(self.sources), len(self.columns)):
            raise ParameterError("a release needs one row per source and one value per column")
        if self.kind not in ("nodes", "dimensions"):
            raise ParameterError(f"kind must be 'nodes' or 'dimensions', got {self.kind!r}")
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    def row(self, source: NodeId) -> npt.NDArray[np.float64]:
        """The row of one source."""
        if source not in self.sources:
            raise UnknownNodeError(f"the release has no row for {source!r}")
        row: npt.NDArray[np.float64] = self.values[self.sources.index(source)]
        return row

    def only(self, source: NodeId) -> Release:
        """The release of one source alone: what its owner may be given."""
        return replace(self, values=self.row(source)[None, :], sources=(source,))

    def top(
        self,
        k: int = 10,
        source: NodeId | None = None,
        *,
        without: Iterable[NodeId] = (),
        candidates: Iterable[NodeId] | None = None,
    ) -> list[tuple[NodeId, float]]:
        """The k nodes with the highest scores and their scores, best first.

        Parameters
        ----------
        k : int
            How many.
        source : id, optional
            Whose row; not needed if there is only one.
        without : iterable of ids
            Nodes to leave out: the source itself and those that it knows already, say.
        candidates : iterable of ids, optional
            Only these nodes.
        """
        if self.kind != "nodes":
            raise ParameterError("an embedding has no ranking; use a mechanism that gives scores")
        if source is None:
            if len(self.sources) != 1:
                raise ParameterError("this release has several rows: say whose with source=")
            source = self.sources[0]
        row = self.row(source)
        # A stable order: equal scores go by place in the public node set.
        allowed = np.ones(len(row), dtype=np.bool_)
        if candidates is not None:
            allowed[:] = False
            allowed[self.columns.indices(candidates)] = True
        allowed[self.columns.indices(without)] = False
        order = np.argsort(-row, kind="stable")
        order = order[allowed[order]][: max(0, k)]
        return [(self.columns[int(i)], float(row[i])) for i in order]

    def with_values(
        self,
        values: npt.NDArray[np.float64],
        columns: NodeSet,
        kind: Literal["nodes", "dimensions"],
        step: str,
    ) -> Release:
        """The release that post-processing makes of this one: the guarantee stays."""
        provenance = replace(self.provenance, mechanism=f"{self.provenance.mechanism} > {step}")
        return replace(self, values=values, columns=columns, kind=kind, provenance=provenance)

    def __str__(self) -> str:
        what = "scores of" if self.kind == "nodes" else "embeddings in"
        unit = "nodes" if self.kind == "nodes" else "dimensions"
        rows = "1 row" if len(self.sources) == 1 else f"{len(self.sources)} rows"
        made = f"{self.provenance.mechanism}: {rows}, {what} {len(self.columns)} {unit}."
        return f"{made} {self.guarantee}"

    __repr__ = __str__

    # -- files ----------------------------------------------------------------------------

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write to .parquet or .json, guarantee and provenance included, atomically.

        Scores become one line per node and one column per source; embeddings one line per
        source and one column per dimension.
        """
        label = {
            "format": _FORMAT,
            "kind": self.kind,
            "sources": list(self.sources),
            "guarantee": self.guarantee.as_dict(),
            "statement": str(self.guarantee),
            "provenance": {
                "mechanism": self.provenance.mechanism,
                "parameters": dict(self.provenance.parameters),
                "version": self.provenance.version,
                "noise": self.provenance.noise,
                "ledger": self.provenance.ledger,
            },
        }
        if self.kind == "nodes":
            table: dict[str, Any] = {"node": list(self.columns)}
            table |= {_score_of(s): row for s, row in zip(self.sources, self.values, strict=True)}
        else:
            table = {"source": list(self.sources)}
            table |= {f"x{i}": self.values[:, i] for i in range(len(self.columns))}
        write_labelled_table(path, table, label)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Release:
        """Read what `write` wrote.

        Raises
        ------
        InputError
            If the file is no release or is damaged.
        """
        table, label = read_labelled_table(path)
        try:
            if label["format"] == _FORMAT:
                return cls._from_parts(table, label)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(f"{path} is not a release, or is damaged") from error
        raise InputError(f"{path} was written by a newer version of edgeveil")

    @classmethod
    def _from_parts(cls, table: Mapping[str, Any], label: Mapping[str, Any]) -> Release:
        """Put together what `write` took apart. By name: nothing may depend on the order."""
        guarantee, kind = label["guarantee"], label["kind"]
        if set(guarantee) != {field.name for field in fields(Guarantee)}:
            # A default must not stand in for what is missing: `private` is True by default.
            raise InputError("part of the guarantee is missing")
        sources = tuple(NodeSet.of(label["sources"]))
        if kind == "nodes":
            columns = NodeSet.of(table["node"])
            names = [_score_of(source) for source in sources]
        else:
            columns = NodeSet.range(len(table) - 1)
            names = [f"x{i}" for i in range(len(columns))]
            if tuple(NodeSet.of(table["source"])) != sources:
                raise InputError("the rows do not belong to the sources")
        values = np.array([table[name] for name in names], dtype=np.float64)
        return cls(
            values=values.reshape(len(names), -1) if kind == "nodes" else values.T,
            sources=sources,
            columns=columns,
            kind=kind,
            guarantee=Guarantee(**guarantee),
            provenance=Provenance(**label["provenance"]),
        )


def _score_of(source: NodeId) -> str:
    """Name of the column with the scores of a source."""
    return f"score of {source}"
