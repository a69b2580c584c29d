"""The generated network and the loaders of the paper's data sets."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from edgeveil.errors import InputError, ParameterError
from edgeveil.graph.datasets import (
    LabelledGraph,
    invented_names,
    load_blogcatalog,
    load_pos,
    social_network,
)
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet


@pytest.fixture(scope="module")
def default() -> LabelledGraph:
    return social_network()


def share_within(data: LabelledGraph) -> float:
    entries = data.graph.adjacency().tocoo()
    labels = data.labels.astype(int)
    return float((labels[entries.row].multiply(labels[entries.col]).sum(axis=1) > 0).mean())


def test_the_default_network_has_the_size_asked_for(default):
    assert default.graph.n_nodes == 5000
    assert default.graph.n_edges == 100_000
    assert default.labels.shape == (5000, 10)
    assert len(default.label_names) == len(set(default.label_names)) == 10


def test_the_default_network_takes_less_than_two_seconds():
    start = time.process_time()
    social_network()
    assert time.process_time() - start < 2


def test_communities_can_be_learnt_but_are_not_given_away(default):
    assert 0.7 < share_within(default) < 0.85
    # the most frequent label among the neighbours is right for most nodes, not for all
    votes = (default.graph.adjacency() @ default.labels.astype(float)).toarray()
    right = default.labels.toarray()[np.arange(5000), votes.argmax(axis=1)].mean()
    assert 0.9 < right < 1


def test_every_node_has_a_label_and_a_fifth_has_two(default):
    count = np.asarray(default.labels.sum(axis=1)).ravel()
    assert set(count.tolist()) == {1, 2}
    assert 0.17 < (count == 2).mean() < 0.23
    assert default.labels.dtype == bool


def transitivity(graph: Graph) -> float:
    matrix, degrees = graph.adjacency(), graph.degrees
    return float(matrix.multiply(matrix @ matrix).sum() / (degrees * (degrees - 1)).sum())


def test_degrees_have_a_heavy_tail(default):
    degrees = default.graph.degrees
    assert degrees.max() > 5 * np.median(degrees)
    assert degrees.min() >= 1


def clustering(graph: Graph) -> float:
    """Mean over nodes of the share of pairs of friends who are friends."""
    matrix, degrees = graph.adjacency().astype(float), graph.degrees
    closed = np.asarray(matrix.multiply(matrix @ matrix).sum(axis=1)).ravel()
    pairs = degrees * (degrees - 1.0)
    return float((closed[pairs > 0] / pairs[pairs > 0]).mean())


@pytest.mark.parametrize(("n", "degree"), [(5000, 40), (5000, 8), (300, 12), (8000, 20)])
def test_social_network_clustering_is_at_least_a_quarter(n, degree):
    graph = social_network(n, average_degree=degree, seed=1).graph
    assert clustering(graph) >= 0.25
    assert transitivity(graph) > 0.12


def test_circles_overlap(default):
    # a friend of mine has friends outside of all that I share with it
    matrix, degrees = default.graph.adjacency().astype(float), default.graph.degrees
    common = matrix.multiply(matrix @ matrix).tocsr()
    share = np.asarray(common.sum(axis=1)).ravel() / np.maximum(matrix @ degrees, 1)
    assert 0.05 < np.median(share) < 0.6


def test_everybody_has_a_name_of_its_own(default):
    assert len(set(default.names)) == 5000
    assert len(set(invented_names(20_000))) == 20_000
    with pytest.raises(InputError, match="names"):
        LabelledGraph(
            graph=default.graph,
            labels=default.labels,
            label_names=default.label_names,
            names=("one",),
        )


def test_a_seed_decides_the_network():
    network, same, other = (social_network(300, average_degree=8, seed=s) for s in (1, 1, 2))
    assert network.graph == same.graph
    assert (network.labels != same.labels).nnz == 0
    assert network.graph != other.graph


@pytest.mark.parametrize(
    ("n", "degree", "communities"),
    [(100, 40, 10), (50, 24.5, 50), (2, 0, 1), (3, 1, 3), (1000, 3.3, 1), (20_000, 10, 7)],
)
def test_extreme_communities_keep_the_average_degree(n, degree, communities):
    data = social_network(n, average_degree=degree, communities=communities)
    assert data.graph.n_edges == round(n * degree / 2)
    assert np.asarray(data.labels.sum(axis=0)).min() >= 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": 1},
        {"n": 100, "average_degree": 60},
        {"average_degree": -1},
        {"average_degree": float("nan")},
        {"communities": 0},
        {"n": 30, "average_degree": 4, "communities": 31},
    ],
)
def test_impossible_networks_are_refused(wrong):
    with pytest.raises(ParameterError, match="must be"):
        social_network(**wrong)


def test_labels_must_fit_the_graph():
    graph = Graph.from_edges([0], [1], NodeSet.range(2))
    with pytest.raises(InputError, match="one row per node"):
        LabelledGraph(graph=graph, labels=sp.csr_array((3, 1), dtype=bool), label_names=("a",))


# -- the paper's files --------------------------------------------------------------------

NETWORK = np.array([[5.0, 2, 0], [2, 0, 1], [0, 1, 0]])
GROUP = np.array([[1, 0], [0, 1], [1, 1]])


@pytest.mark.parametrize(
    ("load", "name"), [(load_blogcatalog, "blogcatalog.mat"), (load_pos, "POS.mat")]
)
def test_a_mat_file_is_loaded_by_its_path_or_its_folder(tmp_path, load, name):
    matrices = {"network": sp.csc_array(NETWORK), "group": sp.csc_array(GROUP * 1.0)}
    scipy.io.savemat(tmp_path / name, matrices)
    for path in (tmp_path, tmp_path / name, str(tmp_path)):
        data = load(path)
        assert data.graph == Graph.from_edges([0, 1], [1, 2], NodeSet.range(3))
        assert (data.labels.toarray() == (GROUP == 1)).all()
        assert data.label_names == ("0", "1")
        assert repr(data) == "LabelledGraph(Graph(3 nodes, 2 edges), 2 labels)"


@pytest.mark.parametrize(
    ("load", "name", "sha256"),
    [(load_blogcatalog, "blogcatalog.mat", "d4f4fb89"), (load_pos, "POS.mat", "b40977b4")],
)
def test_a_missing_file_says_what_is_expected(tmp_path, load, name, sha256):
    for path in (tmp_path, tmp_path / "other.mat"):
        with pytest.raises(InputError, match=rf"expected is {name} with SHA-256 {sha256}"):
            load(path)


@pytest.mark.parametrize(
    ("matrices", "expected"),
    [
        ({"network": NETWORK}, "has no variable 'group'"),
        ({"group": GROUP}, "has no variable 'network'"),
        ({"network": NETWORK, "group": GROUP[:2]}, "one row for each of 3 nodes"),
    ],
)
def test_a_file_without_labels_is_one_sentence(tmp_path, matrices, expected):
    scipy.io.savemat(tmp_path / "POS.mat", matrices)
    with pytest.raises(InputError, match=expected):
        load_pos(tmp_path)


def test_blogcatalog_is_the_papers(paper_data):
    data = load_blogcatalog(paper_data)
    assert (data.graph.n_nodes, data.graph.n_edges) == (10_312, 333_983)
    assert (data.labels.shape, data.labels.nnz) == ((10_312, 39), 14_476)
    assert data.graph.read_report.weighted == 0


def test_pos_is_read_without_weights_and_loops(paper_data):
    data = load_pos(paper_data)
    assert (data.graph.n_nodes, data.graph.n_edges) == (4_777, 92_295)
    assert (data.labels.shape, data.labels.nnz) == ((4_777, 40), 6_770)
    read_report = data.graph.read_report
    assert (read_report.entries, read_report.self_loops, read_report.weighted) == (
        184_812,
        222,
        120_759,
    )
