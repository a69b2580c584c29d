"""Make a release that need not fit into memory: parts go to a folder as they are done."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from edgeveil._files import move, sha256_of
from edgeveil.engine.making import check_price, rows_in, stored_batches, task_for
from edgeveil.engine.question import How, Options, Question, ask, check_promise, graph_of
from edgeveil.engine.tasks import Part, WriteTask, part_name, release_of
from edgeveil.errors import InputError, ParameterError
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Mechanism
from edgeveil.nodes import NodeId
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource
from edgeveil.provenance import Provenance
from edgeveil.release_folder import PartFile, ReleaseFolder

__all__ = ["release_to"]

_ROWS_PER_PART = 256


def release_to(
    path: str | os.PathLike[str],
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId],
    **how: Unpack[Options],
) -> ReleaseFolder:
    """Run a mechanism and write the rows to a folder, a few hundred or thousand sources a file.

    Memory: the graph, and for every worker a block of rows. With a ledger the rows are stored
    there first, batch by batch, and then written to the folder, in the order of their batches: an
    interrupted call is repeated for nothing. Without one all is made anew.

    Parameters
    ----------
    path : path
        The folder to make; it appears when it is whole. On a cluster the place must be the same
        on all machines.
    graph, mechanism, sources, ledger, label, purpose, operator, noise, engine, progress
        As for `edgeveil.release`.

    Raises
    ------
    ParameterError
        If the folder holds something else.
    BudgetError
        If the ledger refuses; nothing was drawn.
    """
    folder, graph, given = Path(path), graph_of(graph), How.of(how)
    window = given.ledger.window if given.ledger else None
    question = ask(graph, mechanism, sources, in_memory=False, window=window)
    check_promise(question)
    there = _release_in(folder)
    if given.ledger is None:
        if there is not None:
            raise _another(folder)
        return _stream(folder, question, given)
    price = check_price(question, given)
    if there is not None and price.n_new + price.n_open:
        raise _another(folder)
    batches = sorted(stored_batches(question, given), key=lambda batch: batch.number)
    if there is not None:
        names = [part_name(number, batch.key) for number, batch in enumerate(batches)]
        same_rows = set(there.sources) == set(question.sources)
        if not same_rows or [part.name for part in there.parts] != names:
            raise _another(folder)
        return there
    provenance = question.provenance("secure", charged=max(b.created for b in batches))
    parts: list[PartFile] = []
    indices: list[int] = []
    with _new_folder(folder) as place:
        for number, batch in enumerate(batches):
            rows = rows_in(question, batch)
            path = place / part_name(number, batch.key)
            about = question.guarantee, provenance
            some = rows.sources.tolist()
            release_of(mechanism.gives, graph.nodes, some, rows.made, *about).write(path)
            parts.append(PartFile(path.name, sha256_of(path), len(some)))
            indices += some
        _finish(place, question, *about, parts, graph.nodes.take(indices))
    return ReleaseFolder.open(folder)


def _stream(folder: Path, question: Question, how: How) -> ReleaseFolder:
    """Let the workers write all parts."""
    noise = how.noise or NoiseSource.secure()
    guarantee = replace(question.guarantee, private=noise.private)
    provenance, key = question.provenance(noise.kind), noise.derive("rows").hand_over()
    total, done = len(question.indices), 0
    starts = range(0, total, _ROWS_PER_PART)
    parts = [Part(i, 0, question.indices[at : at + _ROWS_PER_PART]) for i, at in enumerate(starts)]
    with _new_folder(folder) as place:
        task = WriteTask(
            rows=task_for(question, noise),
            folder=str(place),
            guarantee=guarantee,
            provenance=provenance,
        )
        written: dict[int, PartFile] = {}
        for part, file in how.engine.run(task, ((part, key) for part in parts)):
            written[part.batch] = file
            done += file.rows
            if how.progress:
                how.progress(done, total)
        in_order = [written[number] for number in sorted(written)]
        _finish(place, question, guarantee, provenance, in_order, question.sources)
    return ReleaseFolder.open(folder)


def _finish(
    place: Path,
    question: Question,
    guarantee: Guarantee,
    provenance: Provenance,
    parts: list[PartFile],
    sources: Iterable[NodeId],
) -> None:
    """Look at every part once more; then write what makes them a release."""
    made = ReleaseFolder(
        path=place,
        gives=question.mechanism.gives,
        guarantee=guarantee,
        provenance=provenance,
        parts=tuple(parts),
    )
    made.verify()
    made.finish(tuple(sources))


# -- the folder ---------------------------------------------------------------------------


def _release_in(folder: Path) -> ReleaseFolder | None:
    """The release that is there already; whatever else is there is refused."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        return ReleaseFolder.open(folder)
    except (InputError, OSError):
        raise ParameterError(
            f"{folder} exists and is not a release: choose another place"
        ) from None


def _another(folder: Path) -> ParameterError:
    return ParameterError(f"{folder} holds another release: choose another place")


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder to be filled, beside its place; it gets its name when it is whole."""
    place = folder.resolve()
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = place.with_name(f"{place.name}.unfinished-{secrets.token_hex(4)}")
    unfinished.mkdir(mode=0o700)
    try:
        yield unfinished
        if place.exists():
            place.rmdir()  # an empty one: a folder must not be replaced
        move(unfinished, place)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
