"""Charge: the price of a release in whole nano-epsilons."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Literal

from edgeveil.errors import BudgetError, ParameterError
from edgeveil.ledger.chain import charge_digest
from edgeveil.privacy.compose import Disclosure
from edgeveil.privacy.epsilon import exact_epsilon
from edgeveil.privacy.guarantee import Guarantee

NANO = 10**9
MOST_NANO = 2**63 - 1  # what both databases can hold


def to_nano(epsilon: float) -> int:
    """Whole nano-epsilons, rounded up from the number that epsilon prints as.

    >>> to_nano(0.5)
    500000000
    >>> to_nano(0.1)
    100000000
    """
    return math.ceil(exact_epsilon(epsilon) * NANO)


def in_words(nano: int) -> str:
    """Nano-epsilons as a decimal number, exactly.

    >>> in_words(1_500_000_000)
    '1.5'
    """
    return f"{(Decimal(nano) / NANO).normalize():f}"


@dataclass(frozen=True)
class Charge:
    """What a release costs, and whom.

    Attributes
    ----------
    epsilon_nano : int
        Model ``public``: the price of the release. Model ``joint``: the price of one row.
    model : {"joint", "public"}
        Whether everybody pays, or only the recipients.
    recipients : tuple of str
        Model ``joint``: the owner of each row, one entry per row; kept sorted.
    pooled_nano : int
        What all recipients together learn: once for shared noise (or the shared part of it),
        otherwise for each row.
    """

    epsilon_nano: int
    model: Literal["joint", "public"]
    recipients: tuple[str, ...]
    pooled_nano: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "recipients", tuple(sorted(self.recipients)))
        if self.model not in ("joint", "public"):
            raise ParameterError(f"model must be joint or public, got {self.model!r}")
        if (self.model == "joint") != bool(self.recipients):
            raise ParameterError("a joint charge names its recipients, a public one names none")
        rows = max(1, len(self.recipients))
        if not 0 <= self.epsilon_nano <= self.pooled_nano <= rows * self.epsilon_nano:
            raise ParameterError(
                "pooled_nano must lie between epsilon_nano and epsilon_nano for each row, got "
                f"{self.pooled_nano} for {rows} rows at {self.epsilon_nano}"
            )
        for name in self.recipients:
            check_text("a recipient's name", name)

    @classmethod
    def from_guarantee(cls, guarantee: Guarantee, recipients: Iterable[str] = ()) -> Charge:
        """Price a release.

        Parameters
        ----------
        guarantee : Guarantee
            What the release promises.
        recipients : iterable of str
            Model ``joint``: the owner of each row, one entry per row. Not looked at for a
            public release.

        Raises
        ------
        BudgetError
            If the release protects nothing: no budget pays for that.
        ParameterError
            If the guarantee has a delta: the ledger counts pure epsilon only.
        """
        release = Disclosure(guarantee, tuple(recipients))
        if not release.protects:
            raise BudgetError(
                "this release is not private (exact values or seeded noise), so no budget covers it"
            )
        if guarantee.delta:
            raise ParameterError(
                f"the ledger counts pure epsilon, it cannot charge delta = {guarantee.delta:g}"
            )
        price = to_nano(guarantee.epsilon)
        if guarantee.model == "public":
            return cls(price, "public", (), price)
        rows = release.copies(frozenset(release.recipients))
        pooled = price * rows
        if guarantee.shared_epsilon:
            pooled = math.ceil(guarantee.pooled(rows) * NANO)
        return cls(price, "joint", release.recipients, pooled)

    @cached_property
    def per_recipient(self) -> dict[str, int]:
        """What each recipient learns: every row of theirs, but shared noise once."""
        rows = Counter(self.recipients)
        return {name: min(n * self.epsilon_nano, self.pooled_nano) for name, n in rows.items()}

    @cached_property
    def digest(self) -> str:
        """Equal for equal charges only."""
        return charge_digest(self.model, self.epsilon_nano, self.pooled_nano, self.per_recipient)


def check_text(what: str, text: str) -> None:
    """Raise ParameterError unless both databases can hold `text` as it is."""
    try:
        fits = isinstance(text, str) and "\0" not in text and bool(text.encode() or True)
    except UnicodeEncodeError:
        fits = False
    if not fits:
        raise ParameterError(f"{what} must be text without NUL characters")


def cap_nano(name: str, epsilon: float) -> int:
    """Check a cap and give it in whole nano-epsilons."""
    if not 0 < epsilon <= MOST_NANO // NANO:
        raise ParameterError(f"{name} must be a positive number up to 9e9, got {epsilon}")
    return to_nano(epsilon)


def note_text(note: Mapping[str, str] | None) -> str:
    """Check a note and give it as JSON."""
    words = dict(note or {})
    if not all(isinstance(part, str) for pair in words.items() for part in pair):
        raise ParameterError("note must map text to text")
    text = json.dumps(words, sort_keys=True)
    if len(text) > 10_000:
        raise ParameterError(f"note must be small (10 000 characters), got {len(text)}")
    return text
