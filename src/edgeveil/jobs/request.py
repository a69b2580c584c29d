"""A release that is asked for, checked before anything is charged or drawn."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from edgeveil._internal.memory import total_memory
from edgeveil._internal.words import did_you_mean
from edgeveil.errors import BudgetError, ParameterError
from edgeveil.estimate.lists import STORED, Candidates, check_k
from edgeveil.graph.exclusions import Exclude, excluded_pairs, read_exclusions
from edgeveil.graph.graph import Graph
from edgeveil.graph.nodes import NodeId, NodeSet
from edgeveil.graph.objects import as_graph
from edgeveil.graph.read import read_graph
from edgeveil.jobs.keys import code_of, describe, parameters_of, parameters_text
from edgeveil.jobs.tasks import Engine, ListOptions, Local, Task
from edgeveil.ledger import Campaign, Ledger, Price
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.requirements import (
    check_directions,
    check_mechanism,
    check_published,
    guarantee_of,
    publishes,
)
from edgeveil.mechanisms.run import rows_at_once
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.privacy.noise import NoiseSource
from edgeveil.results.provenance import Metadata, Provenance, our_version

Progress = Callable[[int, int], None]

_NODES_ARE_PUBLIC = (
    "that these nodes exist is public knowledge (no node list was given, so it was read off the "
    "edges: who appears here at all is not protected)"
)


class Options(TypedDict, total=False):
    """Options of every call that makes a release; see `edgeveil.release`."""

    ledger: Ledger | None
    label: str
    generation: int | None
    skip_exhausted: bool
    purpose: str
    operator: str
    noise: NoiseSource | None
    engine: Engine | None
    progress: Progress | None


class ReleaseOptions(Options, total=False):
    """What a call for any mechanism takes; k, candidates and exclude are for lists."""

    k: int | None
    candidates: Iterable[NodeId] | None
    exclude: Exclude | None


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest:
    """A checked request for a release; nothing is charged or drawn yet."""

    graph: Graph
    mechanism: Mechanism
    indices: npt.NDArray[np.int64]  # of the sources (members), without repeats
    guarantee: Guarantee
    # as in `Options`
    ledger: Ledger | None = None
    label: str = ""
    generation: int | None = None
    purpose: str = ""
    operator: str = ""
    noise: NoiseSource | None = None
    engine: Engine = field(default_factory=Local)
    progress: Progress | None = None
    lists: ListOptions = field(default_factory=ListOptions)
    for_everybody: bool = False  # one result for everybody; in a ledger, the row of the first node
    n_left_out: int = 0  # members whom `skip_exhausted` left out

    @property
    def width(self) -> int:
        """Numbers in a row, for suggestions at most; public."""
        if self.mechanism.output == "scores":
            return self.graph.n_nodes
        if self.mechanism.output == "lists":
            return 2 * STORED  # the stored evidence of a member, and the list made of it
        return int(self.mechanism.dimension)  # type: ignore[attr-defined]  # embeddings have it

    @cached_property
    def names(self) -> list[str]:
        """The members' names in a ledger: their ids as text."""
        return [str(node) for node in self.graph.nodes.take(self.indices)]

    def indices_of(self, names: Iterable[str]) -> npt.NDArray[np.int64]:
        """Indices of members, increasing, from their names in a ledger.

        A batch that another call began may have members whom this one does not ask for.
        """
        nodes = self.graph.nodes
        id_of = type(nodes[0])
        return np.sort(nodes.indices(map(id_of, names)))

    def price(self) -> Price:
        """What the ledger would charge now."""
        assert self.ledger is not None
        return self.ledger.price(self.campaign, self.names)

    def without_exhausted(self) -> ReleaseRequest:
        """Leave out members whose budget does not allow a row; BudgetError if nobody is left.

        Who is left out depends on the ledger alone. The charge checks the budgets again in its
        own transaction, and is refused if one of them was used meanwhile.
        """
        if self.ledger is None:
            raise ParameterError("skip_exhausted needs a ledger: only a ledger knows the budgets")
        if self.guarantee.model == "public":
            raise ParameterError("a public release is charged to everybody: nobody can be left out")
        unable = set(self.ledger.newcomers(self.campaign, self.names).unable)
        able = self.indices[[name not in unable for name in self.names]]
        if not len(able):
            raise BudgetError("no member's budget allows this: nothing was charged")
        guarantee = guarantee_for(self.graph, self.mechanism, len(able))
        return replace(self, indices=able, guarantee=guarantee, n_left_out=len(unable))

    def check_memory(self, *, all_rows: bool) -> None:
        """Refuse (ParameterError) rows that do not fit into memory: all, or some at a time."""
        rows = self.graph.n_nodes if self.for_everybody else len(self.indices)
        at_once = rows if all_rows else min(rows, rows_at_once(self.graph.n_nodes))
        needed, available = 8 * at_once * self.width, total_memory()
        if needed > available:
            raise ParameterError(
                f"{at_once:,} rows of {self.width:,} values take {needed / 2**30:,.0f} GiB of "
                f"memory; this machine has {available / 2**30:,.0f} GiB"
                + "; edgeveil.release_to writes them to a folder instead"
                * all_rows
            )

    def report_round(self, number: int) -> None:
        """Report a round of the shared statistics, if they are all that is released."""
        if self.for_everybody and self.progress is not None:
            self.progress(number, self.mechanism.shared_rounds + 1)  # the last step is `fit_shared`

    def task(self, shared: Any) -> Task:
        """The task of an engine, with what `fit_shared` gave."""
        return Task(mechanism=self.mechanism, graph=self.graph, shared=shared, lists=self.lists)

    def metadata(self, *, noise: NoiseSource | None = None, charged: str = "") -> Metadata:
        """Guarantee and provenance of rows drawn from `noise`, or charged to a ledger (when)."""
        private = self.guarantee.private if noise is None else noise.private
        provenance = Provenance(
            mechanism=self.mechanism.name,
            parameters=parameters_of(self.mechanism),
            version=our_version(),
            noise="secure" if noise is None else noise.kind,
            ledger=bool(charged),
            created=charged,
            lists=self.lists_made,
        )
        return Metadata(replace(self.guarantee, private=private), provenance)

    @cached_property
    def lists_made(self) -> dict[str, Any]:
        """The parameters of the lists, as plain public data; empty for other kinds of rows."""
        if self.mechanism.output != "lists":
            return {}
        k, candidates = self.lists
        options = {"k": int(k), "candidates": "all"}
        if candidates is not None and candidates.nodes is not None:
            named = NodeSet.of(self.graph.nodes.take(np.sort(candidates.nodes)))
            options["candidates"] = named.digest(b"candidates").hexdigest()
        if candidates is not None and len(candidates.excluded):
            # Who is hidden from whom is private, and few pairs could be guessed from a plain hash.
            pairs = np.unique(candidates.excluded, axis=0).tobytes().hex()
            options["exclude"] = "some" if self.ledger is None else self.ledger.key_of(pairs)
        return options

    @cached_property
    def campaign(self) -> Campaign:
        """The release as a ledger's campaign."""
        nodes = self.graph.nodes
        note = {
            "mechanism": self.mechanism.name,
            "parameters": parameters_text(self.mechanism),
            "version": our_version(),
            "nodes": f"{len(nodes):,} {nodes.digest(b'nodes').hexdigest()[:16]}",
            "purpose": self.purpose,
            "operator": self.operator,
        }
        return Campaign(
            identity=describe(self.mechanism),
            guarantee=partial(guarantee_of, self.mechanism),
            label=self.label,
            fingerprint=self.graph.fingerprint,
            code=code_of(self.mechanism),
            generation=self.generation,
            note={name: words for name, words in note.items() if words},
        )


