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

__all__ = ["COMMANDS", "main"]

_EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (BudgetError, 3),
    (InputError, 4),
    (ParameterError, 2),
    (UnknownNodeError, 2),
    (EdgeveilError, 1),
)

COMMANDS = {
    "demo": "Rank and embed the members of a built-in social network; make a page of it.",
    "rank": "Rank the nodes of a graph for one source, privately.",
    "embed": "Embed the nodes of a graph, privately, each for its own owner.",
    "evaluate": "Measure on your own graph how well private rankings do. For the curator only.",
    "reproduce": "Repeat the paper's experiments and our own; write tables and figures.",
    "convert": "Turn a graph file into a folder that opens in milliseconds.",
    "mechanisms": "List what there is, what each does, and when to use it.",
    "audit": "Attack a mechanism on its worst pair of graphs and compare with what it claims.",
    "ledger": "The privacy budget: a file (or PostgreSQL database) that cannot be overspent.",
}


def make_app(command: str | None) -> App:
    """The application, about to run `command` (None: it will list what there is).

    Commands are named by path, so that none is loaded before it runs. A summary given here
    would hide a command's own help, so only the listing gets summaries.
    """
    app = App(
        name="edgeveil",
        help="Rankings and embeddings from a private graph, with a guarantee for every edge.",
        version=lambda: version("edgeveil"),
        help_format="plaintext",
    )
    for name, summary in COMMANDS.items():
        path = f"edgeveil.cli.{name}:{name}"
        if command == name:
            app.command(path, name=name)
        else:
            app.command(path, name=name, help=summary)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and give its exit code; no error of ours becomes a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        make_app(words[0] if words else None)(
            words, exit_on_error=False, result_action="return_none"
        )
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
