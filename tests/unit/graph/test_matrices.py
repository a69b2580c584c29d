"""Adjacency matrices and edge_index arrays."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from edgeveil.errors import InputError
from edgeveil.graph.graph import Graph
from edgeveil.graph.matrices import load_mat
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.objects import as_graph
from edgeveil.graph.read import read_graph

DENSE = np.array([[0, 2, 0, 0], [1, 0, 1, 0], [0, 1, 3, 0], [0, 0, 0, 0]])
GRAPH = Graph.from_edges([0, 1], [1, 2], NodeSet.range(4))
ONE_WAY = np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]])
FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_every_sparse_format_gives_the_same_graph(make, form, kind):
    graph = as_graph(make(DENSE.astype(kind)).asformat(form))
    assert graph == GRAPH
    assert (graph.read_report.entries, graph.read_report.self_loops) == (5, 1)
    assert (graph.read_report.both_directions, graph.read_report.weighted) == (2, 2)


@pytest.mark.parametrize("dense", [DENSE, DENSE != 0, DENSE.astype(float), DENSE.T.copy().T])
def test_a_dense_matrix_gives_the_same_graph(dense):
    assert as_graph(dense) == GRAPH


def test_stored_zeros_and_entries_that_cancel_out_are_no_edges():
    zeros = sp.coo_array(([1.0, 1.0, 0.0, 0.0], ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(4, 4))
    assert as_graph(zeros).n_edges == 1
    cancel = sp.coo_array(([1, 1, 1, -1], ([0, 1, 2, 2], [1, 0, 3, 3])), shape=(4, 4))
    assert as_graph(cancel).n_edges == 1


def test_reading_leaves_the_callers_matrix_alone():
    matrix = sp.csr_array((np.ones(4), [1, 1, 0, 0], [0, 2, 4]), shape=(2, 2))
    as_graph(matrix)
    assert matrix.nnz == 4


@pytest.mark.parametrize(
    "matrix", [ONE_WAY, sp.csr_array(ONE_WAY), np.array([[0, 1, 0], [1, 2, 1]])]
)
def test_one_way_input_is_refused_unless_asked_for(matrix):
    with pytest.raises(InputError, match='directed="ignore"'):
        as_graph(matrix)
    assert as_graph(matrix, directed="ignore").n_edges == 2


def test_the_node_list_names_the_rows():
    graph = as_graph(DENSE, nodes=["d", "c", "b", "a"])
    assert graph.nodes[0] == "d"
    assert graph.degrees[0] == 1
    with pytest.raises(InputError, match="has 4 nodes, the node list 2"):
        as_graph(DENSE, nodes=["d", "c"])


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (np.ones((3, 4)), "is 3 x 4, an adjacency matrix is square"),
        (sp.csr_array((3, 4)), "is 3 x 4, an adjacency matrix is square"),
        (np.ones(4), "is 4, an adjacency matrix is square"),
        (np.ones((2, 2, 2)), "2 x 2 x 2"),
        (np.array([[0, np.nan], [1, 0]]), "holds NaN"),
        (sp.csr_array(np.array([[0, np.nan], [1, 0]])), "holds NaN"),
        (np.array([[0, 1j], [1j, 0]]), "complex128"),
        (np.array([[None, "x"], ["x", None]]), "object"),
        (np.ma.masked_less(DENSE, 1), "masked"),
        (np.array([[0, 1], [1, 0]]), "may be a matrix or an edge_index"),
    ],
)
def test_what_is_no_adjacency_matrix_is_one_sentence(matrix, expected):
    with pytest.raises(InputError, match=expected):
        as_graph(matrix)


def test_sparse_indices_out_of_shape_are_refused(tmp_path):
    """Before SciPy reads them and crashes."""
    broken = sp.csc_array(DENSE * 1.0)
    broken.indices[0] = 10**9
    with pytest.raises(InputError, match="its indices do not fit its shape"):
        as_graph(broken)
    good = {"network": sp.csc_array(DENSE * 1.0), "group": broken}
    scipy.io.savemat(tmp_path / "g.mat", good)
    with pytest.raises(InputError, match=r"group in .*g\.mat is damaged"):
        load_mat(tmp_path / "g.mat", "group")


def test_a_matrix_too_large_for_memory_is_one_sentence(tmp_path):
    path = tmp_path / "g.mtx"
    size = 10**15
    path.write_text(f"%%MatrixMarket matrix coordinate pattern general\n{size} {size} 1\n1 2\n")
    with pytest.raises(InputError, match=r"g\.mtx has 1000000000000000 nodes, too many"):
        read_graph(path)


# -- edge_index ---------------------------------------------------------------------------

EDGE_INDEX = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])


class Tensor:
    """What of a tensor is used: no copy of any library, only an object with the method."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def numpy(self) -> Any:
        return self._values


