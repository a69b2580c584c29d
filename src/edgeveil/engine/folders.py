"""Make a release that need not fit into memory: parts are written to a folder one by one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Unpack

from edgeveil.engine.making import Drawn, Paid
from edgeveil.engine.question import Question, ReleaseOptions, ask
from edgeveil.errors import InputError, ParameterError
from edgeveil.graph import Graph
from edgeveil.ledger import Price
from edgeveil.mechanisms.base import Mechanism
from edgeveil.nodes import NodeId
from edgeveil.release_folder import ReleaseFolder, file_of, part_name


def release_to(
    path: str | os.PathLike[str],
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId],
    *,
    overwrite: bool = False,
    **how: Unpack[ReleaseOptions],
) -> ReleaseFolder:
    """Run a mechanism and write the rows to a folder, up to 256 rows or 1,024 lists a file.

    Memory: the graph, and for every worker a block of rows. With a ledger the rows are stored
    there first, batch by batch, and then written to the folder in the order of their batches. An
    interrupted call can then be repeated without another charge; without a ledger, repeating it
    makes a new release.

    Parameters
    ----------
    path : path
        The folder to make; it appears only when it is complete.
    graph, mechanism, sources
        As for `edgeveil.release`.
    overwrite : bool
        Replace a release that is already there.

    Other Parameters
    ----------------
    ledger, label, skip_exhausted, purpose, operator, noise, engine, progress : optional
        As for `edgeveil.release`.

    Raises
    ------
    ParameterError
        If the folder holds something else.
    BudgetError
        If the ledger refuses; nothing was drawn.
    """
    return make_folder(Path(path), ask(graph, mechanism, sources, how), overwrite=overwrite)


def make_folder(
    folder: Path, question: Question, price: Price | None = None, *, overwrite: bool = False
) -> ReleaseFolder:
    """Make a release in a folder; `price` is the ledger's, if it was looked up already."""
    there, gives, nodes = _release_in(folder), question.mechanism.gives, question.graph.nodes
    if overwrite:
        there = None
    if question.ledger is None:
        if there is not None:
            raise _another(folder)
        drawn = Drawn(question)
        parts = (
            (part.batch, "of-one-call", nodes.take(part.sources), file)
            for part, file in drawn.run(as_files=True)
        )
        return ReleaseFolder.write(folder, gives, *drawn.about, parts, overwrite=overwrite)
    paid = Paid(question, price)
    if there is not None and paid.price.n_new + paid.price.n_open:
        raise _another(folder)
    batches = sorted(paid.batches(), key=lambda batch: batch.number)
    if there is not None:
        names = [part_name(number, batch.key) for number, batch in enumerate(batches)]
        same_rows = set(there.sources) == set(nodes.take(question.indices))
        if not same_rows or [part.name for part in there.parts] != names:
            raise _another(folder)
        if there.provenance.lists != question.lists_made:
            raise ParameterError(
                f"{folder} holds lists of another length or for other candidates: choose another "
                "folder; nothing more is charged"
            )
        return there

    def stored() -> Iterator[tuple[int, str, Sequence[NodeId], bytes]]:
        for number, batch in enumerate(batches):
            made = paid.task.result(paid.rows_in(batch), paid.about)
            yield number, batch.key, made.sources, file_of(made)

    return ReleaseFolder.write(folder, gives, *paid.about, stored(), overwrite=overwrite)


def _release_in(folder: Path) -> ReleaseFolder | None:
    """The release that is in the folder already, if any; anything else there is refused."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        return ReleaseFolder.open(folder)
    except (InputError, OSError):
        raise ParameterError(
            f"{folder} exists and is not a release: choose another folder"
        ) from None


def _another(folder: Path) -> ParameterError:
    return ParameterError(f"{folder} holds another release: choose another folder, or overwrite it")
