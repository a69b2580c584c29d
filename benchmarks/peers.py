"""How every library is called for exact PageRank: each as fast as we know to make it.

A maker prepares a library's own form of the graph, outside of what is timed, and gives one or
more contenders. It raises ImportError where the library is not installed.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.problem import Matrix, Problem, Sources, chebyshev_steps, nth, power_steps
from benchmarks.settings import ERROR, RESTART, SINGLE
from edgeveil.flow import personalized_pagerank

__all__ = ["MAKERS", "NOT_ON_LARGE", "TUNED", "Contender", "mkl_product", "torch_matrix"]

FOLLOW = 1 - RESTART
TUNED = "edgeveil, tuned like the peers"


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One way to compute exact PageRank.

    solve : sources and a setting -> the library's own kind of result; this is what is timed
    rows : that result -> (sources, n)
    settings : from loose to strict; the first one that reaches ERROR is measured
    kind : "ours", "peer", or "other method": a library's product under a method of ours
    """

    name: str
    solve: Callable[[Sources, Any], Any]
    rows: Callable[[Any], Matrix]
    settings: Sequence[Any]
    what: str  # what the setting is called
    block: bool  # a whole block of sources per call, or one
    kind: str = "peer"
    patience: float = 60.0  # CPU seconds of one call beyond which no stricter setting is tried


def _edgeveil(problem: Problem) -> list[Contender]:
    def solve(sources: Sources, tol: float) -> Matrix:
        return personalized_pagerank(problem.graph, sources, restart=RESTART, tol=tol)

    shared = {"solve": solve, "rows": np.asarray, "what": "tol", "block": True, "kind": "ours"}
    looser = [ERROR * factor for factor in (1000, 500, 200, 100, 50, 20, 10, 5, 2, 1)]
    return [
        Contender(name="edgeveil", settings=[ERROR], **shared),
        Contender(name=TUNED, settings=looser, **shared),
    ]


def _scipy(problem: Problem) -> list[Contender]:
    walk = problem.walk

    def power(sources: Sources, rounds: int) -> Matrix:
        return nth(power_steps(walk, sources), rounds)

    def chebyshev(sources: Sources, rounds: int) -> Matrix:
        return nth(chebyshev_steps(walk, sources), rounds)

    def vector(sources: Sources, rounds: int) -> Matrix:
        p = np.zeros(walk.shape[0])
        p[sources[0]] = 1.0
        for _ in range(rounds):
            p = walk @ p
            p[sources[0]] += RESTART
        return p

    rounds = _from(problem.power_rounds)
    return [
        Contender(
            name="scipy, one source",
            solve=vector,
            rows=np.atleast_2d,
            settings=rounds,
            what="rounds",
            block=False,
        ),
        Contender(
            name="scipy, block",
            solve=power,
            rows=np.transpose,
            settings=rounds,
            what="rounds",
            block=True,
        ),
        Contender(
            name="scipy, block, Chebyshev",
            solve=chebyshev,
            rows=np.transpose,
            settings=_from(problem.chebyshev_rounds),
            what="rounds",
            block=True,
            kind="other method",
        ),
    ]


def _torch(problem: Problem) -> list[Contender]:
    import torch

    torch.set_num_threads(1)
    walk = torch_matrix(problem.walk)
    single_walk = torch_matrix(problem.walk.astype(np.float32))

    def vector(sources: Sources, rounds: int) -> Any:
        p = torch.zeros(walk.shape[0], dtype=torch.float64)
        p[int(sources[0])] = 1.0
        for _ in range(rounds):
            p = walk @ p
            p[int(sources[0])] += RESTART
        return p

    def block(sources: Sources, rounds: int, walk: Any = walk) -> Any:
        at, lanes = torch.from_numpy(sources), torch.arange(len(sources))
        p = torch.zeros((walk.shape[0], len(sources)), dtype=walk.dtype)
        p[at, lanes] = 1.0
        for _ in range(rounds):
            p = walk @ p
            p[at, lanes] += RESTART
        return p

    shared = {"settings": _from(problem.power_rounds), "what": "rounds"}
    return [
        Contender(
            name="torch CSR, one source",
            solve=vector,
            rows=lambda p: p.numpy()[None, :],
            block=False,
            **shared,
        ),
        Contender(
            name="torch CSR, block", solve=block, rows=lambda p: p.numpy().T, block=True, **shared
        ),
        Contender(
            name=f"torch CSR, block{SINGLE}",
            solve=partial(block, walk=single_walk),
            rows=lambda p: p.numpy().T,
            block=True,
            **shared,
        ),
    ]


def torch_matrix(matrix: sp.csr_array) -> Any:
    """A torch CSR tensor; with 32-bit indices, which its fast product asks for."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int32)),
            torch.from_numpy(matrix.indices.astype(np.int32)),
            torch.from_numpy(matrix.data.copy()),
            size=matrix.shape,
            check_invariants=False,
        )


def mkl_product() -> Callable[[Any, Matrix], Matrix]:
    """MKL's product, of which pip puts the library where nothing looks for it."""
    libraries = sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*"))
    if libraries:
        os.environ.setdefault("MKL_RT", str(libraries[0]))
    from sparse_dot_mkl import dot_product_mkl

    return dot_product_mkl


