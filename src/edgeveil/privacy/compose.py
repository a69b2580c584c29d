"""Composition: the only place where guarantees are added up.

Pure epsilons add, proven in ``docs/theory/composition.md``. Every rounding goes towards the larger
epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction

from edgeveil.errors import ParameterError
from edgeveil.privacy.guarantee import Guarantee


def sum_epsilon(epsilons: Iterable[float]) -> float:
    """Add up pure epsilons, exactly; only the result is rounded, up.

    Holds for any releases, chosen adaptively or not, their epsilons included.

    >>> sum_epsilon([0.5, 0.25])
    0.75
    >>> sum_epsilon([])
    0.0
    """
    total = Fraction(0)
    for epsilon in map(float, epsilons):
        if not epsilon >= 0:
            raise ParameterError(f"epsilon must be a number >= 0, got {epsilon}")
        if math.isinf(epsilon):
            return math.inf
        total += Fraction(epsilon)
    return _rounded_up(total)


@dataclass(frozen=True)
class Disclosure:
    """One release and who got it.

    Attributes
    ----------
    guarantee : Guarantee
        What the release protects.
    recipients : tuple of str
        Model ``joint``: the owner of each row, one entry per row (somebody who owns two rows
        stands there twice). Not looked at for a public release: everybody sees it.
    """

    guarantee: Guarantee
    recipients: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.recipients, tuple):
            raise ParameterError("recipients must be a tuple of names")
        if self.guarantee.model == "joint" and len(self.recipients) != self.guarantee.n_sources:
            # Counting one name for many rows would count too little.
            raise ParameterError(
                f"a joint release needs one recipient for each of its "
                f"{self.guarantee.n_sources} rows, got {len(self.recipients)}"
            )

    @property
    def protects(self) -> bool:
        """Whether the release protects anything: not without noise, nor with a known seed."""
        return self.guarantee.private and self.guarantee.model != "none"

    def copies(self, members: Collection[str]) -> int:
        """How many times its epsilon counts against `members` who pool all they got.

        Of a `Guarantee.shared_epsilon` only the rest counts that often.
        """
        if self.guarantee.model != "joint" or not self.protects:
            return 1
        rows = sum(recipient in members for recipient in self.recipients)
        return min(rows, 1) if self.guarantee.pooling == "shared" else rows


def coalition_epsilon(releases: Iterable[Disclosure], members: Iterable[str]) -> float:
    """What `members` who pool all they got learn at most about an edge that touches none of them.

    Parameters
    ----------
    releases : iterable of Disclosure
        All releases from the graph.
    members : iterable of str
        The recipients who pool their rows: one of them, several, or none, for what somebody who
        got no row learns about any edge.

    Returns
    -------
    float
        Public releases once, the members' rows each, rows with shared noise once. ``inf`` if one
        of these releases is not private, or has a delta.
    """
    if isinstance(members, str):
        raise ParameterError("members must be a collection of names, got one string")
    names = frozenset(members)
    total = Fraction(0)
    for release in releases:
        guarantee, copies = release.guarantee, release.copies(names)
        if copies == 0:
            continue
        if not release.protects or guarantee.delta > 0:
            return math.inf
        if guarantee.shared_epsilon:
            total += Fraction(guarantee.pooled(copies))
        else:
            total += copies * Fraction(guarantee.epsilon)
    return _rounded_up(total)


def _rounded_up(value: Fraction) -> float:
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
