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
    running = Service(tmp_path_factory.mktemp("service"), network, as_command=True).start()
    yield running
    running.stop()


@pytest.fixture
def own_service(network, tmp_path):
    """A service of one test alone; it starts it."""
    made = Service(tmp_path, network)
    yield made
    made.stop()


@pytest.fixture
def own_series(network, tmp_path):
    """A service of one test alone, on a series with one snapshot; it starts it."""
    made = Service(tmp_path, network, epsilon=1.0, options=("--label", "friends"))
    made.refresh(network, "2026-01-01")
    yield made
    made.stop()


@pytest.fixture(scope="session")
def series_service(network, tmp_path_factory):
    """The same for tests that only look at it."""
    folder = tmp_path_factory.mktemp("series")
    made = Service(folder, network, epsilon=1.0, options=("--label", "friends"))
    made.refresh(network, "2026-01-01")
    made.start().wait_for_list(network.nodes[0])
    yield made
    made.stop()
