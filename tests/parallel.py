"""How the tests are shared out among several processes (`./run test`, or pytest -n).

A file is one process's: two Ray clusters at once would get in each other's way, and what a file
has made once serves all of its tests. Files that take long are begun first, so that none of them
is left over when the other processes have nothing more to do.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[1]

# Several seconds of CPU time or of waiting, longest first. Only the order hangs on it.
BEGUN_FIRST = [
    "tests/cluster/test_ray.py",
    "tests/unit/ledger/test_crash.py",
    "tests/serve/test_faults.py",
    "tests/unit/test_benchmarks.py",
    "tests/audits/test_audit.py",
    "tests/cli/test_budget.py",
    "tests/conformance/test_every_mechanism.py",
    "tests/docs/test_site.py",
    "tests/browser/test_page.py",
    "tests/properties/test_tight_bounds.py",
    "tests/properties/test_sensitivity.py",
    "tests/reproduction/test_reproduce.py",
    "tests/audits/test_time.py",
    "tests/audits/test_worst_pairs.py",
    "tests/unit/mechanisms/test_graph_diffusion.py",
    "tests/unit/estimate/test_suggestions.py",
    "tests/unit/io/test_building.py",
    "tests/docs/test_examples.py",
    "tests/docs/test_pages.py",
    "tests/conformance/test_seam.py",
]


def in_order(path: str) -> int:
    """Place of a file among those that are begun first, or after all of them."""
    return BEGUN_FIRST.index(path) if path in BEGUN_FIRST else len(BEGUN_FIRST)


class WholeFiles(LoadFileScheduling):
    """xdist's scheduler of whole files, for which the end of a process is not the end of the run.

    As xdist has it (3.8), a test that ended its process is tried again and again, and work is
    given to a new process that has not collected its tests yet, which is an internal error.
    """

    def __init__(self, config, log=None) -> None:
        config.option.loadscopereorder = False  # files come in the order of `in_order`
        super().__init__(config, log)

    def _reschedule(self, node) -> None:
        if node in self.registered_collections:
            super()._reschedule(node)

    def remove_node(self, node) -> str | None:
        given = self.assigned_work.pop(node)
        left = [(unit, test) for unit in given.values() for test, done in unit.items() if not done]
        if not left:
            return None
        unit, test = left[0]
        unit[test] = True  # it has failed
        self.workqueue.update(
            {name: unit for name, unit in given.items() if not all(unit.values())}
        )
        for other in self.nodes:
            self._reschedule(other)
        return test


def compile_first() -> None:
    """Compile the loops that most tests use, in two processes, before all processes do it twice.

    What is compiled already is found in no time. Nothing is tested here, so that a call that
    fails is left to the tests.
    """
    command = [sys.executable, "-m", "tests.compile_first"]
    parts = [
        subprocess.Popen([*command, part], cwd=ROOT, stderr=subprocess.DEVNULL)
        for part in ("lists", "rows")
    ]
    for part in parts:
        part.wait()
