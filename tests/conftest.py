"""Fixtures for all tests, and a closing summary of measured figures."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from pathlib import Path

# Before numpy is loaded, here and in whatever is started: as many processes as processors work
# already, and threads of linear algebra that wait for a processor do so by running in circles.
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import pytest
from hypothesis import settings

from tests.forks import shared
from tests.parallel import WAITING, WholeFiles, compile_first, in_order, processes
from tests.postgres import postgres_server  # noqa: F401  (a fixture)

# The same examples on every machine: a red run can be repeated.
settings.register_profile("edgeveil", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("edgeveil")


WAITER = pytest.StashKey[str]()  # name of the process of the files that wait

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

collect_ignore = ["fuzz/guided.py"]  # needs atheris, which is not installed by default


@pytest.fixture(scope="session")
def browser():
    """A real browser: one for all tests, because Playwright allows no second one."""
    found = os.environ.get("EDGEVEIL_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    if not found:
        pytest.skip("no Chromium here; on Debian or Ubuntu: apt install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def forks():
    """What starts processes: see tests/forks.py."""
    return shared()


@pytest.fixture
def figure(record_property):
    """Report a measured figure; all of them are printed at the end of the run."""

    def report(name: str, value: str) -> None:
        record_property("figure", f"{name}: {value}")

    return report


@pytest.fixture
def paper_data() -> Path:
    """Folder with the paper's data sets (EDGEVEIL_DATA, or shared/data beside the checkout)."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("EDGEVEIL_DATA", beside))
    if not (folder / "blogcatalog.mat").exists():
        pytest.skip("the paper's data sets are not here; set EDGEVEIL_DATA to their folder")
    return folder


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: in_order(item.nodeid.partition("::")[0]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return WholeFiles(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    config.stash[WAITER] = f"gw{processes() - 1}"
    return processes()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    # A process that takes its place after a crash has another name, and does everything.
    node.workerinput["waits"] = node.gateway.id == node.config.stash.get(WAITER, None)


def pytest_ignore_collect(collection_path, config):
    if getattr(config, "workerinput", {}).get("waits") and collection_path.is_file():
        asked = Path(os.path.relpath(collection_path, config.rootpath)).as_posix() in WAITING
        return None if asked else True
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes():
    compile_first()


def pytest_collection_finish():
    gc.freeze()  # modules and tests stay to the end: not to be looked through again and again


def pytest_terminal_summary(terminalreporter):
    lines = [
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        for name, value in getattr(report, "user_properties", [])
        if name == "figure"
    ]
    if lines:
        terminalreporter.section("measured figures")
        for line in sorted(set(lines)):
            terminalreporter.write_line(line)


@pytest.hookimpl(trylast=True)  # after pytest has looked for what the tests left behind
def pytest_unconfigure():
    """Free duckdb's objects, so that the summary is the last that is printed.

    At the end of the process its bindings (nanobind) list whatever of theirs is still alive, and
    once Hypothesis has run in the same process the constants of duckdb's modules are.
    """
    loaded = [name for name in sys.modules if name.partition(".")[0] in ("duckdb", "_duckdb")]
    for name in loaded:
        vars(sys.modules.pop(name)).clear()
    gc.collect()
