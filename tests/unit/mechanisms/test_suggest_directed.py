"""Suggest on directed graphs: whom to follow, what one edge moves, and who refuses such graphs."""

from __future__ import annotations

from dataclasses import fields
from itertools import permutations

import numpy as np
import pytest

from edgeveil.errors import InputError, ParameterError
from edgeveil.evaluation.hits import hide_edges, hits, members_by_degree, popularity
from edgeveil.evaluation.own_graph import evaluate
from edgeveil.flow.common_neighbours import two_hop_tail_of_lists
from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.jobs import price, release
from edgeveil.ledger import Ledger
from edgeveil.mechanisms import MECHANISMS, DPPushFlow, Suggest
from edgeveil.mechanisms.hard_pairs import Pair, graph_of_pairs
from edgeveil.mechanisms.run import exact_loss, rows_of
from edgeveil.privacy.noise import NoiseSource
from edgeveil.results.suggestions import Suggestions
from edgeveil.series.suggesting import suggest
from tests.seam import statistics_of


def follow_network(n: int = 600, seed: int = 0, average_degree: int = 12) -> Graph:
    """The built-in network with directions: some edges mutual, the others to the famous end."""
    graph = social_network(n, average_degree=average_degree, seed=seed).graph
    rng = np.random.default_rng(seed)
    u, v = np.repeat(np.arange(n), graph.degrees), graph.indices.astype(np.int64)
    u, v = u[u < v], v[u < v]
    fame = graph.degrees * rng.lognormal(size=n)
    there = (rng.random(len(u)) < 0.4) | (rng.random(len(u)) < fame[v] / (fame[u] + fame[v]))
    back = ~there | (rng.random(len(u)) < 0.4)
    ends = np.concatenate([u[there], v[back]]), np.concatenate([v[there], u[back]])
    return Graph.from_edges(*ends, graph.nodes, directed=True)


def sums_of(graph: Graph, source: int, weights: np.ndarray) -> np.ndarray:
    """Strangers' sums of a source, as a vector over all nodes."""
    own, starts = graph.neighbours(source), np.array([0, len(graph.neighbours(source))])
    strangers = np.zeros(graph.n_nodes)
    places, sums, _ = two_hop_tail_of_lists(graph, np.array([source]), own, starts, weights[own])
    strangers[places] = sums
    return strangers


# --- What is measured, and what one edge moves ---------------------------------------------------


def test_sums_count_two_step_follow_paths():
    # 0 follows 1 and 2; 1 follows 2, 3 and 0; 2 follows 3; 4 follows 1.
    graph = graph_of_pairs(
        5, [(0, 1), (0, 2), (1, 2), (1, 3), (1, 0), (2, 3), (4, 1)], directed=True
    )
    strangers = sums_of(graph, 0, np.array([0, 0.5, 0.25, 0, 0]))
    assert strangers.tolist() == [0, 0, 0, 0.75, 0]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_arc_moves_one_in_degree_and_at_most_one_sum(n):
    """On all small graphs."""
    arcs = list(permutations(range(n), 2))
    weights = np.array([1.0, 0.5, 0.75, 0.25])[:n]
    degrees, strangers = (np.zeros((1 << len(arcs), n)) for _ in range(2))
    for mask in range(1 << len(arcs)):
        graph = graph_of_pairs(n, [a for k, a in enumerate(arcs) if mask >> k & 1], directed=True)
        degrees[mask], strangers[mask] = graph.in_degrees, sums_of(graph, 0, weights)
    masks, most = np.arange(1 << len(arcs)), 0.0
    for k, (u, v) in enumerate(arcs):
        if u == 0:
            continue  # whom the member follows is its own knowledge
        moved = [x[masks] - x[masks ^ (1 << k)] for x in (degrees, strangers)]
        assert (np.abs(moved[0]).sum(axis=1) == 1).all()
        assert (np.abs(moved[1]).sum(axis=1) <= weights[u]).all()
        if v == 0:  # who follows the member is in no sum
            assert not moved[1].any()
        most = max(most, np.abs(moved[1]).sum(axis=1).max())
    assert most == (0.75 if n > 2 else 0.0)


