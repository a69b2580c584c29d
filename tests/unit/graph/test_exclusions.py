"""Pairs who are not suggested to one another: the file, pairs in memory, and their indices."""

from __future__ import annotations

import gzip

import pytest

from edgeveil.errors import InputError, ParameterError
from edgeveil.graph.exclusions import excluded_pairs, read_exclusions
from edgeveil.graph.nodes import NodeSet


def test_a_file_has_pairs_in_both_or_one_direction(tmp_path):
    path = tmp_path / "blocks.csv"
    path.write_text('member,other,direction\n# a comment\nann,bob\n"c,d", eve ,one\r\nx,y,both\n')
    assert read_exclusions(path) == [
        ("ann", "bob", "both"),
        ("c,d", "eve", "one"),
        ("x", "y", "both"),
    ]
    (tmp_path / "blocks.csv.gz").write_bytes(gzip.compress(b"7;8\n9;10;one\n"))
    assert read_exclusions(tmp_path / "blocks.csv.gz") == [("7", "8", "both"), ("9", "10", "one")]


@pytest.mark.parametrize("line", ["secret", "secret,b,c,d", "secret,b,onne", "secret,", ",secret"])
def test_a_wrong_line_is_named_by_number_and_its_ids_are_not(tmp_path, line):
    path = tmp_path / "blocks.csv"
    path.write_text(f"a,b\n{line}\n")
    with pytest.raises(InputError, match="line 2") as refused:
        read_exclusions(path)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("pair", [("secret",), "secret", ("secret", 2, "two"), None])
def test_what_is_no_pair_in_memory_is_refused(pair):
    with pytest.raises(ParameterError, match="entry 1") as refused:
        read_exclusions([(1, 2), pair])
    assert "secret" not in str(refused.value)


def test_pairs_become_indices_and_unknown_ids_are_counted():
    nodes = NodeSet.of([30, 10, 20])
    given = read_exclusions([(10, 20), (30, 20, "one"), (10, 99), ("10", "30", "both")])
    pairs, unknown = excluded_pairs(given, nodes)
    assert {tuple(pair) for pair in pairs.tolist()} == {(1, 2), (2, 1), (0, 2), (1, 0), (0, 1)}
    assert unknown == 1
