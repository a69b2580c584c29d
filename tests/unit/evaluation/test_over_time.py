"""Hits over time: lists as a series makes them, without its ledger."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import edgeveil as ev
from edgeveil.errors import ParameterError
from edgeveil.evaluation.hits import hide_edges, with_entries
from edgeveil.evaluation.over_time import BASE_ONLY, born_until, simulate_series
from edgeveil.evaluation.own_graph import evaluate
from edgeveil.graph.datasets import social_network
from edgeveil.privacy.noise import NoiseSource
from edgeveil.series import WindowRule, refresh
from edgeveil.series.history import History

SNAPSHOTS = 6
MEMBERS = np.arange(0, 120, 3)


@pytest.fixture(scope="module")
def graph():
    """A network in which half of the edges come later."""
    whole = social_network(120, average_degree=16, seed=3).graph
    rows = np.repeat(np.arange(120), whole.degrees)
    low, high = np.minimum(rows, whole.indices), np.maximum(rows, whole.indices)
    first_seen = (low * 7 + high * 11) % (2 * SNAPSHOTS)
    return replace(whole, first_seen=np.maximum(1, first_seen - SNAPSHOTS + 1).astype(np.uint16))


@pytest.fixture(scope="module")
def history(graph, tmp_path_factory):
    built_history = History.create(tmp_path_factory.mktemp("history") / "friends")
    for number in range(1, SNAPSHOTS + 1):
        built_history.add(_plain(graph, number), date=f"2026-01-{number:02d}")
    return built_history


def _plain(graph, snapshot):
    return replace(born_until(graph, snapshot), first_seen=None)


def _series(graph, epsilon, rule, snapshots, seed=1, k=5):
    noise = NoiseSource.insecure(seed)
    return list(simulate_series(graph, MEMBERS, epsilon, rule, snapshots, noise, k=k))


def test_lists_are_those_of_refresh(graph, tmp_path):
    """At an epsilon at which noise does not matter, for the common friends of every place."""
    rule = WindowRule(first=3, least=2, share=0.1, latest=3)
    ledger = ev.Ledger.create(tmp_path / "l.ledger", epsilon=100_000)
    for number in range(1, SNAPSHOTS + 1):
        refreshed = refresh(
            _plain(graph, number), ledger=ledger, epsilon=100_000, date=f"2026-01-{number:02d}",
            rule=rule,
        )  # fmt: skip
    theirs = refreshed.suggestions(MEMBERS.tolist(), k=5).lists
    *_, ours = _series(graph, 100_000.0, rule, [SNAPSHOTS])
    assert ours.windows.min() > 1
    np.testing.assert_array_equal(ours.lists.starts, theirs.starts)
    np.testing.assert_allclose(ours.lists.common, theirs.common, atol=0.05)
    assert theirs.common.max() > 3


def test_a_list_does_not_know_what_comes_later(graph):
    rule = WindowRule(first=1, least=1, share=0.0, latest=2)
    for number in (1, 3):
        [now], [later] = (
            _series(born_until(graph, until), 2.0, rule, [number]) for until in (number, SNAPSHOTS)
        )
        np.testing.assert_array_equal(now.lists.nodes, later.lists.nodes)
        np.testing.assert_array_equal(now.lists.scores, later.lists.scores)


def test_base_only_asks_once_and_then_only_new_friends_leave(graph):
    first, last = _series(graph, 4.0, BASE_ONLY, [1, SNAPSHOTS], k=30)
    assert set(first.windows) == set(last.windows) == {1}
    for i, member in enumerate(MEMBERS):
        before, after = (
            hits.lists.nodes[hits.lists.starts[i] : hits.lists.starts[i + 1]]
            for hits in (first, last)
        )
        kept = before[~np.isin(before, graph.neighbours(member))]
        assert len(kept)
        np.testing.assert_array_equal(kept, after[: len(kept)])


def test_hidden_edges_keep_first_seen_and_others_stay(graph):
    may = graph.first_seen > 2
    split = hide_edges(graph, share=0.3, seed=1, among=may)
    assert split.hidden.first_seen.min() > 2
    assert split.hidden.n_edges == round(0.3 * np.count_nonzero(may) / 2)
    for part in (split.left, split.hidden):
        turned = part.adjacency().T.tocsr()
        np.testing.assert_array_equal(turned.indices, part.indices)
    together = np.concatenate([split.left.first_seen, split.hidden.first_seen])
    np.testing.assert_array_equal(np.sort(together), np.sort(graph.first_seen))
    assert with_entries(graph, np.ones(len(graph.indices), np.bool_)) == graph


def test_evaluate_history_compares_series_with_baselines(history):
    table = evaluate(history, [1.0, 4.0], sources=20, k=10)
    assert table.columns[:3] == ["friends", "mechanism", "epsilon"]
    assert table.columns[3:] == [f"at {number}" for number in range(2, SNAPSHOTS + 1)]
    lines = {row[:3]: row[3:] for row in table.rows()}
    assert {key[1] for key in lines} == {"popularity", "base only", "series"}
    everybody = {key[1:]: values for key, values in lines.items() if key[0] == "all"}
    assert set(everybody) == {
        ("popularity", None),
        *((name, epsilon) for name in ("base only", "series") for epsilon in (1.0, 4.0)),
    }
    assert everybody["series", 4.0][-1] > everybody["series", 1.0][-1]
    assert re.search("FOR THE CURATOR ONLY", str(table))
    assert evaluate(history, [1.0, 4.0], sources=20, k=10).rows() == table.rows()


def test_a_directed_history_is_measured_by_whom_members_follow(tmp_path):
    nodes = ev.NodeSet.range(80)
    history = History.create(tmp_path / "follows")
    rng = np.random.default_rng(5)
    u, v = rng.integers(0, 80, (2, 900))
    for count in (600, 900):
        history.add(ev.Graph.from_edges(u[:count], v[:count], nodes, directed=True))
    table = evaluate(history, 1.0, sources=10, k=10)
    assert len(table.columns) == 3 + 2
    assert all(0 <= cell <= 1 for row in table.rows() for cell in row[3:])


def test_evaluate_history_refuses_unsuitable_arguments(history, graph, tmp_path):
    short = History.create(tmp_path / "short")
    short.add(_plain(graph, 1))
    with pytest.raises(ParameterError, match="at least 2 snapshots, this one has 1"):
        evaluate(short, 1.0)
    with pytest.raises(ParameterError, match="only suggestions are measured over time"):
        evaluate(history, 1.0, protocol="rankings")
    with pytest.raises(ParameterError, match="series of lists"):
        evaluate(history, mechanisms=ev.mechanisms.TwoHop(epsilon=1))
