"""What a mechanism must be before it is run: its class, its guarantee, and the graph it is for."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from edgeveil.errors import ParameterError
from edgeveil.graph.graph import Graph
from edgeveil.mechanisms.base import Mechanism
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.guarantee import Guarantee

CLAIM_ROUNDING = Fraction(1, 10**12)  # relative: a guarantee holds floats


def is_ours(kind: type) -> bool:
    """Whether a class is of this package, whose code `edgeveil.jobs.keys` knows."""
    return kind.__module__.startswith("edgeveil.") or kind.__module__ in ("abc", "builtins")


def publishes(mechanism: Mechanism) -> bool:
    """Whether a mechanism makes one result for everybody; see `Mechanism.published`.

    Not if a subclass changes the rows of a mechanism that does: they would be another result.
    """
    for kind in type(mechanism).__mro__[:-1]:
        own = vars(kind).keys() & {"published", "measure", "estimate"}
        if own or kind is Mechanism:
            return kind is not Mechanism and "published" in own
    raise AssertionError  # Mechanism is among them


def check_published(mechanism: Mechanism) -> None:
    """Refuse (ParameterError) one result for everybody that is not public, or costs more than once.

    A ledger charges it once, to everybody.
    """
    claim = mechanism.guarantee(1)
    if claim.model != "public" or claim.collusion != "shared":
        raise ParameterError(
            f"{mechanism.name} gives one result for everybody: its guarantee must be public, and "
            "the same for any number of members (model='public', collusion='shared')"
        )


def guarantee_of(mechanism: Mechanism, n_members: int) -> Guarantee:
    """The guarantee of a release for so many, which must not claim less than is lost.

    Every row is measured within the guarantee of a single one. So the loss of many rows follows
    from that, whatever a class of its own says of them.

    Raises
    ------
    ParameterError
        If it claims less, or something else, than the guarantee of a single row, so often.
    """
    single, claim = mechanism.guarantee(1), mechanism.guarantee(n_members)
    fits = (single.model, single.known_edges) == (claim.model, claim.known_edges)
    if fits and claim.model != "none":
        least = exact_epsilon(single.epsilon) * (1 - CLAIM_ROUNDING)
        together = single.pooled(n_members) * (1 - CLAIM_ROUNDING)
        if claim.model == "public" and single.collusion == "additive":
            least = together = n_members * least
        fits = exact_epsilon(claim.epsilon) >= least and claim.pooled(n_members) >= together
    if not fits:
        raise ParameterError(
            f"{mechanism.name} claims less for {n_members:,} rows than for each alone: every row "
            "is measured within the guarantee of a single one. Where noise is drawn once for "
            "everybody, inherit from OnceForAll (collusion='shared')"
        )
    return replace(claim, n_members=n_members)


def missing_parts(kind: type[Mechanism]) -> list[str]:
    """The parts that a class lacks to be a mechanism, in words."""
    needs_lists = kind.output == "lists" and kind.lists is Mechanism.lists
    gives_nothing = kind.estimate is Mechanism.estimate and kind.measure is Mechanism.measure
    return [
        *(["a `theorem`"] if not hasattr(kind, "theorem") else []),
        *(["a method `estimate` or `measure`"] if gives_nothing else []),
        *(["a method `lists`"] if needs_lists else []),
    ]


def check_mechanism(mechanism: Any) -> Mechanism:
    """Refuse a name or a class in place of a mechanism with its parameters."""
    if isinstance(mechanism, type) or not isinstance(mechanism, Mechanism):
        shown = mechanism.__name__ if isinstance(mechanism, type) else repr(mechanism)
        raise ParameterError(
            f"expected a mechanism with its parameters, such as TwoHop(epsilon=1), got {shown}"
        )
    if missing := missing_parts(type(mechanism)):
        raise ParameterError(f"{mechanism.name} needs {' and '.join(missing)}")
    return mechanism


def check_directions(mechanism: Mechanism, graph: Graph) -> None:
    """Refuse a directed graph for a mechanism for undirected ones, and the other way round.

    Whether a graph is directed is public.
    """
    if graph.directed and not mechanism.directed:
        raise ParameterError(
            f"{mechanism.name} is for undirected graphs: read this one with "
            'directed="ignore" (--directed ignore)'
        )
    if mechanism.directed and not graph.directed:
        raise ParameterError(
            f"{mechanism.name} has directed=True, but the graph is undirected; "
            'read it with directed="keep" (--directed keep)'
        )
