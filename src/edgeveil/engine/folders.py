"""Make a release that need not fit into memory: parts go to a folder as they are done."""

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

_OVERWRITE = "replace it (--overwrite, overwrite=True)"


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
    there first, batch by batch, and then written to the folder, in the order of their batches: an
    interrupted call is repeated for nothing. Without one all is made anew.

    Parameters
    ----------
    path : path
        The folder to make; it appears when it is whole.
    graph, mechanism, sources
        As for `edgeveil.release`.
    overwrite : bool
        Replace another release that is there.

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
    """Make a release in a folder; with a ledger at this price, if one was looked up already."""
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
                f"place, where they cost nothing, or {_OVERWRITE}"
            )
        return there

    def stored() -> Iterator[tuple[int, str, Sequence[NodeId], bytes]]:
        for number, batch in enumerate(batches):
            made = paid.task.result(paid.rows_in(batch), paid.about)
            yield number, batch.key, made.sources, file_of(made)

    return ReleaseFolder.write(folder, gives, *paid.about, stored(), overwrite=overwrite)


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
    return ParameterError(f"{folder} holds another release: choose another place, or {_OVERWRITE}")
