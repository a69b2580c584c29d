"""What a scale can see does not depend on others' edges."""

from __future__ import annotations

import pytest

from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from tests.serve.running import Service


def network(crowd):
    """Member 0 has one friend 1, who has `crowd` friends: the most that 0 must not learn."""
    n = 2000
    u, v = [0], [1]
    u += [1] * crowd
    v += range(2, 2 + crowd)
    u += range(2, n - 1)
    v += range(3, n)
    return Graph.from_edges(u, v, NodeSet.range(n))


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    running = [Service(tmp_path_factory.mktemp(str(crowd)), network(crowd)) for crowd in (1, 1800)]
    for service in running:
        service.start(wait=False)
    for service in running:
        service.wait()
        service.wait_for_list(0)
    yield running
    for service in running:
        service.stop()


def test_answers_have_one_length_whatever_the_graph(pair):
    lengths = {len(service.get(member=i).body) for service in pair for i in (0, 5, 1999)}
    assert len(lengths) == 1


def test_refusals_have_one_length_whatever_the_token(pair):
    sizes = {
        len(service.get(token=token).body) for service in pair for token in ("a.b.c", "x" * 300)
    }
    assert len(sizes) == 1


def test_files_of_lists_have_one_size_whatever_the_graph(pair):
    few, many = (
        [path.stat().st_size for path in service.state.glob("*.lists")] for service in pair
    )
    assert few == many != []
