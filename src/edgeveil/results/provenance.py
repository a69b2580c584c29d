"""How a release was made and what it holds: public data attached to every result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any, Literal, NamedTuple, get_args

from edgeveil.errors import InputError
from edgeveil.privacy.guarantee import Guarantee

OutputKind = Literal["scores", "embeddings", "lists", "predictions"]


@cache
def our_version() -> str:
    """Version of edgeveil, looked up once: that reads and parses the metadata of the package."""
    return version("edgeveil")


def output_of(label: Mapping[str, Any]) -> OutputKind:
    """What a release holds, from its label; InputError if there is no such thing."""
    output = label["output"]
    if output not in get_args(OutputKind):
        raise InputError(f"there is no release of {output!r}")
    return output  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """How a release was made: all of it public.

    Attributes
    ----------
    mechanism : str
        Name of the mechanism, and of each post-processing step after it.
    parameters : mapping
        The mechanism's parameters.
    version : str
        Version of edgeveil.
    noise : str
        Source of the random bits.
    ledger : bool
        Whether a ledger was charged.
    created : str
        When its last row was charged; "" without a ledger.
    lists : mapping
        For suggestions: ``k``, and ``candidates``, a digest of their ids or "all". Lists of another
        length or for other candidates are made from the same noisy values, so these are not
        parameters of the mechanism.
    """

    mechanism: str
    parameters: Mapping[str, Any]
    version: str
    noise: str
    ledger: bool
    created: str = ""
    lists: Mapping[str, Any] = field(default_factory=dict)


class Metadata(NamedTuple):
    """What comes with rows wherever they go."""

    guarantee: Guarantee
    provenance: Provenance


def label_of(output: OutputKind, guarantee: Guarantee, provenance: Provenance) -> dict[str, Any]:
    """The label of released values: output, guarantee and provenance, as plain data."""
    return {
        "output": output,
        "guarantee": guarantee.as_dict(),
        "statement": str(guarantee),
        "provenance": asdict(provenance),
    }


def metadata_of(label: Mapping[str, Any]) -> Metadata:
    """Guarantee and provenance from a label."""
    return Metadata(Guarantee.from_dict(label["guarantee"]), Provenance(**label["provenance"]))
