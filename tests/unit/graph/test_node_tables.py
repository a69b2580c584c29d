"""Labels, features and class probabilities, in whatever form they come."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from edgeveil.errors import InputError, ParameterError, UnknownNodeError
from edgeveil.graph.node_tables import read_features, read_labels, read_prior
from edgeveil.graph.nodes import NodeSet

FIVE = NodeSet.range(5)
NAMED = NodeSet.of(["ann", "bob", "7", "007"])


def labels_of(given, nodes=FIVE):
    labels = read_labels(given, nodes)
    parts = np.split(labels.of, labels.starts[1:-1])
    return [[labels.classes[c] for c in part] for part in parts]


@pytest.mark.parametrize(
    "given",
    [
        {0: "a", 2: "b", 3: "a"},
        {0: "a", 1: None, 2: "b", 3: "a", 4: float("nan")},
        ["a", None, "b", "a", None],
        np.array(["a", None, "b", "a", None], dtype=object),
        pd.Series(["a", None, "b", "a", pd.NA]),
        pd.Series(["b", "a", "a"], index=[2, 0, 3]),
        pl.Series(["a", None, "b", "a", ""]),
        [(0, "a"), (3, "a"), (2, "b")],
        pl.DataFrame({"node": [3, 2, 0], "label": ["a", "b", "a"]}),
        pd.DataFrame({"class": ["a", "b", "a"], "node_id": [3, 2, 0]}),
    ],
    ids=lambda given: type(given).__name__,
)
def test_labels_of_every_form_are_the_same(given):
    assert labels_of(given) == [["a"], [], ["b"], ["a"], []]


@pytest.mark.parametrize(
    "given",
    [[1, -1, 0, 1, -1], [1.0, np.nan, 0.0, 1.0, -1.0], [True, None, False, True, None]],
)
def test_numbers_and_truth_values_are_classes(given):
    assert labels_of(given) == [[1], [], [0], [1], []]
    assert labels_of(np.array(given, dtype=object)) == [[1], [], [0], [1], []]


@pytest.mark.parametrize(
    "given",
    [
        {0: ["a", "b"], 3: ["b"]},
        [["b", "a"], [], None, "b", []],
        [(0, "a"), (3, "b"), (0, "b"), (0, "a")],
        pl.DataFrame({"node": [0, 0, 3], "label": ["a", "b", "b"]}),
    ],
    ids=["dict", "column", "pairs", "table"],
)
def test_several_labels_of_a_node_count_once_each(given):
    assert labels_of(given) == [["a", "b"], [], [], ["b"], []]


def test_a_sparse_matrix_has_a_column_for_each_class():
    given = sp.csr_array(np.array([[1, 1], [0, 0], [0, 0], [0, 1], [0, 0]], dtype=bool))
    assert labels_of(given) == [[0, 1], [], [], [1], []]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.csv", "account,flag\n0,1\n3,0\n2,NA\n4,\n"),
        ("l.csv", "0;1\n3;0\n"),
        ("l.tsv", "node\tlabel\n3\t0\n0\t1\n"),
    ],
)
def test_a_text_file_of_labels_is_read(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert labels_of(tmp_path / name) == [[1], [], [], [0], []]
    assert labels_of(str(tmp_path / name)) == [[1], [], [], [0], []]


def test_a_parquet_file_of_labels_is_read(tmp_path):
    pl.DataFrame({"node": [0, 3], "y": ["b", "a"], "x": [1, 2]}).write_parquet(
        tmp_path / "l.parquet"
    )
    assert labels_of(tmp_path / "l.parquet") == [["b"], [], [], ["a"], []]


def test_text_ids_and_labels_of_a_file_stay_as_they_are_spelt(tmp_path):
    (tmp_path / "l.csv").write_text("id,kind\n7,01\n007,1\n")
    assert labels_of(tmp_path / "l.csv", NAMED) == [[], [], ["01"], ["1"]]


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ([1, 0], ParameterError, "one entry for each of the 5 nodes"),
        ("abc", ParameterError, "labels must be a dict"),
        (3, ParameterError, "labels must be a dict"),
        ({9: "a"}, UnknownNodeError, "labels: 9 is not one of the 5 public nodes"),
        ({0: 1.5}, ParameterError, "an integer or text, got 1.5"),
        ({0: "a", 1: 2}, ParameterError, "mix numbers and text"),
        (pl.DataFrame({"node": [0]}), ParameterError, "got one"),
        (pl.DataFrame({"node": [0], "a": [1], "b": [2]}), ParameterError, "Name it label"),
        (sp.csr_array((4, 2)), ParameterError, "one row for each of the 5 nodes"),
        ("none.csv", InputError, "there is no file"),
    ],
)
def test_labels_that_do_not_fit_are_refused(given, error, says):
    with pytest.raises(error, match=says):
        read_labels(given, FIVE)


def test_features_of_every_form_are_the_same(tmp_path):
    expected = np.arange(10.0).reshape(5, 2)
    frame = pl.DataFrame({"a": expected[::-1, 0], "b": expected[::-1, 1], "id": [4, 3, 2, 1, 0]})
    frame.write_csv(tmp_path / "f.csv")
    frame.write_parquet(tmp_path / "f.parquet")
    for given in (expected, expected.tolist(), frame, frame.to_pandas()):
        assert np.array_equal(read_features(given, FIVE)[0], expected)
    for name in ("f.csv", "f.parquet"):
        table, names = read_features(tmp_path / name, FIVE)
        assert np.array_equal(table, expected)
        assert names == ("a", "b")
    for sparse in (sp.csc_matrix(expected), sp.coo_array(expected)):
        assert np.array_equal(read_features(sparse, FIVE)[0].toarray(), expected)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (np.zeros((4, 2)), "one row for each of the 5 nodes"),
        (np.full((5, 2), np.nan), "must be finite"),
        (sp.csr_array(np.full((5, 1), np.inf)), "must be finite"),
        ([["a"]] * 5, "must be numbers"),
        (pl.DataFrame({"node": [0, 1, 2], "x": [1, 2, 3]}), "2 nodes have no row, for example 3"),
        (pl.DataFrame({"node": [0, *range(5)], "x": [1] * 6}), "1 node has more than one row"),
        (pl.DataFrame({"node": range(5), "x": ["a"] * 5}), "must hold finite numbers, got 'a'"),
        (pl.DataFrame({"node": range(5), "x": [1, None, 2, 3, 4]}), "got None"),
    ],
)
def test_features_that_do_not_fit_are_refused(given, says):
    with pytest.raises(ParameterError, match=says):
        read_features(given, FIVE)


def test_prior_by_name_or_in_order_is_scaled_to_1():
    expected = np.array([[0.25, 0.75]] * 5)
    frame = pl.DataFrame({"node": range(5), "b": [3.0] * 5, "p_a": [1.0] * 5})
    assert np.array_equal(read_prior(frame, FIVE, ("a", "b")), expected)
    assert np.array_equal(read_prior(expected * 4, FIVE, ("a", "b")), expected)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (np.ones((5, 3)), "one column for each of the 2 classes"),
        (np.zeros((5, 2)), "not all of a row 0"),
        (-np.ones((5, 2)), "at least 0"),
        (
            pl.DataFrame({"node": range(5), "a": [1] * 5, "c": [1] * 5}),
            "each class: a, b; got a, c",
        ),
    ],
)
def test_prior_that_does_not_fit_is_refused(given, says):
    with pytest.raises(ParameterError, match=says):
        read_prior(given, FIVE, ("a", "b"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("who,x\n0,1\n1,2\n", r"\(f.csv\): 3 nodes have no row.*nodes are in the column 'who'"),
        ("x,id\n1,0\n2,0\n", r"\(f.csv\): 1 node has more than one row.*in the column 'id'"),
        ("x,y\n9,0\n", r"\(f.csv\): 9 is not one of .*nodes are in the column 'x'"),
        ("id\n0\n1\n2\n3\n4\n", r"\(f.csv\) need a column of numbers beside the column 'id'"),
        ("id,x\n0,a\n1,1\n2,1\n3,1\n4,1\n", r"\(f.csv\): column 'x' must hold finite numbers"),
    ],
)
def test_a_feature_file_error_names_file_and_node_column(tmp_path, text, says):
    (tmp_path / "f.csv").write_text(text)
    with pytest.raises((ParameterError, UnknownNodeError), match=f"^features {says}"):
        read_features(tmp_path / "f.csv", FIVE)


def test_a_label_file_without_labels_is_named(tmp_path):
    (tmp_path / "labels.csv").write_text("node\n0\n1\n")
    with pytest.raises(ParameterError, match=r"^labels \(labels.csv\) need a column of nodes"):
        read_labels(tmp_path / "labels.csv", FIVE)