@pytest.mark.parametrize("knows", [False, True])
def test_no_pair_of_graphs_shows_more_than_the_claim(knows):
    rng = np.random.default_rng(3)
    mechanism = Suggest(epsilon=1.5, directed=True, knows_followers=knows)
    arcs = np.array(list(permutations(range(6), 2)))
    best = 0.0
    for _ in range(150):
        present = rng.random(len(arcs)) < rng.uniform(0.1, 0.9)
        u, v = arcs[rng.integers(len(arcs))].tolist()
        if u == 0 or (knows and v == 0):
            continue
        graph = graph_of_pairs(6, arcs[present], directed=True)
        loss = exact_loss(
            mechanism, Pair(graph=graph, neighbour=graph.with_edge_flipped(u, v), source=0)
        )
        limit = float(mechanism.split[0]) if v == 0 else 1.5
        assert loss <= limit * (1 + 1e-9)
        best = max(best, loss)
    assert best > 0.9 * 1.5


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_the_hard_pairs_use_the_whole_claim(epsilon):
    mechanism = Suggest(epsilon=epsilon, directed=True)
    stranger, friends = mechanism.hard_pairs()
    assert stranger.graph.directed
    assert friends.graph.directed
    assert (1 - 1e-5) * epsilon < exact_loss(mechanism, stranger) <= epsilon * (1 + 1e-9)
    assert exact_loss(mechanism, friends) == pytest.approx(float(mechanism.split[0]), rel=1e-4)


def test_directed_degree_noise_is_half_the_undirected():
    """The noise on strangers is the same."""
    graph = follow_network(60)
    undirected = Graph.from_edges(
        np.repeat(np.arange(60), graph.degrees), graph.indices, graph.nodes
    )

    def scales(mechanism, graph):
        return [asked.calibration.noise_scale for asked, _ in statistics_of(mechanism, graph, [3])]

    of_directed = scales(Suggest(epsilon=1, directed=True), graph)
    of_undirected = scales(Suggest(epsilon=1), undirected)
    assert of_directed == pytest.approx([1 / 0.03, 1 / 0.97], rel=1e-3)
    assert of_undirected == pytest.approx([2 / 0.03, 1 / 0.97], rel=1e-3)


# --- Lists ---------------------------------------------------------------------------------------


def test_directed_list_omits_followed_but_not_followers():
    graph = follow_network(40)
    suggestions = suggest(graph, range(40), 1.0, k=40, noise=NoiseSource.insecure(1))
    for member in range(40):
        named = {s.node for s in suggestions.for_member(member)}
        assert named == set(range(40)) - {member, *graph.neighbours(member).tolist()}


def test_lists_find_hidden_edges_that_popularity_does_not():
    hiding = hide_edges(follow_network(1500, average_degree=40))
    assert hiding.left.directed
    assert hiding.hidden.directed
    members = members_by_degree(hiding, groups=[(20, 60)], per_group=60)[20, 60]
    suggestions = suggest(hiding.left, members.tolist(), 2.0, noise=NoiseSource.insecure(0))
    shares = []
    for member in members.tolist():
        hidden = hiding.hidden.neighbours(member)
        named = [s.node for s in suggestions.for_member(member)]
        shares.append(np.isin(hidden, named).sum() / min(20, len(hidden)))
    same_for_all = hits(hiding, members, popularity(hiding.left))
    assert np.mean(shares) > same_for_all.mean() + 3 * same_for_all.std() / np.sqrt(len(members))


def test_evaluation_of_a_directed_graph_has_no_pagerank():
    table = evaluate(follow_network(400), [1.0], sources=5)
    names = {result.mechanism for result in table.results}
    assert {"suggest", "popularity", "common neighbours", "limit"} <= names
    assert "pagerank" not in names


# --- Who takes which graph -----------------------------------------------------------------------


def instances():
    for kind in MECHANISMS:
        needed = {"epsilon": 1.0} if "epsilon" in {f.name for f in fields(kind)} else {}
        yield kind(**needed, **({"promised_min_degree": 1} if kind is DPPushFlow else {}))


