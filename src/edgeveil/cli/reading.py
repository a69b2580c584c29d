"""Read the graph and the nodes that a command names, and say what was found."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from edgeveil._internal.words import counted, some_of
from edgeveil.cli.options import GraphFile, Suggestable
from edgeveil.cli.output import say
from edgeveil.errors import ParameterError, ReadingWarning, UnknownNodeError
from edgeveil.graph.exclusions import excluded_pairs, read_exclusions
from edgeveil.graph.graph import Graph
from edgeveil.graph.node_lists import read_nodes
from edgeveil.graph.nodes import NodeId, NodeSet
from edgeveil.graph.read import read_graph

TABLES = (".parquet", ".json", ".csv")


def read_and_say(path: Path, reading: GraphFile, *, counts: bool) -> Graph:
    """Read a graph and say, on a terminal, how many nodes it has.

    The number of nodes is public. With `counts` all that the reader counted is said, anywhere:
    that tells about edges, so it is for commands whose words only the curator sees, and for
    ``--verbose``.
    """
    text = {".csv", ".tsv", ".txt", ".edges", ".edgelist"} & set(path.suffixes)
    header = reading.header if text else None  # other formats know for themselves
    with _without_words_of_libraries(), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ReadingWarning)
        graph = read_graph(
            path,
            nodes=reading.nodes,
            directed=reading.directed,
            header=header,
            columns=reading.pair,
            key=reading.key,
            ids=reading.ids,
            one_kind=reading.one_kind,
        )
    for doubt in warned:
        say(str(doubt.message))
    say_what_was_read(path, graph, counts=counts)
    return graph


def say_what_was_read(path: Path | str, graph: Graph, *, counts: bool) -> None:
    """Say how large a graph is; see `read_and_say`."""
    if counts:
        size = f"{counted(graph.n_nodes, 'node')}, {counted(graph.n_edges, 'edge')}"
        say(f"{path}: {size}; {graph.read_report} (exact counts: do not publish)")
    elif sys.stderr.isatty():
        say(f"{path}: {counted(graph.n_nodes, 'node')}")
    if graph.read_report.layout and (counts or sys.stderr.isatty()):
        say(f"{path}: {graph.read_report.layout}.")
    if graph.read_report.nodes_from_edges and (counts or sys.stderr.isatty()):
        # Every guarantee says so too; this is in time to do something about it.
        say("No node list was given (--nodes): who appears at all is taken to be public.")


def wanted_nodes(
    nodes: NodeSet, named: list[str] | None, listed: Path | None, option: str
) -> NodeSet | list[NodeId]:
    """The nodes named on the command line or in the file of an option; by default all."""
    if named is None and listed is None:
        return nodes
    wanted = [nodes.named(word) for word in named or ()]
    nodes.indices(wanted)  # refuses strangers
    wanted += nodes_in_file(nodes, listed, option) or []
    return list(dict.fromkeys(wanted))


def nodes_in_file(nodes: NodeSet, listed: Path | None, option: str) -> list[NodeId] | None:
    """The nodes in the file of an option; None without a file."""
    if listed is None:
        return None
    file = f"the file of {option}"
    with _without_words_of_libraries():
        ids = list(read_nodes(listed, file) or ())
    if not ids:
        raise ParameterError(f"{file}, {listed}, names no node")
    if isinstance(ids[0], str) != (nodes.kind == "str"):
        ids = [nodes.named(str(node)) for node in ids]
    try:
        nodes.indices(ids)
    except UnknownNodeError as error:
        first = ids[0] in nodes
        hint = "" if first else " (if its first line is a header, take that away)"
        raise UnknownNodeError(f"{file}, {listed}: {error}{hint}") from None
    return list(dict.fromkeys(ids))


def who_may_be_suggested(shown: Suggestable, nodes: NodeSet) -> dict[str, Any]:
    """What the files of --candidates and --exclude hold, as `edgeveil.suggest` takes it."""
    pairs = None if shown.exclude is None else read_exclusions(shown.exclude)
    _, unknown = excluded_pairs(pairs or (), nodes)
    if pairs and unknown:
        have = some_of(unknown, len(pairs), "pair", "name")
        say(f"{shown.exclude}: {have} somebody who is not in the node list: no effect.")
    return {
        "candidates": nodes_in_file(nodes, shown.candidates, "--candidates"),
        "exclude": pairs,
    }


def check_out(
    out: Path | None,
    *suffixes: str,
    overwrite: bool,
    inputs: Iterable[Path | None] = (),
    option: str = "--out",
) -> None:
    """Refuse a place where a result cannot be put, before any work is done or anything is charged.

    Its name has to end in one of the suffixes; "" stands for a folder. What is there already stays,
    unless it may be overwritten.
    """
    if out is None:
        return
    if suffixes and out.suffix not in suffixes:
        *others, last = filter(None, suffixes)
        named = f"{', '.join(others)} or {last}" if others else last
        raise ParameterError(f"{option} must end in {named}, got {out.name!r}")
    if not out.parent.is_dir():
        raise ParameterError(f"{option}: there is no folder {out.parent} to write to")
    try:
        with TemporaryFile(dir=out.parent):  # what the system says in advance is not always true
            pass
    except OSError as error:
        why = f"cannot write to the folder {out.parent}: {error.strerror or type(error).__name__}"
        raise ParameterError(f"{option}: {why}") from None
    if out.is_dir() and (out.suffix or "" not in suffixes):
        raise ParameterError(f"{option}: {out} is a folder")
    for path in inputs:
        if path is not None and out.exists() and path.exists() and out.samefile(path):
            raise ParameterError(f"{option} would replace the input {path}")
    if not overwrite and os.path.lexists(out) and not (out.is_dir() and not any(out.iterdir())):
        raise ParameterError(f"{out} exists; --overwrite replaces it")


def check_folder(folder: Path | None, option: str = "--per-member", *, overwrite: bool) -> None:
    """Refuse a folder that cannot be made or written to; files in it stay, unless told so."""
    if folder is None:
        return
    whole = folder.absolute()
    there = next(place for place in (whole, *whole.parents) if place.exists())
    check_out(there / "member.csv", overwrite=True, option=option)
    if not overwrite and folder.is_dir() and any(folder.iterdir()):
        raise ParameterError(
            f"{folder} exists and is not empty; --overwrite replaces files of the same names in it"
        )


@contextmanager
def _without_words_of_libraries() -> Iterator[None]:
    """Send file descriptor 2 nowhere for a while.

    On a damaged file polars' threads print where they panicked, past Python, and may quote it.
    """
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
