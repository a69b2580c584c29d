"""A process that has loaded numba, and nothing of edgeveil; see test_compiled.py.

loop_worker.py FOLDER CODE    run the code with FOLDER first on the module path
"""

from __future__ import annotations

import sys

import numba


def warm_up() -> None:
    """Load the compiler."""
    numba.njit(lambda x: x + 1)(1)


def main() -> None:
    folder, code = sys.argv[1:]
    sys.path.insert(0, folder)
    exec(compile(code, "<test>", "exec"), {})