@pytest.mark.parametrize("mechanism", list(instances()), ids=lambda m: m.name)
def test_other_mechanisms_refuse_directed_before_the_charge(mechanism, tmp_path):
    graph, ledger = follow_network(30), Ledger.create(tmp_path / "ledger", epsilon=5)
    for call in (release, price):
        with pytest.raises(ParameterError, match="is for undirected graphs"):
            call(graph, mechanism, [0], ledger=ledger)
    with pytest.raises(ParameterError, match="is for undirected graphs"):
        rows_of(mechanism, graph, [0], NoiseSource.insecure(1))
    assert ledger.charges() == []


def test_undirected_graph_with_directed_options_is_refused():
    graph = social_network(30, average_degree=8).graph
    with pytest.raises(ParameterError, match="the graph is undirected"):
        suggest(graph, 0, mechanism=Suggest(epsilon=1, directed=True))
    with pytest.raises(ParameterError, match="needs directed=True"):
        suggest(graph, 0, 1.0, knows_followers=True)


def test_there_are_no_walks_on_a_directed_graph():
    with pytest.raises(InputError, match="walks are for undirected graphs"):
        personalized_pagerank(follow_network(30), [0])


# --- The guarantee -------------------------------------------------------------------------------


def test_guarantee_names_protected_arcs_also_in_files(tmp_path):
    graph = follow_network(30)
    starting = suggest(graph, 0, 1.0)
    touching = suggest(graph, 0, 1.0, knows_followers=True)
    assert "every edge that does not start at that member" in str(starting.guarantee)
    assert "every edge that does not touch that member" in str(touching.guarantee)
    for suggestions in (starting, touching):
        suggestions.write(tmp_path / "lists.json")
        assert Suggestions.read(tmp_path / "lists.json").guarantee == suggestions.guarantee
    assert "known_edges" not in touching.guarantee.as_dict()


# --- Members who know their followers ------------------------------------------------------------


def test_followers_rank_higher_only_if_members_know_them():
    graph = follow_network(300)

    def share(knows):
        suggestions = suggest(
            graph, range(60), 1.0, k=10, knows_followers=knows, noise=NoiseSource.insecure(2)
        )
        lists = [(graph.followers(m), suggestions.for_member(m)) for m in range(60)]
        whys = [(s.node in theirs, s.why) for theirs, named in lists for s in named]
        assert all(follows for follows, why in whys if why == "follows you")
        assert knows == any(why == "follows you" for _, why in whys)
        return np.mean([follows for follows, _ in whys])

    assert share(True) > 2 * share(False)


def test_list_ignores_who_follows_unless_knows_followers():
    """Without that option it depends on the number of followers alone."""
    # The two graphs have the same in-degrees; others than 3 and 4 follow 0.
    rest = [(0, 1), (0, 2), (1, 5), (2, 5), (2, 6)]
    graph_a = graph_of_pairs(9, [*rest, (3, 0), (4, 7)], directed=True)
    graph_b = graph_of_pairs(9, [*rest, (4, 0), (3, 7)], directed=True)

    def listed(graph, knows):
        noise = NoiseSource.insecure(5)
        return suggest(graph, [0], 1.0, knows_followers=knows, noise=noise).for_member(0)

    assert listed(graph_a, False) == listed(graph_b, False)
    assert listed(graph_a, True) != listed(graph_b, True)


def test_reasons_come_back_from_a_file(tmp_path):
    graph, seeded = follow_network(300, average_degree=30), NoiseSource.insecure(1)
    suggestions = suggest(graph, range(30), 0.7, knows_followers=True, noise=seeded)
    suggestions.write(tmp_path / "lists.parquet")
    again = Suggestions.read(tmp_path / "lists.parquet")
    whys = {s.why[:8] for m in range(30) for s in suggestions.for_member(m)}
    assert whys >= {"follows ", "followed"}
    for member in range(30):
        assert again.for_member(member) == suggestions.for_member(member)
        assert again.mostly_popular(member) == suggestions.mostly_popular(member)
