"""What a release looks like as a table; the real libraries' side is in tests/interop."""

from __future__ import annotations

import csv
import dataclasses
import os
import re
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeveil.errors import EdgeveilError, InputError
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.objects import as_graph
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.results.provenance import Provenance
from edgeveil.results.release import Release

SCORES = Release(
    values=np.array([[0.5, 0.25, -0.0], [1 / 3, 5e-324, 2.0]]),
    sources=("b", "a"),
    columns=NodeSet.of(["a", "b", "c"]),
    output="scores",
    guarantee=Guarantee(epsilon=0.1, model="joint", theorem="docs/a.md", n_members=2),
    provenance=Provenance(mechanism="m", parameters={}, version="0", noise="secure", ledger=True),
)
EMBEDDINGS = dataclasses.replace(
    SCORES, columns=NodeSet.range(3), output="embeddings", sources=(7, -(2**63))
)


def assert_same(table: Release, **expected: list[object]) -> None:
    assert table.to_polars().to_dict(as_series=False) == expected
    assert table.to_pandas().to_dict("list") == expected
    assert table.to_arrow().to_pydict() == expected


def test_scores_are_one_line_per_source_and_node():
    assert_same(
        SCORES,
        source=["b", "b", "b", "a", "a", "a"],
        node=["a", "b", "c", "a", "b", "c"],
        score=[0.5, 0.25, -0.0, 1 / 3, 5e-324, 2.0],
    )
    assert_same(
        SCORES.only("a"), source=["a"] * 3, node=["a", "b", "c"], score=[1 / 3, 5e-324, 2.0]
    )


def test_embeddings_are_one_line_per_source():
    assert_same(
        EMBEDDINGS, source=[7, -(2**63)], x0=[0.5, 1 / 3], x1=[0.25, 5e-324], x2=[-0.0, 2.0]
    )


@pytest.mark.parametrize("half", [np.array([[1.0], [2.0]]), np.array([[1.0] * 3, [2.0] * 3])])
def test_uncertainty_is_a_column_if_there_is_one(half):
    frame = dataclasses.replace(SCORES, uncertainty=half).to_polars()
    assert frame.columns == ["source", "node", "score", "uncertainty"]
    assert frame["uncertainty"].to_list() == [1.0] * 3 + [2.0] * 3


def test_nodes_that_are_left_out_are_not_in_the_table():
    shown = np.array([True, False, True])
    half = np.array([[1.0, 2.0, 3.0]] * 2)
    frame = dataclasses.replace(SCORES, shown=shown, uncertainty=half).to_polars()
    assert frame["node"].to_list() == ["a", "c", "a", "c"]
    assert frame["score"].to_list() == [0.5, -0.0, 1 / 3, 2.0]
    assert frame["uncertainty"].to_list() == [1.0, 3.0, 1.0, 3.0]


@pytest.mark.parametrize("nodes", [NodeSet.range(3), NodeSet.of([5, -1, 2**62])])
def test_integer_ids_stay_integers(nodes):
    renamed = dataclasses.replace(SCORES, columns=nodes, sources=(nodes[0], nodes[2]))
    assert renamed.to_polars().schema["node"] == pl.Int64
    assert renamed.to_pandas()["source"].dtype == np.int64
    assert renamed.to_polars()["node"].to_list() == [*nodes, *nodes]


def test_ids_that_look_like_something_else_stay_text():
    nodes = NodeSet.of(["1", "nan", ""])
    renamed = dataclasses.replace(SCORES, columns=nodes, sources=("1", "nan"))
    for table in (renamed.to_polars(), renamed.to_pandas(), renamed.to_arrow().to_pandas()):
        assert list(table["node"][:3]) == ["1", "nan", ""]


def test_no_table_can_change_the_release():
    before = SCORES.values.copy()
    SCORES.to_numpy()[:] = 0
    frame = SCORES.to_pandas()
    frame["score"] = 0.0
    frame.iloc[0, 2] = 9.0
    other = EMBEDDINGS.to_pandas()
    other.iloc[0, 1] = 9.0
    np.testing.assert_array_equal(SCORES.values, before)
    np.testing.assert_array_equal(EMBEDDINGS.values, before)


def test_a_release_is_a_table_but_not_one_of_edges():
    assert pl.DataFrame(SCORES).equals(SCORES.to_polars())
    with pytest.raises(InputError, match="a Release holds what was released about a graph"):
        as_graph(SCORES)


@pytest.mark.parametrize(
    ("package", "call"),
    [("pandas", "to_pandas"), ("pyarrow", "to_arrow")],
)
def test_a_missing_library_is_named(package, call, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)  # as if not installed
    with pytest.raises(EdgeveilError, match=f"^{call} needs {package}: pip install {package}$"):
        getattr(EMBEDDINGS, call)()


# -- CSV ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "joint, epsilon = 0.1"),
        ({"model": "public", "delta": 1e-9}, "public, epsilon = 0.1, delta = 1e-09"),
        ({"promise": "min degree 3"}, "joint, epsilon = 0.1, under a public promise"),
        ({"private": False}, "NOT PRIVATE"),
        ({"epsilon": float("inf"), "model": "none"}, "NOT PRIVATE"),
    ],
)
def test_every_line_of_a_csv_file_says_its_guarantee(changes, words, tmp_path):
    guarantee = dataclasses.replace(SCORES.guarantee, **changes)
    for released in (SCORES, EMBEDDINGS):
        dataclasses.replace(released, guarantee=guarantee).write(tmp_path / "r.csv")
        with (tmp_path / "r.csv").open(newline="") as file:
            lines = list(csv.DictReader(file))
        assert len(lines) == (6 if released is SCORES else 2)
        assert {line["guarantee"] for line in lines} == {words}


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
        min_size=3,
        max_size=3,
        unique=True,
    )
)
def test_any_ids_survive_a_csv_file(tmp_path_factory, ids):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    dataclasses.replace(SCORES, columns=NodeSet.of(ids), sources=tuple(ids[:2])).write(path)
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    written = [line["node"] for line in lines]
    assert not [node for node in written if node.startswith(("=", "+", "-", "@", "\t", "\r"))]
    # Taking away the apostrophe in front of a formula gives back every id.
    assert [re.sub(r"^'('*[=+\-@\t\r])", r"\1", node) for node in written] == [*ids, *ids]
    assert [float(line["score"]) for line in lines] == SCORES.values.ravel().tolist()


def test_a_csv_file_is_its_owners_and_is_not_read_back(tmp_path):
    SCORES.write(tmp_path / "r.csv")
    assert os.listdir(tmp_path) == ["r.csv"]
    assert (tmp_path / "r.csv").stat().st_mode & 0o077 == 0
    with pytest.raises(InputError, match="is not a release"):
        Release.read(tmp_path / "r.csv")


def test_the_label_is_plain_data_without_the_rows():
    label = SCORES.to_pandas().attrs["edgeveil"]
    assert set(label) == {"format", "output", "guarantee", "statement", "provenance"}
    assert isinstance(SCORES.to_pandas(), pd.DataFrame)
