"""Suggest: whom a list names, and what moves what."""

from __future__ import annotations

import csv
import dataclasses
import os
from itertools import combinations

import numpy as np
import pytest

import edgeveil as ev
from edgeveil.errors import ParameterError, UnknownNodeError
from edgeveil.estimate.lists import Reason
from edgeveil.graph.datasets import social_network
from edgeveil.ledger import Ledger
from edgeveil.mechanisms import Suggest, TwoHop
from edgeveil.mechanisms.hard_pairs import Pair, graph_of_pairs
from edgeveil.mechanisms.run import exact_loss, rows_of
from edgeveil.privacy.noise import NoiseSource
from edgeveil.results.suggestions import Suggestions
from edgeveil.series.suggesting import suggest
from tests.dense_flows import every_graph

NETWORK = social_network(600, average_degree=12)
GRAPH = NETWORK.graph


def lists_of(epsilon, members, seed=1, **more):
    return suggest(GRAPH, members, epsilon, noise=NoiseSource.insecure(seed), **more)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_list_has_no_member_friend_or_duplicate(epsilon):
    suggestions = lists_of(epsilon, range(40), k=60)
    for member in range(40):
        named = [s.node for s in suggestions.for_member(member)]
        assert len(named) == len(set(named)) == 60
        assert not set(named) & {member, *GRAPH.neighbours(member).tolist()}


def test_tiny_dense_graph_lists_hold_strangers_only():
    """All noise exceeds the threshold here."""
    n = 12
    pairs = [p for p in combinations(range(n), 2) if sum(p) % 3]
    graph = graph_of_pairs(n, pairs)
    for seed in range(20):
        suggestions = suggest(graph, range(n), 0.2, k=12, noise=NoiseSource.insecure(seed))
        for member in range(n):
            named = {s.node for s in suggestions.for_member(member)}
            assert named == set(range(n)) - {member, *graph.neighbours(member).tolist()}


def test_candidates_restrict_lists_and_unknown_ones_are_free(tmp_path):
    only = list(range(100, 160))
    suggestions = lists_of(1.0, [3, 4], k=30, candidates=only)
    named = {s.node for member in (3, 4) for s in suggestions.for_member(member)}
    assert named <= set(only)
    assert len(named) > 30
    ledger = Ledger.create(tmp_path / "ledger", epsilon=5)
    with pytest.raises(UnknownNodeError):
        suggest(GRAPH, [3], 1.0, candidates=["ghost"], ledger=ledger)
    assert ledger.charges() == []


def test_small_epsilon_list_is_mostly_popular_and_says_so():
    """At a large epsilon more names stand out."""
    members = [int(v) for v in np.argsort(-GRAPH.degrees)[:60]]
    small, large = lists_of(0.01, members), lists_of(8.0, members)
    assert all(small.mostly_popular(m) for m in members)
    assert "this list is mostly what everybody gets" in small.remark(members[0])
    assert "60 lists are mostly popular names" in small.summary
    assert sum(large.mostly_popular(m) for m in members) < 30
    assert large.stand_out(members[0]) > 5
    assert f"{large.stand_out(members[0])} of 20 names stand out" in large.remark(members[0])
    assert any("common friends" in s.why for m in members for s in large.for_member(m))


def test_row_has_common_friends_and_chance():
    suggestions = lists_of(1.0, range(50))
    for member in range(50):
        for s in suggestions.for_member(member):
            assert 0 <= s.common <= GRAPH.degrees[member]
            assert 0 < s.chance <= 1
            if s.reason == Reason.POPULAR:
                assert s.why == "popular"


def test_huge_epsilon_common_friends_are_the_true_ones():
    graph = graph_of_pairs(7, [(0, 1), (0, 2), (0, 3), (4, 1), (4, 2), (4, 3), (5, 1), (5, 6)])
    best = suggest(graph, [0], 200.0, k=2, noise=NoiseSource.insecure(2)).for_member(0)
    assert [s.node for s in best] == [4, 5]
    assert [s.common for s in best] == pytest.approx([3, 1], abs=0.5)


def test_other_k_or_candidates_reuse_stored_lists_for_free(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1)
    first = suggest(GRAPH, [3, 4], 1.0, k=20, ledger=ledger)
    shorter = suggest(GRAPH, [3, 4], 1.0, k=10, ledger=ledger)
    longer = suggest(GRAPH, [3], 1.0, k=100, ledger=ledger)
    assert len(ledger.charges()) == 1
    for member in (3, 4):
        assert shorter.for_member(member) == first.for_member(member)[:10]
    assert longer.for_member(3)[:20] == first.for_member(3)
    only = [s.node for s in first.for_member(3)][5:9]
    among = suggest(GRAPH, [3], 1.0, candidates=only, ledger=ledger)
    assert [s.node for s in among.for_member(3)] == only
    assert len(ledger.charges()) == 1


@pytest.mark.parametrize("epsilon", [0.2, 2.0])
def test_no_pair_of_graphs_on_five_nodes_tells_more_than_epsilon(epsilon):
    """Exhaustive up to the choice of the edge."""
    mechanism, worst = Suggest(epsilon=epsilon), 0.0
    graphs = dict(every_graph(4))
    pairs = list(combinations(range(4), 2))
    for mask, graph in graphs.items():
        for k, (x, y) in enumerate(pairs):
            if mask >> k & 1 or 0 in (x, y):
                continue
            other = graphs[mask | 1 << k]
            worst = max(worst, exact_loss(mechanism, Pair(graph=graph, neighbour=other, source=0)))
    assert worst <= epsilon * (1 + 1e-9)
    assert worst >= 0.99 * epsilon


