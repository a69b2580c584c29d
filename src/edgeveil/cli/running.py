"""Run a command line: what becomes which exit code, and what is said of an error.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 budget refused, 4 input unreadable, 130 Ctrl-C.
Data goes to standard output, words to standard error.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from cyclopts import CycloptsError

from edgeveil.cli.app import make_app
from edgeveil.cli.output import say
from edgeveil.errors import BudgetError, EdgeveilError, InputError, ParameterError, UnknownNodeError

_EXIT_CODES = {BudgetError: 3, InputError: 4, ParameterError: 2, UnknownNodeError: 2}

# Set to anything: an error nobody foresaw prints all it knows, which may be private.
_TRACEBACK = "EDGEVEIL_TRACEBACK"


def run(arguments: Sequence[str]) -> int:
    """Run a command line and give its exit code; no error but Ctrl-C gets out."""
    words = list(arguments)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    try:
        with warnings.catch_warnings():
            if not sys.warnoptions:
                warnings.simplefilter("ignore")  # a library's words, and of private numbers
            app = make_app(summaries=not words or words[0].startswith("-"))
            app(words, exit_on_error=False, print_error=False, result_action="return_none")
            sys.stdout.flush()
    except CycloptsError as error:
        say(f"edgeveil: {' '.join(str(error).split())}")  # without the frame around it
        return 2
    except EdgeveilError as error:
        say(f"edgeveil: {error}")
        return next((code for kind, code in _EXIT_CODES.items() if isinstance(error, kind)), 1)
    except KeyboardInterrupt:
        raise
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