def graph_of(given: Any) -> Graph:
    """A graph, from a Graph, a path, or another library's object."""
    return read_graph(given) if isinstance(given, str | os.PathLike) else as_graph(given)


def ledger_of(given: Any) -> Ledger:
    """A ledger, from a Ledger or its path."""
    if isinstance(given, str | os.PathLike):
        return Ledger.open(given)
    if not isinstance(given, Ledger):
        raise ParameterError(f"ledger must be a Ledger or its path, got {type(given).__name__}")
    return given


def checked(
    graph: Graph,
    mechanism: Mechanism,
    sources: Iterable[NodeId] | None,
    options: Options | ReleaseOptions,
) -> ReleaseRequest:
    """A request for a release; see `edgeveil.jobs.job.prepare`. Only public values are used."""
    graph = graph_of(graph)
    check_directions(check_mechanism(mechanism), graph)
    given = check_options(options)
    given["lists"] = _list_options(graph, mechanism, given)
    if not graph.n_nodes:
        raise ParameterError("the graph has no nodes, so there is nothing to release")
    for_everybody = sources is None and publishes(mechanism)
    if for_everybody:
        check_published(mechanism)
        # Computed here: what was learnt of all nodes would be sent to a cluster for one row.
        given["engine"], sources = Local(threads=1), graph.nodes.take([0])
    elif sources is None:
        raise ParameterError(
            "sources are missing: the nodes to compute rows for (graph.nodes: all)"
        )
    elif mechanism.output == "predictions":
        raise ParameterError("predictions are for everybody at once: call edgeveil.classify")
    check_listed("sources", sources)
    indices = graph.nodes.indices(sources)
    _, first = np.unique(indices, return_index=True)  # repeats are dropped
    listed = indices[np.sort(first)]
    if len(listed) == 0:
        raise ParameterError("sources must name at least one node, got none")
    skip = given.pop("skip_exhausted", False)
    request = ReleaseRequest(
        graph=graph,
        mechanism=mechanism,
        indices=listed,
        guarantee=guarantee_for(graph, mechanism, graph.n_nodes if for_everybody else len(listed)),
        for_everybody=for_everybody,
        **given,
    )
    if skip:
        request = request.without_exhausted()
    mechanism.check_nodes(graph.nodes)
    request.check_memory(all_rows=False)
    return request


