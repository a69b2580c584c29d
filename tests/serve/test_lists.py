"""Slots of one size: what is put in is what comes out, and everything else is not there."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("starlette")

from edgeveil.errors import InputError
from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.privacy.noise import NoiseSource
from edgeveil.results.nouns import Nouns
from edgeveil.series.suggesting import suggest
from edgeveil.serve.list_files import RESERVE, ListStore, render, shown, slot_bytes

NODES = NodeSet.of(["ann", "bob", "cem", "dan"])
ABOUT = {"snapshot": 1, "series": "x"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "000001.lists"


def test_stored_list_comes_back_padded_to_one_length(path):
    lists = ListStore.open(path, ABOUT, NODES, 3)
    assert [lists.get(i) for i in range(4)] == [None] * 4
    lists.put(2, b'{"a":1}')
    lists.put(0, b'{"b":[1,2,3]}')
    assert lists.get(2).rstrip() == b'{"a":1}'
    assert len(lists.get(0)) == len(lists.get(2)) == lists.slot - 4
    assert lists.get(1) is None
    again = ListStore.open(path, ABOUT, NODES, 3)
    assert again.get(0).rstrip() == b'{"b":[1,2,3]}'


def test_a_list_that_a_full_disk_has_cut_is_not_there(path, monkeypatch):
    lists = ListStore.open(path, ABOUT, NODES, 3)
    really = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: really(file, data[:9], at))
    with pytest.raises(OSError, match="space"):
        lists.put(1, b'{"a":2}')
    assert lists.get(1) is None


def test_a_list_that_the_disk_does_not_give_back_is_not_there(path, monkeypatch):
    lists = ListStore.open(path, ABOUT, NODES, 3)
    lists.put(1, b'{"a":2}')

    def broken(*_):
        raise OSError("input/output error")

    monkeypatch.setattr(os, "pread", broken)
    assert lists.get(1) is None  # the artifacts hold it: it is asked for there, for nothing


def test_the_file_is_for_its_owner_alone(path):
    ListStore.open(path, ABOUT, NODES, 3)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("changed", [{"snapshot": 2}, {"series": "y"}])
def test_list_store_of_other_data_is_empty(path, changed):
    ListStore.open(path, ABOUT, NODES, 3).put(0, b"{}")
    assert ListStore.open(path, {**ABOUT, **changed}, NODES, 3).get(0) is None


def test_a_slot_that_was_half_written_or_moved_is_not_there(path):
    lists = ListStore.open(path, ABOUT, NODES, 3)
    lists.put(0, b'{"a":1}')
    content = bytearray(path.read_bytes())
    slot = lists.slot
    content[4096 + slot : 4096 + 2 * slot] = content[4096 : 4096 + slot]  # ann's list as bob's
    content[4096 + 10] ^= 1
    path.write_bytes(content)
    again = ListStore.open(path, ABOUT, NODES, 3)
    assert again.get(0) is None
    assert again.get(1) is None


def test_a_cut_file_is_made_anew(path):
    lists = ListStore.open(path, ABOUT, NODES, 3)
    lists.put(3, b"{}")
    os.truncate(path, 5000)
    assert ListStore.open_earlier(path) is None
    assert ListStore.open(path, ABOUT, NODES, 3).get(3) is None


def test_empty_slots_take_no_room_on_the_disk(path):
    ListStore.open(path, ABOUT, NodeSet.range(100_000), 20)
    assert path.stat().st_size > 100 << 20
    assert path.stat().st_blocks * 512 < 1 << 20


@settings(max_examples=40)
@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, unique=True), st.integers(1, 50))
def test_the_public_size_holds_any_list(names, k):
    from edgeveil.serve.list_files import _json

    longest = max(names, key=lambda name: len(_json(name)))
    line = {"rank": k, "node": longest, "strength": "popular", "common": 10**9 + 0.5}
    line |= {"why": "followed by about 1000000000 whom you follow", "chance": 0.123}
    remark = (
        "1000000000 of 1000000000 names stand out; of 1000000000 friends, too few are known to "
        "have friends in common with anybody else, so this list is mostly what everybody gets"
    )
    whole = {"member": longest, "snapshot": 10**9, "made": "2026-01-01", "remark": remark}
    body = _json({**whole, "suggestions": [line] * k})
    assert len(body) + 4 <= slot_bytes(NodeSet.of(names), k)


@pytest.mark.parametrize("noun", ["x" * 40, "é" * 40])
def test_public_size_holds_any_list_in_any_words(noun):
    from edgeveil.serve.list_files import _json

    nouns, k = Nouns(members=noun, edges=noun, neighbours=noun), 50
    line = {"rank": k, "node": 9, "strength": "popular", "common": 10**9 + 0.5, "chance": 0.123}
    for why in (nouns.followed(10**9), nouns.common(10**9), nouns.follows()):
        remark = f"1000000000 of 1000000000 names stand out; with {nouns.own(10**9)}, " + "x" * 120
        whole = {"member": 9, "snapshot": 10**9, "made": "2026-01-01", "remark": remark}
        body = _json({**whole, "suggestions": [line | {"why": why}] * k})
        assert len(body) + 4 <= slot_bytes(NodeSet.range(10), k, vars(nouns).values())


def test_list_beyond_its_slot_is_an_error(path):
    lists = ListStore.open(path, ABOUT, NODES, 3)
    with pytest.raises(InputError):
        lists.put(0, b"{" * (lists.slot + 1))
    assert lists.get(0) is None


@pytest.mark.parametrize("name", [int, 'né "{}"\\\n'.format])
def test_a_list_says_what_was_released_and_how_strong_it_is(name):
    graph = social_network(2000, average_degree=10).graph
    named = Graph.from_edges(*graph.adjacency().nonzero(), NodeSet.of(map(name, range(2000))))
    seeded = NoiseSource.insecure(1)
    suggestions = suggest(named, named.nodes.take(range(300)), epsilon=2.0, k=30, noise=seeded)
    strengths = set()
    for at, slot in enumerate(render(suggestions, 3, 0)):
        answer = json.loads(shown(slot, 30).body)
        assert (answer["member"], answer["snapshot"]) == (suggestions.members[at], 3)
        assert answer["remark"] == suggestions.remark_at(at)
        for line, row in zip(answer["suggestions"], suggestions.at(at), strict=True):
            assert (line["rank"], line["node"], line["why"]) == (row.rank, row.node, row.why)
            evident = line["strength"] in ("strong", "weak")
            assert evident == row.stands_out
            assert (line["strength"] == "strong") == (row.chance < 0.1)
            assert (line["strength"] == "popular") == (row.why == "popular")
            strengths.add(line["strength"])
    assert strengths == {"strong", "weak", "popular"}


def test_hidden_names_are_replaced_from_the_reserve():
    graph = social_network(300, average_degree=10).graph
    suggestions = suggest(graph, [7], epsilon=2.0, k=5 + RESERVE, noise=NoiseSource.insecure(1))
    (slot,) = render(suggestions, 3, 9)
    names = [row.node for row in suggestions.for_member(7)]
    gone = {str(names[0]), str(names[3])}
    answer = shown(slot, 5, gone.__contains__)
    listed = json.loads(answer.body)
    assert [row["node"] for row in listed["suggestions"]] == [names[i] for i in (1, 2, 4, 5, 6)]
    assert [row["rank"] for row in listed["suggestions"]] == [1, 2, 3, 4, 5]
    assert listed["remark"].split(";")[0].endswith("of 5 names stand out")
    assert (answer.names, answer.revision) == (5, 9)
    none = shown(slot, 5, lambda other: True)
    assert json.loads(none.body)["remark"] == "there is nobody to suggest"
    assert none.names == 0
