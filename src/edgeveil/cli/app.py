"""The `edgeveil` command: its subcommands, and what becomes an exit code.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 budget refused, 4 input unreadable, 130 Ctrl-C.
Data goes to standard output, words to standard error.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from functools import cache

from cyclopts import App, CycloptsError

from edgeveil.cli.config import apply_config
from edgeveil.cli.interrupts import watching
from edgeveil.cli.output import say
from edgeveil.errors import BudgetError, EdgeveilError, InputError, ParameterError, UnknownNodeError

__all__ = ["COMMANDS", "main", "make_app"]

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
    "ledger": "The privacy budget: a file (or PostgreSQL database) that refuses to be overspent.",
    "mechanisms": "List what there is, what each protects, and when to use it.",
    "convert": "Turn a graph file into a folder that opens in milliseconds.",
    "evaluate": "Measure on your own graph how well private rankings do. For the curator only.",
    "audit": "Attack a mechanism on its worst pair of graphs and compare with what it claims.",
    "reproduce": "Repeat the paper's experiments and our own; write tables and figures.",
    "completion": "Print a script that lets a shell complete commands, options and their values.",
}

_HELP = """Rankings and embeddings from a private graph, with a guarantee for every edge.

Example: edgeveil rank follows.csv --source alice --epsilon 1 --top 20"""

# Set to anything: an error nobody foresaw prints all it knows, which may be private.
_TRACEBACK = "EDGEVEIL_TRACEBACK"


@cache
def make_app(*, summaries: bool = False) -> App:
    """The application.

    Commands are named by path, so that none is loaded before it runs. For a listing (without a
    command) they get their summaries from here; otherwise that would hide their own help.
    """
    app = App(
        name="edgeveil",
        help=_HELP,
        help_format="plaintext",
        version=_version,
        config=apply_config,
        suppress_keyboard_interrupt=False,  # main says what became of the budget
    )
    for place, (name, summary) in enumerate(COMMANDS.items()):
        path = f"edgeveil.cli.{name}:{name}"
        if summaries:
            app.command(path, name=name, sort_key=place, help=summary)
        else:
            app.command(path, name=name, sort_key=place)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and give its exit code; no error becomes a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    try:
        with watching(), warnings.catch_warnings():
            if not sys.warnoptions:
                warnings.simplefilter("ignore")  # a library's words, and of private numbers
            app = make_app(summaries=not words or words[0].startswith("-"))
            app(words, exit_on_error=False, print_error=False, result_action="return_none")
            sys.stdout.flush()
    except CycloptsError as error:
        say(f"edgeveil: {_sentence(error)}")
        return 2
    except EdgeveilError as error:
        say(f"edgeveil: {error}")
        return next(code for kind, code in _EXIT_CODES if isinstance(error, kind))
    except KeyboardInterrupt as interrupt:
        say("; ".join(["edgeveil: interrupted", *map(str, interrupt.args)]))
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`). Keep Python from failing once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        say("edgeveil: there is not enough memory for this")
        return 1
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        say(f"edgeveil: {error.strerror or type(error).__name__}{where}")
        return 1
    except UnicodeEncodeError as error:
        say(f"edgeveil: the output cannot be written as {error.encoding}; set PYTHONUTF8=1")
        return 1
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    except BaseException as error:  # polars' panics are no Exceptions
        if _TRACEBACK in os.environ:
            raise
        say(f"edgeveil: {_unforeseen(error)}")
        return 1
    return 0


def _version() -> str:
    from importlib.metadata import version

    return version("edgeveil")


def _sentence(error: CycloptsError) -> str:
    """The first line of what is wrong, without the frame that cyclopts draws around it."""
    return " ".join(str(error).split())


def _unforeseen(error: BaseException) -> str:
    """An error by its kind and place only: its own words may quote the graph."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        name, line = trace.tb_frame.f_globals.get("__name__", ""), trace.tb_lineno
        if str(name).startswith("edgeveil."):
            place = f" in {name}, line {line}"
        trace = trace.tb_next
    return (
        f"this should not happen: {type(error).__name__}{place}; please report it "
        f"({_TRACEBACK}=1 shows all, for the curator's eyes only)"
    )
