"""The page of `edgeveil demo`: fresh private rankings, the truth beside them, all numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from edgeveil.engine import rank
from edgeveil.evaluation.results import Result
from edgeveil.flow import personalized_pagerank
from edgeveil.graph import Graph
from edgeveil.report.page_data import (
    GuaranteeText,
    PageData,
    RankedNode,
    RankingExample,
    ResultRow,
)

__all__ = ["ranking_examples", "result_rows", "showcase_page", "summary"]

_TOP = 20


def showcase_page(
    name: str,
    graph: Graph,
    results: Sequence[Result],
    members: Sequence[int],
    epsilons: Sequence[float],
    facts: dict[str, str],
) -> PageData:
    """Rank a few members with fresh noise and put everything on one page.

    Parameters
    ----------
    name : str
        The network's name.
    graph : Graph
        The network.
    results : sequence of Result
        What was measured (curator's part).
    members : sequence of int
        Whose rankings to show.
    epsilons : sequence of float
        At which privacy losses.
    facts : dict
        About the machine and the run.
    """
    examples, guarantees = ranking_examples(name, graph, members, epsilons)
    return PageData(
        title=f"edgeveil: private rankings and embeddings of the {name}",
        summary=summary(graph, results),
        facts=facts,
        results=result_rows(results),
        rankings=examples,
        guarantees=guarantees,
        notes=_notes(results),
    )


def ranking_examples(
    name: str, graph: Graph, members: Sequence[int], epsilons: Sequence[float]
) -> tuple[list[RankingExample], list[GuaranteeText]]:
    """Fresh private rankings of a few members (indices), the true ones, and what is promised.

    Every release is shown twice: without the member's friends first, for whom a member does not
    know is what a ranking is for, and at the head of the other one there are hardly any.
    """
    strangers: list[RankingExample] = []
    everybody: list[RankingExample] = []
    texts: dict[tuple[str, float], str] = {}
    for member in members:
        friends = {int(v) for v in graph.neighbours(member)}
        views = [
            _View(f"{name}, friends left out", member, {member} | friends, friends, strangers),
            _View(f"{name}, everybody", member, {member}, friends, everybody),
        ]
        exact = personalized_pagerank(graph, [member])[0]
        order = [(int(v), float(exact[v])) for v in (-exact).argsort(kind="stable")]
        for view in views:
            view.show_truth(order)
        for epsilon in epsilons:
            made = rank(graph, member, epsilon)
            mechanism = made.provenance.mechanism
            for view in views:
                pairs = [(int(v), score) for v, score in made.top(_TOP, without=view.hidden)]
                view.show(pairs, mechanism, epsilon, private=made.guarantee.private)
            texts[mechanism, epsilon] = str(made.guarantee)
    guarantees = [
        GuaranteeText(mechanism=mechanism, epsilon=epsilon, text=text)
        for (mechanism, epsilon), text in texts.items()
    ]
    return strangers + everybody, guarantees


class _View:
    """Rankings of one member among all whom it does not hide, with the truth beside them."""

    def __init__(
        self,
        name: str,
        member: int,
        hidden: set[int],
        friends: set[int],
        shown: list[RankingExample],
    ) -> None:
        self.hidden = sorted(hidden)
        self._name, self._member, self._friends, self._shown = name, member, friends, shown
        self._place: dict[int, int] = {}

    def show_truth(self, order: Sequence[tuple[int, float]]) -> None:
        """Take note of the true order of all members, and show its head."""
        hidden = set(self.hidden)
        pairs = [pair for pair in order if pair[0] not in hidden]
        self._place = {node: i for i, (node, _) in enumerate(pairs, 1)}
        self.show(pairs[:_TOP], "non-private", None, private=False)

    def show(
        self,
        pairs: Sequence[tuple[int, float]],
        mechanism: str,
        epsilon: float | None,
        *,
        private: bool,
    ) -> None:
        """Show the head of a ranking."""
        rows = [
            RankedNode(
                rank=i,
                node=node,
                score=score,
                true_rank=self._place[node],
                is_neighbour=node in self._friends,
            )
            for i, (node, score) in enumerate(pairs, 1)
        ]
        self._shown.append(
            RankingExample(
                dataset=self._name,
                source=self._member,
                mechanism=mechanism,
                epsilon=epsilon,
                private=private,
                rows=rows,
            )
        )


def result_rows(results: Sequence[Result]) -> list[ResultRow]:
    """Results as the page takes them: without protection there is no epsilon."""
    return [
        ResultRow(
            **{
                **asdict(result),
                "epsilon": None if result.epsilon == float("inf") else result.epsilon,
            }
        )
        for result in results
    ]


def _number(
    results: Sequence[Result],
    mechanism: str,
    epsilon: float | None,
    metric: str,
    scope: str = "all",
) -> float:
    return next(
        r.mean
        for r in results
        if (r.mechanism, r.metric, r.scope) == (mechanism, metric, scope)
        and (epsilon is None or r.epsilon == epsilon)
    )


def summary(graph: Graph, results: Sequence[Result]) -> list[str]:
    """What was found, in a few sentences; every number is from `results`."""
    recall, f1 = "recall@100", "micro-F1"
    ours, paper = (
        _number(results, label, 1.0, recall) for label in ("two-hop", "push-flow-cap (paper)")
    )
    own = _number(results, "own neighbours", None, recall)
    learnt, floor = (
        _number(results, label, epsilon, f1)
        for label, epsilon in (("two-hop-embedding", 1.0), ("own neighbours", None))
    )
    return [
        f"A generated social network of {graph.n_nodes:,} members. Each member gets a ranking of "
        "all others that protects every friendship it is not part of itself.",
        f"At epsilon = 1 the private rankings hold {ours:.0%} of the true top 100 (the paper's "
        f"mechanism {paper:.0%}; a member's own friend list alone, which costs nothing, "
        f"{own:.0%}).",
        f"From private embeddings at epsilon = 1 the members' groups are learnt with a Micro-F1 "
        f"of {learnt:.2f} (from their own friend lists alone: {floor:.2f}). A model that is "
        "trained on all members is the curator's, not a release.",
    ]


def _notes(results: Sequence[Result]) -> list[str]:
    """What the numbers say."""
    lift = _number(results, "two-hop", 5.0, "recall@100", "lift")
    flat = _number(results, "push-flow-cap (paper)", 5.0, "recall@100", "lift")
    chance = _number(results, "random", None, "recall@100", "lift")
    return [
        "Much of a PageRank ranking is popularity. At the paper's setting (sigma = 1e-6) every "
        "node that is not a friend of the source pushes as much flow as its cap allows, which is "
        "proportional to its degree: the result is the source's own list, followed by a noisy "
        "ranking of degrees. That is why a ranking by released degrees does as well or better.",
        f"The scope 'lift' takes popularity out. There the paper's mechanism finds {flat:.0%} of "
        f"the true top 100 at epsilon = 5 (chance: {chance:.0%}); two-hop finds {lift:.0%}.",
        "Own neighbours is the floor: what a member can compute alone. A mechanism that does not "
        "beat it is not worth its budget.",
        "Accuracy is measured against the exact graph. It is the curator's, and so is a "
        "classifier trained on the embeddings of all members: a utility experiment, not a "
        "release.",
    ]
