"""``edgeveil completion``."""

from __future__ import annotations

import sys
from typing import Literal

__all__ = ["completion"]


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script that lets a shell complete commands, options and their values.

    Example: edgeveil completion bash > ~/.local/share/bash-completion/completions/edgeveil

    Parameters
    ----------
    shell
        Whose script. For zsh save it as _edgeveil in a folder of $fpath, for fish as
        ~/.config/fish/completions/edgeveil.fish.
    """
    from edgeveil.cli.app import make_app

    sys.stdout.write(make_app().generate_completion(prog_name="edgeveil", shell=shell))
