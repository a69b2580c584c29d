"""The `edgeveil` command: its subcommands, and what becomes an exit code.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 budget refused, 4 input unreadable, 130 Ctrl-C.
Data goes to standard output, words to standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from cyclopts import App, CycloptsError

from edgeveil.errors import BudgetError, EdgeveilError, InputError, ParameterError, UnknownNodeError

__all__ = ["app", "main"]

_EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (BudgetError, 3),
    (InputError, 4),
    (ParameterError, 2),
    (UnknownNodeError, 2),
    (EdgeveilError, 1),
)

app = App(
    name="edgeveil",
    help="Rankings and embeddings from a private graph, with a proven guarantee for every edge.",
    version=lambda: version("edgeveil"),
    help_format="plaintext",
)
# Named by path and told here what they do, so that `--help` loads none of them.
for _name, _summary in {
    "demo": "Rank a member of the built-in social network: exactly, capped, and privately.",
    "rank": "Rank the nodes of a graph for one source, privately.",
    "embed": "Embed the nodes of a graph, privately, each for its own owner.",
    "convert": "Turn a graph file into a folder that opens in milliseconds.",
    "mechanisms": "List what there is, what each does, and when to use it.",
    "audit": "Attack a mechanism on its worst pair of graphs and compare with what it claims.",
    "ledger": "The privacy budget: a file (or PostgreSQL database) that cannot be overspent.",
}.items():
    app.command(f"edgeveil.cli.{_name}:{_name}", name=_name, help=_summary)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and give its exit code; no error of ours becomes a traceback."""
    try:
        app(arguments, exit_on_error=False, print_error=True, result_action="return_none")
    except CycloptsError:
        return 2
    except EdgeveilError as error:
        sys.stderr.write(f"edgeveil: {error}\n")
        return next(code for kind, code in _EXIT_CODES if isinstance(error, kind))
    except KeyboardInterrupt:
        sys.stderr.write("edgeveil: interrupted\n")
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`). Keep Python from failing once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        sys.stderr.write("edgeveil: there is not enough memory for this\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"edgeveil: {error.strerror or error}: {error.filename or ''}\n")
        return 1
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    return 0