def guarantee_for(graph: Graph, mechanism: Mechanism, n_members: int) -> Guarantee:
    """The guarantee of a release of `n_members` rows of this graph."""
    guarantee = guarantee_of(mechanism, n_members)
    if graph.read_report.nodes_from_edges:
        promises = [p for p in (guarantee.promise, _NODES_ARE_PUBLIC) if p]
        guarantee = replace(guarantee, promise="; ".join(promises))
    return guarantee


def _list_options(graph: Graph, mechanism: Mechanism, given: dict[str, Any]) -> ListOptions:
    """Take the options of lists out of all options; look up ids before anything is charged."""
    names = ("k", "candidates", "exclude")
    list_options = {name: given.pop(name) for name in names if name in given}
    if mechanism.output == "lists":
        k, candidates, exclude = map(list_options.get, names)
        return ListOptions(check_k(k), candidates_of(graph.nodes, candidates, exclude))
    for name in list_options:
        raise ParameterError(f"{name} is for lists; {mechanism.name} makes none")
    return ListOptions()


def candidates_of(
    nodes: NodeSet, candidates: Iterable[NodeId] | None, exclude: Exclude | None
) -> Candidates | None:
    """Who may be suggested, and to whom not; None if there is no restriction."""
    among = None
    if candidates is not None:
        check_listed("candidates", candidates)
        ids = list(candidates)
        if not ids:
            raise ParameterError("candidates must name at least one node, got none")
        among = np.unique(nodes.indices(ids))
    if among is None and exclude is None:
        return None
    pairs, _ = excluded_pairs(read_exclusions(exclude or ()), nodes)
    return Candidates(among, pairs)


def check_listed(name: str, ids: object) -> None:
    """Refuse (ParameterError) a single id where several are listed: its letters would be ids."""
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise ParameterError(f"{name} must be a list of node ids, got {ids!r}")


def check_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are given, the ledger opened; refuse those that cannot be used."""
    refuse_unknown(options, ReleaseOptions.__optional_keys__)
    given = {name: value for name, value in options.items() if value is not None}
    ledger, noise = given.get("ledger"), given.get("noise")
    if ledger is not None and noise is not None:
        raise ParameterError("a ledger keeps its own noise secret: leave noise= out")
    if noise is not None and (not isinstance(noise, NoiseSource) or noise.private):
        # Two releases from one source would share noise, which can be subtracted.
        raise ParameterError("noise= takes a seeded source; leave it out for a private release")
    check_engine(given.get("engine"), given.get("progress"))
    if ledger is not None:
        given["ledger"] = ledger_of(ledger)
    return given


def refuse_unknown(options: Iterable[str], known: Collection[str]) -> None:
    """Refuse (TypeError) an option that does not exist."""
    for name in options:
        if name not in known:
            raise TypeError(f"there is no option {name}{did_you_mean(name, known)}")


def check_engine(engine: object, progress: object) -> None:
    """Refuse (ParameterError) what would fail when the first row is drawn, after its charge."""
    if engine is not None and (isinstance(engine, type) or not hasattr(engine, "run")):
        raise ParameterError(f"engine= takes an engine such as Local(threads=2), got {engine!r}")
    if progress is not None and not callable(progress):
        raise ParameterError(f"progress= takes a function of two numbers, got {progress!r}")
