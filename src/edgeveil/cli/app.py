"""The `edgeveil` command: its subcommands, and where it starts.

Only what Python has loaded anyway is imported here, so that a Ctrl-C while the rest is loading
is met inside of `main`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import App

COMMANDS = {
    "demo": "Suggest people to six members of a built-in network, privately; make a page of it.",
    "suggest": "Suggest people to members, privately: whom each may know.",
    "report": "Make a page of private lists: whom members may know, and how sure that is.",
    "rank": "Rank the nodes of a graph for one source, privately.",
    "embed": "Embed the nodes of a graph, privately, each for its own owner.",
    "serve": "Give each member its own list over HTTP, and nobody else's.",
    "ledger": "The privacy budget: a file (or PostgreSQL database) that refuses to be overspent.",
    "mechanisms": "List what there is, what each protects, and when to use it.",
    "convert": "Turn a graph file, or many, into a folder that opens in milliseconds.",
    "evaluate": "Measure on your own graph what private results are worth. For the curator only.",
    "audit": "Attack a mechanism on its worst pair of graphs and compare with what it claims.",
    "completion": "Print a script that lets a shell complete commands, options and their values.",
}

_HELP = """Suggestions, rankings, embeddings from a private graph, with a guarantee for every edge.

Example: edgeveil suggest friends.csv --member alice --epsilon 1 --top 20"""


@cache
def make_app(*, summaries: bool = False) -> App:
    """The application.

    Commands are named by path, so that none is loaded before it runs. For a listing (without a
    command) they get their summaries from here; otherwise that would hide their own help.
    """
    from cyclopts import App

    from edgeveil.cli.config import apply_config

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
    try:
        from edgeveil.cli.interrupts import raise_if_interrupted, watching

        with watching():
            from edgeveil.cli.running import run

            raise_if_interrupted()  # one that got lost while loading
            return run(words)
    except KeyboardInterrupt as interrupt:
        if arguments is None:  # the process ends: what is left half made in it need not complain
            sys.unraisablehook = lambda lost: None
        told = "; ".join(["edgeveil: interrupted", *map(str, interrupt.args)])
        sys.stderr.write(f"{told}\n")
        return 130


def _version() -> str:
    from importlib.metadata import version

    return version("edgeveil")