class ArrayLike:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return EDGE_INDEX


def test_an_edge_index_is_read_from_arrays_and_tensors():
    expected = Graph.from_edges([0, 1], [1, 2], NodeSet.range(3))
    arrays = [EDGE_INDEX.astype(kind) for kind in (np.int64, np.int32, np.uint64, np.uint8)]
    for edge_index in (*arrays, Tensor(EDGE_INDEX), ArrayLike()):
        assert as_graph(edge_index) == expected
    assert as_graph(EDGE_INDEX, nodes=range(5)).n_nodes == 5
    assert as_graph(np.empty((2, 0), dtype=np.int64)).n_nodes == 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (-EDGE_INDEX, "outside"),
        (np.full((2, 3), 2**63, dtype=np.uint64), "64 bits"),
    ],
)
def test_a_bad_edge_index_is_one_sentence(values, expected):
    with pytest.raises(InputError, match=expected):
        as_graph(values)


def test_an_edge_index_beyond_the_node_list_is_refused():
    with pytest.raises(InputError, match="outside of the 2 nodes"):
        as_graph(EDGE_INDEX, nodes=["a", "b"])


# -- files --------------------------------------------------------------------------------


def test_a_mat_file_gives_network_or_the_key_asked_for(tmp_path):
    path = tmp_path / "g.mat"
    scipy.io.savemat(path, {"network": sp.csc_array(DENSE * 1.0), "dense": DENSE, "text": "x"})
    assert read_graph(path) == GRAPH
    assert read_graph(path, key="dense") == GRAPH
    with pytest.raises(InputError, match=r"g\.mat has no variable 'x'.*network, dense, text"):
        read_graph(path, key="x")
    with pytest.raises(InputError, match=r"text in .*g\.mat"):
        read_graph(path, key="text")


