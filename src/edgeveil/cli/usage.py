"""What is wrong with a command line, in one sentence, and which option was probably meant."""

from __future__ import annotations

from collections.abc import Sequence

from cyclopts import (
    App,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnusedCliTokensError,
    ValidationError,
)

from edgeveil._internal.words import did_you_mean
from edgeveil.errors import ParameterError

# Options, and other words for them, from other programs and from our other commands. An unknown
# word means the first of these options that the command has.
_OTHER_WORDS = {
    "--epsilon": "--eps -e --budget --cap --privacy",
    "--member": "--source --user --node --person --id",
    "--members": "--sources --users",
    "--source": "--member --user --node --person --id",
    "--sources": "--members --users --member --source --user --node",
    "-k": "--k --n -n --count --size --length --limit --number --max",
    "--out": "--output -o --file --save --to",
    "--overwrite": "--force -f --replace",
    "--all": "--everybody --everyone",
    "--candidates": "--among --only",
    "--ledger": "--account --wallet",
    "--label": "--name",
    "--dry-run": "--price --cost --quote",
    "--insecure-seed": "--seed --random-state",
    "--dim": "--dimension --dimensions --width",
    "--restart": "--alpha --teleport --damping",
    "--rounds": "--R -R --n-rounds --iterations",
    "--promised-min-degree": "--min-degree",
    "--workers": "--threads --jobs -j --processes",
    "--directed": "--undirected",
    "--format": "--json --csv --style",
    "--for": "--lasting --during",
    "--yes": "-y --no-input",
    "--verbose": "-v --debug",
}


def explain(error: CycloptsError, app: App, words: Sequence[str]) -> str:
    """The parser's complaint in one sentence; an unknown option comes first."""
    in_short = " ".join(str(error).split())  # without the frame around it
    if isinstance(error, ValidationError) and isinstance(error.__cause__, ParameterError):
        in_short = str(error.__cause__)  # it names the option and the value
    if isinstance(error, UnknownCommandError):
        return in_short
    _, (*_, command), rest = app.parse_commands(words)
    name = " ".join(error.command_chain or ())
    options = [n for a in command.assemble_argument_collection() if a.parse for n in a.names]
    for word in rest:
        option = word.partition("=")[0]
        if option.startswith("-") and option.strip("-")[:1].isalpha() and option not in options:
            return f"{name} has no option {option}{_meant(option, options)}"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        if error.keyword or error.argument.tokens:
            return f"{error.keyword or error.argument.name} needs a value"
        return f"{name} needs {error.argument.name} (edgeveil {name} --help)"
    if isinstance(error, UnusedCliTokensError):
        return f"{name} does not take {' '.join(error.unused_tokens or ())}"
    return in_short


def _meant(word: str, options: Sequence[str]) -> str:
    for option, others in _OTHER_WORDS.items():
        if option in options and word in others.split():
            return f"; did you mean {option}?"
    return did_you_mean(word, options)
