"""One job: request, price, charge, draw, store; and the engines that compute rows."""

from edgeveil.jobs.embedding import embed
from edgeveil.jobs.job import ReleaseJob, ReleasePrice, prepare, price, release, release_to
from edgeveil.jobs.ranking import rank
from edgeveil.jobs.ray_cluster import Ray
from edgeveil.jobs.tasks import Engine, Local

__all__ = [
    "Engine",
    "Local",
    "Ray",
    "ReleaseJob",
    "ReleasePrice",
    "embed",
    "prepare",
    "price",
    "rank",
    "release",
    "release_to",
]
