"""Make a release that need not fit into memory: parts go to a folder as they are done."""

from __future__ import annotations

import math
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np

from edgeveil._files import move, sha256_of
from edgeveil.engine.making import (
    Group,
    check_price,
    drawn,
    rows_in,
    rows_in_a_batch,
    stored_batches,
    task_for,
)
from edgeveil.engine.question import How, Options, Question, ask, check_promise, graph_of
from edgeveil.engine.stored import StoredRows
from edgeveil.engine.tasks import Computed, release_of
from edgeveil.errors import InputError, ParameterError
from edgeveil.graph import Graph
from edgeveil.mechanisms.base import Mechanism
from edgeveil.nodes import NodeId
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource
from edgeveil.provenance import Provenance
from edgeveil.release_folder import PartFile, ReleaseFolder

_ROWS_PER_PART, _PART_BYTES = 256, 2 << 20  # of a file: at least so many, more if they are short


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
        The folder to make; it appears when it is whole.
    graph, mechanism, sources
        As for `edgeveil.release`.

    Other Parameters
    ----------------
    ledger, label, purpose, operator, noise, engine, progress : optional
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
        noise = given.noise or NoiseSource.secure()
        guarantee = replace(question.guarantee, private=noise.private)
        about = guarantee, question.provenance(noise.kind)
        return _written(folder, question, _drawn_parts(question, noise, given), *about)
    campaign, price = check_price(question, given)
    if there is not None and price.n_new + price.n_open:
        raise _another(folder)
    found = stored_batches(question, given, campaign, price)
    batches = sorted(found, key=lambda batch: batch.number)
    if there is not None:
        names = [_part_name(number, batch.key) for number, batch in enumerate(batches)]
        same_rows = set(there.sources) == set(question.sources)
        if not same_rows or [part.name for part in there.parts] != names:
            raise _another(folder)
        return there
    provenance = question.provenance("secure", charged=max(b.created for b in batches))
    stored = ((batch.key, rows_in(question, batch)) for batch in batches)
    return _written(folder, question, stored, question.guarantee, provenance)


def _drawn_parts(
    question: Question, noise: NoiseSource, how: How
) -> Iterator[tuple[str, StoredRows]]:
    """Rows in the order of the sources: a group that is done early waits for those before it."""
    key, indices = noise.derive("rows").hand_over(), question.indices
    fitting = _PART_BYTES // (8 * math.prod(question.shape))
    size = min(max(_ROWS_PER_PART, fitting), rows_in_a_batch(question))
    groups = [Group(indices[at : at + size], key) for at in range(0, len(indices), size)]
    early: dict[Sequence[int], Computed] = {}
    task, waiting = task_for(question, noise), iter(groups)
    due = next(waiting, None)
    for group, made in drawn(task, groups, question, how):
        early[group.sources] = made
        while due is not None and due.sources in early:
            yield "of-one-call", StoredRows(np.asarray(due.sources), early.pop(due.sources))
            due = next(waiting, None)


def _written(
    folder: Path,
    question: Question,
    parts: Iterable[tuple[str, StoredRows]],
    guarantee: Guarantee,
    provenance: Provenance,
) -> ReleaseFolder:
    """Write each part as a release of its own, look at all of them once more, and finish."""
    files: list[PartFile] = []
    indices: list[int] = []
    gives, nodes = question.mechanism.gives, question.graph.nodes
    with _new_folder(folder) as place:
        for number, (batch, rows) in enumerate(parts):
            path, some = place / _part_name(number, batch), rows.sources.tolist()
            release_of(gives, nodes, some, rows.made, guarantee, provenance).write(path)
            files.append(PartFile(path.name, sha256_of(path), len(some)))
            indices += some
        made = ReleaseFolder(
            path=place,
            gives=gives,
            guarantee=guarantee,
            provenance=provenance,
            parts=tuple(files),
        )
        made.verify()
        made.finish(tuple(nodes.take(indices)))
    return ReleaseFolder.open(folder)


def _part_name(number: int, batch: str) -> str:
    return f"part-{number:06d}-{batch[:12]}.parquet"


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
