"""Whatever snapshots come, a history is what a dict of first sightings says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeveil.errors import ParameterError, UnknownNodeError
from edgeveil.graph.graph import UNKNOWN, Graph
from edgeveil.graph.nodes import NodeSet
from edgeveil.graph.saved import open_graph, save_graph
from edgeveil.series import merging
from edgeveil.series.history import History

NAMES: dict[str, Callable[[int], Any]] = {
    "range": lambda i: i,
    "int": lambda i: i * 1_000_003 - 5,
    "str": lambda i: f"member {i}" if i % 2 else f"ö{i}",
}


class Oracle:
    """A history as plain Python: a number for every member, a birth for every pair of numbers."""

    def __init__(self, directed: bool) -> None:
        self.directed = directed
        self.number: dict[Any, int] = {}
        self.first_seen: dict[tuple[int, int], int] = {}
        self.current: set[tuple[int, int]] = set()
        self.members: list[Any] = []
        self.n = self.snapshots = 0
        self.forgotten: set[int] = set()
        self.returned: set[int] = set()
        self.marks: set[Any] = set()  # who was forgotten since it started anew

    def add(self, members: list[Any], edges: set[tuple[Any, Any]]) -> None:
        self.snapshots += 1
        for member in members:
            if member not in self.number:
                self.number[member] = self.n
                if member in self.marks:
                    self.returned.add(self.n)
                self.n += 1
        arcs = {(self.number[a], self.number[b]) for a, b in edges}
        self.current = arcs if self.directed else arcs | {(b, a) for a, b in arcs}
        self.members = members
        for arc in self.current:
            if self.first_seen.get(arc, UNKNOWN) == UNKNOWN:
                self.first_seen[arc] = UNKNOWN if arc[1] in self.returned else self.snapshots

    def reset_first_seen(self) -> None:
        self.first_seen |= dict.fromkeys(self.first_seen.keys() - self.current, UNKNOWN)
        unborn = {arc for arc in self.current if self.first_seen[arc] == UNKNOWN}
        self.first_seen |= dict.fromkeys(unborn, self.snapshots)
        self.returned, self.marks = set(), set()

    def forget(self, member: Any) -> None:
        gone = self.number.pop(member)
        self.forgotten.add(gone)
        self.marks.add(member)
        self.first_seen = {arc: birth for arc, birth in self.first_seen.items() if gone not in arc}

    def check(self, history: History) -> None:
        graph = history.graph
        assert len(history) == self.snapshots
        assert len(history.nodes) == graph.n_nodes == self.n
        for member, index in self.number.items():
            assert history.nodes.index(member) == index
        assert history.forgotten.tolist() == sorted(self.forgotten)
        rows = np.repeat(np.arange(self.n), graph.degrees)
        arcs = list(zip(rows.tolist(), graph.indices.tolist(), strict=True))
        assert arcs == sorted(self.first_seen)
        assert dict(zip(arcs, graph.first_seen.tolist(), strict=True)) == self.first_seen
        assert {arc for arc, now in zip(arcs, history.current, strict=True) if now} == self.current
        present = {self.number[member] for member in self.members}
        assert set(np.flatnonzero(history.present).tolist()) == present
        for index in range(self.n):
            friends = sorted(b for a, b in self.current if a == index)
            assert history.friends(index).tolist() == friends


@st.composite
def snapshots(draw: st.DrawFn) -> list[tuple[list[int], set[tuple[int, int]]]]:
    """Draw who is there, in any order, and who knows whom, each time anew."""
    steps = []
    for _ in range(draw(st.integers(1, 5))):
        members = draw(st.permutations(range(9)))[: draw(st.integers(0, 9))]
        pairs = [(a, b) for a in members for b in members if a != b]
        edges = draw(st.sets(st.sampled_from(pairs), max_size=14)) if pairs else set()
        steps.append((list(members), edges))
    return steps


def graph_of(members: list[Any], edges: set[tuple[Any, Any]], directed: bool) -> Graph:
    nodes = NodeSet.of(members)
    ends = [[members.index(end) for end in side] for side in zip(*edges, strict=True)] or [[], []]
    return Graph.from_edges(*ends, nodes, directed=directed)


@pytest.mark.parametrize("kind", NAMES)
@given(
    steps=snapshots(), directed=st.booleans(), block=st.sampled_from([1, 7, 1000]), data=st.data()
)
@settings(max_examples=40)
def test_history_equals_a_dict_of_first_sightings(kind, steps, directed, block, data):
    oracle, name = Oracle(directed), NAMES[kind]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "_BLOCK", block)
        patch.setattr("os.fsync", lambda handle: None)  # takes most of the time
        history = History.create(Path(folder, "history"))
        oracle.check(history)
        for members, edges in steps:
            members = [name(i) for i in members]
            edges = {(name(a), name(b)) for a, b in edges}
            if kind == "range" and members:  # 0 .. n-1, as a matrix has them
                members = list(range(max(members) + 1))
            graph = graph_of(members, edges, directed)
            if data.draw(st.booleans()):
                graph = open_graph(save_graph(graph, Path(folder, f"graph {oracle.snapshots}")))
            assert history.add(graph, again=True) == oracle.snapshots + 1
            oracle.add(members, edges)
            oracle.check(history)
            with pytest.raises(ParameterError, match="the same as snapshot"):
                history.add(graph)
            if data.draw(st.booleans()):
                history.reset_first_seen()
                oracle.reset_first_seen()
                oracle.check(history)
            left = [member_id for member_id in oracle.number if member_id not in members]
            if left and data.draw(st.booleans()):
                member = data.draw(st.sampled_from(left))
                history.forget(member)
                oracle.forget(member)
                oracle.check(history)
                with pytest.raises(UnknownNodeError):
                    history.forget(member)
        oracle.check(History.open(history.path, verify=True))


@given(
    rows=st.lists(st.tuples(*[st.integers(0, 6)] * 2, st.integers(1, 60)), min_size=1),
    directed=st.booleans(),
    cuts=st.sets(st.integers(0, 60), min_size=1, max_size=5),
)
@settings(max_examples=60)
def test_timed_edges_equal_the_history_of_their_snapshots(rows, directed, cuts):
    oracle, cuts = Oracle(directed), sorted(cuts)
    members = sorted({end for a, b, _ in rows for end in (a, b)})
    for cut in [*cuts, 61]:
        oracle.add(members, {(a, b) for a, b, time in rows if a != b and time <= cut})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "edges.csv")
        file.write_text("source,target,when\n" + "".join(f"{a},{b},{t}\n" for a, b, t in rows))
        history = History.from_edges(
            *(Path(folder, "history"), file),
            time="when",
            periods=cuts,
            directed="keep" if directed else "refuse",
        )
        oracle.check(history)
        oracle.check(History.open(history.path, verify=True))
