"""``edgeveil token``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from edgeveil.cli.options import default, option
from edgeveil.cli.output import say
from edgeveil.errors import EdgeveilError, ParameterError

_NOT_CHECKED = default("the member is not checked")


def token(
    member: str,
    /,
    *,
    keys: Annotated[Path, option("JWKS file with a symmetric key; created if there is none.")],
    audience: str = "edgeveil",
    hours: float = 24.0,
    graph: Annotated[Path | None, _NOT_CHECKED] = None,
    nodes: Annotated[Path | None, _NOT_CHECKED] = None,
) -> None:
    """Print a test token for a member of the service.

    For tests only: whoever can read the key file can sign tokens for every member.

    Example: edgeveil token ann --keys keys.json --nodes members.txt > token

    Parameters
    ----------
    member
        Id of the member, as in the graph.
    audience
        What `edgeveil serve --audience` expects.
    hours
        How long the token is valid.
    graph
        The graph that is served: refuse a member who is not in it.
    nodes
        The node list, instead: refuse a member who is not in it.
    """
    try:
        from edgeveil.serve.tokens import new_key, sign, symmetric_key
    except ModuleNotFoundError as missing:
        raise EdgeveilError(f"tokens need {missing.name}: pip install 'edgeveil[serve]'") from None
    if not 0 < hours <= 24 * 366:
        raise ParameterError(f"--hours must be positive and at most a year, got {hours:g}")
    _check_member(member, graph, nodes)
    if not keys.exists():
        new_key(keys)
        say(f"{keys}: a new symmetric key for tests (mode 0600).")
    kid, secret = symmetric_key(keys)
    sys.stdout.write(f"{sign(member, secret, audience, 3600 * hours, kid)}\n")


def _check_member(member: str, graph: Path | None, nodes: Path | None) -> None:
    """Refuse a member whom the service would not know. The node set is public."""
    from edgeveil.graph.node_lists import read_nodes
    from edgeveil.graph.read import read_graph

    if graph is None and nodes is None:
        return
    node_set = read_nodes(nodes) if graph is None else read_graph(graph, nodes=nodes).nodes
    assert node_set is not None
    node_set.index(node_set.named(member))
