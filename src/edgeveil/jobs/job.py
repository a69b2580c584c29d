"""One job: a release that is checked and priced first, and run once.

`prepare` checks and prices, and charges nothing. `ReleaseJob.run` charges, draws and stores, in
this order; `release` and `release_to` do both.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Unpack, overload

from edgeveil.errors import ParameterError
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeId
from edgeveil.jobs.drawing import ChargedRows, FreshRows, RowBuffer
from edgeveil.jobs.request import Progress, ReleaseOptions, ReleaseRequest, checked, graph_of
from edgeveil.ledger import Ledger, Price
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.mechanisms.node_classes import NodeClasses
from edgeveil.mechanisms.requirements import check_mechanism, publishes
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.results.predictions import Predictions
from edgeveil.results.release import Release
from edgeveil.results.release_folder import MemberResult, ReleaseFolder, part_name
from edgeveil.results.suggestions import Suggestions


@dataclass(frozen=True, kw_only=True)
class ReleasePrice:
    """The price of a release.

    Attributes
    ----------
    guarantee : Guarantee
        What the release would protect: epsilon for each member, and for members who combine
        their lists.
    in_ledger : Price or None
        What the ledger would charge, what it has charged so far, what is left, and how many more
        such releases that allows. None without a ledger.
    """

    guarantee: Guarantee
    in_ledger: Price | None


def prepare(
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId] | None = None,
    **options: Unpack[ReleaseOptions],
) -> ReleaseJob:
    """Check a release, and price it; nothing is charged or drawn.

    Whatever could fail later for public reasons (calibration, shapes, unknown ids) fails here.

    Parameters
    ----------
    graph, mechanism, sources
        As for `edgeveil.release`.

    Other Parameters
    ----------------
    options
        As for `edgeveil.release`.

    Examples
    --------
    >>> from edgeveil.graph.datasets import social_network
    >>> from edgeveil.mechanisms import DegreePrior
    >>> graph = social_network(300, average_degree=12).graph
    >>> job = prepare(graph, DegreePrior(epsilon=0.5), [7, 8])
    >>> job.price.guarantee.epsilon
    0.5
    >>> job.run().sources
    (7, 8)
    """
    return ReleaseJob(checked(graph, mechanism, sources, options))


class ReleaseJob:
    """A release that was checked: see its price, then run it, in memory or to a folder.

    Attributes
    ----------
    request : ReleaseRequest
        What was asked for, checked.
    """

    def __init__(self, request: ReleaseRequest) -> None:
        self.request = request

    @cached_property
    def price(self) -> ReleasePrice:
        """What the release protects, and what the ledger would charge; looked up once."""
        in_ledger = None if self.request.ledger is None else self.request.price()
        return ReleasePrice(guarantee=self.request.guarantee, in_ledger=in_ledger)

    def with_progress(self, progress: Progress) -> ReleaseJob:
        """The same release, at the price that was looked up, which tells how many rows are done."""
        job = ReleaseJob(replace(self.request, progress=progress))
        job.price = self.price  # or what was shown to people would be looked up again
        return job

    def run(self) -> MemberResult | Predictions:
        """Charge, draw and store; return the rows, or what is for everybody, with the guarantee.

        Raises
        ------
        ParameterError
            If the rows do not fit into memory.
        PromiseError
            If the graph breaks a promise that the guarantee rests on.
        BudgetError
            If the ledger refuses; nothing was drawn.
        """
        request = self.request
        with self._rows(in_memory=True) as rows:
            buffer = RowBuffer(request.indices, request.graph.n_nodes)
            for block in rows.blocks():
                buffer.put(block)
            if not request.for_everybody:
                return rows.task.result(buffer.block, rows.metadata)
            result = request.mechanism.published(
                rows.task.shared, request.graph.nodes, rows.metadata
            )
        request.report_round(request.mechanism.shared_rounds + 1)
        return result

    def run_to(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> ReleaseFolder:
        """`run`, but write the rows to a folder while they are made.

        The same release is returned without a charge; another one is never replaced, unless
        `overwrite` says so.
        """
        if self.request.for_everybody:
            raise ParameterError("one result for everybody is no folder of rows: `run` gives it")
        folder = Path(folder)
        existing = ReleaseFolder.at(folder)
        is_kept = existing is not None and not overwrite
        if is_kept:  # by today's price: this job may have written it
            price = None if self.request.ledger is None else self.request.price()
            if price is None or price.n_new + price.n_open:
                raise _another(folder)
        with self._rows(in_memory=False) as rows:
            if is_kept:
                assert isinstance(rows, ChargedRows)
                assert existing is not None
                self._check_same(rows, existing)
                return existing
            files, output = rows.files(), self.request.mechanism.output
            return ReleaseFolder.write(folder, output, *rows.metadata, files, overwrite=overwrite)

    @contextmanager
    def _rows(self, *, in_memory: bool) -> Iterator[FreshRows | ChargedRows]:
        """The rows, drawn as they are taken; nothing is charged before."""
        request = self.request
        if in_memory:
            request.check_memory(all_rows=True)
        request.mechanism.check_promise(request.graph)
        if request.ledger is None:
            yield FreshRows(request)
            return
        with request.ledger.session():
            price = self.price.in_ledger
            assert price is not None
            yield ChargedRows(request, price)

    def _check_same(self, rows: ChargedRows, existing: ReleaseFolder) -> None:
        """Refuse (ParameterError) a folder that holds another release."""
        names = [part_name(number, batch.key) for number, batch in enumerate(rows.batches)]
        sources = self.request.graph.nodes.take(self.request.indices)
        if set(existing.sources) != set(sources) or [part.name for part in existing.parts] != names:
            raise _another(existing.path)
        if existing.provenance.lists != self.request.lists_made:
            raise ParameterError(
                f"{existing.path} holds lists of another length or for other candidates: choose "
                "another folder, where nothing more is charged, or replace them (--overwrite, "
                "overwrite=True)"
            )


def price(
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId] | None = None,
    *,
    ledger: Ledger | None = None,
    label: str = "",
) -> ReleasePrice:
    """The price of a release. Nothing is charged or drawn.

    The price depends on the mechanism and on the number of sources, both public. With a ledger,
    rows that were charged before are not charged again. A promise that the guarantee rests on is
    not checked here: `edgeveil.release` does that.

    Parameters
    ----------
    graph, mechanism, ledger, label
        As for `edgeveil.release`.
    sources : iterable of ids, optional
        As for `edgeveil.release`; by default everybody.

    Examples
    --------
    >>> from edgeveil.graph.datasets import social_network
    >>> from edgeveil.mechanisms import DegreePrior
    >>> graph = social_network(300, average_degree=12).graph
    >>> price(graph, DegreePrior(epsilon=0.5), [7, 8]).guarantee.epsilon
    0.5
    """
    graph = graph_of(graph)
    if sources is None and not publishes(check_mechanism(mechanism)):
        sources = graph.nodes
    return prepare(graph, mechanism, sources, ledger=ledger, label=label).price


@overload  # narrower than the last
def release(  # type: ignore[overload-overlap]
    graph: Graph,
    mechanism: Suggest,
    sources: Iterable[NodeId] | None = None,
    **options: Unpack[ReleaseOptions],
) -> Suggestions: ...


@overload
def release(  # type: ignore[overload-overlap]
    graph: Graph, mechanism: NodeClasses, **options: Unpack[ReleaseOptions]
) -> Predictions: ...


@overload
def release(
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId] | None = None,
    **options: Unpack[ReleaseOptions],
) -> Release: ...


def release(
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId] | None = None,
    **options: Unpack[ReleaseOptions],
) -> MemberResult | Predictions:
    """Run a mechanism on a graph and return the rows with their guarantee.

    With a ledger every row is charged once, durably, before its noise is drawn, and then stored.
    A later request for the same row returns the stored one without a charge; after a crash the row
    is finished with the same noise. For more rows than fit into memory, see `release_to`.

    Parameters
    ----------
    graph : Graph
        The private graph. An object that `edgeveil.as_graph` takes, or a path for
        `edgeveil.read_graph`, is read first, without a node list.
    mechanism : Mechanism
        What to compute and how to protect it.
    sources : iterable of ids, optional
        The nodes to compute rows for (``graph.nodes``: all); ids, not indices. Repeats are dropped.
        Without sources, a mechanism with one result for everybody (classes of nodes, sums) gives
        this result; others need sources.

    Other Parameters
    ----------------
    ledger : Ledger or path, optional
        The budget to charge. Without one the release is not counted against any budget.
    label : str
        With a ledger: the public name of the graph, if the ledger holds several. When the graph
        has changed, declare its next generation with `Ledger.advance`, in which rows are charged
        anew.
    generation : int, optional
        With a ledger: the number of the generation that this graph belongs to. Refused if the
        label's current one has another number.
    skip_exhausted : bool
        With a ledger: leave out members whose budget does not allow a row, instead of refusing
        the whole release, which then has fewer rows (`sources`, `members`). Joint model only.
    purpose, operator : str
        With a ledger: what the release is for and who makes it, for its report.
    noise : NoiseSource, optional
        A seeded source for tests and demonstrations (``NoiseSource.insecure(seed)``), which makes
        the release not private; fresh secure noise by default. Not allowed with a ledger.
    engine : Engine, optional
        Where to compute: `edgeveil.jobs.Local` (the default) or `edgeveil.jobs.Ray`. The
        values do not depend on it.
    progress : callable, optional
        Called with the number of rows done and the number of all rows.
    k, candidates, exclude : optional
        Suggestions only: length of a list (20 by default), who may be suggested, and whom not to
        whom; as for `edgeveil.suggest`. With a ledger, others charge nothing: lists are made from
        what is stored.

    Raises
    ------
    UnknownNodeError
        If a source is not in the public node set.
    BudgetError
        If the ledger refuses; nothing was drawn.
    LedgerError
        If the graph is not that of the label's current generation.
    """
    return prepare(graph, mechanism, sources, **options).run()


def release_to(
    path: str | os.PathLike[str],
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId],
    *,
    overwrite: bool = False,
    **options: Unpack[ReleaseOptions],
) -> ReleaseFolder:
    """Run a mechanism and write the rows to a folder, up to 256 rows or 1,024 lists a file.

    Memory: the graph, and for every worker a block of rows. With a ledger the rows are stored
    there first, batch by batch, and then written to the folder in the order of their batches. An
    interrupted call can then be repeated without another charge; without a ledger, repeating it
    makes a new release.

    Parameters
    ----------
    path : path
        The folder to make; it appears only when it is complete.
    graph, mechanism, sources
        As for `edgeveil.release`, but sources are always needed.
    overwrite : bool
        Replace a release that is already there.

    Other Parameters
    ----------------
    ledger, label, skip_exhausted, purpose, operator, noise, engine, progress : optional
        As for `edgeveil.release`.

    Raises
    ------
    ParameterError
        If the folder holds something else.
    BudgetError
        If the ledger refuses; nothing was drawn.
    """
    return prepare(graph, mechanism, sources, **options).run_to(path, overwrite=overwrite)


def _another(folder: Path) -> ParameterError:
    return ParameterError(
        f"{folder} holds another release: choose another place, or replace it (--overwrite, "
        "overwrite=True)"
    )
