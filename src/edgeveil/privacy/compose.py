"""What several releases cost together, proven in ``docs/theory/composition.md``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from edgeveil.errors import ParameterError
from edgeveil.privacy.guarantee import Guarantee


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


def coalition_epsilon(releases: Iterable[Disclosure], members: Iterable[str]) -> float:
    """What `members` who pool all they got learn at most about an edge that touches none of them.

    Parameters
    ----------
    releases : iterable of Disclosure
        All releases from the graph, chosen adaptively or not, their epsilons included.
    members : iterable of str
        The recipients who pool their rows: one of them, several, or none, for what somebody who
        got no row learns about any edge.

    Returns
    -------
    float
        Public releases once, the members' rows each, rows with shared noise once: added up
        exactly and rounded up. ``inf`` if one of these releases is not private, or has a delta.
    """
    if isinstance(members, str):
        raise ParameterError("members must be a collection of names, got one string")
    names, total = frozenset(members), Fraction(0)
    for release in releases:
        guarantee = release.guarantee
        rows = sum(recipient in names for recipient in release.recipients)
        seen = rows > 0 or guarantee.model == "public"
        if not guarantee.protects or (seen and guarantee.delta):
            return math.inf
        total += guarantee.pooled(rows)
    return _rounded_up(total)


def _rounded_up(value: Fraction) -> float:
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
