"""What all commands that charge have in common: read, show the price, confirm, run, write, show.

On Ctrl-C, and after an error, what was charged is reported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from edgeveil import Graph, Ledger, NoiseSource
from edgeveil._internal.words import counted, date_in_words, some_of
from edgeveil.cli import price_words
from edgeveil.cli.interrupts import wait_for_input
from edgeveil.cli.options import Lists, Releasing, Suggestable
from edgeveil.cli.output import counting, say, wrapped
from edgeveil.cli.reading import check_out, read_and_say, who_may_be_suggested
from edgeveil.errors import EdgeveilError, ParameterError
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs import Engine
from edgeveil.jobs.choice import for_graph
from edgeveil.jobs.job import ReleaseJob
from edgeveil.mechanisms.base import Mechanism
from edgeveil.results.suggestions import Suggestions, member_files
from edgeveil.series.suggesting import prepare_lists

# By what a mechanism gives: the word for a row.
_ROWS = {
    "scores": "ranking",
    "embeddings": "embedding",
    "lists": "list",
    "predictions": "prediction",
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """Ledger, engine and noise of a command that charges, set up before the graph is read."""

    releasing: Releasing
    engine: Engine
    ledger: Ledger | None
    noise: NoiseSource | None

    @classmethod
    def of(
        cls,
        releasing: Releasing,
        out: Path | None = None,
        *suffixes: str,
        inputs: Iterable[Path | None] = (),
        artifacts: Path | None = None,
    ) -> Run:
        """Refuse options that cannot be used, before any file is read.

        That includes a place `out` where nothing can be written, or that does not end in one of
        the suffixes ("" stands for a folder); see `check_out`.
        """
        # With a ledger a folder may be there: it is left as it is if it holds the same release.
        same = releasing.ledger is not None and out is not None and out.is_dir()
        allowed = releasing.overwrite or releasing.dry_run or same
        check_out(out, *suffixes, overwrite=allowed, inputs=(*inputs, releasing.nodes))
        engine = releasing.make_engine()
        noise = (
            None
            if releasing.insecure_seed is None
            else NoiseSource.insecure(releasing.insecure_seed)
        )
        if releasing.skip_exhausted and releasing.ledger is None:
            raise ParameterError("--skip-exhausted needs --ledger: it knows what is left")
        if releasing.ledger is not None and noise is not None:
            raise ParameterError("a ledger keeps its own noise secret: leave --insecure-seed out")
        ledger = (
            None if releasing.ledger is None else Ledger.open(releasing.ledger, artifacts=artifacts)
        )
        return cls(releasing=releasing, engine=engine, ledger=ledger, noise=noise)

    def read(self, path: Path) -> Graph:
        """The graph."""
        return read_and_say(path, self.releasing, counts=self.releasing.verbose)

    @property
    def series_options(self) -> dict[str, Any]:
        """What `edgeveil.series.prepare_refresh` takes of the options of all commands."""
        return {
            "ledger": self.ledger,
            "label": self.releasing.label,
            "purpose": self.releasing.purpose,
            "operator": self.releasing.operator,
            "engine": self.engine,
        }

    @property
    def options(self) -> dict[str, Any]:
        """What `edgeveil.jobs.prepare` takes for every release of a command."""
        skip = self.releasing.skip_exhausted
        return {**self.series_options, "skip_exhausted": skip, "noise": self.noise}

    def prepare_lists(
        self,
        graph: Graph,
        mechanism: Mechanism,
        members: Iterable[NodeId] | None,
        lists: Lists,
        shown: Suggestable,
        per_member: Path | None,
    ) -> ReleaseJob | Suggestions:
        """Prepare the lists of members, or of everybody; with a folder for files of each."""
        if per_member is not None:
            member_files(graph.nodes if members is None else members)
        among = who_may_be_suggested(shown, graph.nodes)
        mechanism = for_graph(mechanism, graph)
        return prepare_lists(graph, mechanism, members, k=lists.k, **among, **self.options)

    @property
    def ledger_name(self) -> str:
        """The ledger as given on the command line, but an address without its password."""
        assert self.ledger is not None
        return (
            self.ledger.location
            if "://" in str(self.releasing.ledger)
            else str(self.releasing.ledger)
        )

    def release(
        self,
        job: ReleaseJob | Suggestions,
        out: Path | None,
        show: Callable[[Any], None] | None = None,
        *,
        change: Callable[[Any], Any] = lambda result: result,
    ) -> None:
        """Run a job that was prepared, write and show its result; or show the price (--dry-run).

        Lists of a series are there already.

        An `out` without a suffix is a folder, written while rows are made. What is written and
        shown is what `change` makes of the result.
        """
        if isinstance(job, Suggestions):
            self._show_series(job, out, show)
            return
        if n_left_out := job.request.n_left_out:
            n_asked = len(job.request.indices) + n_left_out
            say(
                f"{some_of(n_left_out, n_asked, 'member', 'were')} left out, because their budget "
                "does not allow it; their stored lists stay readable."
            )
        if self.releasing.dry_run:
            price_words.print_price(job, self.releasing.format)
            return
        # All of the work is inside this block, so that Ctrl-C reports what was charged.
        with self._charging(job):
            mechanism = job.request.mechanism
            what, counted_as = _ROWS[mechanism.output], None
            if job.request.for_everybody:
                what, counted_as = ("row" if what == "embedding" else what), "steps"
            with counting(counted_as or f"{what}s") as progress:
                job = job.with_progress(progress)
                if out is not None and not out.suffix:
                    result: Any = job.run_to(out, overwrite=self.releasing.overwrite)
                else:
                    result = change(job.run())
            words = counted(len(result.sources), what)
            if mechanism.output == "scores":
                words += f" of {counted(job.request.graph.n_nodes, 'node')}"
            self._write(result, out, words)
            if show:
                show(result)
        self._say_guarantee(result, out)

    def _show_series(
        self, lists: Suggestions, out: Path | None, show: Callable[[Any], None] | None
    ) -> None:
        """Write and show lists of the label's series; in a dry run, say that they are free."""
        name, provenance = self.releasing.label or "this graph", lists.provenance
        if out is not None and not out.suffix:
            raise ParameterError(
                f"the lists of {name} are a series: edgeveil refresh --out writes everybody's to a "
                "folder; name a file here (.parquet, .json or .csv)"
            )
        words = (
            f"From the series of {name}, as of its snapshot {provenance.parameters['snapshot']} "
            f"({date_in_words(provenance.created)}): nobody is charged for it."
        )
        if self.releasing.dry_run:
            say(f"Dry run. {words}")
            return
        self._write(lists, out, counted(len(lists.members), "list"))
        if show:
            show(lists)
        say(words)
        self._say_guarantee(lists, out)

    def _write(self, result: Any, out: Path | None, what: str) -> None:
        """Write a release to a file, unless it is in a folder already."""
        if out is not None:
            if out.suffix:
                result.write(out)
            say(f"{out}: {what}.")

    def _say_guarantee(self, result: Any, out: Path | None) -> None:
        """Print what a release protects; JSON on standard output has it already."""
        if self.releasing.format != "json" or out is not None:
            say(str(result.guarantee))

    @contextmanager
    def _charging(self, job: ReleaseJob) -> Iterator[None]:
        """Print the charge of a release before and after, even if the work ends early."""
        before = job.price.in_ledger
        if before is None:
            yield
            if job.price.guarantee.epsilon:  # else there is nothing to count
                say("No --ledger given: this release was not counted against any budget.")
            return
        name, free = self.ledger_name, price_words.what_is_free(before)
        if before.n_open and not before.n_new:
            say(free)
        question = price_words.question(before, name)
        with self.confirmed(question, partial(price_words.charged_since, before, job)):
            yield
        if before.n_new:
            say(f"{name}: {price_words.charge(before, done=True)} {free}".rstrip())
        elif not before.n_open:
            say(free)

    @contextmanager
    def confirmed(self, question: str, charged: Callable[[], str]) -> Iterator[None]:
        """Ask the question, if any, before the work; if it ends early, say what was charged."""
        try:
            if question and not self.releasing.yes:
                confirm(question)
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_from_ledger(charged)) from None
        except Exception:
            # With an error (a full disk, for instance), also report what was charged.
            if not (words := _from_ledger(charged)).startswith(price_words.NOTHING):
                say(f"{self.ledger_name}: {words}.")
            raise


def confirm(question: str) -> None:
    """On a terminal, ask the user whether to go on; EdgeveilError if not."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    sys.stderr.write(wrapped(f"{question} Go on? [y/N]") + " ")
    sys.stderr.flush()
    wait_for_input()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise EdgeveilError(f"not confirmed: {price_words.NOTHING}")


def _from_ledger(charged: Callable[[], str]) -> str:
    try:
        return charged()
    except EdgeveilError:
        return "`edgeveil ledger show` says what was charged"
