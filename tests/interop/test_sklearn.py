"""PrivateEmbedding in the real scikit-learn."""

from __future__ import annotations

import pickle
import subprocess
import sys

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import edgeveil as ev

KARATE = nx.karate_club_graph()
MATRIX = nx.to_scipy_sparse_array(KARATE, weight=None)
GRAPH = ev.as_graph(KARATE, nodes=range(len(KARATE)))


INSTANT = ev.mechanisms.DPInstantEmbedding(epsilon=1.0, dimension=4)
SOME_ROWS = "it gives the rows of the graph it was fitted on, all of them and in its order"


# With noise, the seeded one, too: scikit-learn skips its check of pipelines for what is never the
# same twice.
@parametrize_with_checks(
    [
        ev.PrivateEmbedding(dimension=4),
        ev.PrivateEmbedding(epsilon=1.0, mechanism=INSTANT),
        ev.PrivateEmbedding(epsilon=1.0, mechanism=INSTANT, insecure_seed=0),
    ],
    expected_failed_checks=lambda _: {
        "check_methods_subset_invariance": SOME_ROWS,
        "check_methods_sample_order_invariance": SOME_ROWS,
        "check_fit_idempotent": SOME_ROWS,
    },
)
def test_scikit_learn_takes_it_for_an_estimator(estimator, check):
    check(estimator)


def test_tags_describe_accepted_input():
    tags = get_tags(ev.PrivateEmbedding(epsilon=1.0, mechanism=INSTANT))
    assert tags.input_tags.pairwise
    assert tags.input_tags.sparse
    assert tags.non_deterministic
    seeded = ev.PrivateEmbedding(epsilon=1.0, mechanism=INSTANT, insecure_seed=3)
    assert not get_tags(seeded).non_deterministic
    assert not get_tags(ev.PrivateEmbedding()).non_deterministic  # there is no noise


def test_the_own_list_takes_no_epsilon_and_public_rows_need_one():
    assert ev.PrivateEmbedding().fit(GRAPH).guarantee_.epsilon == 0
    for wrong, words in (
        ({"epsilon": 1.0}, "costs nothing: leave epsilon out"),
        ({"model": "public"}, "epsilon is required"),
        ({"model": "public", "epsilon": 0}, "epsilon must be a positive number"),
        ({"model": "public", "epsilon": 1, "dimension": "nodes"}, "for the own list"),
        ({"mechanism": INSTANT, "epsilon": 2.0}, "epsilon is given twice: 2.0 here and 1.0 by"),
        ({"mechanism": "edge-flipping"}, "epsilon is required"),
    ):
        with pytest.raises(ev.errors.ParameterError, match=words):
            ev.PrivateEmbedding(**wrong).fit(GRAPH)


@pytest.mark.parametrize(
    "X",
    [
        GRAPH,
        MATRIX,
        sp.coo_matrix(MATRIX),
        MATRIX.toarray(),
        nx.to_numpy_array(KARATE),  # weights and a diagonal change nothing
        nx.to_numpy_array(KARATE) + np.eye(34),
        nx.to_pandas_adjacency(KARATE, weight=None),
        MATRIX.toarray().tolist(),
    ],
)
def test_any_matrix_gives_what_embed_gives(X):
    private = ev.PrivateEmbedding(dimension=8).fit(X)
    expected = ev.embed(GRAPH, dimension=8)
    np.testing.assert_array_equal(private.embedding_, expected.values)
    assert private.guarantee_ == expected.guarantee
    assert private.n_features_in_ == 34


PAIRS = [(u, v) for u, v in KARATE.edges]


@pytest.mark.parametrize(
    "X",
    [
        KARATE,
        PAIRS,
        pd.DataFrame(PAIRS, columns=["a", "b"]),
        pl.DataFrame(PAIRS, schema=["a", "b"], orient="row"),
        pl.LazyFrame(PAIRS, schema=["a", "b"], orient="row"),
        np.array(PAIRS + [(v, u) for u, v in PAIRS]).T,
    ],
    ids=["networkx", "pairs", "pandas", "polars", "lazy", "edge_index"],
)
def test_fit_takes_what_as_graph_takes(X):
    private = ev.PrivateEmbedding(dimension=8).fit(X)
    np.testing.assert_array_equal(private.embedding_, ev.embed(GRAPH, dimension=8).values)
    np.testing.assert_array_equal(private.transform(X), private.embedding_)
    assert private.n_features_in_ == 34


