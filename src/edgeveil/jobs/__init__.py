"""One job: request, price, charge, draw, store; and the engines that compute rows."""

from edgeveil.jobs.api import ReleasePrice, embed, price, rank, release, release_to
from edgeveil.jobs.ray_cluster import Ray
from edgeveil.jobs.tasks import Engine, Local

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
