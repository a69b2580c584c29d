"""The public hash and InstantEmbedding (algorithm 4)."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from edgeveil.errors import ParameterError
from edgeveil.estimate.hashing import hash_nodes, instant_embedding
from edgeveil.graph.nodes import NodeSet

KNOWN = """
import numpy as np
from edgeveil.estimate.hashing import hash_nodes
from edgeveil.graph.nodes import NodeSet

for nodes, dimension, key in (
    (NodeSet.range(6), 1000, "edgeveil"),
    (NodeSet.of([7, -1, 2**63 - 1, -(2**63)]), 1000, "edgeveil"),
    (NodeSet.of(["ann", "", "bjørn", "0"]), 1000, "edgeveil"),
    (NodeSet.range(6), 1000, "schlüssel"),
    (NodeSet.of(["ann", "0"]), 7, "schlüssel"),
):
    node_hash = hash_nodes(nodes, dimension, key)
    print(node_hash.bucket.tolist(), node_hash.sign.astype(int).tolist())
"""
ANSWERS = """
[570, 532, 866, 812, 135, 759] [-1, 1, 1, 1, -1, 1]
[419, 146, 842, 593] [-1, -1, 1, -1]
[11, 179, 833, 472] [-1, 1, -1, 1]
[512, 247, 639, 869, 54, 10] [1, -1, -1, -1, -1, -1]
[4, 0] [1, -1]
"""


@pytest.mark.parametrize("hash_seed", ["0", "12345"])
def test_the_hash_is_the_same_in_every_process_and_version(hash_seed):
    done = subprocess.run(
        [sys.executable, "-c", KNOWN],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ANSWERS.strip()


ids = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, min_size=1, max_size=30),
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True, min_size=1),
)


@given(ids, st.integers(1, 50), st.data())
def test_a_nodes_hash_depends_on_its_id_alone(listed, dimension, data):
    whole = hash_nodes(NodeSet.of(listed), dimension)
    some = data.draw(st.permutations(range(len(listed))))[: max(1, len(listed) // 2)]
    part = hash_nodes(NodeSet.of([listed[i] for i in some]), dimension)
    np.testing.assert_array_equal(part.bucket, whole.bucket[some])
    np.testing.assert_array_equal(part.sign, whole.sign[some])


@pytest.mark.parametrize("dimension", [1, 3, 256])
def test_ids_given_as_a_range_and_as_integers_hash_alike(dimension):
    assert NodeSet.range(50).kind != NodeSet.of_ints(np.arange(50)[::-1]).kind
    forward = hash_nodes(NodeSet.range(50), dimension)
    backward = hash_nodes(NodeSet.of_ints(np.arange(50)[::-1]), dimension)
    np.testing.assert_array_equal(forward.bucket, backward.bucket[::-1])
    np.testing.assert_array_equal(forward.sign, backward.sign[::-1])


def node_sets():
    return {
        "range": NodeSet.range(100_000),
        "multiples": NodeSet.of_ints(np.arange(100_000) * 4096),
        "high bits": NodeSet.of_ints(np.arange(100_000) << 40),
        "negative": NodeSet.of_ints(-np.arange(1, 100_001)),
        "strings": NodeSet.of([f"user{i}" for i in range(20_000)]),
    }


@pytest.mark.parametrize("kind", node_sets())
@pytest.mark.parametrize("dimension", [2, 7, 256])
@pytest.mark.parametrize("key", ["edgeveil", "another"])
def test_buckets_and_signs_are_uniform_and_independent(kind, dimension, key):
    nodes = node_sets()[kind]
    node_hash = hash_nodes(nodes, dimension, key)
    assert set(np.unique(node_hash.sign)) == {-1.0, 1.0}
    cells = np.bincount(2 * node_hash.bucket + (node_hash.sign > 0), minlength=2 * dimension)
    assert len(cells) == 2 * dimension
    assert stats.chisquare(cells).pvalue > 1e-4
    # Ids beside each other do not hash alike.
    together = int((node_hash.bucket[1:] == node_hash.bucket[:-1]).sum())
    assert stats.binomtest(together, len(nodes) - 1, 1 / dimension).pvalue > 1e-4


def test_different_keys_give_different_hashes():
    hashes = [hash_nodes(NodeSet.range(1000), 1000, key).bucket for key in ("a", "b", "")]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert (hashes[first] == hashes[second]).mean() < 0.01


def test_any_dimension_works_one_and_more_than_nodes_included():
    assert (hash_nodes(NodeSet.range(9), 1).bucket == 0).all()
    wide = hash_nodes(NodeSet.range(9), 1000)
    assert wide.bucket.min() >= 0
    assert wide.bucket.max() < 1000
    assert len(hash_nodes(NodeSet.range(0), 5).bucket) == 0
    rows = np.full((2, 9), 1.0)
    assert instant_embedding(rows, wide).shape == (2, 1000)
    assert instant_embedding(rows[:0], wide).shape == (0, 1000)


@pytest.mark.parametrize("dimension", [0, -1, 1.5, True, None, "8", math.nan])
def test_a_bad_dimension_is_refused(dimension):
    with pytest.raises(ParameterError, match="dimension must be an integer >= 1, got"):
        hash_nodes(NodeSet.range(3), dimension)


@pytest.mark.parametrize("key", [None, 5, b"key", "\ud800"])
def test_a_bad_key_is_refused(key):
    with pytest.raises(ParameterError, match="hash_key must be text, got"):
        hash_nodes(NodeSet.range(3), 4, key)


scores = st.one_of(st.floats(0, 1), st.floats(-1, 0), st.sampled_from([0.0, 1e-300, 0.1, 1.0]))


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(1, 20)), elements=scores),
    st.integers(1, 30),
)
def test_instant_embedding_is_algorithm_4(rows, dimension):
    n = rows.shape[1]
    node_hash = hash_nodes(NodeSet.range(n), dimension)
    expected = np.zeros((len(rows), dimension))
    for row, w in zip(rows, expected, strict=True):
        for v in range(n):
            if n * row[v] > 0:
                w[node_hash.bucket[v]] += node_hash.sign[v] * max(math.log(n * row[v]), 0)
    before = rows.copy()
    np.testing.assert_allclose(instant_embedding(rows, node_hash), expected, atol=1e-12)
    np.testing.assert_array_equal(rows, before)


@given(st.integers(1, 25), st.integers(1, 12), st.data())
def test_changed_scores_move_the_embedding_at_most_the_bound(n, k, data):
    # Theorem 5.1 of the paper: ||w - w'||_1 <= m log(1 + n ||p - p'||_1 / m).
    values = st.one_of(st.floats(0, 3), st.floats(0, 2 / n), st.just(0.0))
    p = np.array(data.draw(st.lists(values, min_size=n, max_size=n)))
    changed = data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    other = p.copy()
    other[changed] = data.draw(st.lists(values, min_size=len(changed), max_size=len(changed)))
    w, w_other = instant_embedding(np.stack([p, other]), hash_nodes(NodeSet.range(n), k))
    m = len(changed)
    distance = np.abs(p - other).sum()
    bound = m * math.log1p(n * distance / m)
    assert np.abs(w - w_other).sum() <= bound + 1e-12
    assert bound <= n * math.log1p(distance) + 1e-12


def test_theorem_5_1_is_met_by_scores_just_above_one_in_n():
    # So the noise may not be smaller: one dimension, all signs alike.
    n, change = 200, 1e-6
    nodes = hash_nodes(NodeSet.range(n), 1)
    like = nodes.sign == 1
    p = np.where(like, 1 / n, 0.0)
    other = p + np.where(like, change / like.sum(), 0)
    w, w_other = instant_embedding(np.stack([p, other]), nodes)
    m = int(like.sum())
    bound = m * math.log1p(n * change / m)
    assert np.abs(w - w_other).sum() == pytest.approx(bound, rel=1e-6)