@pytest.mark.parametrize("damage", [b"", b"MATLAB 5.0 MAT-file", "half", "noise"])
def test_a_corrupt_mat_file_is_one_sentence(tmp_path, damage):
    path = tmp_path / "g.mat"
    scipy.io.savemat(path, {"network": sp.csc_array(DENSE * 1.0)}, do_compression=True)
    whole = path.read_bytes()
    if damage == "half":
        damage = whole[: len(whole) * 2 // 3]
    elif damage == "noise":
        damage = whole[:128] + bytes(255 - b for b in whole[128:])
    path.write_bytes(damage)
    with pytest.raises(InputError, match=r"g\.mat is not a readable MATLAB file"):
        read_graph(path)


def _compressed(variable: bytes) -> bytes:
    """A MATLAB file of one compressed variable."""
    packed = zlib.compress(variable)
    head = b"MATLAB 5.0 MAT-file".ljust(116, b" ") + b"\0" * 8 + b"\x00\x01IM"
    return head + struct.pack("<II", 15, len(packed)) + packed


def test_a_mat_file_is_not_unpacked_beyond_what_its_head_says(tmp_path):
    path = tmp_path / "g.mat"
    scipy.io.savemat(path, {"network": sp.csc_array(DENSE * 1.0)})
    whole = path.read_bytes()[128:]  # the variable, with its head
    path.write_bytes(_compressed(whole))
    assert read_graph(path) == GRAPH
    path.write_bytes(_compressed(whole + bytes(2**26)))
    tracemalloc.start()
    try:
        load_mat(path, "network")
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
    path.write_bytes(_compressed(whole[:-1]))
    with pytest.raises(InputError, match=r"g\.mat is not a readable MATLAB file"):
        read_graph(path)
    path.write_bytes(_compressed(whole)[:-1] + b"\0")  # a wrong checksum
    with pytest.raises(InputError, match=r"g\.mat is not a readable MATLAB file"):
        read_graph(path)


def test_mat_file_unpacking_to_gigabytes_is_refused(tmp_path):
    path = tmp_path / "g.mat"
    path.write_bytes(_compressed(struct.pack("<II", 14, 2**30 + 1) + bytes(2**20)))
    with pytest.raises(InputError, match=r"unpacks to 1,073,741,825; save the graph as a sparse"):
        read_graph(path)
    path.write_bytes(_compressed(struct.pack("<II", 14, 2**30) + bytes(2**20)))
    with pytest.raises(InputError, match="is not a readable MATLAB file"):  # cut off
        read_graph(path)


def test_a_new_mat_file_says_how_to_convert_it(tmp_path):
    path = tmp_path / "g.mat"
    head = b"MATLAB 7.3 MAT-file".ljust(116, b" ") + b"\0" * 8 + b"\x00\x02IM"
    path.write_bytes(head.ljust(600, b"\0"))
    with pytest.raises(InputError, match=r"MATLAB 7\.3 file; save it with -v7"):
        read_graph(path)


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_matrix_market_is_read_packed_or_not(tmp_path, field, symmetry):
    path = tmp_path / "g.mtx"
    full = sp.coo_array((DENSE != 0).astype(int))
    scipy.io.mmwrite(path, full, field=field, symmetry=symmetry)
    assert read_graph(path) == GRAPH
    packed = tmp_path / "g.mtx.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_graph(packed, nodes=range(4)) == GRAPH


@pytest.mark.parametrize(
    ("matrix", "symmetry", "kind"),
    [
        (DENSE, "general", "array"),
        (sp.coo_array(np.triu(DENSE, 1) - np.triu(DENSE, 1).T), "skew-symmetric", "skew-symmetric"),
    ],
)
def test_other_matrix_market_files_are_refused_by_name(tmp_path, matrix, symmetry, kind):
    scipy.io.mmwrite(tmp_path / "g.mtx", matrix, symmetry=symmetry)
    with pytest.raises(InputError, match=f"of a kind that is not read: '{kind}'"):
        read_graph(tmp_path / "g.mtx")


def test_one_way_matrix_market_needs_directed_ignore(tmp_path):
    path = tmp_path / "g.mtx"
    scipy.io.mmwrite(path, sp.coo_array(ONE_WAY), symmetry="general")
    with pytest.raises(InputError, match='directed="ignore"'):
        read_graph(path)
    assert read_graph(path, directed="ignore").n_edges == 2


COORDINATE = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "line 1 is no such header"),
        ("not a matrix", "line 1 is no such header"),
        (COORDINATE, "line 0 is no line of sizes"),
        (COORDINATE + "% a comment\n3 x 1\n", "line 3 is no line of sizes"),
        (COORDINATE + "3 3 2\n1 2 1\n", "it holds 1 entries where 2 are announced"),
        (COORDINATE + "3 3 1\n9 9 1\n", "an entry is outside of its matrix"),
        (COORDINATE + "3 3 1\n0 1 1\n", "an entry is outside of its matrix"),
        (COORDINATE + "3 3 1\n1 x 1\n", "a line is no entry of it"),
        (COORDINATE + "3 3 2\n1 2 1\n1 2\n", "a line is no entry of it"),
        (COORDINATE + "3 3 1\n1 2 1 1\n", "a line is no entry of it"),
    ],
)
def test_a_corrupt_matrix_market_file_is_one_sentence(tmp_path, text, expected):
    path = tmp_path / "g.mtx"
    path.write_text(text)
    with pytest.raises(
        InputError, match=rf"g\.mtx is not a readable MatrixMarket file: .*{expected}"
    ):
        read_graph(path)
    packed = tmp_path / "g.mtx.gz"
    packed.write_bytes(gzip.compress(text.encode())[:-6])
    with pytest.raises(InputError, match=r"g\.mtx\.gz is not a whole gzip file"):
        read_graph(packed)


