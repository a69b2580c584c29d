"""The message before loops are compiled: that it happens, and about how long it takes.

There is no message if everything that is needed was compiled before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from edgeveil._internal import loops as _loops
from edgeveil.cli.output import plain, say

# CPU seconds of compiling at a command's first call with nothing kept, by the default mechanism:
# measured with numba 0.68 on one machine (Intel Xeon). `edgeveil warmup` took 18 there.
_SECONDS = {"demo": 8, "evaluate": 7, "embed": 1, "convert": 1}
_USUALLY = 6  # suggest, report, serve, rank, audit


@contextmanager
def announce_compilation(command: str = "") -> Iterator[None]:
    """Print the message before the first loop is compiled; on a terminal, show each loop."""
    told = False

    def watch(module: str, loop: str, ready: bool) -> None:
        nonlocal told
        if not told:
            told = True
            say(_sentence(command))
        if sys.stderr.isatty():
            name = plain(f"{module.removeprefix('edgeveil.')}.{loop}")
            sys.stderr.write("\r\x1b[K" if ready else f"compiling {name} ...")
            sys.stderr.flush()

    _loops.watchers.append(watch)
    try:
        yield
    finally:
        _loops.watchers.remove(watch)


@contextmanager
def only(watcher: _loops.Watcher) -> Iterator[None]:
    """No message, for a command that has its own."""
    before, _loops.watchers[:] = list(_loops.watchers), [watcher]
    try:
        yield
    finally:
        _loops.watchers[:] = before


def _sentence(command: str) -> str:
    folder, problem = _loops.loop_folder()
    seconds = _SECONDS.get(command, _USUALLY)
    some = folder is not None and any(folder.rglob("*.nbi"))
    if problem:
        long = "a few seconds" if some else f"about {seconds} s"
        return (
            f"Compiling for this machine, {long} at every call, because what is compiled cannot "
            f"be kept: {_loops.why_not_kept()}."
        )
    if some:
        return "Compiling what was not needed before for this machine, once: a few seconds."
    return f"Compiling for this machine, once: about {seconds} s (`edgeveil warmup` does it ahead)."
