"""Long runs that can be stopped: every finished cell is on disk before the next one starts.

A run is a sequence of cells, each a key and a function that gives plain JSON data. The part
file has one line per finished cell. Started again with the same settings, a run reads what is
there and computes the rest; a line that a crash left half-written is dropped.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeveil._internal.files import flush, write_atomically
from edgeveil.cli.output import counting

__all__ = ["Cells"]


class Cells:
    """The finished cells of one run.

    Parameters
    ----------
    folder : path
        Where the part file lies; made if missing. It gets a ``.gitignore`` of its own.
    settings : dict
        Everything that decides the results. Other settings have another part file.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> Cells(folder, {"seed": 0}).get("a", lambda: 1 + 1)
    2
    >>> Cells(folder, {"seed": 0}).get("a", lambda: 1 / 0)  # not computed again
    2
    """

    def __init__(self, folder: str | os.PathLike[str], settings: dict[str, Any]) -> None:
        self._folder = Path(folder)
        text = json.dumps(settings, sort_keys=True)
        name = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.path = self._folder / f"{name}.jsonl"
        self._done: dict[str, Any] = {}
        self.seconds = 0.0
        self._step: Callable[[], None] = _nothing
        self._read(text)

    def _read(self, settings: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / ".gitignore").write_text("*\n")
        whole = 0
        if self.path.exists():
            for line in self.path.read_bytes().splitlines(keepends=True):
                try:
                    record = json.loads(line)
                except ValueError:
                    break
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
                if "cell" in record:
                    self._done[record["cell"]] = record["value"]
                    self.seconds += record["seconds"]
            os.truncate(self.path, whole)
        if not whole:
            self._append({"settings": json.loads(settings)})

    def _append(self, record: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            flush(file)

    def __contains__(self, cell: str) -> bool:
        return cell in self._done

    def get(self, cell: str, compute: Callable[[], Any]) -> Any:
        """Give the cell's value, computing and keeping it if it is not there yet."""
        if cell not in self._done:
            started = time.perf_counter()
            # Through JSON, so that a fresh value is what a later run reads.
            value = json.loads(json.dumps(compute()))
            seconds = time.perf_counter() - started
            self._append({"cell": cell, "seconds": round(seconds, 3), "value": value})
            self._done[cell] = value
            self.seconds += seconds
        self._step()
        return self._done[cell]

    def array(
        self, cell: str, compute: Callable[[], npt.NDArray[np.float64]]
    ) -> npt.NDArray[np.float64]:
        """Like `get` for an array, which is kept in a file of its own."""
        path = self.path.with_suffix(f".{hashlib.sha256(cell.encode()).hexdigest()[:12]}.npy")

        def make() -> str:
            def write(place: Path) -> None:
                with place.open("wb") as file:
                    np.save(file, compute())

            write_atomically(path, write)
            return path.name

        if not path.exists():
            self._done.pop(cell, None)
        self.get(cell, make)
        return np.asarray(np.load(path))

    @contextmanager
    def progress(self, total: int, title: str) -> Iterator[None]:
        """Show the progress of `total` cells with the time left, on a terminal only."""
        with counting(title) as show:
            done = itertools.count(1)
            self._step = lambda: show(next(done), total)
            show(0, total)
            yield
        self._step = _nothing


def _nothing() -> None:
    """Nobody watches."""