def test_sparse_rows_equal_dense_and_unhashed_the_adjacency():
    dense = ev.PrivateEmbedding().fit_transform(MATRIX)
    sparse = ev.PrivateEmbedding(sparse=True).fit_transform(MATRIX)
    assert sparse.format == "csr"
    assert dense.shape == (34, 1024)
    np.testing.assert_array_equal(sparse.toarray(), dense)
    whole = ev.PrivateEmbedding(dimension="nodes", sparse=True).fit_transform(MATRIX)
    assert whole.shape == (34, 34)
    np.testing.assert_array_equal(whole.toarray() != 0, MATRIX.toarray() != 0)


def test_embedding_works_in_a_pipeline():
    clubs = np.array([KARATE.nodes[node]["club"] for node in KARATE])
    steps = make_pipeline(ev.PrivateEmbedding(dimension=64, sparse=True), LogisticRegression())
    told = steps.fit(MATRIX, clubs).predict(MATRIX)
    assert (told == clubs).mean() > 0.8
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(steps)).predict(MATRIX), told)


def test_another_graph_is_refused_in_words_that_say_how():
    clubs = np.array([KARATE.nodes[node]["club"] for node in KARATE])
    private = ev.PrivateEmbedding(dimension=8).fit(MATRIX)
    other = MATRIX.toarray()
    other[0, 1] = other[1, 0] = 0
    for X in (other, nx.path_graph(5), MATRIX[:9]):
        with pytest.raises(ev.errors.ParameterError, match=r"model.fit\(X\[train\]"):
            private.transform(X)
    # Half of the nodes, told apart from the other half although there are as many of them.
    steps = make_pipeline(private, LogisticRegression())
    with pytest.raises(ev.errors.ParameterError, match="split its rows"):
        cross_val_score(steps, MATRIX.toarray(), clubs, cv=2, error_score="raise")


def test_pickle_holds_no_edges():
    private = ev.PrivateEmbedding(
        epsilon=1.0,
        mechanism=ev.mechanisms.EdgeFlipping(epsilon=1.0, model="public"),
        model="public",
        insecure_seed=0,
        dimension=8,
    )
    kept = pickle.dumps(private.fit(GRAPH))
    assert str(GRAPH.fingerprint).encode() not in kept
    assert "_fitted_on" not in vars(pickle.loads(kept))


def test_noise_is_fresh_unless_a_seed_makes_it_not_private():
    private = ev.PrivateEmbedding(epsilon=1.0, mechanism=INSTANT)
    assert not np.array_equal(private.fit_transform(MATRIX), private.fit_transform(MATRIX))
    assert private.guarantee_.protects
    seeded = ev.PrivateEmbedding(epsilon=1.0, mechanism=INSTANT, insecure_seed=1)
    np.testing.assert_array_equal(seeded.fit_transform(MATRIX), seeded.fit_transform(MATRIX))
    assert not seeded.guarantee_.protects
    assert str(seeded.guarantee_).startswith("NOT PRIVATE")
    assert seeded.release_.guarantee == seeded.guarantee_


def test_a_one_way_matrix_is_refused_unless_asked_for():
    one_way = sp.triu(MATRIX)
    with pytest.raises(ev.errors.InputError, match='directed="ignore"'):
        ev.PrivateEmbedding().fit(one_way)
    with pytest.raises(ev.errors.ParameterError, match="directed must be"):
        ev.PrivateEmbedding(directed=True).fit(one_way)
    both = ev.PrivateEmbedding(directed="ignore").fit(one_way)
    expected = ev.PrivateEmbedding().fit(MATRIX)
    np.testing.assert_array_equal(both.embedding_, expected.embedding_)


