"""Every private algorithm, one file each or one for a family, with the interface of `base`."""

from edgeveil.mechanisms.aggregation import Aggregation
from edgeveil.mechanisms.base import Mechanism
from edgeveil.mechanisms.baselines import NonPrivate, OwnNeighbours
from edgeveil.mechanisms.capped_flow import (
    DPEmbeddingSparse,
    DPInstantEmbedding,
    DPPushFlowCap,
    DPSparsePPR,
)
from edgeveil.mechanisms.dp_push_flow import DPPushFlow
from edgeveil.mechanisms.edge_flipping import EdgeFlipping
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.mechanisms.node_classes import NodeClasses
from edgeveil.mechanisms.own_list import OwnListEmbedding
from edgeveil.mechanisms.two_hop import DegreePrior, TwoHop

__all__ = [
    "DATA_MECHANISMS",
    "MECHANISMS",
    "Aggregation",
    "DPEmbeddingSparse",
    "DPInstantEmbedding",
    "DPPushFlow",
    "DPPushFlowCap",
    "DPSparsePPR",
    "DegreePrior",
    "EdgeFlipping",
    "Mechanism",
    "NodeClasses",
    "NonPrivate",
    "OwnListEmbedding",
    "OwnNeighbours",
    "Suggest",
    "TwoHop",
]

# Made by a function of the library from public data of the nodes, not from plain parameters alone
DATA_MECHANISMS: tuple[type[NodeClasses], ...] = (NodeClasses,)

MECHANISMS: tuple[type[Mechanism], ...] = (
    Suggest,
    TwoHop,
    DegreePrior,
    OwnListEmbedding,
    Aggregation,
    DPPushFlowCap,
    DPPushFlow,
    DPSparsePPR,
    DPInstantEmbedding,
    DPEmbeddingSparse,
    EdgeFlipping,
    OwnNeighbours,
    NonPrivate,
)
