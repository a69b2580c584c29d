"""Fixtures for all tests, and a closing summary of measured figures."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

# Before numpy is loaded, here and in whatever is started: as many processes as processors work
# already, and threads of linear algebra that wait for a processor do so by running in circles.
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres import postgres_server  # noqa: F401  (a fixture)

# Tables are as wide and as plain as where nobody has said otherwise.
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(name, None)

# The same examples on every machine: a red run can be repeated. However slow the machine is.
settings.register_profile(
    "edgeveil",
    derandomize=True,
    max_examples=50,  # a test that needs more says so
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("edgeveil")


# Files of tests are in memory where there is room: tests kill processes, but none cuts the power,
# and half of the suite's time was waiting for a disk.
MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

ROOT = Path(__file__).parents[1]
# Folders whose files take longest are begun first, so that none is left over at the end.
FIRST = ("cluster", "serve", "conformance", "audits", "docs", "browser")

WARMUP = pytest.StashKey[subprocess.Popen[bytes]]()

# The first is Chromium without windows: a third of the processor time
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
ARGUMENTS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

collect_ignore = ["fuzz/guided.py"]  # needs atheris, which is not installed by default
if os.name == "nt":  # they use fork, POSIX signals, limits, terminals and file modes
    collect_ignore_glob = [
        *("browser/*", "cli/*", "cluster/*", "docs/*", "fuzz/*", "serve/*"),
        *(
            "unit/series/test_history_faults.py",
            "unit/ledger/test_crash.py",
            "unit/ledger/test_integrity.py",
        ),
        *("unit/test_benchmarks.py", "unit/test_compiled.py"),
    ]


@pytest.fixture(scope="session")
def browser():
    """A real browser: one for all tests, because Playwright allows no second one."""
    executable = os.environ.get("EDGEVEIL_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    if not executable:
        pytest.skip("no Chromium here; on Debian or Ubuntu: apt install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=executable, args=ARGUMENTS, timeout=120_000
        )
        yield running
        running.close()


@pytest.fixture(scope="session")
def forks():
    """What starts processes: see tests/forks.py."""
    from tests.forks import shared  # it needs fork

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
    def place(item):
        folder = item.nodeid.removeprefix("tests/").partition("/")[0]
        return FIRST.index(folder) if folder in FIRST else len(FIRST)

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    return (os.cpu_count() or 1) + 1  # some wait, for services and for browsers


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config):
    """Compile all loops while the processes of xdist collect the tests."""
    words = [sys.executable, "-m", "edgeveil", "warmup"]
    config.stash[WARMUP] = subprocess.Popen(words, cwd=ROOT)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node):
    """No test begins before: several processes would compile the same loops."""
    assert node.config.stash[WARMUP].wait() == 0


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