@pytest.mark.parametrize(("library", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
@pytest.mark.parametrize("X", [GRAPH, MATRIX])
def test_set_output_gives_tables(library, kind, X):
    private = ev.PrivateEmbedding(dimension=3).set_output(transform=library)
    table = private.fit_transform(X)
    assert isinstance(table, kind)
    assert list(table.columns) == ["privateembedding0", "privateembedding1", "privateembedding2"]
    np.testing.assert_array_equal(table.to_numpy(), private.embedding_)


def test_a_clone_does_not_forget_what_was_charged(tmp_path):
    ledger = ev.Ledger.create(tmp_path / "budget", epsilon=2.5)
    private = ev.PrivateEmbedding(epsilon=1.0, mechanism=INSTANT, ledger=ledger)
    first = private.fit_transform(GRAPH)
    assert ledger.account().charged_nano == 10**9
    copied = clone(private)
    assert copied.ledger is ledger
    # The same question: the stored answer, for nothing.
    np.testing.assert_array_equal(copied.fit_transform(GRAPH), first)
    assert ledger.account().charged_nano == 10**9
    ledger.advance()
    other = clone(private).fit_transform(GRAPH)
    assert not np.array_equal(other, first)
    assert ledger.account().charged_nano == 2 * 10**9
    ledger.advance()
    with pytest.raises(ev.errors.BudgetError):
        clone(private).fit(GRAPH)
    # A worker process of a grid search unpickles it: the same ledger on disk.
    with pytest.raises(ev.errors.BudgetError):
        pickle.loads(pickle.dumps(private)).fit(GRAPH)


def test_a_mechanism_of_scores_is_hashed_to_embeddings():
    flipping = ev.mechanisms.EdgeFlipping(epsilon=3.0, model="public")
    private = ev.PrivateEmbedding(epsilon=3.0, dimension=16, model="public", mechanism=flipping)
    assert private.fit_transform(GRAPH).shape == (34, 16)
    assert private.guarantee_.brief == "public, epsilon = 3"
    assert private.release_.provenance.mechanism.startswith("edge-flipping > instant-embedding")


def test_fit_takes_epsilon_and_model_from_the_mechanism():
    mechanism = ev.mechanisms.DPInstantEmbedding(epsilon=2.0)
    for given, name in (({"epsilon": 1.0}, "epsilon"), ({"model": "public"}, "model")):
        with pytest.raises(ev.errors.ParameterError, match=f"{name} is given twice"):
            ev.PrivateEmbedding(mechanism=mechanism, **given).fit(GRAPH)
    flipping = ev.mechanisms.EdgeFlipping(epsilon=3.0, model="public")
    for given in ({}, {"epsilon": 3.0, "model": "public"}):
        fitted = ev.PrivateEmbedding(mechanism=flipping, **given).fit(GRAPH)
        assert fitted.guarantee_.brief == "public, epsilon = 3"
    named = ev.PrivateEmbedding(mechanism="EdgeFlipping", epsilon=3.0, model="public").fit(GRAPH)
    assert named.guarantee_ == fitted.guarantee_
    private = ev.PrivateEmbedding(mechanism=mechanism).fit(GRAPH)
    assert private.embedding_.shape == (34, 256)  # the mechanism's own


def test_public_rows_cost_epsilon_in_all():
    private = ev.PrivateEmbedding(epsilon=1.0, dimension=4, model="public").fit(GRAPH)
    assert private.embedding_.shape == (34, 4)
    assert private.guarantee_.brief == "public, epsilon = 1"


def test_embeddings_feed_a_classifier(figure):
    clubs = np.array([KARATE.nodes[node]["club"] for node in KARATE])
    private = ev.PrivateEmbedding(dimension=64)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    train = np.arange(34) % 2 == 0
    X = private.fit_transform(GRAPH)
    accuracy = model.fit(X[train], clubs[train]).score(X[~train], clubs[~train])
    figure("Karate club, half labelled, own lists in 64 dimensions: accuracy", f"{accuracy}")
    assert accuracy > 0.7  # 0.53 for the larger club alone


def test_missing_scikit_learn_is_named_on_first_use():
    script = (
        "import sys; sys.modules['sklearn'] = sys.modules['sklearn.base'] = None\n"
        "from edgeveil import *\nfrom edgeveil.errors import EdgeveilError\n"
        "try: PrivateEmbedding()\n"
        "except EdgeveilError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == (
        "PrivateEmbedding needs scikit-learn: pip install 'edgeveil[sklearn]'"
    ), done.stderr


def test_fit_takes_edges_in_memory_with_weights_and_dicts():
    expected = ev.PrivateEmbedding().fit(GRAPH).embedding_
    edges = [(u, v, 0.5) for u in range(34) for v in GRAPH.neighbours(u).tolist() if u < v]
    lists = {u: GRAPH.neighbours(u).tolist() for u in range(34)}
    for given in (edges, lists):
        np.testing.assert_array_equal(ev.PrivateEmbedding().fit(given).embedding_, expected)


@pytest.mark.parametrize("name", ["instant-embedding", "aggregation"])
def test_mechanism_by_name_gets_dimension_and_directions(name):
    """As in `ev.embed`."""
    options = {"epsilon": 1.0, "model": "public", "mechanism": name, "dimension": 16}
    embedding = ev.PrivateEmbedding(**options, insecure_seed=1).fit(GRAPH).embedding_
    assert embedding.shape[1] == 16
    assert ev.embed(GRAPH, **options).values.shape[1] == 16
    arcs = ev.Graph.from_edges([0, 1, 2], [1, 2, 0], ev.NodeSet.range(3), directed=True)
    if name == "aggregation":
        assert ev.PrivateEmbedding(**options).fit(arcs).embedding_.shape == (3, 16)
    mechanism = ev.mechanisms.DPInstantEmbedding(epsilon=1.0, dimension=8)
    with pytest.raises(ev.errors.ParameterError, match="given twice"):
        ev.PrivateEmbedding(mechanism=mechanism, dimension=16).fit(GRAPH)
