"""A page with the structure of a real one; its numbers are made up."""

from __future__ import annotations

import math
import random

from edgeveil.evaluation.measurements import Result
from edgeveil.report import ListedNode, MemberList, PageData

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
TOP = 20

# mechanism -> data set -> (value at small epsilon, value at large epsilon, epsilon half-way)
RECALL = {
    "two hops": {"POS": (0.70, 0.98, 0.25), "BlogCatalog": (0.72, 0.977, 0.3)},
    "degree prior": {"POS": (0.92, 0.972, 0.1), "BlogCatalog": (0.94, 0.962, 0.1)},
    "capped flow, tight": {"POS": (0.61, 0.95, 0.9), "BlogCatalog": (0.60, 0.88, 1.0)},
    "capped flow (paper)": {"POS": (0.58, 0.925, 1.2), "BlogCatalog": (0.60, 0.82, 1.4)},
    "edge flipping": {"POS": (0.12, 0.9, 5.5), "BlogCatalog": (0.06, 0.86, 6.5)},
}
LEVELS = {
    "own neighbours": (0.0, {"POS": 0.55, "BlogCatalog": 0.50}),
    "random": (None, {"POS": 0.021, "BlogCatalog": 0.010}),
    "non-private": (None, {"POS": 1.0, "BlogCatalog": 1.0}),
}
PAPER_JOINT = {0.1: 23.4, 0.5: 23.5, 1.0: 23.5, 5.0: 23.5, 10.0: 23.5}
PAPER_FLIPPING = {0.1: 15.5, 1.0: 14.1, 3.0: 11.9, 5.0: 14.7, 10.0: 30.3}


def _ranking_rows() -> list[Result]:
    rows = []
    # (metric, scope, share of the headroom, floor)
    views = [
        ("Recall@100", "all nodes", 1.0),
        ("Recall@100", "non-neighbours", 0.86),
        ("Recall@100", "lift", 0.5),
        ("NDCG@100", "all nodes", 1.01),
        ("NDCG@100", "non-neighbours", 0.93),
    ]
    for metric, scope, share in views:
        common = {"experiment": "ranking", "metric": metric, "scope": scope}
        for mechanism, by_dataset in RECALL.items():
            for dataset, (low, high, half) in by_dataset.items():
                for epsilon in EPSILONS:
                    part = epsilon**1.6 / (epsilon**1.6 + half**1.6)
                    mean = min(1.0, (low + (high - low) * part) * share)
                    if scope == "lift":
                        mean = 0.05 + 0.5 * part**3 * (mechanism == "two hops")
                    width = 0.012 + 0.02 / (1 + epsilon)
                    rows.append(
                        Result(
                            dataset=dataset, mechanism=mechanism, epsilon=epsilon, mean=mean,
                            low=max(0.0, mean - width), high=min(1.0, mean + width),
                            n_sources=80, repeats=20, **common,
                        )
                    )  # fmt: skip
        for mechanism, (level, values) in LEVELS.items():
            for dataset, mean in values.items():
                if scope != "all nodes" and mechanism == "own neighbours":
                    mean = 0.03
                rows.append(
                    Result(
                        dataset=dataset, mechanism=mechanism, epsilon=level, mean=mean, low=mean,
                        high=mean, n_sources=80, repeats=1, **common,
                    )
                )  # fmt: skip
    return rows


def _classification_rows() -> list[Result]:
    common = {
        "experiment": "classification", "dataset": "BlogCatalog", "metric": "Micro-F1",
        "scope": "50 % train", "n_sources": 10312, "repeats": 10,
    }  # fmt: skip
    rows = []
    for epsilon in EPSILONS:
        joint = 23.5 - 0.4 * math.exp(-epsilon)
        rows.append(
            Result(
                mechanism="capped flow (paper)", epsilon=epsilon, mean=joint, low=joint - 0.4,
                high=joint + 0.4, paper_value=PAPER_JOINT.get(epsilon), **common,
            )
        )  # fmt: skip
        flip = 13.8 + 16.5 / (1 + math.exp(-(epsilon - 7)))
        rows.append(
            Result(
                mechanism="edge flipping", epsilon=epsilon, mean=flip, low=flip - 0.6,
                high=flip + 0.6, paper_value=PAPER_FLIPPING.get(epsilon), **common,
            )
        )  # fmt: skip
    for mechanism, level, mean, paper in [
        ("own neighbours, unit length", 0.0, 28.7, None),
        ("majority labels", None, 17.0, None),
        ("random", None, 12.4, 12.5),
        ("non-private", None, 31.0, 30.7),
    ]:
        rows.append(
            Result.of(mean, mechanism=mechanism, epsilon=level, paper_value=paper, **common)
        )
    return rows


