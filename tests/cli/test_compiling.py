"""What is said before loops are compiled, and `edgeveil warmup`, in processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial

import pytest

from edgeveil._internal import loops as _loops
from edgeveil.cli.compiling import announce_compilation

SUGGEST = ["suggest", "follows.csv", "--member", "alice", "--epsilon", "1"]
RANK = ["rank", "follows.csv", "--source", "alice", "--epsilon", "1"]  # few loops
# Runs commands, and prints for which types of arguments there is machine code of each loop then.
LOOPS = """
import importlib, json, sys
from edgeveil._internal import loops as _loops
from edgeveil.cli.app import main
assert not any([main(words) for words in json.loads(sys.argv[1])])
from numba.extending import is_jitted
loops = {}
for file in _loops.loop_files():
    parts = file.relative_to(_loops.PACKAGE).with_suffix("").parts
    module = importlib.import_module(".".join(("edgeveil", *parts)))
    loops |= {f"{module.__name__}.{k}": v for k, v in vars(module).items() if is_jitted(v)}
    for width, kernels in getattr(module, "KERNELS", {}).items():
        # Rounds are in double precision: nobody asks for them at the width of single precision.
        names = ["capped_sweep", "exact_sweep"] + ["capped_rounds"] * (width <= module.LANES)
        loops |= {f"{name} of {width}": getattr(kernels, name) for name in names}
print(json.dumps({k: list(map(str, v.signatures)) for k, v in loops.items() if v.stats.cache_path}))
"""


@pytest.fixture
def process(folder):
    """Give a command line to a new interpreter; nothing was compiled for it unless it is kept."""

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if k != _loops.VARIABLE} | variables
        command = [sys.executable, *(words if words[0] == "-c" else ("-m", "edgeveil", *words))]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    return run


def test_warmup_needs_every_loop_as_commands_need_it(process):
    """So it compiles all of them: whatever a call needs and is not kept yet is compiled."""

    def loops(*commands: list[str]) -> dict[str, list[str]]:
        done = process("-c", LOOPS, json.dumps(commands))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    warm = loops(["warmup"])
    assert len(warm) > 15
    assert [name for name, types in warm.items() if not types] == []
    used = loops(SUGGEST, [*SUGGEST, "--directed", "keep"], RANK)
    assert sum(map(bool, used.values())) > 5
    assert {name for name, types in used.items() if not set(types) <= set(warm[name])} == set()


def test_warmup_says_how_many_loops_it_compiled(run, monkeypatch):
    tell = partial(_loops.tell, "edgeveil.flow._kernels", "reorder")
    for calls, says in (([tell], "1 loop compiled in "), ([], "Everything was compiled before")):
        made = [partial(call, ready=True) for call in calls]
        monkeypatch.setattr("edgeveil.cli.warmup._calls", lambda made=made: iter(made))
        done = run("warmup")
        assert done.returncode == 0
        assert says in done.stderr
        assert str(_loops.loop_folder().folder) in done.stderr


def test_first_compilation_is_announced_and_kept(process, tmp_path):
    done = process(*RANK, NUMBA_CACHE_DIR=str(tmp_path / "kept"))
    assert done.returncode == 0
    line = "Compiling for this machine, once: about 6 s (`edgeveil warmup` does it ahead)."
    assert done.stderr.splitlines()[0] == line
    assert done.stderr.count("ompiling") == 1
    assert "ompiling" not in process(*RANK, NUMBA_CACHE_DIR=str(tmp_path / "kept")).stderr


def test_unwritable_package_and_no_home_print_one_line(process, tmp_path):
    package = tmp_path / "lib" / "edgeveil"
    unneeded = shutil.ignore_patterns("__pycache__", "*.woff2")
    shutil.copytree(_loops.PACKAGE, package, ignore=unneeded)
    (package / "__pycache__").touch()  # no folder can be made there, not even by root
    (tmp_path / "home").touch()
    nowhere = {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(tmp_path / "home")}
    done = process(*RANK, **nowhere)
    assert done.returncode == 0
    first, *others = done.stderr.splitlines()
    assert "about 6 s at every call" in first
    assert _loops.VARIABLE in first
    assert not any("compil" in line for line in others)
    done = process("warmup", **nowhere)
    assert done.returncode == 1
    assert _loops.VARIABLE in done.stderr


def test_a_command_that_compiles_nothing_says_nothing(process, tmp_path):
    done = process("mechanisms", NUMBA_CACHE_DIR=str(tmp_path / "kept"))
    assert done.returncode == 0
    assert not done.stderr


def test_where_some_loops_are_kept_no_time_is_promised(tmp_path, monkeypatch, capsys):
    (tmp_path / "privacy").mkdir()
    (tmp_path / "privacy" / "_sampler.f.nbi").touch()
    monkeypatch.setattr(_loops, "loop_folder", lambda: _loops.LoopFolder(tmp_path))
    with announce_compilation("rank"):
        for ready in (False, True, False, True):
            _loops.tell("edgeveil.flow._kernels", "reorder", ready=ready)
    _loops.tell("edgeveil.flow._kernels", "reorder", ready=False)  # nobody listens
    told = capsys.readouterr().err
    assert told == "Compiling what was not needed before for this machine, once: a few seconds.\n"


def test_what_was_warmed_up_and_cannot_be_written_to_is_used(tmp_path, monkeypatch, capsys):
    (tmp_path / "_a.f.nbi").touch()
    monkeypatch.setattr("os.access", lambda *_: False)
    assert _loops._in(tmp_path, "p-", "0" * 32).folder == tmp_path / f"p-{'0' * 32}"
    problem = _loops.LoopFolder(tmp_path, "/x cannot be written to")
    monkeypatch.setattr(_loops, "loop_folder", lambda: problem)
    with announce_compilation("suggest"):
        _loops.tell("edgeveil.flow._kernels", "reorder", ready=False)
    told = capsys.readouterr().err
    assert told.startswith("Compiling for this machine, a few seconds at every call, because")
    assert "/x cannot be written to" in told


def test_a_terminal_shows_which_loop_it_is_and_clears_the_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_loops, "loop_folder", lambda: _loops.LoopFolder(tmp_path))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with announce_compilation("convert"):
        _loops.tell("edgeveil.flow._kernels", "reorder", ready=False)
        _loops.tell("edgeveil.flow._kernels", "reorder", ready=True)
    told = capsys.readouterr().err
    assert "about 1 s" in told
    assert told.endswith("compiling flow._kernels.reorder ...\r\x1b[K")
