"""Slots of one size: what is put in is what comes out, and everything else is not there."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("starlette")

from edgeveil.datasets import social_network
from edgeveil.engine import suggest
from edgeveil.errors import InputError
from edgeveil.graph import Graph
from edgeveil.nodes import NodeSet
from edgeveil.serve.lists import Lists, render, slot_bytes

NODES = NodeSet.of(["ann", "bob", "cem", "dan"])
ABOUT = {"snapshot": 1, "series": "x"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "000001.lists"


def put(lists, index, body):
    lists.put(index, lists.padded(body))


def test_what_was_put_comes_back_padded_to_one_length(path):
    lists = Lists.open(path, ABOUT, NODES, 3)
    assert [lists.get(i) for i in range(4)] == [None] * 4
    put(lists, 2, b'{"a":1}')
    put(lists, 0, b'{"b":[1,2,3]}')
    assert lists.get(2).rstrip() == b'{"a":1}'
    assert len(lists.get(0)) == len(lists.get(2)) == lists.slot - 4
    assert lists.get(1) is None
    again = Lists.open(path, ABOUT, NODES, 3)
    assert again.get(0).rstrip() == b'{"b":[1,2,3]}'
    assert Lists.kept(path).nodes == NODES


def test_a_list_that_a_full_disk_has_cut_is_not_there(path, monkeypatch):
    lists = Lists.open(path, ABOUT, NODES, 3)
    really = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: really(file, data[:9], at))
    put(lists, 1, b'{"a":2}')
    assert lists.get(1) is None


def test_the_file_is_for_its_owner_alone(path):
    Lists.open(path, ABOUT, NODES, 3)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("changed", [{"snapshot": 2}, {"series": "y"}])
def test_lists_of_something_else_are_not_taken_for_these(path, changed):
    put(Lists.open(path, ABOUT, NODES, 3), 0, b"{}")
    assert Lists.open(path, {**ABOUT, **changed}, NODES, 3).get(0) is None


def test_a_slot_that_was_half_written_or_moved_is_not_there(path):
    lists = Lists.open(path, ABOUT, NODES, 3)
    put(lists, 0, b'{"a":1}')
    content = bytearray(path.read_bytes())
    slot = lists.slot
    content[4096 + slot : 4096 + 2 * slot] = content[4096 : 4096 + slot]  # ann's list as bob's
    content[4096 + 10] ^= 1
    path.write_bytes(content)
    again = Lists.open(path, ABOUT, NODES, 3)
    assert again.get(0) is None
    assert again.get(1) is None


def test_a_cut_file_is_made_anew(path):
    lists = Lists.open(path, ABOUT, NODES, 3)
    put(lists, 3, b"{}")
    os.truncate(path, 5000)
    assert Lists.kept(path) is None
    assert Lists.open(path, ABOUT, NODES, 3).get(3) is None


def test_empty_slots_take_no_room_on_the_disk(path):
    Lists.open(path, ABOUT, NodeSet.range(100_000), 20)
    assert path.stat().st_size > 100 << 20
    assert path.stat().st_blocks * 512 < 1 << 20


@settings(max_examples=40)
@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, unique=True), st.integers(1, 50))
def test_the_public_size_holds_any_list(names, places):
    from edgeveil.serve.lists import _json

    longest = max(names, key=lambda name: len(_json(name)))
    line = {"place": places, "node": longest, "first": 10**9, "last": 10**9}
    line["why"] = "followed by about 1000000000 whom you follow"
    remark = (
        "with 1000000000 friends at epsilon 0.123456789012 this list is mostly what everybody gets"
    )
    whole = {"member": longest, "snapshot": 10**9, "made": "2026-01-01", "remark": remark}
    body = _json({**whole, "suggestions": [line] * places})
    assert len(body) + 4 <= slot_bytes(NodeSet.of(names), places)


def test_what_does_not_fit_is_an_error_and_no_shorter_list(path):
    lists = Lists.open(path, ABOUT, NODES, 3)
    with pytest.raises(InputError):
        lists.padded(b"{" * (lists.slot + 1))
    assert lists.get(0) is None


@pytest.mark.parametrize("name", [int, 'né "{}"\\\n'.format])
def test_lists_that_are_written_together_say_what_each_says_alone(name):
    graph = social_network(60, average_degree=6).graph
    named = Graph.from_edges(*graph.adjacency().nonzero(), NodeSet.of(map(name, range(60))))
    made = suggest(named, named.nodes, epsilon=1.0, k=57)  # who has many friends has a shorter list
    assert np.isnan(made.values).any()
    for at, body in enumerate(render(made, 3)):
        found = json.loads(body)
        assert (found["member"], found["snapshot"]) == (made.members[at], 3)
        assert found["remark"] == made.remark_at(at)
        assert [tuple(line.values()) for line in found["suggestions"]] == [
            (rank, node, first, last, why) for rank, node, _, first, last, why in made.at(at)
        ]
