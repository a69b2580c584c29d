"""``edgeveil demo``."""

from __future__ import annotations

from edgeveil.cli.output import print_table, say

__all__ = ["demo"]


def demo(*, source: int = 7, epsilon: float = 1.0, top: int = 10) -> None:
    """Rank a member of the built-in social network: exactly, capped, and privately.

    Example: edgeveil demo

    Parameters
    ----------
    source
        The member to rank for.
    epsilon
        Privacy loss of the private ranking.
    top
        How many members to show.
    """
    from edgeveil.datasets import social_network
    from edgeveil.engine import release
    from edgeveil.flow import personalized_pagerank, push_flow_cap
    from edgeveil.mechanisms import DPPushFlowCap

    network = social_network()
    graph = network.graph
    say(f"Built-in social network: {graph.n_nodes:,} members, {graph.n_edges:,} friendships.")
    at = graph.nodes.index(source)
    mechanism = DPPushFlowCap(epsilon=epsilon, prepush=True)
    exact = personalized_pagerank(graph, [at])[0]
    capped = push_flow_cap(graph, [at], sigma=mechanism.sigma, prepush=True)[0]
    private = release(graph, mechanism, [source])

    truth = {int(v): rank for rank, v in enumerate((-exact).argsort(kind="stable"), 1)}
    rows = [
        (rank, node, score, float(capped[at_node]), float(exact[at_node]), truth[at_node])
        for rank, (node, score) in enumerate(private.top(top), 1)
        for at_node in [graph.nodes.index(node)]
    ]
    print_table(
        ["rank", "member", "private score", "capped flow", "exact PageRank", "true rank"],
        rows,
        title=f"Who is close to member {source}? (the last three columns are the curator's)",
    )
    say(str(private))
