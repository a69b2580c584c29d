"""Where rows are computed and budgets are charged."""

from edgeveil.engine.local import Local
from edgeveil.engine.making import release
from edgeveil.engine.ray_cluster import Ray
from edgeveil.engine.shortcuts import embed, rank
from edgeveil.engine.streaming import release_to
from edgeveil.engine.tasks import Engine

__all__ = ["Engine", "Local", "Ray", "embed", "rank", "release", "release_to"]
