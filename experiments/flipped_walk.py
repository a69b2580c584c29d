"""PageRank on flipped graphs, many sources at once: what `EdgeFlipping.rows` gives, faster.

A flipped graph of n nodes has about n^2 / (1 + e^epsilon) arcs, and in the joint model every
source sees another one: its own edges are put back. `EdgeFlipping` builds that graph anew for
every source. Here the adjacency matrix stays one (a dense one if it is dense) and the true row
and column of the source are put into each product:

    (A_s x)_v = (A x)_v + (a_sv - a~_sv) x_s  for v != s,      (A_s x)_s = sum_u a_su x_u.

`all_pairs` solves for all sources at once on the one shared graph, by a Cholesky inverse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil.errors import EdgeveilError
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms.run import shared_part
from edgeveil.privacy.noise import NoiseSource

__all__ = ["FlippedWalk", "all_pairs", "flipped_rows"]

Matrix = npt.NDArray[np.float64]

_SINGLE_FROM = 2000  # nodes from which a dense matrix is held in float32
_DENSE_FROM = 0.02  # share of all pairs from which a dense product is the faster one


class FlippedWalk:
    """The walk on one flipped graph, as each source sees it.

    Parameters
    ----------
    original : Graph
        The private graph; only the edges at a source are used for that source.
    flipped : Graph
        The same graph after randomised response.
    restart, tol : float
        As for `EdgeFlipping`.
    """

    def __init__(self, original: Graph, flipped: Graph, *, restart: float, tol: float) -> None:
        self._original, self._flipped = original, flipped
        self._restart, self._tol = restart, tol
        n = flipped.n_nodes
        matrix: Any = flipped.adjacency()
        if matrix.nnz > _DENSE_FROM * n * n:
            # Large, it is close to a random graph: a step forgets nearly all of the rounding of
            # the one before, and 7 digits are enough for tol >= 1e-6.
            matrix = matrix.astype(np.float32 if n > _SINGLE_FROM else np.float64).toarray()
        self._matrix = matrix
        self._degrees = flipped.degrees.astype(np.float64)

    def rows(self, sources: Sequence[int]) -> Matrix:
        """One row per source, each within `tol` of its PageRank in L1."""
        listed = np.asarray(sources, dtype=np.int64)
        lanes = np.arange(len(listed))
        # Column j belongs to source j: what putting its edges back changes in its own column.
        change = np.zeros((self._flipped.n_nodes, len(listed)))
        for j, source in enumerate(listed):
            change[self._original.neighbours(source), j] += 1
            change[self._flipped.neighbours(source), j] -= 1
        degrees = self._degrees[:, None] + change
        degrees[listed, lanes] = self._original.degrees[listed]
        inverse = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)
        start = np.zeros_like(change)
        start[listed, lanes] = self._restart
        # With all mass from the beginning, and most of it where a long walk ends.
        walks = degrees[listed, lanes] > 0
        rows = start + (1 - self._restart) * degrees / np.maximum(degrees.sum(axis=0), 1) * walks
        for _ in range(1000):
            push = rows * inverse
            after = np.asarray(self._matrix @ push.astype(self._matrix.dtype), dtype=np.float64)
            after += change * push[listed, lanes]
            for j, source in enumerate(listed):
                after[source, j] = push[self._original.neighbours(source), j].sum()
            after = start + (1 - self._restart) * after
            moved = np.abs(after - rows).sum(axis=0).max()
            rows = after
            # One step shrinks distances by 1 - restart, so the error left is at most this.
            if moved * (1 - self._restart) / self._restart <= self._tol:
                break
        else:
            raise EdgeveilError("the walk on the flipped graph did not converge")
        rows[listed, lanes] = np.where(walks, rows[listed, lanes], 1.0)
        return np.ascontiguousarray(rows.T)


def all_pairs(graph: Graph, *, restart: float = 0.15) -> npt.NDArray[np.float32]:
    """PageRank of every source, as one dense n x n matrix (row = source), in float32.

    With S = D^-1/2 A D^-1/2 the matrix I - (1 - restart) S is symmetric with eigenvalues in
    [restart, 2 - restart], so its Cholesky inverse is stable; the cost is n^3 operations and
    4 n^2 bytes twice.
    """
    from scipy.linalg.lapack import spotrf, spotri

    n = graph.n_nodes
    degrees = np.maximum(graph.degrees, 1).astype(np.float64)
    root = np.sqrt(degrees).astype(np.float32)
    # Fortran order, because LAPACK then works in place; the matrix is symmetric anyway.
    system = np.asfortranarray(graph.adjacency().astype(np.float32).toarray().T)
    system *= np.float32(restart - 1) / root[:, None]
    system /= root[None, :]
    system[np.arange(n), np.arange(n)] += 1
    system, failed = spotrf(system, lower=0, clean=0, overwrite_a=1)
    if not failed:
        system, failed = spotri(system, lower=0, overwrite_c=1)
    if failed:
        raise EdgeveilError("the flipped graph's walk matrix could not be inverted")
    # Only the upper triangle is filled.
    inverse = np.triu(system)
    inverse += np.triu(system, 1).T
    inverse *= np.float32(restart) / root[:, None]
    inverse *= root[None, :]
    isolated = np.flatnonzero(graph.degrees == 0)
    inverse[isolated, isolated] = 1.0
    return np.ascontiguousarray(np.maximum(inverse, 0))


def flipped_rows(
    graph: Graph, mechanism: Any, sources: Sequence[int], repeats: int, noise: NoiseSource
) -> Iterator[tuple[Matrix, Any]]:
    """What `repeated_rows` gives for `EdgeFlipping` in the joint model, within its `tol`."""
    for repeat in range(repeats):
        stream = noise.derive("repeat", repeat).derive("shared")
        flipped = shared_part(mechanism, graph, stream)
        walk = FlippedWalk(graph, flipped, restart=mechanism.restart, tol=mechanism.tol)
        yield walk.rows(sources), flipped
