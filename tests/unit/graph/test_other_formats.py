"""Files of other formats are refused with the one command that converts them."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse

import edgeveil as ev
from edgeveil.errors import InputError

FRIENDS = nx.Graph([("ann", "bob"), ("bob", "o'neill")])


def told(path):
    """The Python code in the command that the refusal names."""
    with pytest.raises(InputError, match="This command converts it: python -c ") as refused:
        ev.read_graph(path)
    words = shlex.split(str(refused.value).partition("converts it: ")[2])
    assert words[:2] == ["python", "-c"]
    return words[2]


def write_json(graph, path):
    path.write_text(json.dumps(nx.to_dict_of_lists(graph)))


def write_links(graph, path):
    path.write_text(json.dumps(nx.node_link_data(graph, edges="links")))


def write_pajek(graph, path):
    path.write_text('*vertices 3\n1 ann\n2 bob\n3 "o\'neill"\n*edges\n1 2\n2 3\n')


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("f.graphml", nx.write_graphml),
        ("f.gml", nx.write_gml),
        ("f.gexf", nx.write_gexf),
        ("f.net", write_pajek),
        ("f.adjlist", nx.write_adjlist),
        ("f.json", write_json),
        ("o'f $x.json", write_links),
    ],
)
def test_command_that_a_refusal_names_converts_the_file(tmp_path, name, write):
    path = tmp_path / name
    write(FRIENDS, path)
    exec(told(path), {})
    folder = path.with_suffix(".graph")
    assert list(ev.read_graph(folder).nodes) == ["ann", "bob", "o'neill"]
    assert ev.read_graph(folder).n_edges == 2


def test_command_that_a_refusal_names_runs_in_a_shell(tmp_path):
    path = tmp_path / "links.npz"
    scipy.sparse.save_npz(path, scipy.sparse.csr_array(np.array([[0, 1], [1, 0]])))
    subprocess.run([sys.executable, "-c", told(path)], check=True)
    assert ev.read_graph(tmp_path / "links.graph").n_edges == 1


def test_unknown_format_is_refused_with_a_hint_to_as_graph(tmp_path):
    for name in ("f.dot", "f.json.gz"):
        (tmp_path / name).write_bytes(b"\x1f\x8b" * 10)
        with pytest.raises(InputError, match=r"unknown suffix.*edgeveil\.as_graph"):
            ev.read_graph(tmp_path / name)


MATRIX = scipy.sparse.csc_array(np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]))


def test_mat_file_with_one_square_matrix_needs_no_key(tmp_path):
    path = tmp_path / "Reed98.mat"
    scipy.io.savemat(path, {"local_info": np.ones((3, 7)), "A": MATRIX, "n": 3.0, "by": "me"})
    assert ev.read_graph(path).n_edges == 2
    scipy.io.savemat(path, {"A": MATRIX, "network": MATRIX + MATRIX @ MATRIX, "B": MATRIX})
    assert ev.read_graph(path).n_edges == 3


def test_mat_file_with_several_square_matrices_asks_for_the_key(tmp_path):
    path = tmp_path / "two.mat"
    scipy.io.savemat(path, {"y": np.ones((3, 1)), "A": MATRIX, "B": MATRIX @ MATRIX})
    with pytest.raises(InputError, match=r"several square matrices: A, B\..*key='A'.*--key A$"):
        ev.read_graph(path)
    assert ev.read_graph(path, key="A").n_edges == 2
    scipy.io.savemat(path, {"y": np.ones((3, 1))})
    with pytest.raises(InputError, match="no square matrix of numbers; its variables are: y"):
        ev.read_graph(path)
