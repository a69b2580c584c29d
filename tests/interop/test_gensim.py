"""Embeddings as word vectors, in the real gensim."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import edgeveil as ev

KeyedVectors = pytest.importorskip("gensim.models").KeyedVectors  # not for every Python

KARATE = nx.karate_club_graph()
CLUBS = nx.get_node_attributes(KARATE, "club")


def embedded(**rest) -> ev.Release:
    return ev.embed(ev.as_graph(KARATE), dimension=64, **rest)


def test_word2vec_text_is_loaded_exactly_by_gensim(tmp_path):
    embeddings = embedded()
    embeddings.to_word2vec(tmp_path / "karate.txt")
    vectors = KeyedVectors.load_word2vec_format(tmp_path / "karate.txt")
    assert vectors.index_to_key == [str(node) for node in embeddings.sources]
    np.testing.assert_array_equal(vectors.vectors, embeddings.values.astype(np.float32))
    double = KeyedVectors.load_word2vec_format(tmp_path / "karate.txt", datatype=np.float64)
    np.testing.assert_array_equal(double.vectors, embeddings.values)


def test_gensim_finds_members_of_the_same_club(tmp_path):
    embedded().to_word2vec(tmp_path / "karate.txt")
    vectors = KeyedVectors.load_word2vec_format(tmp_path / "karate.txt")
    near = [(a, int(b)) for a in KARATE for b, _ in vectors.most_similar(str(a), topn=3)]
    same = np.mean([CLUBS[a] == CLUBS[b] for a, b in near])
    assert same > 0.6  # 0.49 of all pairs are of the same club


def test_word2vec_file_of_seeded_noise_warns_not_private(tmp_path):
    embeddings = embedded(noise=ev.NoiseSource.insecure(0))
    with pytest.warns(UserWarning, match="karate.txt cannot say: NOT PRIVATE") as caught:
        embeddings.to_word2vec(tmp_path / "karate.txt")
    assert caught[0].filename == __file__
    assert len(KeyedVectors.load_word2vec_format(tmp_path / "karate.txt")) == 34


@pytest.mark.parametrize("odd", ["an n", "an\nn", "ann\t", "ann\u2003", "", "a\x85b", "a\u2028b"])
def test_ids_that_the_format_cannot_hold_are_refused(odd, tmp_path):
    graph = ev.Graph.from_edges([0, 1], [1, 2], ev.NodeSet.of(["bob", odd, "cem"]))
    embeddings = ev.embed(graph, dimension=4)
    with pytest.raises(
        ev.errors.ParameterError, match="cannot hold an id that is empty or has white"
    ):
        embeddings.to_word2vec(tmp_path / "e.txt")
    assert not list(tmp_path.iterdir())


def test_odd_ids_without_white_space_come_back(tmp_path):
    names = ["zoë", "日本", "a,b", '"', "5", "3.5", "😀", "#x"]
    graph = ev.Graph.from_edges([0, 1], [1, 2], ev.NodeSet.of(names))
    ev.embed(graph, dimension=4).to_word2vec(tmp_path / "e.txt")
    assert KeyedVectors.load_word2vec_format(tmp_path / "e.txt").index_to_key == names


def test_scores_are_no_embeddings(tmp_path):
    ranking = ev.rank(ev.as_graph(KARATE), 0, epsilon=1.0)
    with pytest.raises(ev.errors.ParameterError, match=r"embed\(\) makes embeddings"):
        ranking.to_word2vec(tmp_path / "e.txt")
