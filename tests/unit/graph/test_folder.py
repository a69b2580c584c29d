"""The folder format: whole or not at all, opened at once, damage told."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgeveil._internal import files
from edgeveil.errors import EdgeveilError, InputError, ParameterError
from edgeveil.graph import saved as folder
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.read import read_graph
from edgeveil.graph.saved import open_graph, save_graph

GRAPHS = {
    "range": Graph.from_edges([0, 1, 1, 0, 2], [1, 2, 0, 1, 2], NodeSet.range(4), weighted=2),
    "int": Graph.from_edges([0, 1], [1, 2], NodeSet.of([9, -4, 2**62])),
    "str": Graph.from_edges([0, 1], [1, 2], NodeSet.of(["zoë", "", "ann"])),
    "no edges": Graph.from_edges([], [], NodeSet.range(3)),
    "no nodes": Graph.from_edges([], [], NodeSet.range(0)),
}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return save_graph(GRAPHS["str"], tmp_path / "graph")


def edit(saved: Path, **changes: object) -> None:
    file = saved / "graph.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_opened_is_what_was_saved(tmp_path, name, verify):
    graph = GRAPHS[name]
    path = save_graph(graph, tmp_path / "graph")
    opened = open_graph(path, verify=verify)
    assert opened == graph
    assert opened.read_report == graph.read_report
    assert opened.fingerprint == graph.fingerprint
    assert read_graph(path) == graph
    assert [opened.nodes.index(node) for node in graph.nodes] == list(range(graph.n_nodes))


def test_the_arrays_are_mapped_and_read_only(saved):
    base = open_graph(saved).indices
    assert not base.flags.writeable
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_opening_takes_one_pass_over_the_arrays(tmp_path):
    n = 2_000_000
    ring = np.arange(n)
    path = save_graph(Graph.from_edges(ring, (ring + 1) % n, NodeSet.range(n)), tmp_path / "graph")
    best = min(_seconds_to_open(path) for _ in range(5))
    assert best < 0.1


def _seconds_to_open(path: Path) -> float:
    start = time.process_time()
    open_graph(path)
    return time.process_time() - start


def _fingerprint(path: Path) -> str:
    return open_graph(path).fingerprint


def test_several_processes_open_one_folder(saved):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        seen = pool.map(_fingerprint, [saved] * 4)
    assert set(seen) == {GRAPHS["str"].fingerprint}


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_a_saved_graph_is_for_its_owner_only(saved):
    assert stat.S_IMODE(saved.stat().st_mode) == 0o700
    for file in saved.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name


# -- whole or not at all ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "failing"),
    [
        *((folder, name) for name in ("save_array", "sync_folder", "sha256_of")),
        *((files, name) for name in ("replace_folder", "move")),
    ],
)
@pytest.mark.parametrize(
    ("failure", "seen"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt),
        (OSError(errno.ENOSPC, "No space left on device"), EdgeveilError),
    ],
)
def test_a_save_that_fails_leaves_nothing(tmp_path, monkeypatch, module, failing, failure, seen):
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(module, failing, fail)
    with pytest.raises(seen):
        save_graph(GRAPHS["str"], tmp_path / "graph")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(folder, "flush", fail)
    with pytest.raises(EdgeveilError, match=r"not saved in .*graph: No space left on device$"):
        save_graph(GRAPHS["str"], tmp_path / "graph")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
@pytest.mark.parametrize("room", [100, 128, 130, 230, 231])
def test_a_disk_that_takes_all_but_the_end_is_noticed(tmp_path, room):
    """numpy's own way of writing loses what is left in a buffer, and says nothing."""
    code = (
        "import resource, sys, numpy as np\n"
        "from pathlib import Path\n"
        "from edgeveil.graph.saved import save_array\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))\n"
        "try: save_array(Path(sys.argv[1]), np.ones(103, np.uint8))\n"
        "except OSError: sys.exit(9)\n"
    )
    file = tmp_path / "array.npy"
    done = subprocess.run([sys.executable, "-c", code, file], timeout=120)
    assert done.returncode == (0 if room == 231 else 9)