def _mkl(problem: Problem) -> list[Contender]:
    product, walk = mkl_product(), sp.csr_matrix(problem.walk)
    single_walk = walk.astype(np.float32)

    def block(sources: Sources, rounds: int, walk: Any = walk) -> Matrix:
        lanes = np.arange(len(sources))
        p = np.zeros((walk.shape[0], len(sources)), dtype=walk.dtype)
        p[sources, lanes] = 1.0
        for _ in range(rounds):
            p = product(walk, p)
            p[sources, lanes] += RESTART
        return p

    return [
        Contender(
            name=f"MKL, block{name}",
            solve=partial(block, walk=matrix),
            rows=np.transpose,
            settings=_from(problem.power_rounds),
            what="rounds",
            block=True,
        )
        for name, matrix in (("", walk), (SINGLE, single_walk))
    ]


def _graphblas(problem: Problem) -> list[Contender]:
    import graphblas as gb

    gb.ss.config["nthreads"] = 1
    walk = gb.io.from_scipy_sparse(sp.csr_matrix(problem.walk))
    n, plus_times = walk.nrows, gb.semiring.plus_times

    def vector(sources: Sources, rounds: int) -> Any:
        source = int(sources[0])
        p = gb.Vector.from_scalar(0.0, n, dtype=float)
        p[source] = 1.0
        for _ in range(rounds):
            p = walk.mxv(p, plus_times).new()
            p[source] = p.get(source, 0.0) + RESTART
        return p

    return [
        Contender(
            name="GraphBLAS, one source",
            solve=vector,
            rows=lambda p: p.to_dense(fill_value=0.0)[None, :],
            settings=_from(problem.power_rounds),
            what="rounds",
            block=False,
        )
    ]


def _igraph(problem: Problem) -> list[Contender]:
    import igraph

    upper = sp.triu(problem.adjacency, format="coo")
    pairs = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
    graph = igraph.Graph(n=problem.graph.n_nodes, edges=pairs)

    def solve(sources: Sources, _: Any) -> list[float]:
        return graph.personalized_pagerank(
            damping=FOLLOW, reset_vertices=int(sources[0]), implementation="prpack"
        )

    return [
        Contender(
            name="igraph (PRPACK)",
            solve=solve,
            rows=np.atleast_2d,
            settings=["its own"],
            what="accuracy",
            block=False,
        )
    ]


def _networkx(problem: Problem) -> list[Contender]:
    import networkx as nx

    graph = nx.from_scipy_sparse_array(problem.adjacency)
    n = problem.graph.n_nodes

    def solve(sources: Sources, tol: float) -> dict[int, float]:
        start = {int(sources[0]): 1.0}
        return nx.pagerank(graph, alpha=FOLLOW, personalization=start, max_iter=1000, tol=tol)

    return [
        Contender(
            name="networkx",
            solve=solve,
            rows=lambda scores: np.array([[scores[v] for v in range(n)]]),
            settings=[10.0**-k for k in range(8, 14)],
            what="tol",
            block=False,
        )
    ]


def _scikit_network(problem: Problem) -> list[Contender]:
    from sknetwork.ranking import PageRank

    adjacency = sp.csr_matrix(problem.adjacency)

    def power(sources: Sources, rounds: int) -> Matrix:
        method = PageRank(FOLLOW, solver="piteration", n_iter=rounds, tol=0.0)
        return method.fit_predict(adjacency, {int(sources[0]): 1.0})

    def krylov(sources: Sources, tol: float) -> Matrix:
        method = PageRank(FOLLOW, solver="bicgstab", tol=tol)
        return method.fit_predict(adjacency, {int(sources[0]): 1.0})

    shared = {"rows": np.atleast_2d, "block": False}
    return [
        Contender(
            name="scikit-network, power iteration",
            solve=power,
            settings=_from(problem.power_rounds),
            what="n_iter",
            **shared,
        ),
        Contender(
            name="scikit-network, bicgstab",
            solve=krylov,
            settings=[10.0**-k for k in range(5, 13)],
            what="tol",
            **shared,
        ),
    ]


def _pyg(problem: Problem) -> list[Contender]:
    import torch
    from torch_geometric.utils import get_ppr

    torch.set_num_threads(1)
    entries = problem.adjacency.tocoo()
    edges = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
    n = problem.graph.n_nodes

    def solve(sources: Sources, eps: float) -> Any:
        target = torch.tensor([int(sources[0])])
        return get_ppr(edges, alpha=RESTART, eps=eps, target=target, num_nodes=n)

    def rows(result: Any) -> Matrix:
        pairs, weights = result
        row = np.zeros((1, n))
        row[0, pairs[1].numpy()] = weights.numpy()
        return row

    solve(problem.sources, 0.1)  # compiles, which must not count against its patience
    return [
        Contender(
            name="PyG get_ppr",
            solve=solve,
            rows=rows,
            settings=[10.0**-k for k in range(2, 12)],
            what="eps",
            block=False,
            patience=0.5,  # the next setting takes ten times as long or worse
        )
    ]


def _from(rounds: int) -> list[int]:
    """Numbers of rounds to try: the fewest known to do, and more for another start."""
    return [rounds, rounds + 1, rounds + 2, rounds + 5, rounds + 10, 2 * rounds, 4 * rounds]


MAKERS: dict[str, Callable[[Problem], list[Contender]]] = {
    "edgeveil": _edgeveil,
    "scipy": _scipy,
    "torch": _torch,
    "MKL": _mkl,
    "GraphBLAS": _graphblas,
    "igraph": _igraph,
    "scikit-network": _scikit_network,
    "networkx": _networkx,
    "PyG": _pyg,
}
# On the small graph these take 20 to 2,000 times as long as the fastest; on the large one that
# is hours.
NOT_ON_LARGE = ("GraphBLAS", "igraph", "scikit-network", "networkx", "PyG")