def _lists(mark: str) -> list[MemberList]:
    lists = []
    for member in (7, 412):
        dice = random.Random(member)
        members = dice.sample(range(1000), 200)
        common = {node: max(20 - place // 3, 0) for place, node in enumerate(members)}
        hidden = set(members[1:16:3])
        place = {"dataset": "social network", "member": member}
        truth = f"one of {len(hidden)} hidden friends"

        def rows(
            nodes: list[int], *, of: str = mark, hidden: set[int] = hidden, released: bool = False
        ) -> list[ListedNode]:
            return [
                ListedNode(
                    node=f"{of}{node}" if of else node, score=20.0 - i, right=node in hidden,
                    **(
                        {"why": f"reason {i}", "chance": i / 25, "strength": _strength(i)}
                        if released else {"first": max(i - 3, 1), "last": 2 * i + 5}
                    ),
                )
                for i, node in enumerate(nodes, 1)
            ]  # fmt: skip

        for mechanism in ("suggest", "two hops"):
            for epsilon in EPSILONS:
                noisy = {
                    node: value + dice.choice([-1, 1]) * dice.expovariate(epsilon)
                    for node, value in common.items()
                }
                best = sorted(noisy, key=lambda node: -noisy[node])[:TOP]
                lists.append(
                    MemberList(
                        mechanism=mechanism, epsilon=epsilon, private=True,
                        rows=rows(best, released=mechanism == "suggest"),
                        promise=_promise(epsilon), truth=truth,
                        in_short="In short." if mechanism == "suggest" else "",
                        remark=f"Made for {member}.",
                        **place,
                    )
                )  # fmt: skip
        for mechanism, best in (("without privacy", members), ("popularity", range(500, 600))):
            lists.append(
                MemberList(
                    mechanism=mechanism, epsilon=None, private=False, rows=rows(list(best)[:TOP]),
                    truth=truth, **place,
                )
            )  # fmt: skip
    return lists


def _strength(place: int) -> str:
    return "strong" if place < 3 else "weak" if place < 13 else f"reason {place}"


def _promise(epsilon: float) -> str:
    return (
        "Show each list only to the member it was made for. Protected: every edge that does not "
        f"touch that member, at epsilon = {epsilon:g}: with or without the edge, no outcome's "
        f"probability changes by more than a factor of e^{epsilon:g} (about "
        f"{math.exp(epsilon):.3g}). "
        f"k members who combine their lists can learn up to {epsilon:g} k about edges that touch "
        "none of them. "
        "Not covered: publishing the lists. Proof: Theorem 2 in the theory pages."
    )


def sample_page(mark: str = "") -> PageData:
    """The sample; `mark` is put before the ids of listed nodes."""
    return PageData(
        title="Personalized PageRank that hides every edge",
        summary=[
            "Who is close to whom in a network can be told without giving away who knows whom. "
            "This page shows lists from private mechanisms, what they promise, and how much "
            "of the truth survives.",
            "The numbers on this page are made up to try out its layout.",
        ],
        results=[*_ranking_rows(), *_classification_rows()],
        lists=_lists(mark),
        notes=[
            "At the paper's setting the capped flow of a node that is not the source or its "
            "neighbour is nearly proportional to its degree. What comes out is the source's own "
            "neighbour list, followed by a noisy ranking by degree.",
            "The own neighbour list alone costs no budget at all, so every private mechanism has "
            "to be read against that line. Releasing all degrees once, with noise, does better "
            "than the capped flow at every epsilon.",
            "Lift asks for more: closeness beyond popularity. There the one-hop mechanisms are "
            "at chance, and only two hops gains from a larger epsilon.",
        ],
    )
