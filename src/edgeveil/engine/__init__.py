"""Where rows are computed and budgets are charged."""

from edgeveil.engine.api import ReleasePrice, embed, price, rank, release, release_to
from edgeveil.engine.ray_cluster import Ray
from edgeveil.engine.tasks import Engine, Local

__all__ = [
    "Engine",
    "Local",
    "Ray",
    "ReleasePrice",
    "embed",
    "price",
    "rank",
    "release",
    "release_to",
]