def test_edge_between_friends_loses_only_the_degree_epsilon():
    """An edge from a friend to a stranger loses all of it."""
    mechanism = Suggest(epsilon=1.0)
    friends = graph_of_pairs(8, [(0, 1), (0, 2), (0, 3)])
    for edge, claim in (((1, 5), 1.0), ((1, 2), 0.03), ((5, 6), 0.03)):
        other = friends.with_edge_flipped(*edge)
        pair = Pair(graph=friends, neighbour=other, source=0)
        assert exact_loss(mechanism, pair) == pytest.approx(claim, rel=1e-4)


def test_dense_drawing_has_the_same_distribution():
    graph = social_network(4000, average_degree=20, communities=20, seed=3).graph
    members = [int(v) for v in np.argsort(-graph.degrees)[100:180]]
    both = [
        rows_of(Suggest(epsilon=2.0, densely=densely), graph, members, NoiseSource.insecure(seed))
        for seed, densely in enumerate((False, True))
    ]
    counts = [len(rows.nodes) / len(members) for rows in both]
    best = [rows.sums[rows.starts[:-1]].mean() for rows in both]
    assert not np.array_equal(both[0].sums, both[1].sums)
    assert counts[0] == pytest.approx(counts[1], rel=0.1)
    assert best[0] == pytest.approx(best[1], rel=0.1)


def test_suggest_refuses_a_mechanism_of_scores():
    with pytest.raises(ParameterError, match="two-hop gives scores, not lists"):
        suggest(GRAPH, [1], mechanism=TwoHop(epsilon=1))
    with pytest.raises(ParameterError, match="epsilon is given twice"):
        suggest(GRAPH, [1], 0.5, mechanism=Suggest(epsilon=1))
    with pytest.raises(ParameterError, match="epsilon is required"):
        suggest(GRAPH, [1])


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_what_is_written_is_read_back(tmp_path, suffix):
    suggestions = lists_of(1.0, [5, 9, 2])
    suggestions.write(tmp_path / f"lists{suffix}")
    again = Suggestions.read(tmp_path / f"lists{suffix}")
    assert again.members == (5, 9, 2)
    for member in suggestions.members:
        assert again.for_member(member) == suggestions.for_member(member)
        assert again.remark(member) == suggestions.remark(member)
    assert again.summary == suggestions.summary
    assert again.guarantee == suggestions.guarantee
    assert suggestions.table().equals(again.table())


def test_per_member_file_holds_the_list_of_one_member(tmp_path):
    suggestions = lists_of(1.0, [5, 9])
    suggestions.write_per_member(tmp_path / "lists")
    files = sorted((tmp_path / "lists").iterdir())
    assert [f.name for f in files] == ["5.csv", "9.csv"]
    for file in files:
        assert file.stat().st_mode & 0o777 == 0o600
        members = {line.split(",")[0] for line in file.read_text().splitlines()[1:]}
        assert members == {file.stem}


def test_columns_that_do_not_fit_are_no_suggestions():
    suggestions = lists_of(2.0, [1, 2])
    with pytest.raises(ParameterError, match="one list per member"):
        dataclasses.replace(suggestions, members=suggestions.members[:1])
    shorter = suggestions.lists._replace(chance=suggestions.lists.chance[1:])
    with pytest.raises(ParameterError, match="one length"):
        dataclasses.replace(suggestions, lists=shorter)


def test_the_picture_shows_every_member_once():
    pytest.importorskip("matplotlib")
    suggestions = lists_of(2.0, range(9))
    (axes,) = suggestions.plot().axes
    (dots,) = axes.collections
    friends, outstanding = dots.get_offsets().T
    assert friends.tolist() == [max(n, 1) for n in GRAPH.degrees[:9]]
    assert outstanding.tolist() == [
        sum(place.stands_out for place in suggestions.for_member(v)) for v in range(9)
    ]


def test_write_per_member_syncs_once_for_all_files(tmp_path, monkeypatch):
    graph = social_network(60, average_degree=8, seed=3).graph
    suggestions = ev.suggest(graph, range(60), epsilon=1.0)
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    suggestions.write_per_member(tmp_path / "lists")
    assert len(list((tmp_path / "lists").iterdir())) == 60
    assert len(synced) <= 3  # folders only
    suggestions.only(7).write(tmp_path / "7.csv")
    assert (tmp_path / "lists" / "7.csv").read_bytes() == (tmp_path / "7.csv").read_bytes()


def test_list_of_one_member_names_nobody_of_other_lists(tmp_path):
    """Read from a file, the nodes are the names on all lists of it."""
    graph = social_network(60, average_degree=8, seed=3).graph
    lists = ev.suggest(graph, range(9), epsilon=1.0, k=3)
    lists.write(tmp_path / "lists.parquet")
    for all_lists in (lists, ev.Suggestions.read(tmp_path / "lists.parquet")):
        own = all_lists.only(4)
        assert set(own.nodes) == {suggestion.node for suggestion in all_lists.for_member(4)}
        assert own.for_member(4) == all_lists.for_member(4)


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_csv_of_a_name_that_is_a_formula_is_escaped(tmp_path, name):
    nodes = ["a", "b", "c", name]
    graph = ev.as_graph([("a", "b"), ("b", "c"), ("c", name)], nodes=nodes)
    ev.suggest(graph, ["a"], epsilon=1.0).write(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert "'" + name in [line["node"] for line in lines]
