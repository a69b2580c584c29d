"""`History`: the union of all snapshots of a label, and when each edge was first seen."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edgeveil._internal.words import counted
from edgeveil.errors import InputError, ParameterError
from edgeveil.graph.columns import Columns
from edgeveil.graph.graph import MOST_SNAPSHOTS, UNKNOWN, Directed, Graph
from edgeveil.graph.node_lists import Nodes
from edgeveil.graph.nodes import Ids, NodeId, NodeSet
from edgeveil.series.history_ids import IntArray, grow, without_ids
from edgeveil.series.history_state import (
    HistoryManifest,
    Snapshot,
    State,
    check_new_folder,
    create_folder,
    read_state,
    refuse_leftovers,
    tidy_up,
    write_state,
    writing,
)
from edgeveil.series.merging import Merge, Rows, rows_anew, rows_without, stored_rows
from edgeveil.series.timed import Periods, read_timed

_BLOCK = 1 << 20  # first_seen counted at a time


class _UnchangedError(Exception):
    """The new snapshot equals the last one."""


class History:
    """All edges of a label so far, with the number of the snapshot in which each was first seen.

    A history is a folder that only the user who made it can read. It holds every edge of every
    snapshot: keep it at least as private as the graph. Members keep their index for ever, whoever
    joins or leaves. An edge that ends and begins again keeps its number, unless the history
    started anew in between, or one of its members was forgotten. Make a history with `create` or
    `from_edges`, and open it with `open`.

    An object shows the history as of when it was opened, or was last written to through this
    object, even if other processes add snapshots meanwhile.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> nodes = NodeSet.of(["ann", "bob", "cem"])
    >>> with TemporaryDirectory() as folder:
    ...     history = History.create(f"{folder}/friends.history")
    ...     first = history.add(Graph.from_edges([0], [1], nodes), date="2026-11-02")
    ...     second = history.add(Graph.from_edges([1], [2], nodes), date="2026-11-09")
    ...     history
    ...     history.graph.neighbours(1), history.first_seen(1), history.friends(1)
    History(2 snapshots, 3 nodes)
    (array([0, 2], dtype=int32), array([1, 2], dtype=uint16), array([2], dtype=int32))
    """

    def __init__(self, path: Path, state: State) -> None:
        self.path = path
        self._state = state

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> History:
        """Make a history without a snapshot, in a new folder whose parent exists.

        Raises
        ------
        ParameterError
            If the path exists already.
        EdgeveilError
            If the folder cannot be written.
        """
        nothing = Graph.from_edges([], [], NodeSet.range(0))
        return cls._create(path, (), replace(nothing, first_seen=np.zeros(0, np.uint16)))

    @classmethod
    def _create(
        cls, path: str | os.PathLike[str], snapshots: tuple[Snapshot, ...], graph: Graph
    ) -> History:
        """Make a history of a graph with `first_seen`, all of which is in the latest snapshot."""
        path = Path(path)
        create_folder(path)
        with writing(path):
            if (path / "history.json").exists():
                raise ParameterError(f"{path} exists; nothing was written")
            rows = stored_rows(graph, np.ones(len(graph.indices), np.bool_))
            write_state(
                path,
                HistoryManifest.new(snapshots),
                graph.nodes,
                np.ones(graph.n_nodes, np.bool_),
                (some for _, some in rows),
                directed=graph.directed,
                nodes_from_edges=graph.read_report.nodes_from_edges,
            )
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = False) -> History:
        """Open a history; its arrays are mapped into memory, not read.

        Parameters
        ----------
        path : path
            The folder. It must belong to this user, and nobody else may have access to it.
        verify : bool
            Check everything, as `edgeveil.open_graph` does, and that no edge was first seen after
            the latest snapshot.

        Raises
        ------
        InputError
            If the folder is not a history, is damaged, belongs to another user, or is open to
            others.
        """
        path = Path(path)
        state = read_state(path, verify=verify)
        tidy_up(path)
        return cls(path, state)

    @classmethod
    def from_edges(
        cls,
        path: str | os.PathLike[str],
        edges: str | os.PathLike[str],
        *,
        time: str | int,
        periods: Periods = "weekly",
        nodes: Nodes | None = None,
        directed: Directed = "refuse",
        header: bool | None = None,
        columns: Columns | None = None,
        delimiter: str | None = None,
        ids: Ids = "auto",
        one_kind: bool = False,
    ) -> History:
        r"""Make a history from one edge list, text or Parquet, with a column of times.

        Every period becomes a snapshot with all edges up to its end, on all nodes. An edge that
        occurs more than once is first seen at its earliest time. The whole file is read into
        memory, as by `edgeveil.read_graph`.

        Parameters
        ----------
        path : path
            The new folder.
        edges : path
            The edge list.
        time : str or int
            The column with times, by name or by position from 0: dates, dates with a time of day
            (ISO 8601; UTC if no zone is given), seconds or milliseconds since 1970, or any numbers.
        periods : "weekly", "monthly", int, or sequence
            Weeks from Monday to Sunday, or months, in UTC; this many periods of equal length; or
            strictly increasing cut points: an edge belongs to the first cut point that is not
            before its time, and edges after the last cut point form a last period. **Without cut
            points, the periods depend on the first and last time of all edges, which are treated
            as public.**
        nodes, directed, header, columns, delimiter, ids, one_kind
            As in `edgeveil.read_graph`.

        Raises
        ------
        InputError
            If the file cannot be read, or a time is missing or invalid.
        ParameterError
            If the path exists already, or the periods do not match the times.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder, "friends.csv")
        ...     _ = file.write_text("a,b,since\n1,2,2026-01-30\n2,3,2026-02-11\n1,2,2026-03-01\n")
        ...     history = History.from_edges(
        ...         f"{folder}/friends.history", file, time="since", periods="monthly"
        ...     )
        ...     [one.date for one in history.snapshots], history.first_seen(1).tolist()
        (['2026-02-01', '2026-03-01', '2026-04-01'], [1, 2])
        """
        check_new_folder(Path(path))
        graph, dates = read_timed(
            Path(edges),
            time=time,
            periods=periods,
            nodes=nodes,
            directed=directed,
            header=header,
            columns=columns,
            delimiter=delimiter,
            ids=ids,
            one_kind=one_kind,
        )
        digest = graph.nodes.digest().hexdigest()
        snapshots = (
            Snapshot(number, when, graph.n_nodes, digest, secrets.token_hex(8))
            for number, when in enumerate(dates, 1)
        )
        return cls._create(path, tuple(snapshots), graph)

    # -- what is public -------------------------------------------------------------------

    @property
    def identity(self) -> str:
        """A random id, unique to this history; it changes when the history starts anew."""
        return self._state.manifest.identity

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The public data of every snapshot; number i is ``snapshots[i - 1]``."""
        return self._state.manifest.snapshots

    def __len__(self) -> int:
        """Number of snapshots: the number of the latest one."""
        return len(self.snapshots)

    @property
    def nodes(self) -> NodeSet:
        """Everybody who was ever in a snapshot; text once an id is no integer. Indices stay.

        A forgotten member keeps its index, with a placeholder instead of its id.
        """
        return self._state.graph.nodes

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """For every node, whether it is in the latest snapshot; read-only."""
        return self._state.present

    @property
    def forgotten(self) -> IntArray:
        """Indices of forgotten members, in increasing order: without edges or id, never reused."""
        return np.array(self._state.manifest.forgotten, dtype=np.int64)

    @property
    def directed(self) -> bool:
        """Whether edges have a direction; decided by the first snapshot."""
        return self._state.graph.directed

    # -- what is private ------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """All edges ever seen, with `first_seen`, over `nodes` (private; mapped)."""
        return self._state.graph

    @property
    def current(self) -> npt.NDArray[np.bool_]:
        """For every entry of ``graph.indices``, whether the latest snapshot has it (private)."""
        return self._state.current

    def friends(self, index: int) -> npt.NDArray[np.int32]:
        """Neighbours of a node in the latest snapshot, sorted; directed: whom it follows."""
        row = slice(*self.graph.indptr[index : index + 2].tolist())
        return self.graph.indices[row][self.current[row]]

    def followers(self, index: int) -> npt.NDArray[np.int32]:
        """Nodes whose edges lead to a node in the latest snapshot, sorted."""
        indptr, indices = self._state.current_reversed
        return indices[indptr[index] : indptr[index + 1]]

    def first_seen(self, index: int) -> npt.NDArray[np.uint16]:
        """When the edges of a node were first seen, in the order of ``graph.neighbours(index)``.

        An edge to a member who was forgotten and has returned has 65,535 (`UNKNOWN`) until the
        history starts anew: it does not count again. That member's own row has the number.
        """
        assert self.graph.first_seen is not None
        return self.graph.first_seen[slice(*self.graph.indptr[index : index + 2].tolist())]

    def new_edges(self) -> IntArray:
        """Number of edges first seen in each snapshot. For the curator only.

        Those that had ended when the history started anew are not counted, nor are those of
        members who were forgotten and have returned.
        """
        assert self.graph.first_seen is not None
        counts = np.zeros(UNKNOWN + 1, dtype=np.int64)
        for at in self._state.manifest.returned:  # their own rows have numbers
            counts -= np.bincount(self.first_seen(at), minlength=len(counts))
        for start in range(0, len(self.graph.first_seen), _BLOCK):  # takes 8 bytes for each
            block = self.graph.first_seen[start : start + _BLOCK]
            counts += np.bincount(block, minlength=len(counts))
        return counts[1 : len(self) + 1] // (1 if self.directed else 2)

    @property
    def current_edges(self) -> int:
        """Number of edges in the latest snapshot. For the curator only."""
        return int(np.count_nonzero(self.current)) // (1 if self.directed else 2)

    # -- writing --------------------------------------------------------------------------

    def add(
        self,
        graph: Graph,
        date: str | date | datetime | None = None,
        *,
        again: bool = False,
        nodes_from_edges: bool = False,
    ) -> int:
        """Merge the next snapshot, and return its number.

        The merge is atomic: if it is interrupted, repeat the call. Memory: a few numbers per node,
        and a block of entries.

        Parameters
        ----------
        graph : Graph
            The snapshot: all edges of today, on the members of today. A node with an id that was
            there before is the same node; the order of ids does not matter. Ids are compared as
            text: 7 and "7" are one node.
        date : str, date or datetime, optional
            Date of the snapshot, not before that of the last one; now (UTC) by default. On the day
            of the last snapshot, the same graph is that snapshot, and nothing is added: so a call
            can be repeated safely. Another graph is a new snapshot, of that time.
        again : bool
            Add a graph that equals the last snapshot as a new snapshot.
        nodes_from_edges : bool
            Accept a graph that was read without a node list; see `edgeveil.refresh`.

        Raises
        ------
        ParameterError
            If the graph equals the last snapshot, of another day. Whether the graph has changed is
            private: for the curator only. Or if the date is earlier, or the graph has no node list.
        InputError
            If the history is undirected and the graph directed, or the other way round.
        EdgeveilError
            If another process is writing, or the disk is full; nothing was changed.
        """
        check_node_list(graph, allowed=nodes_from_edges)
        when = None if date is None else as_date(date)
        with writing(self.path):
            old = read_state(self.path, verify=False)
            manifest, number = old.manifest, len(old.manifest.snapshots) + 1
            last = manifest.snapshots[-1] if manifest.snapshots else None
            repeated = _is_repeated(last, when)
            if number > 1 and graph.directed != old.graph.directed:
                kinds = ("without directions", "with directions")
                raise InputError(
                    f"the history is {kinds[old.graph.directed]}, the snapshot "
                    f"{kinds[graph.directed]}"
                )
            full = f"a history has at most {MOST_SNAPSHOTS:,} snapshots"
            if number > MOST_SNAPSHOTS and not repeated:
                raise ParameterError(full)
            nodes, places = grow(old.graph.nodes, graph.nodes, manifest.forgotten)
            present = np.zeros(len(nodes), np.bool_)
            present[places] = True
            same_members = len(nodes) == len(old.present) and np.array_equal(present, old.present)
            joined = (
                np.unique(places[places >= len(old.present)]).tolist() if manifest.marks else ()
            )
            marks = set(manifest.marks)
            back = [at for at in joined if manifest.mark_of(nodes[at]) in marks]
            returned = (*manifest.returned, *back)
            merge = Merge(old.graph, old.current, graph, places, len(nodes), number, returned)

            def rows() -> Iterator[Rows]:
                yield from merge.rows()
                same = last is not None and same_members and not merge.changed
                if same and (repeated or not again):
                    raise _UnchangedError
                if number > MOST_SNAPSHOTS:
                    raise ParameterError(full)

            digest = graph.nodes.digest().hexdigest()
            snapshot = Snapshot(
                number, _date_of_new(last, when), graph.n_nodes, digest, secrets.token_hex(8)
            )
            reports = old.graph.read_report, graph.read_report
            try:
                write_state(
                    self.path,
                    replace(manifest, snapshots=(*manifest.snapshots, snapshot), returned=returned),
                    nodes,
                    present,
                    rows(),
                    directed=graph.directed,
                    nodes_from_edges=any(one.nodes_from_edges for one in reports),
                )
            except _UnchangedError:
                self._state = old
                if repeated:
                    return number - 1
                raise ParameterError(
                    f"the graph is the same as snapshot {number - 1}: nothing was added; pass "
                    f"again=True (--again) to count it as snapshot {number}"
                ) from None
        self._state = read_state(self.path, verify=False)
        return number

    def reset_first_seen(self) -> None:
        """Forget when edges were first seen that are not in the latest snapshot.

        They stay, as former friends, with the number 65,535 (`UNKNOWN`); one that begins again gets
        the number of that snapshot. Edges of members who were forgotten and have returned get the
        number of the latest snapshot, and are then like all others. The history has another
        identity from then on, so a series that began before cannot go on with it.
        `edgeveil.refresh` calls this where a series starts.

        Raises
        ------
        EdgeveilError
            If another process is writing, or the disk is full; nothing was changed.
        """
        with writing(self.path):
            old = read_state(self.path, verify=False)
            manifest = HistoryManifest.new(old.manifest.snapshots, old.manifest.forgotten)
            rows = rows_anew(old.graph, old.current, len(manifest.snapshots))
            self._rewrite(old, manifest, old.graph.nodes, rows)
        self._state = read_state(self.path, verify=False)

    def _rewrite(
        self, old: State, manifest: HistoryManifest, nodes: NodeSet, rows: Iterator[Rows]
    ) -> None:
        """Write a state with the same snapshots."""
        write_state(
            self.path,
            manifest,
            nodes,
            old.present,
            rows,
            directed=old.graph.directed,
            nodes_from_edges=old.graph.read_report.nodes_from_edges,
        )

    def forget(self, members: NodeId | Iterable[NodeId]) -> None:
        """Erase all edges, and the ids, of members who have left.

        Their indices stay, without an edge, and are never reused: a member who comes back is a
        new node, and until the history starts anew its edges do not count for anybody else. To
        know that somebody comes back, a hash of the id is kept, and beside it the key: whoever has
        the folder can test a guess. The old files are removed. This does not reach processes that
        have the history open, traces on the disk, backups, the files that snapshots were read
        from, or the ledger, which keeps the ids of all who were charged.

        Parameters
        ----------
        members : id or ids
            The members to forget. None of them may be in the latest snapshot.

        Raises
        ------
        UnknownNodeError
            If an id is not in the history.
        ParameterError
            If one of them is still in the latest snapshot. Then nobody is forgotten.
        EdgeveilError
            If another process is writing, or the disk is full; nothing was changed. Or if the old
            files cannot be removed.
        """
        with writing(self.path):
            old = read_state(self.path, verify=False)
            member_ids: Sequence[NodeId]
            member_ids = [members] if isinstance(members, (str, int)) else list(members)
            nodes = old.graph.nodes
            gone = np.unique(nodes.indices([nodes.named(str(member)) for member in member_ids]))
            if old.present[gone].any():
                raise ParameterError(
                    "only members who have left can be forgotten, and one of these is in the "
                    "latest snapshot: add a snapshot without them first"
                )
            mask = np.zeros(old.graph.n_nodes, np.bool_)
            mask[gone] = True
            if len(gone):
                manifest = old.manifest
                marks = {*manifest.marks, *map(manifest.mark_of, nodes.take(gone))}
                manifest = replace(
                    manifest,
                    forgotten=tuple(sorted({*manifest.forgotten, *gone.tolist()})),
                    marks=tuple(sorted(marks)),
                )
                left = without_ids(nodes, gone)
                self._rewrite(old, manifest, left, rows_without(old.graph, old.current, mask))
                refuse_leftovers(self.path)
        self._state = read_state(self.path, verify=False)

    def __repr__(self) -> str:
        return f"History({counted(len(self), 'snapshot')}, {counted(len(self.nodes), 'node')})"


