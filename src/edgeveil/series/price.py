"""The price of a refresh, from public numbers only, before anything is merged or drawn."""

from __future__ import annotations

import os
from dataclasses import dataclass

from edgeveil.graph.graph import Graph
from edgeveil.ledger import Campaign, Ledger
from edgeveil.ledger.snapshots import SERIES
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.series.campaign import series_campaign, series_to_refresh
from edgeveil.series.history import check_node_list


@dataclass(frozen=True)
class RefreshPrice:
    """The price of a refresh.

    Attributes
    ----------
    n_members : int
        Members in today's graph.
    n_newcomers : int
        Members who would be charged now, for all their future lists.
    n_left_out : int
        Members whose budget does not allow the charge.
    epsilon : float
        Price for each newcomer.
    least_left : float
        Lowest remaining budget of any member, before the charge.
    """

    n_members: int
    n_newcomers: int
    n_left_out: int
    epsilon: float
    least_left: float


def price_refresh(
    graph: Graph,
    *,
    ledger: Ledger,
    epsilon: float,
    label: str = "",
    folder: str | os.PathLike[str] | None = None,
    knows_followers: bool = False,
    nodes_from_edges: bool = False,
) -> RefreshPrice:
    """The price of `refresh` with the same arguments. Only the ids of the graph are read."""
    check_node_list(graph, allowed=nodes_from_edges)
    mechanism = Suggest(epsilon=epsilon, directed=graph.directed, knows_followers=knows_followers)
    now = series_to_refresh(ledger, label, folder, mechanism)
    names = [str(node) for node in graph.nodes.ids.tolist()]
    if now is None:
        campaign = Campaign(
            identity="a new series",
            guarantee=mechanism.guarantee,
            label=label,
            fingerprint=SERIES,
        )
    else:
        campaign = series_campaign(mechanism, now.history, label, {})
    found = ledger.newcomers(campaign, names)
    return RefreshPrice(
        n_members=len(names),
        n_newcomers=len(found.able),
        n_left_out=len(found.unable),
        epsilon=mechanism.epsilon,
        least_left=ledger.account().left,
    )