@pytest.mark.parametrize(("owner", "step"), [(Path, "rename"), (files, "move")])
def test_a_replacement_that_fails_keeps_the_old_graph(saved, monkeypatch, owner, step):
    """Moving the old graph away, and the new one to its place."""
    calls = []
    original = getattr(owner, step)

    def fail_once(source: Path, target: Path) -> Path | None:
        calls.append(source)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(source, target)

    monkeypatch.setattr(owner, step, fail_once)
    with pytest.raises(KeyboardInterrupt):
        save_graph(GRAPHS["int"], saved, overwrite=True)
    monkeypatch.undo()
    assert open_graph(saved, verify=True) == GRAPHS["str"]
    assert [p.name for p in saved.parent.iterdir()] == ["graph"]


@pytest.mark.skipif(os.name == "nt", reason="real signals")
def test_real_interrupt_of_save_leaves_whole_graph_or_none(tmp_path):
    code = (
        "import sys, numpy as np\n"
        "from edgeveil.graph.graph import Graph\n"
        "from edgeveil.graph.saved import save_graph\n"
        "from edgeveil.graph.nodes import NodeSet\n"
        "n = 200_000; ring = np.arange(n)\n"
        "graph = Graph.from_edges(ring, (ring + 1) % n, NodeSet.range(n))\n"
        "print('saving', flush=True)\n"
        "while True: save_graph(graph, sys.argv[1], overwrite=True)\n"
    )
    for delay in (0.0, 0.004, 0.013, 0.05):
        place = tmp_path / f"run {delay}"
        place.mkdir()
        child = subprocess.Popen(
            [sys.executable, "-c", code, place / "graph"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"saving\n"
            time.sleep(delay)
            child.send_signal(signal.SIGINT)
            child.communicate()
        assert child.returncode != 0
        assert {p.name for p in place.iterdir()} <= {"graph"}
        if (place / "graph").exists():
            assert open_graph(place / "graph", verify=True).n_edges == 200_000


def test_only_a_graph_is_ever_replaced_and_only_when_asked_for(saved):
    with pytest.raises(ParameterError, match="overwrite=True"):
        save_graph(GRAPHS["int"], saved)
    assert open_graph(saved) == GRAPHS["str"]
    save_graph(GRAPHS["int"], saved, overwrite=True)
    assert open_graph(saved, verify=True) == GRAPHS["int"]
    assert [p.name for p in saved.parent.iterdir()] == ["graph"]
    other = saved.parent / "thesis"
    other.mkdir()
    (other / "graph.json").write_text("{}")
    with pytest.raises(ParameterError, match="is no saved graph; nothing was written"):
        save_graph(GRAPHS["int"], other, overwrite=True)
    assert (other / "graph.json").read_text() == "{}"
    file = saved.parent / "file"
    file.write_text("mine")
    with pytest.raises(ParameterError, match="is no saved graph"):
        save_graph(GRAPHS["int"], file, overwrite=True)
    with pytest.raises(ParameterError, match="there is no folder"):
        save_graph(GRAPHS["int"], saved.parent / "nowhere" / "graph")


def test_a_graph_stays_usable_while_its_folder_is_replaced(saved):
    opened = open_graph(saved)
    save_graph(GRAPHS["int"], saved, overwrite=True)
    assert opened == GRAPHS["str"]


# -- damage -------------------------------------------------------------------------------


def test_what_is_no_saved_graph_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        open_graph(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"it has no readable graph\.json"):
        open_graph(tmp_path)
    for text in ("", "[]", "{}", "\xff", "null", "[" * 100_000, '{"format": "x", "version": 1}'):
        (tmp_path / "graph.json").write_text(text, encoding="latin-1")
        with pytest.raises(InputError, match=r"its graph\.json was not written by edgeveil"):
            open_graph(tmp_path)


def test_a_graph_of_the_future_says_to_update(saved):
    edit(saved, version=4)
    with pytest.raises(InputError, match="format version 4, this edgeveil reads up to 3: update"):
        open_graph(saved)


def test_directed_graph_comes_back_directed_in_format_2(tmp_path):
    """An undirected graph keeps format 1."""
    arcs = np.array([0, 1, 2, 0]), np.array([1, 0, 0, 2])
    for directed, version in ((False, 1), (True, 2)):
        graph = Graph.from_edges(*arcs, NodeSet.range(4), directed=directed)
        place = save_graph(graph, tmp_path / str(directed))
        assert json.loads((place / "graph.json").read_text())["version"] == version
        assert open_graph(place, verify=True) == graph
        assert open_graph(place).directed == directed


@pytest.mark.parametrize("directed", [False, True])
def test_births_are_saved_and_older_versions_cannot_read_them(tmp_path, directed):
    plain = Graph.from_edges([0, 1, 2], [1, 2, 0], NodeSet.range(4), directed=directed)
    first_seen = np.array([3, 4, 1] if directed else [1, 7, 1, 2, 7, 2], np.uint16)
    graph = replace(plain, first_seen=first_seen)
    place = save_graph(graph, tmp_path / "graph")
    assert json.loads((place / "graph.json").read_text())["version"] == 3
    for opened in (open_graph(place), open_graph(place, verify=True)):
        assert opened == graph != plain
        assert opened.fingerprint == graph.fingerprint != plain.fingerprint
        assert opened.first_seen.tolist() == first_seen.tolist()


@pytest.mark.parametrize(("first_seen", "verify"), [([1, 0, 1, 0], False), ([1, 2, 3, 2], True)])
def test_zero_or_one_sided_first_seen_is_refused(tmp_path, first_seen, verify):
    plain = Graph.from_edges([0, 1], [1, 2], NodeSet.range(3))
    graph = replace(plain, first_seen=np.array(first_seen, np.uint16))
    place = save_graph(graph, tmp_path / "graph")
    with pytest.raises(InputError, match="damaged"):
        open_graph(place, verify=verify)


def test_a_directed_graph_with_a_repeated_edge_is_refused(tmp_path):
    graph = Graph(np.array([0, 2, 2]), np.array([1, 1]), NodeSet.range(2), directed=True)
    place = save_graph(graph, tmp_path / "graph")
    with pytest.raises(InputError, match="no simple directed graph"):
        open_graph(place, verify=True)


@pytest.mark.parametrize("name", ["indptr", "indices", "text", "offsets"])
def test_a_missing_cut_or_strange_array_is_named(saved, name):
    file = saved / f"{name}.npy"
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole[:20], b"", b"x" * 200):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match=rf"damaged: {name}\.npy cannot be read"):
            open_graph(saved)
    for strange in (np.zeros(3), np.zeros((2, 2), np.int32), np.zeros(999, np.int64)):
        np.save(file, strange)
        with pytest.raises(InputError, match=rf"damaged: {name}\.npy is not what was saved"):
            open_graph(saved)
    np.save(file, np.array([{}]), allow_pickle=True)
    with pytest.raises(InputError, match="cannot be read"):
        open_graph(saved)
    file.unlink()
    with pytest.raises(InputError, match=rf"damaged: {name}\.npy is missing"):
        open_graph(saved)