def check_node_list(graph: Graph, *, allowed: bool) -> None:
    """Refuse nodes that were read off the edges, unless that is allowed.

    Over time they show more than once: who has lost the last friend is gone from the next lists.
    """
    if graph.read_report.nodes_from_edges and not allowed:
        raise ParameterError(
            "no node list was given, so nodes were read off the edges: in lists over time the end "
            "of somebody's last friendship would show exactly. Read the graph with its members "
            "(nodes=, --nodes FILE); or pass nodes_from_edges=True (--nodes-from-edges) if who "
            "appears at all, and when, is public"
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def as_date(day: str | date | datetime) -> str:
    """The date as text: a day, or a time in UTC."""
    text = day if isinstance(day, str) else day.isoformat()
    try:
        if len(text) == len("2026-11-16"):
            return date.fromisoformat(text).isoformat()
        return _in_utc(text).isoformat(timespec="seconds")
    except ValueError:
        raise ParameterError(f"date must be like 2026-11-16, got {text!r}") from None


def _in_utc(text: str) -> datetime:
    read = datetime.fromisoformat(text)
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)


def _is_repeated(last: Snapshot | None, when: str | None) -> bool:
    """Whether this is the date of the last snapshot, or the day of it; refuse an earlier one."""
    if last is None or last.date is None or when is None:
        return False
    if when in (last.date, last.date[: len("2026-11-16")]):
        return True
    if _in_utc(when) < _in_utc(last.date):
        raise ParameterError(f"snapshot {last.number} is of {last.date}: give a later date")
    return False


def _date_of_new(last: Snapshot | None, when: str | None) -> str:
    """The date of a new snapshot: with its time if it is the second one of a day."""
    now = _now()
    if when is None or not _is_repeated(last, when):
        return when or now
    assert last is not None
    assert last.date is not None
    return now if now.startswith(when) else max(when, last.date)
