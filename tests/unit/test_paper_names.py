"""The paper's symbols are answered with our names; mechanisms are found by either name."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import edgeveil as ev
from edgeveil.errors import ParameterError
from edgeveil.flow.walk import lazy_restart
from edgeveil.jobs.choice import built_in
from edgeveil.mechanisms import MECHANISMS, DPPushFlowCap

GRAPH = ev.datasets.social_network(60, average_degree=8, seed=1).graph


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"alpha": 0.15},
            r"takes no alpha: say restart=.*: 0\.26087 if 0\.15 is the paper's alpha",
        ),
        ({"damping": 0.85}, r"takes no damping: say restart=0\.15"),
        ({"R": 10}, "takes no R: say rounds=10"),
        ({"xi": 1e-3}, "takes no xi: say rounds=, .*rounds_for"),
    ],
)
def test_symbols_of_the_paper_are_answered_with_our_names(given, expected):
    for call in (
        lambda: DPPushFlowCap(epsilon=1, **given),
        lambda: ev.flow.push_flow(GRAPH, [0], **given),
        lambda: ev.flow.push_flow_cap(GRAPH, [0], sigma=0.1, **given),
    ):
        with pytest.raises(ParameterError, match=expected):
            call()
    with pytest.raises(ParameterError, match=r"rank takes no .*a parameter of a mechanism"):
        ev.rank(GRAPH, 7, epsilon=1, **given)


def test_hint_for_alpha_names_the_same_walk():
    assert lazy_restart(0.26087) == pytest.approx(0.15, abs=1e-5)


def test_own_and_unknown_parameters_get_no_hint():
    with pytest.raises(TypeError, match="foo"):
        DPPushFlowCap(epsilon=1, foo=2)
    with pytest.raises(ParameterError, match="takes no eps: say epsilon=1"):
        DPPushFlowCap(eps=1)
    with pytest.raises(ParameterError, match="rank takes no restart: restart is a parameter of"):
        ev.rank(GRAPH, 7, epsilon=1, restart=0.2)


@pytest.mark.parametrize("kind", MECHANISMS, ids=lambda kind: kind.__name__)
def test_mechanism_is_found_by_both_of_its_names(kind):
    for name in (kind.name, kind.__name__, kind.name.replace("-", "_"), kind.__name__.lower()):
        assert built_in(name) is kind
    assert built_in(f"{kind.name}-2") is None


@pytest.mark.parametrize("name", ["edge-flipping", "EdgeFlipping"])
def test_rank_by_name_makes_the_mechanism_with_what_is_given(name):
    ranking = ev.rank(GRAPH, 7, epsilon=2.0, model="public", mechanism=name)
    assert ranking.provenance.mechanism == "edge-flipping"
    assert ranking.guarantee.brief == "public, epsilon = 2"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"mechanism": "two-hop"}, "epsilon is required"),
        ({"mechanism": "two-hop", "epsilon": 1, "model": "public"}, "two-hop has no model"),
        ({"mechanism": "twohops", "epsilon": 1}, "did you mean two-hop"),
        ({"mechanism": "push-flow", "epsilon": 1}, "push-flow needs promised_min_degree"),
        (
            {"mechanism": "Suggest", "epsilon": 1},
            "suggest gives lists, which have no ranking",
        ),
    ],
)
def test_rank_by_name_refuses_what_the_mechanism_lacks(given, expected):
    with pytest.raises(ParameterError, match=expected):
        ev.rank(GRAPH, 7, **given)


def test_embed_and_suggest_take_names():
    embeddings = ev.embed(GRAPH, [7], epsilon=1.0, dimension=8, mechanism="DPInstantEmbedding")
    assert embeddings.values.shape == (1, 8)
    embeddings = ev.suggest(GRAPH, [7], epsilon=1.0, mechanism="suggest")
    assert embeddings.guarantee == ev.suggest(GRAPH, [7], epsilon=1.0).guarantee
    directed = ev.as_graph([(0, 1), (1, 2), (2, 0)], directed="keep")
    embeddings = ev.suggest(directed, [0], 1.0, mechanism="Suggest", knows_followers=True)
    assert embeddings.guarantee == ev.suggest(directed, [0], 1.0, knows_followers=True).guarantee


def test_flow_takes_what_as_graph_takes():
    given = nx.from_scipy_sparse_array(GRAPH.adjacency())
    for flow in (
        lambda graph: ev.flow.personalized_pagerank(graph, [3]),
        lambda graph: ev.flow.push_flow(graph, [3]),
        lambda graph: ev.flow.push_flow_cap(graph, [3], sigma=0.1),
    ):
        np.testing.assert_array_equal(flow(given), flow(GRAPH))
