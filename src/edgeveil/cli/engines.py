"""Choose where rows are computed."""

from __future__ import annotations

from typing import Literal

from edgeveil.engine import Engine, Local, Ray
from edgeveil.errors import ParameterError

__all__ = ["make_engine"]


def make_engine(name: Literal["local", "ray"], address: str | None, workers: int | None) -> Engine:
    """The engine that ``--engine``, ``--address`` and ``--workers`` ask for."""
    if name == "ray":
        return Ray(address=address, workers=workers)
    if address is not None:
        raise ParameterError("--address is the address of a Ray cluster: add --engine ray")
    return Local(threads=workers)
