"""``edgeveil demo``: lists for six members of a built-in network, years of others, and pages."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import edgeveil as ev
from edgeveil._internal.checks import check_int
from edgeveil.cli.options import Flag, checked
from edgeveil.cli.output import say
from edgeveil.cli.report import EPSILONS, measured

if TYPE_CHECKING:
    from edgeveil.evaluation.hits import HiddenEdges
    from edgeveil.evaluation.measurements import Result
    from edgeveil.graph.nodes import NodeId
    from edgeveil.report import MemberList

_NAME = "built-in network"
_PAGE = Path("edgeveil-demo.html")
_FRIENDS = (130, 80, 50, 30, 20, 10)  # approximate degrees of the members shown
_EPSILON, _PLACES = 1.0, 10
_K = 20
_YEARS = (0.25, 0.5, 1.0, 2.0)  # epsilons of the second part
_FIRST_YEAR = 2016
_BEST = "resource allocation"  # one line without privacy is enough


def demo(
    *,
    out: Path | None = None,
    overwrite: Flag = False,
    members: Annotated[int, checked(partial(check_int, "--members", least=1, most=10_000))] = 100,
    seed: int = 0,
) -> None:
    """Make private lists and predictions from a built-in network, and a page of each.

    The first part hides a tenth of the friendships, makes lists from the others,
    and counts the hidden friends on them. Beside these are popularity, lists
    without privacy, and the limit of lists that are made from common friends and
    popularity. In the second part half of the members have said which school year
    they are in, and the years of the others are predicted. It takes less than a
    minute.
    Example: edgeveil demo --out demo.html

    Parameters
    ----------
    out
        The page of lists: one file that opens offline. By default edgeveil-demo.html, which
        replaces the page of an earlier demo. That of school years has -years in its name.
    overwrite
        Replace pages that exist, if --out names them.
    members
        How many members of each degree group are measured.
    seed
        Seed of the network. The noise of the lists shown is always fresh.
    """
    from edgeveil.cli.reading import check_out

    lists, replaced = out or _PAGE, overwrite or out is None
    check_out(lists, overwrite=replaced)
    years = lists.with_name(f"{lists.stem}-years{lists.suffix}")
    check_out(years, overwrite=replaced)
    start = time.perf_counter()
    graph = named_network(seed)
    _show_lists(graph, seed, members, lists)
    _show_years(graph, seed, years)
    say(f"Done in {time.perf_counter() - start:.0f} s. Open these pages in a browser:")
    sys.stdout.write(f"{lists.resolve()}\n{years.resolve()}\n")


def named_network(seed: int) -> ev.Graph:
    """The built-in network, with names as ids."""
    network = ev.datasets.social_network(seed=seed)
    u, v = network.graph.adjacency().nonzero()
    return ev.Graph.from_edges(u, v, ev.NodeSet.of_strings(network.names))


def _show_lists(graph: ev.Graph, seed: int, members: int, out: Path) -> None:
    """Find hidden friendships by lists made from the others; `members` of each group count."""
    from edgeveil.evaluation.hits import hide_edges
    from edgeveil.report import page_from_releases, write_page
    from edgeveil.report.list_page import member_lists

    split = hide_edges(graph, seed=seed)
    say(
        f"A generated network of {graph.n_nodes:,} members and {graph.n_edges:,} friendships. A "
        "tenth of the friendships is hidden. Do private lists find them?"
    )
    suggestions = ev.suggest(split.left, _shown_members(split), epsilon=_EPSILON, k=_PLACES)
    _print_lists(member_lists([suggestions], split.left, _NAME, split.hidden), split)
    say(
        "Show each list only to the member it was made for. It protects from that member every "
        "friendship between other people: with or without it, no list is more than "
        f"e^{_EPSILON:g} (about {math.exp(_EPSILON):.2f}) times as likely. The marks (*) are for "
        "the curator only."
    )
    results = measured(graph, _NAME, EPSILONS, _K, members=members, seed=seed)
    _print_hits(results)
    page = page_from_releases(
        [suggestions],
        split.left,
        title="Whom six members may know, privately",
        name=_NAME,
        hidden=split.hidden,
        results=results,
        summary=[
            f"A generated network of {graph.n_nodes:,} members. A tenth of its friendships was "
            "hidden, and the lists were made from the others."
        ],
    )
    write_page(out, page)


def _shown_members(split: HiddenEdges) -> list[NodeId]:
    """Six members with two hidden friends or more, from many friends to few."""
    import numpy as np

    able = np.flatnonzero(split.hidden.degrees > 1)
    friends = split.left.degrees[able]
    return split.left.nodes.take(able[np.abs(friends - wanted).argmin()] for wanted in _FRIENDS)


def _print_lists(lists: Sequence[MemberList], split: HiddenEdges) -> None:
    """One column per member, one line per rank, and what each kind of list found."""
    graph, nodes = split.left, split.left.nodes
    ours, exact, popular = (lists[i::3] for i in range(3))
    at = [nodes.index(shown.member) for shown in ours]
    lines = [["rank", *(str(shown.member) for shown in ours)]]
    lines.append(["", *(f"{graph.degrees[v]} friends" for v in at)])
    for place in range(_PLACES):
        rows = [shown.rows[place] for shown in ours]
        lines.append([f"{place + 1}", *(f"{row.node}{'*' * bool(row.right)}" for row in rows)])
    for name, kind in (("private", ours), ("exact", exact), ("popular", popular)):
        hits = [sum(bool(row.right) for row in shown.rows) for shown in kind]
        hidden = (split.hidden.degrees[v] for v in at)
        lines.append([name, *(f"{n}* of {m}" for n, m in zip(hits, hidden, strict=True))])
    sys.stdout.write(
        f"\nPrivate lists at epsilon {_EPSILON:g} (*: a hidden friend). The last rows count\n"
        "hidden friends found by private lists, by lists without privacy (exact), and\n"
        "by popularity.\n\n"
    )
    _write_columns(lines, [8, *[12] * len(ours)])
    sys.stdout.write(
        "By chance, a private list can find more than an exact one, because there are\n"
        "few hidden friends to find. Averages over many members follow.\n\n"
    )


def _print_hits(results: Sequence[Result]) -> None:
    """hits@k by degree group: private lists and their limit at each epsilon, and the levels."""
    mean = {
        (r.scope, r.mechanism, r.epsilon): f"{r.mean:.2f}"
        for r in results
        if r.metric == f"hits@{_K}"
    }
    lines = [["members with", *(f"{e:g}" for e in EPSILONS), "popular", "exact"]]
    for group in dict.fromkeys(scope for scope, _, _ in mean):
        levels = [mean[group, name, None] for name in ("popularity", _BEST)]
        lines.append([group, *(mean[group, "suggest", e] for e in EPSILONS), *levels])
        lines.append(["  limit", *(mean[group, "limit", e] for e in EPSILONS)])
    sys.stdout.write(
        f"\nShare of hidden friends found by private lists of {_K} (hits@{_K}), by epsilon. The"
        "\nlimit is an upper bound for private lists that use common friends and"
        "\npopularity. Exact is resource allocation, a common score without privacy;"
        "\nprivate lists use another score and may find more.\n\n"
    )
    _write_columns(lines, [17, *[7] * len(EPSILONS), 10, 7])


def _show_years(graph: ev.Graph, seed: int, out: Path) -> None:
    """Predict the school years of half of the members from those of the others."""
    import numpy as np

    from edgeveil.report import page_from_predictions, write_page

    first = ev.datasets.social_network(seed=seed).labels.argmax(axis=1)
    years = dict(zip(graph.nodes, (np.ravel(first) + _FIRST_YEAR).tolist(), strict=True))
    rng = np.random.default_rng(seed)
    told = {member: year for member, year in years.items() if rng.random() < 0.5}
    say(
        f"Second part: {len(told):,} members have said which school year they are in. Do private "
        "predictions find the years of the others?"
    )
    lines = [["epsilon", *(f"{epsilon:g}" for epsilon in _YEARS)]]
    said, right = ["  as published"], ["  in truth"]
    for epsilon in _YEARS:
        predictions = ev.classify(graph, told, epsilon=epsilon)
        published = zip(predictions.nodes, predictions.classified, strict=True)
        right.append(f"{np.mean([years[node] == year for node, year in published]):.2f}")
        said.append("-" if predictions.accuracy is None else f"{predictions.accuracy:.2f}")
        if epsilon == _EPSILON:
            page = page_from_predictions(
                predictions,
                title="School years, predicted privately",
                without="year frequencies",
                summary=[
                    f"A generated network of {graph.n_nodes:,} members. {len(told):,} of them have "
                    "said which school year they are in; the years of the others are predicted "
                    "from these and from all friendships."
                ],
            )
            write_page(out, page)
    alone = np.bincount(list(told.values())).max() / len(told)
    sys.stdout.write(
        f"\nShare of right years, by epsilon ({alone:.2f} with the most frequent year alone). "
        "What\nis published is measured on a tenth of the members with a year, set aside.\n\n"
    )
    _write_columns([*lines, said, right], [17, *[7] * len(_YEARS)])
    say(
        f"Anyone may see the page of years, made at epsilon {_EPSILON:g}. It protects every "
        "friendship from everybody, for all members together: with or without it, nothing on the "
        f"page is more than e^{_EPSILON:g} (about {math.exp(_EPSILON):.2f}) times as likely. The "
        "years that members have told are not protected. The table is for the curator only: its "
        "epsilons add up, and the share in truth is exact."
    )


def _write_columns(lines: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=False))
        sys.stdout.write(f"{''.join(cells).rstrip()}\n")
    sys.stdout.write("\n")
