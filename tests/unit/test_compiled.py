"""Compiled loops: what is kept of them, where, and that nothing old is ever run."""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import shutil
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from numba.extending import is_jitted

from edgeveil._internal import loops as _loops
from edgeveil._internal.compiled import compiled
from edgeveil.jobs import keys
from tests.forks import LOOPS, Forks

INLINED = """
from edgeveil._internal.compiled import inlined

@inlined
def step(x):
    return x + {}
"""
CALLER = """
from edgeveil._internal.compiled import compiled
from edgeveil.privacy._a import step

@compiled
def run(x):
    return 10 * step(x)
"""
CALL = "from edgeveil.privacy._b import run; print(run(1), *map(len, (run.stats.cache_hits,)))"


@pytest.fixture(scope="module")
def numba_forks():
    """What starts processes that have loaded numba, but nothing of edgeveil."""
    with contextlib.closing(Forks()) as forks:
        yield forks


@pytest.fixture
def copy(tmp_path, numba_forks):
    """The package without its modules, and with a loop that another one is inlined into."""
    package = tmp_path / "lib" / "edgeveil"
    unneeded = shutil.ignore_patterns("__pycache__")
    shutil.copytree(_loops.PACKAGE / "_internal", package / "_internal", ignore=unneeded)
    (package / "__init__.py").touch()
    (package / "privacy").mkdir()
    (package / "privacy" / "__init__.py").touch()
    (package / "privacy" / "_a.py").write_text(INLINED.format(1))
    (package / "privacy" / "_b.py").write_text(CALLER)

    def run(code: str = CALL, **variables: str) -> str:
        """What the code prints. Variables that numba reads when it is loaded come too late."""
        process = numba_forks.start(
            *(LOOPS, package.parent, code),
            environment={_loops.VARIABLE: "", "HOME": "", "XDG_CACHE_HOME": str(tmp_path / "own")}
            | variables,
            stdout="stdout",
            stderr="stderr",
        )
        printed, problem = process.communicate(timeout=120)
        assert process.returncode == 0, problem
        return printed.strip()

    def folders(parent: Path = package / "__pycache__") -> list[Path]:
        return [*parent.glob("edgeveil-loops-*")]

    return SimpleNamespace(package=package, run=run, folders=folders)


# --- what is kept is what the source says ----------------------------------------------------


@pytest.mark.parametrize("place", ["the package", "NUMBA_CACHE_DIR", "the user's cache"])
def test_changed_inlined_code_is_recompiled(copy, tmp_path, place):
    variables, parent = {}, copy.package / "__pycache__"
    if place == "NUMBA_CACHE_DIR":
        parent = tmp_path / "chosen"
        variables[_loops.VARIABLE] = str(parent)
    elif place == "the user's cache":
        parent.write_text("no folder can be made here")
        parent = tmp_path / "own" / "edgeveil"
    assert copy.run(**variables) == "20 0"
    assert copy.run(**variables) == "20 1"  # from the cache
    (old,) = copy.folders(parent)
    assert [*old.rglob("_b.run-*.nbi")]
    (copy.package / "privacy" / "_a.py").write_text(
        INLINED.format(50)
    )  # not as long: Python, too, sees the change at once
    assert copy.run(**variables) == "510 0"
    (new,) = copy.folders(parent)  # the old one is gone
    assert new != old


def test_only_folders_of_this_installation_are_removed(copy, tmp_path):
    chosen = tmp_path / "chosen"
    copy.run(NUMBA_CACHE_DIR=str(chosen))
    (old,) = copy.folders(chosen)
    place = old.name.removesuffix(old.name.rsplit("-", 1)[1])
    others = [f"edgeveil-loops-{'0' * 12}-{'0' * 32}", f"{place}notes", "mine"]
    for name in others:
        (chosen / name).mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (chosen / f"{place}{'1' * 32}").symlink_to(elsewhere)
    (chosen / f"{place}{'2' * 32}").mkdir()
    (copy.package / "privacy" / "_a.py").write_text(
        INLINED.format(50)
    )  # not as long: Python, too, sees the change at once
    copy.run(NUMBA_CACHE_DIR=str(chosen))
    left = {path.name for path in chosen.iterdir()}
    assert left >= {*others, f"{place}{'1' * 32}"}
    assert f"{place}{'2' * 32}" not in left
    assert old.name not in left
    assert (elsewhere / "file").exists()


