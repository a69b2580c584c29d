"""The completion script, sourced by a real shell."""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess

import pytest

from edgeveil.cli.app import main


def without(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"no {shell} here")


@pytest.fixture(scope="module")
def scripts():
    """The script of each shell, made once."""

    def made(shell: str) -> str:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            assert main(["completion", shell]) == 0
        return said.getvalue()

    return {shell: made(shell) for shell in ("bash", "fish", "zsh")}


completes = pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["edgeveil", "ra"], {"rank"}),
        (["edgeveil", "ledger", "c"], {"create"}),
        (["edgeveil", "rank", "f.csv", "--ep"], {"--epsilon"}),
        (["edgeveil", "rank", "f.csv", "--mechanism", "two"], {"two-hop"}),
        (["edgeveil", "audit", "push"], {"push-flow", "push-flow-cap"}),
        (["edgeveil", "mechanisms", "--format", ""], {"table", "json", "csv"}),
        (["edgeveil", "rank", "fol"], {"follows.csv"}),
        (["edgeveil", "rank", "f.csv", "--ledger", "fol"], {"follows.csv"}),
    ],
)


@without("bash")
@completes
def test_bash_completes(folder, scripts, typed, expected):
    (folder / "edgeveil.bash").write_text(scripts["bash"])
    words = " ".join(f"'{word}'" for word in typed)
    shell = (
        "source edgeveil.bash; "
        f"COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; COMP_LINE='{' '.join(typed)}'; "
        "COMP_POINT=${#COMP_LINE}; _edgeveil; printf '%s\\n' \"${COMPREPLY[@]}\"; complete -p"
    )
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    *completions, registered = done.stdout.splitlines()
    assert set(completions) == expected
    assert registered == "complete -F _edgeveil edgeveil"


@without("fish")
@completes
def test_fish_completes(folder, scripts, typed, expected):
    (folder / "edgeveil.fish").write_text(scripts["fish"])
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source edgeveil.fish; complete -C '{' '.join(typed)}'"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {line.partition("\t")[0] for line in done.stdout.splitlines()} == expected


# Stands for zsh's own _arguments, which works at a prompt only: says with what it was called.
ZSH = """
fpath=($PWD $fpath)
_arguments() { print -r -- called: $funcstack[2] "$@" }
compdef() { print -r -- registered: "$@" }
"""


@without("zsh")
def test_zsh_loads_completion_from_fpath_and_by_source(folder, scripts):
    (folder / "_edgeveil").write_text(scripts["zsh"])

    def zsh(code: str) -> list[str]:
        command = ["zsh", "-f", "-c", ZSH + code]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [" ".join(line.split()[:2]) for line in done.stdout.splitlines()]

    calls = zsh("autoload -Uz _edgeveil; _edgeveil; _edgeveil")
    assert calls == ["called: _edgeveil"] * 2, "at the first use and at every later one"
    assert zsh("source ./_edgeveil") == ["registered: _edgeveil"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_with_all_commands(scripts, shell):
    assert "promised-min-degree" in scripts[shell]
    assert "verify" in scripts[shell]
