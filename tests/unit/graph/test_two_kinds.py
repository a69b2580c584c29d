"""Columns with two kinds of nodes are refused unless they are said to be of one."""

from __future__ import annotations

import polars as pl
import pytest

from edgeveil.errors import InputError
from edgeveil.graph.building import build_graph
from edgeveil.graph.objects import as_graph
from edgeveil.graph.read import read_graph
from edgeveil.graph.saved import open_graph
from edgeveil.series.history import History


def pairs(count, apart):
    return [(i % 7, (i + i // 7) % 7 + apart) for i in range(count)]


def write(path, rows, head=""):
    path.write_text(head + "".join(f"{a},{b}\n" for a, b in rows))
    return path


@pytest.mark.parametrize(
    "head", ["userId,itemId", "user_id,movie_id", "USER,PRODUCTS", "userid,itemid", "page,user"]
)
def test_columns_named_for_two_kinds_are_refused(tmp_path, head):
    path = write(tmp_path / "e.csv", pairs(5, 1), head + "\n")
    with pytest.raises(InputError, match=r"name two kinds of nodes \(a bipartite graph\)"):
        read_graph(path)
    with pytest.raises(InputError, match="--one-kind"):
        read_graph(path, columns=tuple(head.split(",")))
    with pytest.raises(InputError, match="two kinds of nodes"):
        build_graph(path, tmp_path / "g")
    table = pl.DataFrame(pairs(5, 1), schema=head.split(","), orient="row")
    with pytest.raises(InputError, match="two kinds of nodes"):
        as_graph(table)
    assert read_graph(path, one_kind=True).n_edges == as_graph(table, one_kind=True).n_edges == 5


@pytest.mark.parametrize("head", ["item1,item2", "source_page,target_page", "user,friend", "a,b"])
def test_columns_named_for_one_kind_are_read(tmp_path, head):
    assert read_graph(write(tmp_path / "e.csv", pairs(5, 1), head + "\n")).n_edges == 5


def test_many_edges_whose_columns_share_no_id_are_refused(tmp_path):
    path = write(tmp_path / "e.csv", pairs(20, 100))
    for read in (
        lambda **options: read_graph(path, **options),
        lambda **options: as_graph(pairs(20, 100), **options),
        lambda **options: open_graph(build_graph(path, tmp_path / "g", overwrite=True, **options)),
    ):
        with pytest.raises(InputError, match=r"the two columns share no id.*two kinds of nodes"):
            read()
    # a build that was refused leaves its folder, which was begun with the same options
    assert read_graph(path, one_kind=True).n_nodes == 14
    assert as_graph(pairs(20, 100), one_kind=True).n_nodes == 14
    assert open_graph(build_graph(path, tmp_path / "g", one_kind=True)).n_nodes == 14
    assert read_graph(write(tmp_path / "few.csv", pairs(19, 100))).n_nodes == 14
    assert read_graph(write(tmp_path / "one.csv", pairs(20, 3))).n_nodes == 10


def test_stars_are_never_refused(tmp_path):
    star = [(0, i) for i in range(1, 50)]
    two = star + [(100, i) for i in range(101, 150)]
    for edges in (star, [(b, a) for a, b in star], two, two + two):
        assert as_graph(edges).n_edges == len(set(edges))
        assert read_graph(write(tmp_path / "star.csv", edges)).n_edges == len(set(edges))
        folder = build_graph(tmp_path / "star.csv", tmp_path / "g", overwrite=True)
        assert open_graph(folder).n_edges == len(set(edges))


def test_history_of_two_kinds_is_refused(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("user,item,at\n1,2,2026-01-01\n2,3,2026-01-02\n")
    options = {"time": "at", "periods": ["2026-02-01"]}
    with pytest.raises(InputError, match="two kinds of nodes"):
        History.from_edges(tmp_path / "h", path, **options)
    assert len(History.from_edges(tmp_path / "h", path, one_kind=True, **options).nodes) == 3


def test_as_graph_columns_picks_two_of_a_table():
    table = pl.DataFrame({"at": ["x", "y"], "sender": [1, 2], "receiver": [2, 3]})
    with pytest.raises(InputError, match=r"Say columns=\('sender', 'receiver'\)"):
        as_graph(table)
    assert list(as_graph(table, columns=("sender", "receiver")).nodes) == [1, 2, 3]
    assert list(as_graph(table, columns=(1, 2)).nodes) == [1, 2, 3]
