"""Node lists: in memory, as text, as tables."""

from __future__ import annotations

import gzip

import polars as pl
import pytest

from edgeveil.errors import InputError
from edgeveil.graph.node_lists import read_nodes
from edgeveil.graph.nodes import NodeSet


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("n.txt", "3\n1\n2\n", [3, 1, 2]),
        ("n.txt", "# public\nann lee\n\nbob\r\n", ["ann lee", "bob"]),
        ("n.txt", "id\n7\n8\n", [7, 8]),
        ("n.txt", "member\n7\n8\n", [7, 8]),
        ("n.txt", "node\nann\n", ["ann"]),
        ("n.txt", "ann\n8\n", [8]),  # the documented price of finding a header over integers
        ("n.txt", "ann\n8\nbob\n", ["ann", "8", "bob"]),
        ("n.csv", 'id,name\n7,"x, y"\n8,z\n', [7, 8]),
        ("n.csv", '"lee, ann",3\nbob,4\n', ["lee, ann", "bob"]),
        ("n.tsv", "ann lee\t3\nbob\t4\n", ["ann lee", "bob"]),
        ("n.csv", "ann lee\nbob\n", ["ann lee", "bob"]),
    ],
)
def test_a_text_file_gives_its_ids_in_order(tmp_path, name, text, expected):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert list(read_nodes(path)) == expected
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert list(read_nodes(str(packed))) == expected


@pytest.mark.parametrize("ids", [[5, 3, 4], ["b", "a"]])
def test_a_parquet_file_gives_its_first_column(tmp_path, ids):
    path = tmp_path / "n.parquet"
    pl.DataFrame({"id": ids, "x": [0.5] * len(ids)}).write_parquet(path)
    assert list(read_nodes(path)) == ids


def test_ids_in_memory_and_node_sets_pass_through():
    nodes = NodeSet.of(["a", "b"])
    assert read_nodes(None) is None
    assert read_nodes(nodes) is nodes
    assert read_nodes(x for x in ["a", "b"]) == nodes
    assert read_nodes(pl.Series(["a", "b"])) == nodes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "holds no node id"),
        ("1\n1\n", "1 node id occurs more than once"),
        ("a\n" + "9" * 30 + "\nb", None),
        (b"a\n\xff\n", "line 2: not UTF-8"),
    ],
)
def test_a_bad_text_file_is_one_sentence(tmp_path, text, expected):
    path = tmp_path / "n.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if expected is None:
        assert len(read_nodes(path)) == 3
        return
    with pytest.raises(InputError, match=expected) as caught:
        read_nodes(path)
    assert str(caught.value).startswith("the node list cannot be read: ")


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("nowhere.txt", "there is no file"),
        ("nowhere.parquet", "there is no file"),
        (17, "nodes must be node ids or a path"),
        (["a", 1], "all integers or all strings"),
        ([1.5], "all integers or all strings"),
        (["\ud800"], "not valid Unicode"),
    ],
)
def test_what_is_no_node_list_is_one_sentence(nodes, expected):
    with pytest.raises(InputError, match=expected):
        read_nodes(nodes)


def test_an_empty_or_missing_id_is_refused(tmp_path):
    table = tmp_path / "n.csv"
    table.write_text('a,1\n"",2\n')
    with pytest.raises(InputError, match="line 2: the id is empty"):
        read_nodes(table)
    parquet = tmp_path / "n.parquet"
    pl.DataFrame({"id": ["a", None]}).write_parquet(parquet)
    with pytest.raises(InputError, match="row 2: the id in column 'id' is missing"):
        read_nodes(parquet)
