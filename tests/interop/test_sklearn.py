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
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import edgeveil as ev

KARATE = nx.karate_club_graph()
MATRIX = nx.to_scipy_sparse_array(KARATE, weight=None)
GRAPH = ev.as_graph(KARATE, nodes=range(len(KARATE)))


# The seeded one, too: scikit-learn skips its check of pipelines for what is never the same twice.
@parametrize_with_checks(
    [
        ev.PrivateEmbedding(epsilon=1.0, dimension=4),
        ev.PrivateEmbedding(epsilon=1.0, dimension=4, insecure_seed=0),
    ]
)
def test_scikit_learn_takes_it_for_an_estimator(estimator, check):
    check(estimator)


def test_its_tags_say_what_it_takes():
    tags = get_tags(ev.PrivateEmbedding(epsilon=1.0))
    assert tags.input_tags.pairwise
    assert tags.input_tags.sparse
    assert tags.non_deterministic
    assert not get_tags(ev.PrivateEmbedding(epsilon=1.0, insecure_seed=3)).non_deterministic


def test_epsilon_has_no_default():
    with pytest.raises(TypeError, match="epsilon"):
        ev.PrivateEmbedding()
    with pytest.raises(ev.errors.ParameterError, match="epsilon must be a positive number"):
        ev.PrivateEmbedding(epsilon=0).fit(GRAPH)


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
    ],
)
def test_any_form_of_the_graph_gives_what_embed_gives(X):
    private = ev.PrivateEmbedding(epsilon=1.0, dimension=8, insecure_seed=5).fit(X)
    noise = ev.NoiseSource.insecure(5)
    expected = ev.embed(GRAPH, epsilon=1.0, dimension=8, noise=noise)
    np.testing.assert_array_equal(private.embedding_, expected.values)
    assert private.guarantee_ == expected.guarantee
    assert private.n_features_in_ == 34


def test_noise_is_fresh_unless_a_seed_makes_it_not_private():
    private = ev.PrivateEmbedding(epsilon=1.0, dimension=8)
    assert not np.array_equal(private.fit_transform(MATRIX), private.fit_transform(MATRIX))
    assert private.guarantee_.protects
    seeded = ev.PrivateEmbedding(epsilon=1.0, dimension=8, insecure_seed=1)
    np.testing.assert_array_equal(seeded.fit_transform(MATRIX), seeded.fit_transform(MATRIX))
    assert not seeded.guarantee_.protects
    assert str(seeded.guarantee_).startswith("NOT PRIVATE")
    assert seeded.release_.guarantee == seeded.guarantee_


def test_a_one_way_matrix_is_refused_unless_asked_for():
    one_way = sp.triu(MATRIX)
    with pytest.raises(ev.errors.InputError, match="directed=True"):
        ev.PrivateEmbedding(epsilon=1.0).fit(one_way)
    both = ev.PrivateEmbedding(epsilon=1.0, directed=True, insecure_seed=0).fit(one_way)
    expected = ev.PrivateEmbedding(epsilon=1.0, insecure_seed=0).fit(MATRIX)
    np.testing.assert_array_equal(both.embedding_, expected.embedding_)


@pytest.mark.parametrize(("library", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
@pytest.mark.parametrize("X", [GRAPH, MATRIX])
def test_set_output_gives_tables(library, kind, X):
    private = ev.PrivateEmbedding(epsilon=1.0, dimension=3).set_output(transform=library)
    table = private.fit_transform(X)
    assert isinstance(table, kind)
    assert list(table.columns) == ["privateembedding0", "privateembedding1", "privateembedding2"]
    np.testing.assert_array_equal(table.to_numpy(), private.embedding_)


def test_a_clone_does_not_forget_what_was_spent(tmp_path):
    ledger = ev.Ledger.create(tmp_path / "budget", epsilon=2.5)
    private = ev.PrivateEmbedding(epsilon=1.0, dimension=4, ledger=ledger)
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


def test_a_mechanism_must_have_the_epsilon_and_the_model_that_are_said():
    mechanism = ev.mechanisms.TwoHopEmbedding(epsilon=2.0)
    for given in ({"epsilon": 1.0}, {"epsilon": 2.0, "model": "public"}):
        with pytest.raises(
            ev.errors.ParameterError, match="the mechanism has epsilon = 2 in the joint"
        ):
            ev.PrivateEmbedding(mechanism=mechanism, **given).fit(GRAPH)
    private = ev.PrivateEmbedding(epsilon=2.0, mechanism=mechanism).fit(GRAPH)
    assert private.embedding_.shape == (34, 4096)  # the mechanism's own


def test_in_the_public_model_rows_add_up_and_the_guarantee_says_so():
    private = ev.PrivateEmbedding(epsilon=1.0, dimension=4, model="public").fit(GRAPH)
    assert private.guarantee_.brief == "public, epsilon = 34"


def test_embeddings_feed_a_classifier(figure):
    clubs = np.array([KARATE.nodes[node]["club"] for node in KARATE])
    private = ev.PrivateEmbedding(epsilon=20.0, dimension=64, insecure_seed=0)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    train = np.arange(34) % 2 == 0
    X = private.fit_transform(GRAPH)
    accuracy = model.fit(X[train], clubs[train]).score(X[~train], clubs[~train])
    figure("Karate club, half labelled, private embeddings at epsilon 20: accuracy", f"{accuracy}")
    assert accuracy > 0.7  # 0.53 for the larger club alone


def test_without_scikit_learn_the_name_is_there_and_says_what_is_missing():
    script = (
        "import sys; sys.modules['sklearn'] = sys.modules['sklearn.base'] = None\n"
        "from edgeveil import *\nfrom edgeveil.errors import EdgeveilError\n"
        "try: PrivateEmbedding(epsilon=1.0)\n"
        "except EdgeveilError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == (
        "PrivateEmbedding needs scikit-learn: pip install 'edgeveil[sklearn]'"
    ), done.stderr
