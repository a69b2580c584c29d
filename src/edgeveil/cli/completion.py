"""``edgeveil completion``."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from edgeveil.cli.options import option

# zsh takes the function's name from the file's and runs the file as its body on first use; the
# script only defines a function, under a name of cyclopts' own. Sourced, it has to be registered.
_ZSH_CALL = """
if [[ $funcstack[1] == _edgeveil ]]; then
  _edgeveil "$@"
else
  compdef _edgeveil edgeveil
fi
"""
_WHERE = (
    "The shell. For zsh save the script as _edgeveil in a folder of $fpath, for fish as "
    "~/.config/fish/completions/edgeveil.fish."
)


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], option(_WHERE)], /) -> None:
    """Print a script that lets a shell complete commands, options and their values.

    Example: edgeveil completion bash > ~/.local/share/bash-completion/completions/edgeveil
    """
    from edgeveil.cli.app import make_app

    script = make_app().generate_completion(prog_name="edgeveil", shell=shell)
    if shell == "zsh":
        script = script.replace("_cyclopts_edgeveil", "_edgeveil").rstrip() + "\n" + _ZSH_CALL
    sys.stdout.write(script)