def test_process_older_than_a_change_stores_no_loops(copy):
    late = (
        "import pathlib, edgeveil._internal.compiled, edgeveil.privacy as p;"
        "f = pathlib.Path(p.__file__).with_name('_a.py');"
        "f.write_text(f.read_text().replace('+ 1', '+ 7'));" + CALL
    )
    assert copy.run(late) == "80 0"
    (folder,) = copy.folders()
    assert not [*folder.rglob("*.nb?")]


def test_stored_loops_are_read_from_an_unwritable_folder(copy):
    copy.run()
    (folder,) = copy.folders()
    parts = [folder, folder / "privacy", copy.package / "__pycache__"]
    for part in parts:
        part.chmod(0o500)
    assert copy.run() == "20 1"
    for part in parts:
        part.chmod(0o700)


def test_damaged_loop_is_compiled_anew(copy):
    copy.run()
    (folder,) = copy.folders()
    (data,) = folder.rglob("_b.*.nbc")
    data.write_bytes(data.read_bytes()[:1000])
    assert copy.run() == "20 0"
    assert copy.run() == "20 1"


def test_loops_that_cannot_be_kept_are_compiled_all_the_same(copy):
    full = "import resource, sys; sys.dont_write_bytecode = True;"  # Python would write it in half
    full += "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100));"
    told, result = copy.run(full + WITH_LOG + CALL).splitlines()
    assert "cannot be kept in" in told
    assert result == "20 0"
    assert copy.run() == "20 0"
    assert copy.run() == "20 1"


def test_numba_without_a_loop_cache_still_compiles(copy):
    """Whose parts that `loop_cache` builds on are gone, or that was told to look elsewhere."""
    gone = "import sys; sys.modules['edgeveil._internal.loop_cache'] = None;"
    assert copy.run(gone + CALL) == "20 0"
    assert not [file for folder in copy.folders() for file in folder.rglob("*.nb?")]
    late = "from numba.core import config; config.reload_config();"
    for _ in range(2):
        assert copy.run(late + CALL, NUMBA_CACHE_LOCATOR_CLASSES="InTreeCacheLocator") == "20 0"


def test_a_loop_from_outside_the_package_is_not_kept():
    doubled = compiled(lambda x: 2 * x)
    assert doubled(21) == 42
    assert not doubled.stats.cache_path


def test_batch_code_digest_covers_the_compiled_loops(copy, monkeypatch):
    asked = []

    def spy(files, root, form=None):
        asked.append({path.relative_to(root).as_posix() for path in files})
        return original(files, root, form)

    original = keys.digest_of_files
    assert original is _loops.digest_of_files
    monkeypatch.setattr(keys, "digest_of_files", spy)
    keys._our_code.__wrapped__()
    loops = {path.relative_to(_loops.PACKAGE).as_posix() for path in _loops.loop_files()}
    assert asked[0] >= loops
    assert loops >= {"_internal/compiled.py", "privacy/_sampler.py", "flow/common_neighbours.py"}


def test_a_process_whose_loops_have_changed_makes_no_batch(monkeypatch):
    monkeypatch.setattr(keys, "loops_changed", lambda: True)
    with pytest.raises(keys.EdgeveilError, match="restart"):
        keys._our_code.__wrapped__()


def test_digest_covers_every_file_of_compiled_code():
    files = _loops.loop_files()
    covered = {_module_of(file) for file in files}
    seen, strays = 0, []
    for file in files:
        module = importlib.import_module(_module_of(file))
        home = _homes(file)
        for loop in vars(module).values():
            if not is_jitted(loop) or loop.py_func.__module__ != module.__name__:
                continue
            seen += 1
            for name in _names(loop.py_func.__code__):
                value = vars(module).get(name)
                if value is None or isinstance(value, ModuleType | type):
                    continue  # local, built in, or of numpy
                origin = home.get(name, module.__name__)
                if origin not in covered:
                    strays.append(f"{file.name}: {loop.__name__} uses {name} of {origin}")
    assert not strays
    assert seen > 15


