"""What a run is asked to do: sizes, data, number of rounds. The parts read nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ERROR", "RESTART", "ROUNDS", "SIGMA", "SINGLE", "Settings", "pin_threads"]

RESTART = 0.15
ERROR = 1e-6  # L1 error that all contenders for exact PageRank have to reach
SINGLE = ", single precision"  # ends the name of a peer that computes in float32
SIGMA, ROUNDS = 1e-6, 100  # of the capped flow, as in the paper's experiments

_ONE_THREAD = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"),
    *("NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of one run.

    Attributes
    ----------
    work : Path
        Folder for generated graphs and files, kept from run to run.
    data : Path or None
        Folder with blogcatalog.mat.
    rounds : int
        How often every contender is measured.
    rounds_large : int
        The same on the large graph; 0 leaves it out.
    max_edges : int
        Largest graph of the part ``scale``.
    edges : int
        Edges of the largest graph of the part ``billion``.
    memory : int
        Bytes in which that graph is built.
    members : int
        Members of the part ``service``.
    paper_rounds : int
        Rounds of the paper's algorithm in Python that are really run.
    tiny : bool
        Everything on tiny graphs, to try the harness. The figures mean nothing.
    """

    work: Path
    data: Path | None = None
    rounds: int = 7
    rounds_large: int = 3
    max_edges: int = 100_000_000
    edges: int = 1_000_000_000
    memory: int = 8_000_000_000
    members: int = 1_000_000
    paper_rounds: int = 8
    tiny: bool = False

    @property
    def block(self) -> int:
        """Sources per call of whatever takes a block of them."""
        return 8 if self.tiny else 64

    @contextmanager
    def empty_folder(self, name: str) -> Iterator[Path]:
        """An empty folder in `work`, removed afterwards."""
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


def pin_threads() -> None:
    """One thread for every library; to be called before the first of them is loaded."""
    for name in _ONE_THREAD:
        os.environ[name] = "1"
    os.environ["MKL_THREADING_LAYER"] = "SEQUENTIAL"
