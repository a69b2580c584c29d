"""How the tests are shared out among several processes (`./run test`, or pytest -n).

A file is one process's: two Ray clusters at once would get in each other's way, and what a file
has made once serves all of its tests. Files that take long are begun first, so that none of them
is left over when the other processes have nothing more to do. Files that mostly wait have a process
of their own beside one for each processor (-n auto), which collects nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[1]

# They wait for most of their time: for Ray, for services that die and come back, for clocks.
WAITING = [
    "tests/cluster/test_ray.py",
    "tests/serve/test_faults.py",
    "tests/serve/test_sockets.py",
    "tests/serve/test_side_channels.py",
]
# Several seconds of CPU time or of waiting, longest first. Only the order hangs on it.
BEGUN_FIRST = [
    *WAITING,
    "tests/conformance/test_every_mechanism.py",
    "tests/audits/test_audit.py",
    "tests/docs/test_site.py",
    "tests/unit/io/test_building.py",
    "tests/browser/test_page.py",
    "tests/unit/test_noise.py",
    "tests/properties/test_tight_bounds.py",
    "tests/docs/test_examples.py",
    "tests/unit/test_benchmarks.py",
    "tests/unit/estimate/test_suggestions.py",
    "tests/reproduction/test_logistic.py",
    "tests/unit/test_kernels.py",
    "tests/unit/mechanisms/test_graph_diffusion.py",
    "tests/properties/test_sensitivity.py",
    "tests/audits/test_time.py",
    "tests/cli/test_budget.py",
    "tests/docs/test_pages.py",
    "tests/unit/ledger/test_integrity.py",
    "tests/unit/test_hashing.py",
    "tests/unit/evaluation/test_own_graph.py",
    "tests/reproduction/test_paper_lemmas.py",
    "tests/audits/test_worst_pairs.py",
    "tests/reproduction/test_reproduce.py",
    "tests/unit/ledger/test_crash.py",
    "tests/conformance/test_seam.py",
]

_compiling: list[subprocess.Popen[bytes]] = []


def in_order(path: str) -> int:
    """Place of a file among those that are begun first, or after all of them."""
    return BEGUN_FIRST.index(path) if path in BEGUN_FIRST else len(BEGUN_FIRST)


def processes() -> int:
    """One for each processor that we may use, and one for the files that wait."""
    usable = getattr(os, "sched_getaffinity", None)
    return (len(usable(0)) if usable else os.cpu_count() or 1) + 1


def waits(node) -> bool:
    """Whether it is the process of the files that wait."""
    return node.workerinput.get("waits", False)


class WholeFiles(LoadFileScheduling):
    """xdist's scheduler of whole files, for which the end of a process is not the end of the run.

    As xdist has it (3.8), a test that ended its process is tried again and again, and work is
    given to a new process that has not collected its tests yet, which is an internal error.
    """

    def __init__(self, config, log=None) -> None:
        config.option.loadscopereorder = False  # files come in the order of `in_order`
        super().__init__(config, log)

    def schedule(self) -> None:
        for part in _compiling:
            part.wait()
        for node in filter(waits, self.nodes):
            if not self.registered_collections[node]:  # no file of its is asked for
                del self.assigned_work[node]
                node.shutdown()
        super().schedule()
        if self.collection is not None:  # not what happens to have been collected last
            self.config.pluginmanager.getplugin("dsession")._session.testscollected = len(
                self.collection
            )

    def _check_nodes_have_same_collection(self) -> bool:
        everything = self.registered_collections
        part = {node: everything.pop(node) for node in list(everything) if waits(node)}
        try:
            return super()._check_nodes_have_same_collection()
        finally:
            everything.update(part)  # the first in it is what there is to do

    def _next_for(self, node) -> str | None:
        """Name of what a process should do next: its own kind, then whatever is left."""
        kinds: dict[bool, list[str]] = {True: [], False: []}
        for name in self.workqueue:
            kinds[name.partition("::")[0] in WAITING].append(name)
        if waits(node):
            return next(iter(kinds[True]), None)
        if not any(waits(other) and not other.shutting_down for other in self.nodes):
            return next(iter(self.workqueue), None)
        return next(iter(kinds[False] + kinds[True]), None)

    def _assign_work_unit(self, node) -> None:
        name = self._next_for(node)
        if name is not None:
            self.workqueue.move_to_end(name, last=False)
            super()._assign_work_unit(node)

    def _reschedule(self, node) -> None:
        if node not in self.registered_collections:
            return
        if self._next_for(node) is None and not node.shutting_down:
            node.shutdown()  # after what it has been given
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

    The longer half goes on while tests are collected; none is run before its end. What is
    compiled already is found in no time. Nothing is tested here, so that a call that fails is
    left to the tests.
    """
    command = [sys.executable, "-m", "tests.compile_first"]
    _compiling.extend(
        subprocess.Popen([*command, part], cwd=ROOT, stderr=subprocess.DEVNULL)
        for part in ("lists", "rows")
    )
    _compiling[-1].wait()
