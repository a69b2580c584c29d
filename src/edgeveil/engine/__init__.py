"""Where rows are computed and budgets are charged."""

from edgeveil.engine.local import release
from edgeveil.engine.shortcuts import embed, rank

__all__ = ["embed", "rank", "release"]
