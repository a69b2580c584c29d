"""The tables of the experiments, made from results/: ``python -m experiments.tables``.

docs/reproduction.md has a short table per experiment, between ``<!-- table NAME -->`` and
``<!-- end -->``; results/NAME/README.md has all of it. A test fails if a page has others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from edgeveil.evaluation.measurements import Result
from edgeveil.evaluation.over_time import BASE, POPULARITY, SERIES
from experiments.classification import (
    ALONE,
    AP,
    EXACT,
    METHODS,
    MICRO,
    OURS,
    WITH,
    WITHOUT,
)
from experiments.figures import select
from experiments.over_time import ABOVE, END, FOUR, WEEKLY, YEAR
from experiments.results import read_results

__all__ = ["FULL", "TABLES", "fill", "full_page", "single"]

Row = Sequence[str]
_BOTH = ("POS", "BlogCatalog")


def single(results: Sequence[Result], **attributes: object) -> Result:
    """The one result with these attributes."""
    [only] = select(results, **attributes)
    return only


def _markdown(head: Row, rows: Iterator[Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _spread(result: Result, digits: int) -> str:
    """Mean and half of the interval."""
    return f"{result.mean:.{digits}f} ± {(result.high - result.low) / 2:.{digits}f}"


def _at(epsilon: float | None) -> str:
    return "∞" if epsilon == float("inf") else f"{epsilon:g}"


def _lines(results: Sequence[Result], **wanted: object) -> list[tuple[str, float | None]]:
    """Mechanism and epsilon of every line, in the order of the file."""
    return list(dict.fromkeys((r.mechanism, r.epsilon) for r in select(results, **wanted)))


def _table1(folder: Path) -> str:
    results = read_results(folder / "table1/results.csv")

    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

    def rows() -> Iterator[Row]:
        for metric in dict.fromkeys(r.metric for r in results):
            both = [single(results, dataset=d, metric=metric) for d in _BOTH]
            yield [metric, *(number(v) for r in both for v in (r.mean, r.paper_value))]

    return _markdown(["", "POS", "paper", "BlogCatalog", "paper"], rows())


def _figure1(folder: Path, epsilons: Sequence[float] | None = None) -> str:
    """The table of Figure 1, at some epsilons or all."""
    results = read_results(folder / "figure1/results.csv")
    names = {"non-private": None, "push-flow-cap without noise (not private)": "–"}
    names["own list + exact degrees (not private)"] = "–"

    def rows() -> Iterator[Row]:
        for mechanism, epsilon in _lines(results):
            at = names.get(mechanism, _at(epsilon))
            if at is None or (at != "–" and epsilon and epsilons and epsilon not in epsilons):
                continue
            cells = [
                _spread(
                    single(results, mechanism=mechanism, epsilon=epsilon, scope="all", **at_), 3
                )
                for at_ in (
                    {"metric": metric, "dataset": dataset}
                    for metric in ("recall@100", "ndcg@100")
                    for dataset in _BOTH
                )
            ]
            yield [mechanism, at, *cells]

    head = ["", "ε", "Recall@100, POS", "BlogCatalog", "NDCG@100, POS", "BlogCatalog"]
    return _markdown(head, rows())


_FIGURE2 = {
    "instant-embedding": "DP InstantEmbedding, joint",
    "edge flipping + InstantEmbedding": "edge flipping, own edges true (joint)",
    "edge flipping + InstantEmbedding, public": "edge flipping, no true edges (public)",
}


def _figure2(folder: Path, epsilons: Sequence[float] | None = None) -> str:
    """The table of Figure 2, at some epsilons or all; 0 and infinity are always there."""
    results = read_results(folder / "figure2/results.csv")
    metric = "micro-F1 x 100"
    # Line by line, as in the figure.
    lines = _lines(results, metric=metric)
    order = list(dict.fromkeys(mechanism for mechanism, _ in lines))
    lines.sort(key=lambda line: order.index(line[0]))

    def rows() -> Iterator[Row]:
        for mechanism, epsilon in lines:
            if epsilons and epsilon not in (*epsilons, 0.0, None, float("inf")):
                continue
            pos, blog = (
                single(results, mechanism=mechanism, epsilon=epsilon, metric=metric, dataset=d)
                for d in _BOTH
            )
            paper = "–" if blog.paper_value is None else f"{blog.paper_value:.1f}"
            name = _FIGURE2.get(mechanism, mechanism)
            yield [name, _at(epsilon), _spread(blog, 1), paper, _spread(pos, 1)]

    return _markdown(["", "ε", "BlogCatalog", "paper", "POS"], rows())


def _residual(folder: Path) -> str:
    results = read_results(folder / "residual/results.csv")
    kinds = ("public", "joint", "joint with prepush")

    def rows() -> Iterator[Row]:
        for sigma in ("1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1"):
            names = [f"push-flow-cap without noise, {kind}, sigma={sigma}" for kind in kinds]
            cells = [single(results, dataset=d, mechanism=m).mean for d in _BOTH for m in names]
            yield [sigma, *(f"{cell:.2f}" for cell in cells)]

    head = ["σ", "POS: public", "joint", "joint, prepush"]
    return _markdown([*head, "BlogCatalog: public", *head[2:]], rows())


def _beyond(folder: Path, epsilons: Sequence[float] = (0.1, 1.0, 5.0, 10.0)) -> str:
    """Recall of all mechanisms, by scope and epsilon."""
    results = read_results(folder / "beyond/results.csv")
    names = {"two-hop": "two-hop", "degree-prior": "degree prior", "forward-cap": "forward cap"}
    names |= {"push-flow-cap (paper)": "push-flow-cap (paper)"}
    names |= {"graph-diffusion": "graph diffusion", "edge flipping": "edge flipping"}

    def rows() -> Iterator[Row]:
        for scope in ("all", "non-neighbours", "lift"):
            for epsilon in epsilons:
                key = {"scope": scope, "epsilon": epsilon, "metric": "recall@100"}
                cells = [
                    [single(results, mechanism=m, dataset=d, **key).mean for d in _BOTH]
                    for m in names
                ]
                yield [scope, f"{epsilon:g}", *(f"{pos:.3f} / {blog:.3f}" for pos, blog in cells)]

    return _markdown(["", "ε", *names.values()], rows())


def _embeddings(folder: Path) -> str:
    results = read_results(folder / "embeddings/results.csv")
    key = {"metric": "micro-F1 x 100", "scope": "all"}
    datasets = list(dict.fromkeys(r.dataset for r in results))

    def rows() -> Iterator[Row]:
        for mechanism, epsilon in _lines(results, **key):
            all_of_it = [
                single(results, mechanism=mechanism, epsilon=epsilon, dataset=d, **key)
                for d in datasets
            ]
            yield [mechanism, _at(epsilon), *(_spread(r, 1) for r in all_of_it)]

    return _markdown(["", "ε", *datasets], rows())


_LOSSES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of private lists


def _suggestions(folder: Path, scopes: Sequence[str] | None = None) -> str:
    """What lists find, for some groups of members or all."""
    hits = select(read_results(folder / "suggestions/results.csv"), metric="hits@20")
    scores = ("common neighbours", "resource allocation", "pagerank")

    def rows() -> Iterator[Row]:
        for dataset, scope in dict.fromkeys((r.dataset, r.scope) for r in hits):
            if scopes and scope not in scopes:
                continue
            here = select(hits, dataset=dataset, scope=scope)
            cells = [
                single(here, mechanism="popularity"),
                *(single(here, mechanism="suggest", epsilon=epsilon) for epsilon in _LOSSES),
                *(single(here, mechanism=name) for name in scores),
            ]
            widest = max((r.high - r.low) / 2 for r in cells)
            spread = f"{widest:.2f}" if cells[0].n_sources > 1 else "–"
            yield [
                *(dataset, scope.removesuffix(" friends")),
                *(f"{r.mean:.2f}" for r in cells),
                spread,
            ]

    losses = [f"ε = {_LOSSES[0]:g}", *map(_at, _LOSSES[1:])]
    head = ["network", "friends", "popularity", *losses, "CN", "RA", "PPR", "± at most"]
    return _markdown(head, rows())


def _groups(folder: Path) -> str:
    results = read_results(folder / "suggestions/results.csv")
    popular = "mostly popular, share of lists"

    def rows() -> Iterator[Row]:
        for size in select(results, metric="members"):
            here = select(results, dataset=size.dataset, scope=size.scope)
            measured = single(here, mechanism="popularity").n_sources
            cells = [
                *(single(here, metric=popular, epsilon=epsilon).mean for epsilon in _LOSSES),
                *(single(here, mechanism="limit", epsilon=epsilon).mean for epsilon in _LOSSES),
            ]
            head = [size.dataset, size.scope.removesuffix(" friends"), f"{size.mean:,.0f}"]
            yield [*head, f"{measured}", *(f"{cell:.2f}" for cell in cells)]

    losses = list(map(_at, _LOSSES))
    popular_at = [f"mostly popular, ε = {losses[0]}", *losses[1:]]
    limit_at = [f"limit, ε = {losses[0]}", *losses[1:]]
    return _markdown(["network", "friends", "members", "measured", *popular_at, *limit_at], rows())


def _over_time(folder: Path, epsilons: Sequence[float] | None = None) -> str:
    """What lists find over a year, by use of the total epsilon."""
    results = read_results(folder / "time/results.csv")
    year, before, last = (f"hits@20, {when}" for when in (YEAR, "week 51", "week 52"))

    def rows() -> Iterator[Row]:
        for gain in select(results, metric=f"{year}, {ABOVE}"):
            if epsilons and gain.epsilon not in epsilons:
                continue
            here = select(results, dataset=gain.dataset, scope=gain.scope)
            at = {"epsilon": gain.epsilon}
            cells = [
                single(here, mechanism=POPULARITY, metric=year),
                *(
                    single(here, mechanism=m, metric=year, **at)
                    for m in (WEEKLY, FOUR, BASE, SERIES)
                ),
                gain,
                single(here, mechanism=BASE, metric=last, **at),
                *(single(here, mechanism=SERIES, metric=when, **at) for when in (before, last)),
                single(here, mechanism=END, metric=last, **at),
            ]
            shown = [_spread(r, 3) if r is gain else f"{r.mean:.3f}" for r in cells]
            group = [gain.dataset, gain.scope.removesuffix(" friends"), _at(gain.epsilon)]
            yield [*group, *shown, f"{gain.n_sources}"]

    head = ["network", "friends", "ε", "year: popularity", WEEKLY, FOUR, BASE, SERIES]
    head += [f"series {ABOVE}", f"last day: {BASE}", "series, week 51", "series, week 52"]
    return _markdown([*head, END, "members"], rows())


def _classes(folder: Path, metric: str, networks: Sequence[str] | None = None) -> str:
    """Ours by epsilon, between no graph and exact sums."""
    results = select(read_results(folder / "classification/results.csv"), metric=metric)
    if not results:
        return ""
    epsilons = sorted({r.epsilon for r in results if r.mechanism == OURS and r.epsilon})

    def rows() -> Iterator[Row]:
        for name, scope in dict.fromkeys((r.dataset, r.scope) for r in results):
            if networks is None or name in networks:
                here = partial(single, results, dataset=name, scope=scope)
                cells = [
                    here(mechanism=ALONE),
                    *(here(mechanism=OURS, epsilon=epsilon) for epsilon in epsilons),
                    here(mechanism=EXACT),
                ]
                widest = max((r.high - r.low) / 2 for r in cells)
                said = [f"{r.mean:.3f}" for r in cells]
                yield [name, scope.removesuffix(" labelled"), *said, f"{widest:.3f}"]

    at = [f"ε = {epsilons[0]:g}", *map(_at, epsilons[1:])]
    return _markdown(["network", "labelled", "no graph", *at, "exact", "± at most"], rows())


def _other_methods(folder: Path, networks: Sequence[str] | None = None) -> str:
    """Every method on the same nodes, with features."""
    results = select(read_results(folder / "classification/results.csv"), metric=WITH)
    results = [r for r in results if r.mechanism not in (ALONE, EXACT)]
    peers = {r.dataset: r.scope for r in results if r.mechanism == "LPGNet"}
    chosen = [name for name in peers if networks is None or name in networks]
    epsilons = sorted({r.epsilon or 0 for r in results if r.mechanism == "LPGNet"})

    def rows() -> Iterator[Row]:
        for method, promise in METHODS.items():
            cells = []
            for name in chosen:
                line = select(results, dataset=name, scope=peers[name], mechanism=method)
                means = {r.epsilon: f"{r.mean:.3f}" for r in line}
                cells += [means.get(epsilon, "–") for epsilon in epsilons]
            yield [method, promise, *cells]

    heads = [f"{name}, ε = {e:g}" if e == epsilons[0] else f"{e:g}" for name in chosen
             for e in epsilons]  # fmt: skip
    return _markdown(["", "guarantee", *heads], rows())


def _time(folder: Path) -> str:
    def rows() -> Iterator[Row]:
        for facts in sorted(folder.glob("*/machine.json")):
            machine = json.loads(facts.read_text())
            version = machine["versions"]["edgeveil"]
            yield [facts.parent.name, f"{machine['seconds']:,.0f}", machine["cpu"], version]

    return _markdown(["", "seconds", "processor", "version of edgeveil"], rows())


def _time_list(folder: Path) -> str:
    """Every experiment with a link to its folder and its computing time."""
    lines = _time(folder).splitlines()
    there = {file.parent.name for file in folder.glob("*/README.md")} | set(FULL)
    return "\n".join(
        re.sub(r"^\| (\w+) ", lambda m: f"| [{m[1]}]({m[1]}/README.md) ", line)
        if line.split(" ")[1] in there
        else line
        for line in lines
    )


# On docs/reproduction.md.
TABLES: dict[str, Callable[[Path], str]] = {
    "table1": _table1,
    "figure1": partial(_figure1, epsilons=(0.1, 1.0, 5.0)),
    "figure2": partial(_figure2, epsilons=(0.01, 0.1, 1.0, 3.0, 5.0, 10.0)),
    "residual": _residual,
    "beyond": partial(_beyond, epsilons=(0.1, 1.0, 5.0)),
    "embeddings": _embeddings,
    "suggestions": partial(
        _suggestions, scopes=("5-20 friends", "20-50 friends", "50-200 friends")
    ),
    "over_time": partial(_over_time, epsilons=(1.0,)),
    "classification": partial(
        _classes, metric=WITH, networks=("Amherst", "Reed", "Facebook pages", "Cora")
    ),
    "other_methods": partial(_other_methods, networks=("Amherst", "Cora")),
}

# Beside the results: title, anchor of the experiment on docs/reproduction.md, tables.
FULL: dict[str, tuple[str, str, dict[str, Callable[[Path], str]]]] = {
    "figure1": ("Figure 1", "figure-1-accuracy-of-rankings", {"All nodes": _figure1}),
    "figure2": (
        "Figure 2",
        "figure-2-node-classification",
        {"Micro-F1 x 100, dimension 256, 10 splits, each with its own hash": _figure2},
    ),
    "beyond": ("Rankings", "rankings", {"Recall@100, POS / BlogCatalog": _beyond}),
    "suggestions": (
        "Suggestions",
        "suggestions",
        {
            "hits@20; the last column is the widest half of an interval in its row": _suggestions,
            "The groups, the share of lists that are mostly popular names, and the "
            "[limit](../../docs/theory/limits.md), an upper bound for private lists that use "
            "common friends and popularity": _groups,
        },
    ),
    "time": ("Over time", "over-time", {"hits@20": _over_time}),
    "classification": (
        "Classification",
        "classification",
        {
            "Accuracy, with features": partial(_classes, metric=WITH),
            "Accuracy, without features": partial(_classes, metric=WITHOUT),
            "Other methods, with features": _other_methods,
            "Average precision for a dormitory of 1 to 2 % of the nodes, mean over dormitories": (
                partial(_classes, metric=AP)
            ),
            "Micro-F1, several labels a node": partial(_classes, metric=MICRO),
        },
    ),
}

_NOTE = "<!-- Written by `python -m experiments.tables` from the files beside this page. -->"


def full_page(name: str, folder: Path) -> str:
    """The page of one experiment with all its numbers; the name "" is the list of experiments."""
    if not name:
        words = (
            "Every experiment has its numbers (`results.csv`), its figure and the facts of the run "
            "(`machine.json`) in a folder of its own; what they mean is in "
            "[Reproducing the paper](../docs/reproduction.md). Computing time on 2 shared cores "
            "that did other work at the same time:"
        )
        return "\n\n".join(["# Results in full", _NOTE, words, _time_list(folder)]) + "\n"
    title, anchor, tables = FULL[name]
    protocol = f"[Protocol and reading](../../docs/reproduction.md#{anchor})."
    blocks = [f"# {title} in full", _NOTE, protocol, f"![{title}]({name}.png)"]
    for caption, table in tables.items():
        if text := table(folder):
            blocks += [f"{caption}:", text]
    return "\n\n".join(blocks) + "\n"


def fill(page: str, folder: Path) -> str:
    """The page with every marked table made anew from the results in `folder`."""

    def refreshed(match: re.Match[str]) -> str:
        return f"<!-- table {match[1]} -->\n\n{TABLES[match[1]](folder)}\n\n<!-- end -->"

    return re.sub(r"<!-- table (\w+) -->.*?<!-- end -->", refreshed, page, flags=re.DOTALL)


if __name__ == "__main__":
    page, results = Path("docs/reproduction.md"), Path("results")
    page.write_text(fill(page.read_text("utf-8"), results), "utf-8")
    for name in ("", *FULL):
        (results / name / "README.md").write_text(full_page(name, results), "utf-8")
