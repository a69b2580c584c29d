"""Where rows are computed and budgets are charged."""

from edgeveil.engine.local import release

__all__ = ["release"]
