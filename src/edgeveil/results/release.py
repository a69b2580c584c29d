"""Release: released values with their guarantee and provenance. Immutable."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil._internal.files import write_atomically
from edgeveil._internal.notebook import html_table
from edgeveil._internal.words import counted
from edgeveil.errors import InputError, ParameterError
from edgeveil.estimate.hashing import hash_nodes, instant_embedding
from edgeveil.graph.nodes import NodeId, NodeSet
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.results.provenance import OutputKind, Provenance, metadata_of, output_of
from edgeveil.results.tabular import Tabular, read_only

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Vector = npt.NDArray[np.float64]


class RankedNode(NamedTuple):
    """One entry of a ranking.

    Attributes
    ----------
    rank : int
        Rank of the node; 1 is the best.
    node : id
        The node.
    score : float
        The released score.
    uncertainty : float or None
        How far noise may have moved the score (95 %); None if nothing is known about it.
    first, last : int or None
        The best and the worst rank among the nodes that cannot be told apart from this one, at
        95 % for each pair separately. Both equal `rank` if it can be told apart from all others.
        A node in between with a smaller uncertainty may still be told apart.
    """

    rank: int
    node: int | str
    score: float
    uncertainty: float | None
    first: int | None
    last: int | None

    def __str__(self) -> str:
        text = f"{self.rank}. {self.node}: {self.score:.6g}"
        if self.uncertainty is None or self.first is None or self.last is None:
            return text
        span = f"ranks {self.first} to {self.last}" if self.first < self.last else "this rank"
        return f"{text} +- {self.uncertainty:.2g} ({span})"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Release(Tabular):
    """Rows of scores or embeddings, one per source, with their guarantee.

    Attributes
    ----------
    values : array of shape (sources, columns), read-only
        Row i belongs to source i.
    sources : tuple of ids
        The source nodes.
    columns : NodeSet
        The nodes that the columns belong to; of embeddings the dimensions 0, 1, ..., or names.
    output : {"scores", "embeddings"}
        What the values are.
    guarantee : Guarantee
        What is protected; everything made from the release keeps it.
    provenance : Provenance
        How it was made.
    uncertainty : array of shape (sources, 1) or (sources, columns), read-only, or None
        Scores only: half-width of a 95 % interval for the change of a score by noise. The
        mechanism's ``uncertainty`` says exactly what that covers. None: unknown.
    shown : array of bool of shape (columns,), read-only, or None
        Scores only: the nodes that `top` and `ranking` choose from; None for all. `values` always
        has all nodes.
    """

    values: npt.NDArray[np.float64]
    sources: tuple[NodeId, ...]
    columns: NodeSet
    output: OutputKind
    guarantee: Guarantee
    provenance: Provenance
    uncertainty: npt.NDArray[np.float64] | None = None
    shown: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        values = read_only(self.values, np.float64)
        if values.shape != (len(self.sources), len(self.columns)):
            raise ParameterError("a release needs one row per source and one value per column")
        if self.output not in ("scores", "embeddings"):
            raise ParameterError(f"output must be 'scores' or 'embeddings', got {self.output!r}")
        object.__setattr__(self, "values", values)
        if self.uncertainty is not None:
            half = read_only(self.uncertainty, np.float64)
            if self.output != "scores" or half.shape not in (values.shape, (len(values), 1)):
                raise ParameterError("uncertainty needs one value per score, or one per row")
            if not (half >= 0).all():
                raise ParameterError("uncertainty must not be negative")
            object.__setattr__(self, "uncertainty", half)
        if self.shown is not None:
            shown = read_only(np.array(self.shown))
            if self.output != "scores" or shown.dtype != bool or shown.shape != values.shape[1:]:
                raise ParameterError("shown needs one truth value per node")
            object.__setattr__(self, "shown", shown)

    def row(self, source: NodeId) -> npt.NDArray[np.float64]:
        """The row of one source."""
        row: npt.NDArray[np.float64] = self.values[self._at(source)]
        return row

    def only(self, source: NodeId) -> Release:
        """The part of the release that the member at this source may see."""
        at, half = self._at(source), self.uncertainty
        half = None if half is None else half[at : at + 1]
        return replace(self, values=self.values[at : at + 1], sources=(source,), uncertainty=half)

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
            Number of nodes.
        source : id, optional
            The source of the row; not needed if there is only one row.
        without : iterable of ids
            Nodes to leave out, for example the source and its friends.
        candidates : iterable of ids, optional
            Choose only from these nodes. Nodes that are not `shown` are left out in any case.
        """
        row, order = self._ordered(source, without, candidates)
        scores = self.values[row]
        return [(self.columns[int(i)], float(scores[i])) for i in order[: max(0, k)]]

    def ranking(
        self,
        k: int = 10,
        source: NodeId | None = None,
        *,
        without: Iterable[NodeId] = (),
        candidates: Iterable[NodeId] | None = None,
    ) -> list[RankedNode]:
        """The k best nodes, each with the range of ranks that is possible given the noise.

        Two nodes can be told apart if their scores differ by more than sqrt(h^2 + g^2), where h
        and g are their uncertainties: then they have the same order without noise, with
        probability 95 % for each pair separately. `first` and `last` are the best and the worst
        rank among all nodes that cannot be told apart from this one. They, and `uncertainty`, are
        None if nothing is known about the noise.

        Parameters
        ----------
        k, source, without, candidates
            As for `top`.
        """
        row, order = self._ordered(source, without, candidates)
        half = self.uncertainty
        if half is not None:
            half = np.broadcast_to(half[row], len(self.columns))[order]
        first = self.columns.take(order[: max(0, k)])
        return ranked_nodes(first, self.values[row][order], half)

    def showing(
        self, *, without: Iterable[NodeId] = (), candidates: Iterable[NodeId] | None = None
    ) -> Release:
        """The same release with `shown` set, so that `top` and `ranking` leave nodes out.

        Only for a release of one row, because the nodes left out may be known to its member only.
        """
        if len(self.sources) != 1:
            raise ParameterError("this release has several rows: take one with only(source)")
        return replace(self, shown=self._chosen(without, candidates))

    def _chosen(
        self, without: Iterable[NodeId], candidates: Iterable[NodeId] | None
    ) -> npt.NDArray[np.bool_]:
        """Which nodes may be in a ranking."""
        if self.output != "scores":
            raise ParameterError("an embedding has no ranking; use a mechanism that gives scores")
        chosen = np.ones(len(self.columns), dtype=np.bool_)
        if candidates is not None:
            chosen[:] = False
            chosen[self.columns.indices(candidates)] = True
        chosen[self.columns.indices(without)] = False
        return chosen if self.shown is None else chosen & self.shown

    def _ordered(
        self,
        source: NodeId | None,
        without: Iterable[NodeId],
        candidates: Iterable[NodeId] | None,
    ) -> tuple[int, npt.NDArray[np.int64]]:
        """The row of a source, and the nodes that may be in its ranking, best first."""
        chosen = self._chosen(without, candidates)
        if source is None:
            if len(self.sources) != 1:
                raise ParameterError("this release has several rows: name one with source=")
            source = self.sources[0]
        row = self._at(source)
        # Stable: equal scores are in the order of the public node set.
        order = np.argsort(-self.values[row], kind="stable")
        return row, order[chosen[order]]

    def embed(self, *, dimension: int = 256, hash_key: str = "edgeveil") -> Release:
        """Embed every row of scores (algorithm 4): post-processing, the guarantee stays.

        Parameters
        ----------
        dimension : int
            Length of an embedding.
        hash_key : str
            Chooses the public hash of nodes to dimensions.
        """
        if self.output != "scores":
            raise ParameterError("this release holds embeddings already")
        node_hash = hash_nodes(self.columns, dimension, hash_key)
        step = f"instant-embedding(dimension={node_hash.dimension}, hash_key={hash_key!r})"
        return replace(
            self,
            values=instant_embedding(self.values, node_hash),
            columns=NodeSet.range(node_hash.dimension),
            output="embeddings",
            provenance=replace(self.provenance, mechanism=f"{self.provenance.mechanism} > {step}"),
            uncertainty=None,  # belongs to the scores
            shown=None,
        )

    def _headline(self) -> str:
        rows = counted(len(self.sources), "row")
        if self.output == "embeddings" and self.columns.kind == "str":
            return f"{self.provenance.mechanism}: {rows} of {', '.join(self._names)}."
        size = f"embeddings in {len(self.columns)} dimensions"
        if self.output == "scores":
            size = f"scores of {len(self.columns)} nodes"
        return f"{self.provenance.mechanism}: {rows}, {size}."

    def _preview(self) -> str:
        if self.output != "scores" or len(self.sources) != 1:
            return ""
        lines = [(p.rank, p.node, p.score, in_words(p.first, p.last)) for p in self.ranking()]
        return html_table(("rank", "node", "score", "could be rank"), lines)

    # -- tables of other libraries -------------------------------------------------------------

    def to_numpy(self) -> npt.NDArray[np.float64]:
        """The rows as a new array, one per source."""
        return self.values.copy()

    def to_scipy(self) -> csr_array:
        """Embeddings as a sparse scipy matrix, one row per source.

        Most values of an embedding are 0, so this takes less memory, and scikit-learn's linear
        models train much faster. A matrix cannot carry the guarantee: keep the release as well.
        """
        from scipy.sparse import csr_array

        return csr_array(self._embeddings())

    def to_word2vec(self, path: str | os.PathLike[str]) -> None:
        """Write embeddings as word2vec text, which gensim and many other tools read.

        The format cannot carry the guarantee. A warning says so if the release is not private. Ids
        with white space are refused, because the format cannot hold them.
        """
        embeddings, names = self._embeddings(), [str(source) for source in self.sources]
        odd = [name for name in names if not name or any(letter.isspace() for letter in name)]
        if odd:
            raise ParameterError(
                f"word2vec text cannot hold an id that is empty or has white space, such as "
                f"{odd[0]!r}; rename the nodes, or write .parquet"
            )
        if not self.guarantee.protects:
            warnings.warn(f"{path} cannot say: {self.guarantee}", stacklevel=2)

        def write(part: Path) -> None:
            with part.open("w", encoding="utf-8", newline="\n") as file:
                file.write(f"{len(embeddings)} {embeddings.shape[1]}\n")
                for name, row in zip(names, embeddings, strict=True):
                    file.write(" ".join([name, *map(repr, row.tolist())]) + "\n")

        write_atomically(Path(path), write)

    @property
    def _names(self) -> list[str]:
        """Names of the columns of embeddings."""
        if self.columns.kind == "str":
            return [str(name) for name in self.columns]
        return [f"x{i}" for i in range(len(self.columns))]

    def _embeddings(self) -> npt.NDArray[np.float64]:
        if self.output != "embeddings":
            raise ParameterError("this release holds scores: embed() makes embeddings of them")
        return self.values

    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        """One line per source and node that is `shown`, or per source: source, x0, x1, ...

        The same columns for any number of sources, so that tables can be put under one another.
        Lines go source by source, nodes in the order of the node set.
        """
        sources = NodeSet.of(self.sources).ids
        if self.output == "embeddings":
            return {"source": sources, **dict(zip(self._names, self.values.T, strict=True))}
        shown = np.ones(len(self.columns), np.bool_) if self.shown is None else self.shown
        columns: dict[str, npt.NDArray[Any]] = {
            "source": np.repeat(sources, shown.sum()),
            "node": np.tile(self.columns.ids[shown], len(sources)),
            "score": self.values[:, shown].ravel(),
        }
        if self.uncertainty is not None:
            half = np.broadcast_to(self.uncertainty, self.values.shape)
            columns["uncertainty"] = half[:, shown].ravel()
        return columns

    # -- files ----------------------------------------------------------------------------

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The table of a file, and its label."""
        label = {"sources": list(self.sources), **self._label()}
        if self.output == "scores":
            table: dict[str, Any] = {"node": list(self.columns)}
            named, half = zip(self.sources, self.values, strict=True), self.uncertainty
            table |= {f"score of {source}": row for source, row in named}
            table |= {} if self.shown is None else {"shown": self.shown}
            if half is not None and half.shape[1] == 1:  # one number per row goes to the label
                label["uncertainty"] = half[:, 0].tolist()
            elif half is not None:
                table |= {f"uncertainty of {s}": h for s, h in zip(self.sources, half, strict=True)}
        else:
            table = {"source": list(self.sources)}
            label |= {"columns": list(self.columns)} if self.columns.kind == "str" else {}
            table |= {name: self.values[:, i] for i, name in enumerate(self._names)}
        return table, label

    @classmethod
    def joined(cls, parts: Sequence[Release]) -> Release:
        """Join several parts of one release."""
        halves = [part.uncertainty for part in parts if part.uncertainty is not None]
        return replace(
            parts[0],
            values=np.concatenate([part.values for part in parts]),
            uncertainty=np.concatenate(halves) if halves else None,
            sources=tuple(source for part in parts for source in part.sources),
        )

    @classmethod
    def _from_parts(cls, table: Mapping[str, Any], label: Mapping[str, Any]) -> Release:
        """The inverse of `to_parts`. Columns are found by name, in any order."""
        output = output_of(label)
        sources = tuple(NodeSet.of(label["sources"]))
        if output == "scores":
            columns = NodeSet.of(table["node"])
            names = [f"score of {source}" for source in sources]
        else:
            names = [f"x{i}" for i in range(len(table) - 1)]
            columns = NodeSet.range(len(names))
            if not set(names) <= set(table):
                names = [name for name in label["columns"] if isinstance(name, str)]
                columns = NodeSet.of(names)
            if tuple(NodeSet.of(table["source"])) != sources:
                raise InputError("the rows do not belong to the sources")
        values = np.array([table[name] for name in names], dtype=np.float64)
        return cls(
            values=values.reshape(len(names), -1) if output == "scores" else values.T,
            sources=sources,
            columns=columns,
            output=output,
            **metadata_of(label)._asdict(),
            uncertainty=cls._uncertainty_from(table, label, sources),
            shown=np.array(table["shown"]) if output == "scores" and "shown" in table else None,
        )

    @staticmethod
    def _uncertainty_from(
        table: Mapping[str, Any], label: Mapping[str, Any], sources: Iterable[NodeId]
    ) -> npt.NDArray[np.float64] | None:
        """The uncertainty in a table or its label, if any; LookupError if some is missing."""
        if "uncertainty" in label:
            return np.array(label["uncertainty"], dtype=np.float64)[:, None]
        names = [f"uncertainty of {source}" for source in sources]
        if not any(name in table for name in names):
            return None
        return np.array([table[name] for name in names], dtype=np.float64)


# -- ranks that the noise leaves open ----------------------------------------------------------


def in_words(first: int | None, last: int | None) -> str:
    """Which ranks the noise leaves open.

    >>> in_words(3, 9), in_words(4, 4), in_words(None, None)
    ('3 to 9', '4', 'not known')
    """
    if first is None or last is None:
        return "not known"
    return f"{first} to {last}" if first < last else str(first)


def ranked_nodes(
    nodes: Sequence[int | str], scores: Vector, halves: Vector | None
) -> list[RankedNode]:
    """The first nodes of a ranking.

    Parameters
    ----------
    nodes : sequence of ids
        The first nodes.
    scores : array of shape (m,)
        All scores of the ranking, from the highest to the lowest.
    halves : array of shape (m,), optional
        Their half-widths, if known.
    """
    k = len(nodes)
    shown = zip(range(1, k + 1), nodes, scores[:k].tolist(), strict=True)
    if halves is None:
        return [RankedNode(*node, None, None, None) for node in shown]
    around = zip(halves[:k].tolist(), tie_ranges(scores, halves, k), strict=True)
    return [
        RankedNode(*node, half, first + 1, last + 1)
        for node, (half, (first, last)) in zip(shown, around, strict=True)
    ]


def tie_ranges(scores: Vector, halves: Vector, k: int) -> list[tuple[int, int]]:
    """First and last rank (from 0) that cannot be told apart from each of the first k.

    Two scores x and y with 95 % half-widths h and g can be told apart if |x - y| exceeds
    sqrt(h^2 + g^2). The errors of the two are independent, so for normal errors that is the 95 %
    half-width of their difference; for Laplace errors it is a little more than needed: with h = b
    ln 20 and g = c ln 20 the difference exceeds it with probability (b^2 e^(-t/b) - c^2 e^(-t/c)) /
    (b^2 - c^2), t = ln 20 sqrt(b^2 + c^2), which is 0.05 for c = 0 and falls to 0.045 at c = b. To
    ask that the two intervals do not overlap, |x - y| > h + g, would be stricter than 95 %.
    """
    ranges = []
    for i in range(k):
        close = np.flatnonzero(np.abs(scores - scores[i]) <= np.hypot(halves, halves[i]))
        ranges.append((int(close[0]), int(close[-1])))
    return ranges
