"""Personalized PageRank from a private graph, with a proven guarantee for every edge.

>>> import edgeveil as ev
>>> network = ev.social_network(200, average_degree=10)
>>> ranking = ev.release(network.graph, ev.DPPushFlowCap(epsilon=1.0), sources=[7])
>>> len(ranking.top(5))
5

Names are loaded when first used, so that importing the package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgeveil.advice import recommended
    from edgeveil.auditing import audit
    from edgeveil.datasets import LabelledGraph, load_blogcatalog, load_pos, social_network
    from edgeveil.engine import embed, rank, release, release_to
    from edgeveil.errors import (
        BudgetError,
        EdgeveilError,
        InputError,
        LedgerError,
        ParameterError,
        PromiseError,
        UnknownNodeError,
    )
    from edgeveil.estimators import PrivateEmbedding
    from edgeveil.evaluation.own_graph import evaluate
    from edgeveil.flow import personalized_pagerank, push_flow, push_flow_cap
    from edgeveil.graph import Graph
    from edgeveil.io import as_graph, open_graph, read_graph, save_graph
    from edgeveil.ledger import Ledger
    from edgeveil.mechanisms import (
        DegreePrior,
        DPEmbeddingSparse,
        DPForwardCap,
        DPInstantEmbedding,
        DPPushFlow,
        DPPushFlowCap,
        DPSparsePPR,
        EdgeFlipping,
        GraphDiffusion,
        Mechanism,
        NonPrivate,
        OwnNeighbours,
        TwoHop,
        TwoHopEmbedding,
    )
    from edgeveil.nodes import NodeSet
    from edgeveil.privacy.guarantee import Guarantee
    from edgeveil.privacy.noise import NoiseSource
    from edgeveil.release_folder import ReleaseFolder
    from edgeveil.releases import Release

__all__ = [
    "BudgetError",
    "DPEmbeddingSparse",
    "DPForwardCap",
    "DPInstantEmbedding",
    "DPPushFlow",
    "DPPushFlowCap",
    "DPSparsePPR",
    "DegreePrior",
    "EdgeFlipping",
    "EdgeveilError",
    "Graph",
    "GraphDiffusion",
    "Guarantee",
    "InputError",
    "LabelledGraph",
    "Ledger",
    "LedgerError",
    "Mechanism",
    "NodeSet",
    "NoiseSource",
    "NonPrivate",
    "OwnNeighbours",
    "ParameterError",
    "PrivateEmbedding",
    "PromiseError",
    "Release",
    "ReleaseFolder",
    "TwoHop",
    "TwoHopEmbedding",
    "UnknownNodeError",
    "as_graph",
    "audit",
    "embed",
    "evaluate",
    "load_blogcatalog",
    "load_pos",
    "open_graph",
    "personalized_pagerank",
    "push_flow",
    "push_flow_cap",
    "rank",
    "read_graph",
    "recommended",
    "release",
    "release_to",
    "save_graph",
    "social_network",
]

_HOMES = {
    "auditing": "audit",
    "datasets": "LabelledGraph load_blogcatalog load_pos social_network",
    "engine": "embed rank release release_to",
    "errors": "BudgetError EdgeveilError InputError LedgerError ParameterError PromiseError "
    "UnknownNodeError",
    "estimators": "PrivateEmbedding",
    "evaluation.own_graph": "evaluate",
    "flow": "personalized_pagerank push_flow push_flow_cap",
    "graph": "Graph",
    "io": "as_graph open_graph read_graph save_graph",
    "ledger": "Ledger",
    "mechanisms": "DPEmbeddingSparse DPForwardCap DPInstantEmbedding DPPushFlow DPPushFlowCap "
    "DPSparsePPR DegreePrior EdgeFlipping GraphDiffusion Mechanism NonPrivate OwnNeighbours "
    "TwoHop TwoHopEmbedding",
    "nodes": "NodeSet",
    "privacy.guarantee": "Guarantee",
    "privacy.noise": "NoiseSource",
    "advice": "recommended",
    "release_folder": "ReleaseFolder",
    "releases": "Release",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "engine":  # a part of its own: ``ev.engine.Ray``
        return import_module("edgeveil.engine")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'edgeveil' has no attribute {name!r}")
    value = getattr(import_module(f"edgeveil.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
