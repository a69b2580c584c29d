"""Every private algorithm, one file each, behind the one protocol of `protocol`."""

from edgeveil.mechanisms.edge_flipping import EdgeFlipping
from edgeveil.mechanisms.embedding_sparse import DPEmbeddingSparse
from edgeveil.mechanisms.instant_embedding import DPInstantEmbedding
from edgeveil.mechanisms.non_private import NonPrivate
from edgeveil.mechanisms.own_neighbours import OwnNeighbours
from edgeveil.mechanisms.protocol import Mechanism
from edgeveil.mechanisms.push_flow import DPPushFlow
from edgeveil.mechanisms.push_flow_cap import DPPushFlowCap
from edgeveil.mechanisms.sparse_ppr import DPSparsePPR

__all__ = [
    "MECHANISMS",
    "DPEmbeddingSparse",
    "DPInstantEmbedding",
    "DPPushFlow",
    "DPPushFlowCap",
    "DPSparsePPR",
    "EdgeFlipping",
    "Mechanism",
    "NonPrivate",
    "OwnNeighbours",
]

MECHANISMS: tuple[type[Mechanism], ...] = (
    DPPushFlowCap,
    DPPushFlow,
    DPSparsePPR,
    DPInstantEmbedding,
    DPEmbeddingSparse,
    EdgeFlipping,
    OwnNeighbours,
    NonPrivate,
)
