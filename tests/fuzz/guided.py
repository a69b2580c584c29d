"""Coverage-guided fuzzing of the readers with atheris, which is not among the requirements.

pip install atheris, then: python -m tests.fuzz.guided -runs=100000 -seed=1

The first byte chooses the format, the rest is the file. Whatever the bytes, a reader gives a
graph or an EdgeveilError; anything else ends the run with the input. Parquet is left to the
other fuzzer: its reader is compiled code that a forged file can abort.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["edgeveil"]):
    import edgeveil as ev
    from edgeveil.graph import node_lists

SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".mtx", ".mat", ".nodes")
FOLDER = Path(tempfile.mkdtemp())


def try_one(data: bytes) -> None:
    if not data:
        return
    suffix = SUFFIXES[data[0] % len(SUFFIXES)]
    path = FOLDER / f"input{suffix}"
    path.write_bytes(data[1:])
    try:
        if suffix == ".nodes":
            node_lists.read_nodes(path)
        else:
            ev.read_graph(path, directed=bool(data[0] & 128))
    except ev.errors.EdgeveilError:
        pass


if __name__ == "__main__":
    atheris.Setup(sys.argv, try_one)
    atheris.Fuzz()
