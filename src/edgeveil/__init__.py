"""Suggestions, rankings and embeddings from a private graph, with a guarantee for every edge.

>>> import edgeveil as ev
>>> network = ev.datasets.social_network(200, average_degree=10)
>>> lists = ev.suggest(network.graph, [7, 8], epsilon=1.0)
>>> len(lists.for_member(7))
20

Further parts by name: ``ev.mechanisms``, ``ev.errors``, ``ev.datasets``, ``ev.flow``,
``ev.jobs`` and ``ev.conformance``. Names are loaded when first used, so that importing the
package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgeveil import errors as errors
    from edgeveil import flow as flow
    from edgeveil import jobs as jobs
    from edgeveil import mechanisms as mechanisms
    from edgeveil.evaluation.own_graph import evaluate
    from edgeveil.graph import datasets as datasets
    from edgeveil.graph.graph import Graph
    from edgeveil.graph.nodes import NodeSet
    from edgeveil.graph.objects import as_graph
    from edgeveil.graph.read import read_graph
    from edgeveil.graph.saved import open_graph, save_graph
    from edgeveil.jobs import embed, price, rank, release, release_to
    from edgeveil.jobs.aggregating import aggregate
    from edgeveil.jobs.choice import recommended
    from edgeveil.jobs.classifying import classify
    from edgeveil.jobs.estimators import PrivateEmbedding
    from edgeveil.jobs.node_classifier import PrivateNodeClassifier
    from edgeveil.ledger import Ledger
    from edgeveil.privacy.guarantee import Guarantee
    from edgeveil.privacy.noise import NoiseSource
    from edgeveil.results.predictions import Predictions
    from edgeveil.results.release import Release
    from edgeveil.results.suggestions import Suggestions
    from edgeveil.series.history import History
    from edgeveil.series.refreshing import refresh
    from edgeveil.series.suggesting import suggest
    from edgeveil.testing import audit
    from edgeveil.testing import conformance as conformance

__all__ = [
    "Graph",
    "Guarantee",
    "History",
    "Ledger",
    "NodeSet",
    "NoiseSource",
    "Predictions",
    "PrivateEmbedding",
    "PrivateNodeClassifier",
    "Release",
    "Suggestions",
    "aggregate",
    "as_graph",
    "audit",
    "classify",
    "embed",
    "evaluate",
    "open_graph",
    "price",
    "rank",
    "read_graph",
    "recommended",
    "refresh",
    "release",
    "release_to",
    "save_graph",
    "suggest",
]

_PARTS = {
    "conformance": "testing.conformance",
    "datasets": "graph.datasets",
    "errors": "errors",
    "flow": "flow",
    "jobs": "jobs",
    "mechanisms": "mechanisms",
}
_HOMES = {
    "jobs.choice": "recommended",
    "jobs.aggregating": "aggregate",
    "jobs.classifying": "classify",
    "testing": "audit",
    "jobs": "embed price rank release release_to",
    "jobs.estimators": "PrivateEmbedding",
    "jobs.node_classifier": "PrivateNodeClassifier",
    "evaluation.own_graph": "evaluate",
    "graph.graph": "Graph",
    "series.history": "History",
    "graph.objects": "as_graph",
    "graph.read": "read_graph",
    "graph.saved": "open_graph save_graph",
    "ledger": "Ledger",
    "graph.nodes": "NodeSet",
    "privacy.guarantee": "Guarantee",
    "privacy.noise": "NoiseSource",
    "results.predictions": "Predictions",
    "results.release": "Release",
    "series.refreshing": "refresh",
    "series.suggesting": "suggest",
    "results.suggestions": "Suggestions",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"edgeveil.{_PARTS[name]}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'edgeveil' has no attribute {name!r}")
    value = getattr(import_module(f"edgeveil.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_PARTS])
