"""Edge lists as text: what is read, and what is said about bad lines."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edgeveil.errors import InputError, ParameterError
from edgeveil.graph import lines
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.read import read_graph

PATH = Graph.from_edges([0, 1], [1, 2], NodeSet.of_ints([1, 2, 3]))


def write(folder: Path, text: str | bytes, name: str = "edges.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".edges", ".edgelist"])
@pytest.mark.parametrize("mark", [",", "\t", ";", " ", "   ", " \t ", "\t\t", ", ", " ; "])
def test_every_delimiter_is_found_under_every_suffix(tmp_path, mark, suffix):
    path = write(tmp_path, f"1{mark}2\n2{mark}3\n", "edges" + suffix)
    assert read_graph(path) == PATH


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\n% another, with, commas\n1,2\n2,3\n",
        "1,2\n# between, two\n2,3\n",
        "1,2\n%between\n2,3\n# end",
        "1,2\n  # indented, comment\n2,3\n",
        "1,2\n\n2,3\n\n\n",
        "1,2\n   \n\t\n2,3\n",
        "1,2\r\n2,3\r\n",
        "1,2\r\n\r\n2,3\r\n# end\r\n",
        "\ufeff1,2\n2,3\n",
        "1,2\n2,3",
        ' 1 , 2\n"2","3"\n',
    ],
)
def test_comments_and_line_ends_do_not_matter_among_numbers(tmp_path, text):
    assert read_graph(write(tmp_path, text)) == PATH


@pytest.mark.parametrize(
    "text",
    [
        "ann,bob\n# a comment, of two fields\nbob,cem\n",
        "ann,bob\n  % a comment, of two fields\nbob,cem\n",
        "\ufeffann,bob\nbob,cem\n",
        "\ufeffsource,target\nann,bob\nbob,cem\n",
        "\ufeff# friends\nann,bob\n\nbob,cem",
        " ann ,bob\r\nbob,  cem\r\n",
    ],
)
def test_comments_and_line_ends_do_not_matter_among_names(tmp_path, text):
    graph = read_graph(write(tmp_path, text))
    assert graph == Graph.from_edges([0, 1], [1, 2], NodeSet.of(["ann", "bob", "cem"]))


@pytest.mark.parametrize("text", ["  1   2\n2\t3  \n", "1 2 \n\n# x y\n 2 3\n"])
def test_ragged_blanks_are_one_delimiter(tmp_path, text):
    assert read_graph(write(tmp_path, text, "edges.txt")) == PATH


def test_a_packed_file_is_read_like_the_plain_one(tmp_path):
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(gzip.compress(b"1 2\n2 3\n"))
    assert read_graph(path) == PATH


def test_strings_are_sorted_by_code_point(tmp_path):
    graph = read_graph(write(tmp_path, "zoë,ann\nÅsa,Zed\n日本,ann\n"))
    assert list(graph.nodes) == sorted(["zoë", "ann", "Åsa", "Zed", "日本"])
    assert {(graph.nodes[u], graph.nodes[v]) for u, v in _edges(graph)} == {
        ("Zed", "Åsa"),
        ("ann", "zoë"),
        ("ann", "日本"),
    }


def test_integer_ids_negative_or_huge_are_sorted(tmp_path):
    graph = read_graph(write(tmp_path, f"-5,{2**62}\n{-(2**62)},7\n"))
    assert list(graph.nodes) == [-(2**62), -5, 7, 2**62]
    assert _edges(graph) == {(0, 2), (1, 3)}


def test_one_text_column_makes_both_text(tmp_path):
    graph = read_graph(write(tmp_path, "1,a\n2,b\n"))
    assert list(graph.nodes) == ["1", "2", "a", "b"]


def test_a_late_text_id_makes_all_ids_text(tmp_path):
    lines = [f"{i},{i + 1}" for i in range(3000)]
    graph = read_graph(write(tmp_path, "\n".join([*lines, "7,x"])))
    assert graph.nodes.kind == "str"
    assert graph.n_edges == 3001


def test_quoted_names_may_hold_the_delimiter_and_a_number_sign(tmp_path):
    graph = read_graph(write(tmp_path, '"Doe, Ann","#bob"\n"Doe, Ann",cem\n'))
    assert list(graph.nodes) == ["#bob", "Doe, Ann", "cem"]


def test_loops_repeats_directions_and_weights_are_counted(tmp_path):
    graph = read_graph(write(tmp_path, "1,2,1\n2,1,0.5\n1,2,1.0\n3,3,2\n2,3,1\n"))
    assert graph == PATH
    read_report = graph.read_report
    assert (read_report.entries, read_report.self_loops, read_report.repeated) == (5, 1, 1)
    assert (read_report.both_directions, read_report.weighted) == (1, 2)


def test_weights_are_counted_for_names_and_empty_ones_are_none(tmp_path):
    graph = read_graph(write(tmp_path, "a,b,2\nb,c,\nc,d,1\nd,a,7\n"))
    assert (graph.n_edges, graph.read_report.weighted) == (4, 2)


def test_a_third_column_of_text_and_further_columns_are_ignored(tmp_path):
    graph = read_graph(write(tmp_path, "1,2,friend,9\n2,3,colleague,8\n"))
    assert graph == PATH
    assert graph.read_report.weighted == 0


# -- header and columns -------------------------------------------------------------------


@pytest.mark.parametrize("head", ["a,b", "source,target", "Source,Target", "who,whom"])
def test_a_header_over_integers_is_recognised(tmp_path, head):
    assert read_graph(write(tmp_path, f"{head}\n1,2\n2,3\n")) == PATH


def test_a_header_over_names_is_recognised_only_by_its_own_names(tmp_path):
    assert read_graph(write(tmp_path, "source,target\nann,bob\n")).n_nodes == 2
    assert read_graph(write(tmp_path, "who,whom\nann,bob\n")).n_nodes == 4
    assert read_graph(write(tmp_path, "who,whom\nann,bob\n"), header=True).n_nodes == 2
    assert read_graph(write(tmp_path, "source,target\nann,bob\n"), header=False).n_nodes == 4


def test_columns_are_taken_by_name_or_position(tmp_path):
    path = write(tmp_path, "when,src,weight,dst\n9,1,5,2\n8,2,1,3\n")
    graph = read_graph(path, columns=("src", "dst"))
    assert graph == PATH
    assert graph.read_report.weighted == 1
    assert read_graph(path, columns=(1, 3)) == PATH
    assert read_graph(path, columns=(3, 1), header=True) == PATH


def test_a_missing_column_is_named(tmp_path):
    path = write(tmp_path, "src,dst\n1,2\n")
    with pytest.raises(InputError, match=r"edges\.csv has no column 'to'.*src, dst"):
        read_graph(path, columns=("src", "to"))
    with pytest.raises(InputError, match="no column 2"):
        read_graph(path, columns=(0, 2))


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ("a", "b"), "header": False},
        {"columns": ("a",)},
        {"columns": "ab"},
        {"columns": (0, 0)},
        {"delimiter": "::"},
        {"delimiter": '"'},
        {"key": "network"},
    ],
)
def test_options_without_sense_are_refused(tmp_path, options):
    with pytest.raises(ParameterError):
        read_graph(write(tmp_path, "a,b\n1,2\n"), **options)


def test_a_delimiter_can_be_given(tmp_path):
    assert read_graph(write(tmp_path, "1|2\n2|3\n"), delimiter="|") == PATH
    names = read_graph(write(tmp_path, "ann lee,bob\n"), delimiter=" ", header=False).nodes
    assert list(names) == ["ann", "lee,bob"]


# -- the node list ------------------------------------------------------------------------


def test_nodes_without_an_edge_count_and_the_list_sets_the_order(tmp_path):
    graph = read_graph(write(tmp_path, "1,2\n"), nodes=[9, 2, 1])
    assert list(graph.nodes) == [9, 2, 1]
    assert _edges(graph) == {(1, 2)}


def test_nodes_far_apart_are_looked_up_by_search(tmp_path):
    graph = read_graph(write(tmp_path, "1,2\n"), nodes=[2**60, 2, -(2**60), 1])
    assert _edges(graph) == {(1, 3)}


@pytest.mark.parametrize(
    ("text", "nodes", "line"),
    [
        ("1,2\n2,5\n5,6\n", [1, 2, 3], 2),
        ("# c\n\n1,2\n2,5\n5,6\n", range(3), 4),
        ("1,2\n2,5\n5,6\n", [1, 2, 2**61], 2),
        ("a,b\nb,c\nc,d\n", ["a", "b"], 2),
    ],
)
def test_an_edge_outside_of_the_list_is_counted_not_quoted(tmp_path, text, nodes, line):
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_graph(path, nodes=nodes)
    said = str(caught.value)
    assert said.startswith(f"{path}, line {line}: ")
    assert "(2 edges do)" in said


def test_text_ids_with_a_list_of_integers_say_so(tmp_path):
    with pytest.raises(InputError, match="ids of the edges are text, those of the node list int"):
        read_graph(write(tmp_path, "ann,bob\n"), nodes=[1, 2])


def test_a_file_without_edges_needs_a_node_list(tmp_path):
    for text in ("# nothing yet\n", "source,target\n"):
        with pytest.raises(InputError, match="holds no edge"):
            read_graph(write(tmp_path, text))
        assert read_graph(write(tmp_path, text), nodes=["a"]) == Graph.from_edges(
            [], [], NodeSet.of(["a"])
        )


# -- bad input ----------------------------------------------------------------------------

BAD_LINES = {
    "ragged, too short": ("1,2\n3\n", "line 2: 1 fields where the first line has 2"),
    "ragged, too long": ("1,2\n2,3\n3,4,5\n", "line 3: 3 fields where the first line has 2"),
    "cut off in the weight": ("1,2,3\n4,5\n", "line 2: 2 fields where the first line has 3"),
    "unlike the header": ("source,target\n1,2,3\n", "line 2: 3 fields where the header has 2"),
    "empty first id": ("1,2\n,3\n", "line 2: an id is empty"),
    "empty second id": ("a,b\n# c\nb,\n", "line 3: an id is empty"),
    "quoted empty id": ('a,b\nb,""\n', "line 2: an id is empty"),
    "blank id": ("a,b\nb,  \n", "line 2: an id is empty"),
    "NaN": ("1,2\n2,NaN\n", "line 2: an id is NaN"),
    "not UTF-8": (b"ann,bob\nbob,zo\xeb\n", "line 2: not UTF-8"),
    "not UTF-8 at once": (b"\xff\xfea\x00,\x00b\x00", "line 1: not UTF-8"),
    "open quote": ('a,b\n"c,d\ne,f\n', "line"),
    "one column": ("1\n2\n", "has 1 column"),
    "empty": ("", "holds no edge"),
    "only blanks": ("\n \n", "holds no edge"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_one_sentence_with_its_number(tmp_path, name):
    text, expected = BAD_LINES[name]
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_graph(path)
    said = str(caught.value)
    assert said.startswith(str(path))
    assert expected in said
    assert "\n" not in said


def test_a_truncated_gzip_is_one_sentence(tmp_path):
    packed = gzip.compress(b"".join(b"%d,%d\n" % (i, i * 7) for i in range(5000)))
    path = write(tmp_path, packed[: len(packed) // 2], "edges.csv.gz")
    with pytest.raises(InputError, match=r"edges\.csv\.gz is not a whole gzip file"):
        read_graph(path)
    with pytest.raises(InputError, match="not a whole gzip file"):
        read_graph(write(tmp_path, b"1,2\n", "plain.csv.gz"))


def test_a_packed_file_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "_MOST_UNPACKED", 1 << 21)
    text = b"1,2\n" * 900_000
    bomb = write(tmp_path, gzip.compress(text), "bomb.csv.gz")
    with pytest.raises(InputError) as caught:
        read_graph(bomb)
    said = str(caught.value)
    assert said.startswith(f"{bomb} unpacks to more than 100 times its size")
    assert "unpack it and read the plain file" in said
    with pytest.raises(InputError, match="unpacks to more"):
        read_graph(write(tmp_path, "1,2\n"), nodes=bomb)
    with pytest.raises(InputError, match="unpacks to more"):
        read_graph(write(tmp_path, gzip.compress(text), "bomb.mtx.gz"))
    # not by its size alone, and small files may be as dense as they like
    monkeypatch.setattr(lines, "_MOST_TIMES", 10_000)
    assert read_graph(bomb, one_kind=True).read_report.entries == 900_000
    monkeypatch.undo()
    assert read_graph(bomb, one_kind=True).read_report.entries == 900_000


def test_a_packed_file_of_several_members_is_read_to_the_end(tmp_path):
    packed = gzip.compress(b"1,2\n") + gzip.compress(b"2,3\n")
    assert read_graph(write(tmp_path, packed, "edges.csv.gz")) == PATH


def test_missing_unknown_and_unusable_paths_are_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"there is no file .*nothing\.csv"):
        read_graph(tmp_path / "nothing.csv")
    with pytest.raises(InputError, match=r"unknown suffix '\.xlsx'; known are \.csv"):
        read_graph(write(tmp_path, "1,2\n", "edges.xlsx"))
    with pytest.raises(InputError, match="unknown suffix"):
        read_graph(write(tmp_path, "1,2\n", "edges.parquet.gz"))
    with pytest.raises(InputError, match="no saved graph"):
        read_graph(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read_graph("a\0b.csv")


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_a_forbidden_file_is_one_sentence(tmp_path):
    path = write(tmp_path, "1,2\n")
    path.chmod(0)
    # root may read everything: the child gives that up first
    code = (
        "import os, sys\n"
        "import edgeveil.graph.read\n"
        "from edgeveil.errors import InputError\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "try: edgeveil.graph.read.read_graph(sys.argv[1])\n"
        "except InputError as error: print(error)\n"
    )
    for folder in (tmp_path, *tmp_path.parents):
        if folder.name.startswith(("pytest-", "popen-", "test_")):  # pytest's own, not /tmp
            folder.chmod(0o755)
    run = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == f"{path} cannot be read: permission denied"


# -- how it is done -----------------------------------------------------------------------


def test_many_names_are_told_apart(tmp_path):
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 3000, (2, 20_000))
    path = write(tmp_path, "".join(f"n{a:04},n{b:04}\n" for a, b in zip(u, v, strict=True)))
    seen, index = np.unique(np.concatenate([u, v]), return_inverse=True)
    nodes = NodeSet.of([f"n{i:04}" for i in seen])
    assert read_graph(path) == Graph.from_edges(index[: len(u)], index[len(u) :], nodes)


def test_importing_the_readers_loads_neither_polars_nor_scipy_io():
    seen = "[m for m in ('polars', 'scipy.io') if m in sys.modules]"
    code = f"import sys, edgeveil.graph.objects, edgeveil.graph.read; print({seen})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def _edges(graph: Graph) -> set[tuple[int, int]]:
    return {(u, int(v)) for u in range(graph.n_nodes) for v in graph.neighbours(u) if u < int(v)}
