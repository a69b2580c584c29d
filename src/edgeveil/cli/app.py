"""The `edgeveil` command: its subcommands, its entry point, and its exit codes.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 budget refused, 4 input unreadable, 5 edges lost,
130 Ctrl-C.
Data goes to standard output, messages to standard error. At the top this module imports only what
Python has loaded anyway, so that a Ctrl-C while the rest is loading is handled inside `main`.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts import App

COMMANDS = {
    "demo": "Make private lists and predictions from a built-in network, and a page of each.",
    "suggest": "Suggest to members whom they may know, privately.",
    "refresh": "Give everybody a new list from today's graph; charge members once, on joining.",
    "report": "Make a page of private lists: whom members may know, and how sure that is.",
    "rank": "Rank the nodes of a graph for a source, privately.",
    "classify": "Predict classes of nodes from the whole graph, privately, for anybody to see.",
    "aggregate": "Add up what is public about neighbours, privately, for anybody to see.",
    "embed": "Embed members privately, each for itself; by default its own list, at no cost.",
    "serve": "Give each member its own list over HTTP, and nobody else's.",
    "token": "Print a test token for a member of the service.",
    "history": "Keep all snapshots of a graph as one: every edge, and when it was first seen.",
    "ledger": "Manage the privacy budget: a file, or a PostgreSQL database, that enforces a cap.",
    "mechanisms": "List all mechanisms: what each does, what it protects, and when to use it.",
    "theory": "Print the proof that a guarantee names, as Markdown; without a name, list all.",
    "convert": "Convert a graph file, or many, to a folder that opens in milliseconds.",
    "evaluate": "Measure on your own graph how good private results are. For the curator only.",
    "audit": "Attack a mechanism on its worst pair of graphs, and compare with its claim.",
    "warmup": "Compile everything for this machine now, so that no later call has to.",
    "doctor": "Show what is installed, what is stored where, and what an extra lacks.",
    "completion": "Print a script that lets a shell complete commands, options and their values.",
}

# Modules of groups of commands; every other module has the name of its command.
_GROUPS = {"history": "history_commands", "ledger": "ledger_commands"}

_HELP = """Suggestions, rankings, embeddings from a private graph, with a guarantee for every edge.

Example: edgeveil suggest friends.csv --member alice --epsilon 1 -k 20"""

# If set, an unexpected error prints its full traceback, which may hold private data.
_TRACEBACK = "EDGEVEIL_TRACEBACK"


@cache
def make_app(*, summaries: bool = False) -> App:
    """The application.

    Commands are named by path, so that none is loaded before it runs. For a listing (without a
    command) they get their summaries from here; otherwise that would hide their own help.
    """
    from cyclopts import App
    from cyclopts.help import DefaultFormatter

    from edgeveil.cli.config import apply_config

    class Flowing(DefaultFormatter):
        """Wrap help for the screen, not at the line ends of a docstring."""

        def __call__(self, console: Any, options: Any, panel: Any) -> None:
            for entry in panel.entries:
                words = entry.description.primary_renderable
                words.plain = " ".join(words.plain.split())
            super().__call__(console, options, panel)

    app = App(
        name="edgeveil",
        help=_HELP,
        help_format="plaintext",
        help_formatter=Flowing(),
        version=_version,
        config=apply_config,
        suppress_keyboard_interrupt=False,  # main reports what was charged
    )
    for place, (name, summary) in enumerate(COMMANDS.items()):
        path = f"edgeveil.cli.{_GROUPS.get(name, name)}:{name}"
        if summaries:
            app.command(path, name=name, sort_key=place, help=summary)
        else:
            app.command(path, name=name, sort_key=place)
    return app


def _version() -> str:
    from importlib.metadata import version

    return version("edgeveil")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; no error becomes a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        from edgeveil.cli.interrupts import watching

        with watching():
            return _run(words)
    except KeyboardInterrupt as interrupt:
        if arguments is None:  # the process ends: unfinished objects need not complain
            sys.unraisablehook = lambda lost: None
        told = "; ".join(["edgeveil: interrupted", *map(str, interrupt.args)])
        sys.stderr.write(f"{told}\n")
        return 130


def _run(words: list[str]) -> int:
    """Run a command line and return its exit code; only Ctrl-C is raised."""
    from cyclopts import CycloptsError

    from edgeveil.cli.compiling import announce_compilation
    from edgeveil.cli.interrupts import raise_if_interrupted
    from edgeveil.cli.output import say
    from edgeveil.cli.usage import explain
    from edgeveil.errors import (
        BudgetError,
        EdgeveilError,
        InputError,
        LossError,
        ParameterError,
        UnknownNodeError,
    )

    raise_if_interrupted()  # a Ctrl-C that got lost while loading
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    code = 1
    try:
        with warnings.catch_warnings():
            if not sys.warnoptions:
                warnings.simplefilter("ignore")  # library warnings may quote private values
            app = make_app(summaries=not words or words[0].startswith("-"))
            with announce_compilation(*words[:1]):
                app(words, exit_on_error=False, print_error=False, result_action="return_none")
            sys.stdout.flush()
        return 0
    except CycloptsError as error:
        code, told = 2, explain(error, app, words)
    except EdgeveilError as error:
        kinds: list[type | tuple[type, ...]] = [(ParameterError, UnknownNodeError)]
        kinds += [BudgetError, InputError, LossError]  # exit codes 2 to 5
        code = next((code for code, kind in enumerate(kinds, 2) if isinstance(error, kind)), 1)
        told = str(error)
    except KeyboardInterrupt:
        raise
    except BrokenPipeError:
        # The reader of our output has closed it (`| head`). Keep Python from failing once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        told = "there is not enough memory for this"
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        told = f"{error.strerror or type(error).__name__}{where}"
    except UnicodeEncodeError as error:
        told = f"the output cannot be written as {error.encoding}; set PYTHONUTF8=1"
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    except BaseException as error:  # polars' panics are not of class Exception
        if _TRACEBACK in os.environ:
            raise
        told = _unexpected_error(error)
    say(f"edgeveil: {told}")
    return code


def _unexpected_error(error: BaseException) -> str:
    """The type and place of an error, without its message, which may quote the graph."""
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