def _module_of(file: Path) -> str:
    return ".".join(("edgeveil", *file.relative_to(_loops.PACKAGE).with_suffix("").parts))


def _homes(file: Path) -> dict[str, str]:
    """Imported names, and the modules they are from."""
    imports = (n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.ImportFrom))
    return {a.asname or a.name: str(n.module) for n in imports for a in n.names}


def _names(code) -> set[str]:
    inner = [_names(c) for c in code.co_consts if hasattr(c, "co_names")]
    return set(code.co_names).union(*inner)


# --- whose folder it is ----------------------------------------------------------------------

WITH_LOG = (
    "import logging; logging.basicConfig(level='WARNING', format='%(message)s', "
    "stream=__import__('sys').stdout);"
)
PLANTED = "import pickle, os\nclass P:\n def __reduce__(s): return os.mkdir, ({!r},)\n"


def make_writable(folder: Path) -> None:
    folder.chmod(0o770)


def give_away(folder: Path) -> None:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 12345, -1)


def replace_by_link(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


needs_posix = pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")


@needs_posix
@pytest.mark.parametrize("change", [make_writable, give_away, replace_by_link])
def test_loop_folder_writable_by_others_is_not_loaded(copy, tmp_path, change):
    chosen, mark = tmp_path / "chosen", tmp_path / "mark"
    variables = {_loops.VARIABLE: str(chosen)}
    copy.run(**variables)
    (folder,) = copy.folders(chosen)
    (index,) = folder.rglob("_b.run-*.nbi")
    copy.run(f"{PLANTED.format(str(mark))}\nopen({str(index)!r}, 'wb').write(pickle.dumps(P()))")
    change(folder)
    told = copy.run(WITH_LOG + CALL, **variables)
    assert not mark.exists()
    assert "belongs to another user, or others can write to it" in told
    assert _loops.VARIABLE in told
    assert told.endswith("20 0")
    assert told.count("\n") == 1  # one line, and the result


@needs_posix
@pytest.mark.parametrize("who", ["writable", "another user's"])
def test_a_folder_that_others_could_replace_is_not_loaded_from(copy, tmp_path, who):
    chosen = tmp_path / "above" / "chosen"
    variables = {_loops.VARIABLE: str(chosen)}
    copy.run(**variables)
    if who == "writable":
        (tmp_path / "above").chmod(0o777)
        problem = f"others can write to {tmp_path / 'above'}"
    else:
        give_away(tmp_path / "above")
        os.chown(chosen, 0, -1)
        for path in chosen.rglob("*"):
            os.chown(path, 0, -1)
        problem = f"{tmp_path / 'above'} belongs to another user"
    assert problem in copy.run(WITH_LOG + CALL, **variables)
    if who == "writable":
        (tmp_path / "above").chmod(0o1777)  # as /tmp
        assert copy.run(WITH_LOG + CALL, **variables) == "20 1"


@needs_posix
def test_refused_package_folder_keeps_loops_in_the_own_one(copy, tmp_path):
    copy.run()
    (folder,) = copy.folders()
    folder.chmod(0o777)
    assert copy.run(WITH_LOG + CALL) == "20 0"
    assert copy.run(WITH_LOG + CALL) == "20 1"
    assert copy.folders(tmp_path / "own" / "edgeveil")


def test_nothing_writable_warns_in_one_line_with_variable(copy, tmp_path):
    (copy.package / "__pycache__").write_text("no folder")
    (tmp_path / "own").write_text("no folder")
    told, result = copy.run(WITH_LOG + CALL).splitlines()
    assert result == "20 0"
    assert str(tmp_path / "own") in told
    assert _loops.VARIABLE in told
