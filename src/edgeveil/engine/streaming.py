"""Make a release that need not fit into memory: parts go to a folder as they are done."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from edgeveil._files import sha256_of, write_atomically
from edgeveil.engine.charging import Payment, Question, ask, check_promise, fresh_noise, reserve
from edgeveil.engine.local import Local
from edgeveil.engine.making import Progress
from edgeveil.engine.tasks import Engine, RowsTask, WriteTask, part_name, split
from edgeveil.errors import LedgerError, ParameterError
from edgeveil.graph import Graph
from edgeveil.ledger import Ledger, Reservation
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.run import shared_part
from edgeveil.nodes import NodeId
from edgeveil.privacy.noise import NoiseSource
from edgeveil.provenance import Gives
from edgeveil.release_folder import (
    MANIFEST,
    UNFINISHED,
    PartFile,
    ReleaseFolder,
    Result,
    read_result,
)

__all__ = ["release_to"]

_ROWS_PER_PART = 256


def release_to(
    path: str | os.PathLike[str],
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId],
    *,
    ledger: Ledger | None = None,
    nonce: str = "",
    label: str = "",
    new_node_set: bool = False,
    noise: NoiseSource | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> ReleaseFolder:
    """Run a mechanism and write the rows to a folder, a few hundred sources a file.

    Memory: the graph, and for every worker a block of rows. Interrupted, with a ledger: the
    same call goes on where it stopped, with the same noise, for nothing. Interrupted without
    one: the folder must be deleted and all made anew, for nobody kept the secret of the noise.

    Parameters
    ----------
    path : path
        The folder to make. On a cluster it must be the same place on all machines.
    graph, mechanism, sources, ledger, nonce, label, new_node_set, noise, engine, progress
        As for `edgeveil.release`.

    Raises
    ------
    ParameterError
        If the folder holds something else.
    BudgetError
        If the ledger refuses; nothing was drawn.
    """
    folder = Path(path)
    question = ask(graph, mechanism, sources, in_memory=False)
    check_promise(question)
    engine = engine or Local()
    if ledger is None:
        source = fresh_noise(noise)
        _prepare_folder(folder, run := secrets.token_hex(32))
        made = _stream(folder, run, question, source, engine, progress, charged=False)
        return _finished(made, question)
    if noise is not None:
        raise ParameterError("a ledger keeps its own noise secret: leave noise= out")
    payment = Payment(ledger, nonce, label, new_node_set)
    _refuse_others(folder, question.key_in(payment))  # before the charge
    reservation = reserve(question, payment)
    if reservation.artifact is None:
        _prepare_folder(folder, reservation.key)
        source = NoiseSource.from_secret(reservation.secret)
        made = _stream(folder, reservation.key, question, source, engine, progress, charged=True)
        made = _finished(made, question)
        reservation = reservation.release(lambda p: _write_record(p, made), suffix=".json")
    return _released(folder, reservation, mechanism.gives)


def _finished(made: ReleaseFolder, question: Question) -> ReleaseFolder:
    """Look at every part once more, for its secret is about to be erased; then write the rest."""
    made.verify()
    made.finish(question.sources)
    return made


def _released(folder: Path, reservation: Reservation, gives: Gives) -> ReleaseFolder:
    """What the ledger recorded, in the folder that was asked for."""
    artifact = reservation.artifact
    if artifact is None:
        raise LedgerError("the ledger did not record the release")
    if artifact.suffix == ".json":
        found = ReleaseFolder.from_record(artifact)
        if found.path != folder.resolve():
            raise LedgerError(
                f"this was released before, to {found.path}: copy that folder, or ask for a new "
                "release with another nonce"
            )
        return found
    return _unfolded(read_result(artifact, gives), folder, reservation.key)


def _unfolded(whole: Result, folder: Path, run: str) -> ReleaseFolder:
    """A release that was made in memory before, as a folder."""
    if (folder / MANIFEST).is_file():
        there = ReleaseFolder.open(folder).read()
        if there.values.tobytes() != whole.values.tobytes() or there.sources != whole.sources:
            raise ParameterError(f"{folder} holds another release: choose another place")
    else:
        _prepare_folder(folder, run)
        name = part_name(0, run)
        whole.write(folder / name)
        part = PartFile(name, sha256_of(folder / name), len(whole.sources))
        _folder_of(folder, whole, (part,)).finish(whole.sources)
    return ReleaseFolder.open(folder)


def _stream(
    folder: Path,
    run: str,
    question: Question,
    noise: NoiseSource,
    engine: Engine,
    progress: Progress | None,
    *,
    charged: bool,
) -> ReleaseFolder:
    """Prepare once, then write all parts that are not there yet."""
    graph, mechanism = question.graph, question.mechanism
    guarantee = replace(question.guarantee, private=noise.private)
    provenance = question.provenance(noise.kind, charged=charged)
    task = WriteTask(
        rows=RowsTask(
            mechanism=mechanism,
            graph=graph,
            shared=shared_part(mechanism, graph, noise.derive("shared")),
        ),
        folder=str(folder.resolve()),
        run=run,
        guarantee=guarantee,
        provenance=provenance,
    )
    parts = split(question.indices, _ROWS_PER_PART)
    written: dict[int, PartFile] = {}
    done, total = 0, len(question.indices)
    for part, result in engine.run(task, parts, noise.derive("rows").hand_over()):
        written[part.number] = PartFile(result.name, result.sha256, len(part.sources))
        done += len(part.sources)
        if progress:
            progress(done, total)
    return ReleaseFolder(
        path=folder,
        gives=mechanism.gives,
        guarantee=guarantee,
        provenance=provenance,
        parts=tuple(written[part.number] for part in parts),
    )


def _folder_of(folder: Path, like: Result, parts: tuple[PartFile, ...]) -> ReleaseFolder:
    return ReleaseFolder(
        path=folder,
        gives=like.gives,
        guarantee=like.guarantee,
        provenance=like.provenance,
        parts=parts,
    )


def _write_record(path: Path, made: ReleaseFolder) -> None:
    path.write_text(made.record())


# -- the folder ---------------------------------------------------------------------------


def _refuse_others(folder: Path, run: str) -> None:
    """Refuse a place where something else is, or may still be at work."""
    if not folder.exists():
        return
    if not folder.is_dir() or (any(folder.iterdir()) and not _is_ours(folder)):
        raise ParameterError(f"{folder} exists and is not a release: choose another place")
    parts = _parts_in(folder)
    if (folder / MANIFEST).is_file():
        if not parts or not all(part.name.endswith(_tail(run)) for part in parts):
            raise ParameterError(f"{folder} holds another release: choose another place")
    elif _is_ours(folder) and _run_in(folder) != run:
        # Not cleared away: another process may be writing it.
        raise ParameterError(
            f"{folder} holds an unfinished release of another call: delete it, or choose another "
            "place"
        )


def _prepare_folder(folder: Path, run: str) -> None:
    """Make the folder, or go on with this run's own."""
    _refuse_others(folder, run)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(folder / UNFINISHED, lambda path: path.write_text(json.dumps({"run": run})))


def _is_ours(folder: Path) -> bool:
    return (folder / UNFINISHED).is_file() or (folder / MANIFEST).is_file()


def _run_in(folder: Path) -> str | None:
    """Whose unfinished parts these are."""
    try:
        return str(json.loads((folder / UNFINISHED).read_text())["run"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _parts_in(folder: Path) -> list[Path]:
    return list(folder.glob("part-*.parquet"))


def _tail(run: str) -> str:
    return part_name(0, run).removeprefix("part-000000")
