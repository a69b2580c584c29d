"""What is read with other libraries becomes a folder, as the refusal of a file says."""

from __future__ import annotations

import networkx as nx
import pytest

import edgeveil as ev
from edgeveil.errors import InputError


def test_a_file_of_another_format_is_refused_and_the_way_that_is_told_works(tmp_path):
    path = tmp_path / "friends.graphml"
    nx.write_graphml(nx.Graph([("ann", "bob"), ("bob", "o'neill")]), path)
    with pytest.raises(InputError, match=r"unknown suffix.*networkx\.read_graphml.*as_graph"):
        ev.read_graph(path)
    folder = ev.save_graph(ev.as_graph(nx.read_graphml(path)), tmp_path / "friends")
    assert list(ev.read_graph(folder).nodes) == ["ann", "bob", "o'neill"]