@pytest.mark.parametrize(
    "changes",
    [
        {"ids": "float"},
        {"ids": []},
        {"arrays": {}},
        {"arrays": None},
        {"arrays": {"indptr": 3}},
        {"read_report": {"colour": 1}},
        {"read_report": None},
    ],
)
def test_an_incomplete_description_is_one_sentence(saved, changes):
    edit(saved, **changes)
    with pytest.raises(InputError, match=r"graph\.json is not complete"):
        open_graph(saved)


@pytest.mark.parametrize("changes", [{"n_nodes": 7}, {"n_edges": 1}, {"n_nodes": "3"}])
def test_sizes_that_do_not_fit_are_one_sentence(saved, changes):
    edit(saved, **changes)
    with pytest.raises(InputError, match="damaged: its sizes are not those noted"):
        open_graph(saved)


def test_a_range_of_another_size_is_one_sentence(tmp_path):
    path = save_graph(GRAPHS["range"], tmp_path / "graph")
    for n, said in ((9, "the arrays do not fit"), (-1, "not complete"), ("4", "not complete")):
        edit(path, n_nodes=n)
        with pytest.raises(InputError, match=said):
            open_graph(path)


@pytest.mark.parametrize("name", ["indptr", "indices", "text", "offsets"])
def test_one_changed_byte_is_found_by_verify(saved, name):
    file = saved / f"{name}.npy"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(InputError, match=rf"damaged: ({name}\.npy was changed|the arrays)"):
        open_graph(saved, verify=True)


