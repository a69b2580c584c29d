"""Whether today's graph lost too much to be a normal week: a file cut short, or the wrong one."""

from __future__ import annotations

from edgeveil.errors import LossError
from edgeveil.graph.graph import Graph
from edgeveil.series.history import History

MOST_LOSS = 0.1


def check_loss(history: History, graph: Graph, most: float) -> None:
    """Refuse a graph with far fewer members or edges than the last snapshot of a history.

    The refusal depends on the edges. It is for the curator only, and outside of the guarantee.

    Raises
    ------
    LossError
        If the number of members or of edges fell by more than the share `most`.
    """
    if not len(history):
        return
    before = {"members": int(history.present.sum()), "edges": history.current_edges}
    today = {"members": graph.n_nodes, "edges": graph.n_edges}
    lost = [name for name in before if today[name] < (1 - most) * before[name]]
    if lost:
        raise LossError(
            f"today's graph has over {most:.0%} fewer {' and '.join(lost)} than snapshot "
            f"{len(history)}. Is the file complete? Nothing was merged and nobody was charged. If "
            "so many have left, pass most_loss=1 (--accept-loss)"
        )
