"""A running service for the tests of this folder."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette")

from edgeveil.graph.datasets import social_network
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from tests.serve.running import Service


def named(network):
    u, v = network.graph.adjacency().nonzero()
    return Graph.from_edges(u, v, NodeSet.of_strings(network.names))


@pytest.fixture(scope="session")
def network():
    return named(social_network(400, average_degree=14))


@pytest.fixture(scope="session")
def service(network, tmp_path_factory):
    """A service for tests that only look at it."""
    running = Service(tmp_path_factory.mktemp("service"), network, as_command=True)
    running.start().wait_for_list(network.nodes[0])
    yield running
    running.stop()


@pytest.fixture
def own_service(network, tmp_path):
    """A service of one test alone; it starts it."""
    service = Service(tmp_path, network)
    yield service
    service.stop()