# -- why files are not left to scipy alone -------------------------------------------------

# Found by changing good files at random: about one in 300 ended the process
KILLERS = {
    "a letter after the last entry": b"coordinate pattern symmetric\n4 4 3\n2 1\n3 2\n3 3)",
    "a word in an index": b"coordinate real general\n4 4 5\n1 2nan ",
    "a letter after the last value": b"array real symmetric\n4 4\n0\n2\n0R",
}


def write_killer(path: Path, name: str) -> Path:
    """Write a file that scipy 1.17 does not survive."""
    if name in KILLERS:
        path = path / "g.mtx"
        path.write_bytes(b"%%MatrixMarket matrix " + KILLERS[name])
        return path
    path = path / "g.mat"  # the element of row indices says that it is of an unknown type
    scipy.io.savemat(path, {"network": sp.csc_array(DENSE * 1.0)})
    head, rows, rest = path.read_bytes().partition(b"network\0\5\0\0\0")
    assert rest
    path.write_bytes(head + rows[:-4] + b"\x0f\0\0\0" + rest)
    return path


@pytest.mark.parametrize("name", [*KILLERS, "an unknown type"])
def test_a_file_that_crashes_scipy_is_one_sentence(tmp_path, name):
    with pytest.raises(InputError, match=r"is not a readable|is damaged|is not read"):
        read_graph(write_killer(tmp_path, name))


@pytest.mark.skipif(not scipy.__version__.startswith("1.17."), reason="found with scipy 1.17")
@pytest.mark.parametrize("name", [*KILLERS, "an unknown type"])
def test_scipy_alone_ends_the_process(tmp_path, name):
    """Why we read these files ourselves; where this fails, that may no longer be needed."""
    path = write_killer(tmp_path, name)
    read = "mmread" if path.suffix == ".mtx" else "loadmat"
    code = f"import sys, scipy.io; scipy.io.{read}(sys.argv[1])"
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=False)
    assert run.returncode not in (0, 1)


def test_a_complex_matrix_market_file_is_one_sentence(tmp_path):
    path = tmp_path / "g.mtx"
    scipy.io.mmwrite(path, sp.coo_array(DENSE * 1j))
    with pytest.raises(InputError, match="of a kind that is not read: 'complex'"):
        read_graph(path)


def test_a_matrix_file_that_is_not_square_is_one_sentence(tmp_path):
    path = tmp_path / "g.mtx"
    scipy.io.mmwrite(path, sp.coo_array(np.ones((2, 3))))
    with pytest.raises(InputError, match=r"g\.mtx is 2 x 3"):
        read_graph(path)
    scipy.io.savemat(tmp_path / "g.mat", {"network": np.ones((2, 3))})
    with pytest.raises(InputError, match=r"network in .*g\.mat is 2 x 3"):
        read_graph(tmp_path / "g.mat")


def test_a_file_of_matlab_4_says_how_to_convert_it(tmp_path):
    path = tmp_path / "g.mat"
    scipy.io.savemat(path, {"network": DENSE * 1.0}, format="4")
    with pytest.raises(InputError, match=r"MATLAB 4 file, or none; save it with -v7"):
        read_graph(path)


@pytest.mark.parametrize("starts", [[0, 2, 0], [0, 1, -1]])
def test_a_matrix_whose_rows_end_before_they_start_is_refused(starts):
    broken = sp.csr_array((2, 2))
    broken.indptr = np.array(starts)
    with pytest.raises(InputError, match="its indices do not fit its shape"):
        as_graph(broken)