NOT_SIMPLE = [
    ([0, 1, 1, 2], [1, 1]),  # not symmetric
    ([0, 2, 3, 4], [2, 1, 0, 0]),  # not sorted
    ([0, 2, 4, 4], [1, 1, 0, 0]),  # repeats
    ([0, 1, 2, 2], [0, 1]),  # loops
]
OUT_OF_RANGE = [
    ([0, 1, 2, 2], [1, 7]),
    ([0, 1, 2, 2], [1, -3]),
    ([0, 3, 1, 2], [1, 0]),  # rows that run backwards, and beyond the end
    ([0, -4, 1, 2], [1, 0]),
]


def save_arrays(folder: Path, indptr: list[int], indices: list[int]) -> Path:
    """Save arrays that are no graph, with the right hashes."""
    false = Graph(np.array(indptr, np.int32), np.array(indices, np.int32), NodeSet.range(3))
    return save_graph(false, folder / "graph")


@pytest.mark.parametrize(("indptr", "indices"), NOT_SIMPLE)
def test_verify_refuses_what_is_no_simple_undirected_graph(tmp_path, indptr, indices):
    path = save_arrays(tmp_path, indptr, indices)
    with pytest.raises(InputError, match="no simple undirected graph"):
        open_graph(path, verify=True)


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize(("indptr", "indices"), OUT_OF_RANGE)
def test_index_out_of_its_arrays_is_refused(tmp_path, indptr, indices, verify):
    path = save_arrays(tmp_path, indptr, indices)
    for read in (lambda: open_graph(path, verify=verify), lambda: read_graph(path)):
        with pytest.raises(InputError, match="damaged: an index leads out of its arrays"):
            read()


def text_nodes(text: bytes, offsets: list[int]) -> NodeSet:
    return NodeSet.from_arrays(
        "str", {"text": np.frombuffer(text, "u1"), "offsets": np.array(offsets)}
    )


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize(
    "nodes",
    [
        text_nodes(b"\xffa", [0, 1, 2]),
        text_nodes("éa".encode(), [0, 1, 3]),  # an id that starts inside a character
        text_nodes(b"abc", [0, 1, 2]),
        text_nodes(b"abc", [0, 4, 3]),
        text_nodes(b"abc", [1, 2, 3]),
    ],
)
def test_ids_that_are_no_texts_are_refused_in_any_case(tmp_path, nodes, verify):
    path = save_graph(Graph.from_edges([0], [1], nodes), tmp_path / "graph")
    with pytest.raises(InputError, match="damaged: an index leads out of its arrays"):
        open_graph(path, verify=verify)


@pytest.mark.parametrize(
    "nodes",
    [NodeSet.from_arrays("int", {"ids": np.array([1, 1])}), text_nodes(b"aa", [0, 1, 2])],
)
def test_verify_refuses_ids_that_occur_twice(tmp_path, nodes):
    path = save_graph(Graph.from_edges([0], [1], nodes), tmp_path / "graph")
    with pytest.raises(InputError, match="no simple undirected graph"):
        open_graph(path, verify=True)


def test_a_saved_graph_takes_no_options(saved):
    with pytest.raises(ParameterError, match="nodes= has no meaning for a saved graph"):
        read_graph(saved, nodes=["a"])


def test_a_saved_graph_can_be_moved(saved):
    moved = saved.parent / "moved"
    shutil.move(saved, moved)
    assert open_graph(moved, verify=True) == GRAPHS["str"]
