"""InstantEmbedding's hash: nodes to dimensions and signs, and the embedding of rows of scores.

The hash is public and keyed, and depends on the node's id alone: it is the same in every run,
process and version, whichever nodes join or leave. Mechanisms use it to embed before noise,
post-processing to embed after it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgeveil._internal.checks import check_int
from edgeveil._internal.weak_cache import WeakCache
from edgeveil.errors import ParameterError
from edgeveil.graph.nodes import NodeSet

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NodeHash:
    """Dimension h_k(v) and sign h_sgn(v) of every node, in the node set's order."""

    dimension: int
    bucket: npt.NDArray[np.int64]
    sign: npt.NDArray[np.float64]

    def add_up(self, nodes: npt.NDArray[np.integer], weights: Vector | None = None) -> Vector:
        """Add weights, by default 1, of some nodes with their signs to their dimensions."""
        signed = self.sign[nodes] if weights is None else weights * self.sign[nodes]
        sums = np.bincount(self.bucket[nodes], signed, minlength=self.dimension)
        return np.asarray(sums, dtype=np.float64)


_hashes: WeakCache[NodeHash] = WeakCache()


def check_dimension(dimension: int) -> int:
    """Refuse a dimension that is not a positive integer."""
    return check_int("dimension", dimension)


def check_hash_key(key: str) -> str:
    """Refuse a key that is not text."""
    try:
        key.encode()
    except (AttributeError, UnicodeEncodeError):
        raise ParameterError(f"hash_key must be text, got {key!r}") from None
    return key


def hash_nodes(nodes: NodeSet, dimension: int, key: str = "edgeveil") -> NodeHash:
    """Hash every node to a dimension in 0 .. dimension-1 and a sign; cached while `nodes` lives.

    The key, which is public, chooses the hash function.
    """
    dimension, key = check_dimension(dimension), check_hash_key(key)
    return _hashes.get(nodes, lambda: _hash_nodes(nodes, dimension, key), (dimension, key))


def identity_hash(nodes: NodeSet) -> NodeHash:
    """The identity: a dimension of its own for every node, all signs positive."""
    return NodeHash(len(nodes), np.arange(len(nodes)), np.ones(len(nodes)))


def _hash_nodes(nodes: NodeSet, dimension: int, key: str) -> NodeHash:
    hash_key = hashlib.blake2b(key.encode(), digest_size=32, person=b"edgeveil-hash-1").digest()
    if nodes.kind == "str":
        hashed = (hashlib.blake2b(str(v).encode(), digest_size=8, key=hash_key) for v in nodes)
        digests = np.frombuffer(b"".join(h.digest() for h in hashed), dtype=">u8").astype(np.uint64)
    else:
        digests = _mix(nodes.ids.astype(np.uint64), hash_key)
    bucket = (digests >> np.uint64(1)) % np.uint64(dimension)
    sign = (digests & np.uint64(1)).astype(np.float64) * 2 - 1
    return NodeHash(dimension, bucket.astype(np.int64), sign)


def _mix(values: npt.NDArray[np.uint64], key: bytes) -> npt.NDArray[np.uint64]:
    """Keyed 64-bit mixing: xor-shift and multiply rounds (Stafford's variant 13), key between."""
    words = np.frombuffer(key, dtype="<u8")
    with np.errstate(over="ignore"):
        for word in words:
            values = values ^ word
            values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            values = values ^ (values >> np.uint64(31))
    return values


def instant_embedding(
    rows: npt.NDArray[np.float64], node_hash: NodeHash
) -> npt.NDArray[np.float64]:
    """Embed rows of PageRank scores: w[h_k(v)] += h_sgn(v) max(log(n p_v), 0) (algorithm 4).

    One row per source, here and in the result; negative scores (noise) count as 0.
    """
    n = rows.shape[1]
    out = np.empty((len(rows), node_hash.dimension))
    for row, embedding in zip(rows, out, strict=True):
        embedding[:] = node_hash.add_up(np.arange(n), np.log(np.maximum(row * n, 1.0)))
    return out


def embedding_float_error(n: int, error: float) -> float:
    """Bound on the L1 float error of the embedding of n scores whose own L1 error is `error`.

    The weight max(log(n p), 0) is n-Lipschitz in p, the weights add up to less than n, and each
    term of a sum of n terms is rounded at most n + 12 times, including a logarithm that is
    accurate to 4 ulp. Proof: docs/theory/float-error.md.
    """
    return n * error + (n + 12) * n * 2.0**-53
