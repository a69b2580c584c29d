"""The privacy loss of several releases together, proven in ``docs/theory/composition.md``."""

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
    members : tuple of str
        Model ``joint``: the member that each row is for (a member with two rows is listed twice).
        Ignored for a public release, which everybody sees.
    """

    guarantee: Guarantee
    members: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.members, tuple):
            raise ParameterError("members must be a tuple of names")
        if self.guarantee.model == "joint" and len(self.members) != self.guarantee.n_sources:
            # One name for many rows would count too little.
            raise ParameterError(
                f"a joint release needs a member for each of its "
                f"{self.guarantee.n_sources} rows, got {len(self.members)}"
            )


def coalition_epsilon(releases: Iterable[Disclosure], coalition: Iterable[str]) -> float:
    """Privacy loss of an edge that touches no member of a coalition who combine their rows.

    Parameters
    ----------
    releases : iterable of Disclosure
        All releases from the graph; they, and their epsilons, may be chosen adaptively.
    coalition : iterable of str
        The members who combine their rows: one, several, or none, for somebody without a row.

    Returns
    -------
    float
        The sum over public releases, the coalition's rows, and shared noise (once), exact and
        rounded up. ``inf`` if one of these releases is not private, or has a delta.
    """
    if isinstance(coalition, str):
        raise ParameterError("coalition must be a collection of names, got one string")
    names, total = frozenset(coalition), Fraction(0)
    for release in releases:
        guarantee = release.guarantee
        rows = sum(member in names for member in release.members)
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
