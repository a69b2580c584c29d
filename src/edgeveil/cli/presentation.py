"""How results are shown, to people and to programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeveil._internal.words import counted
from edgeveil.cli.output import Format, print_table, say
from edgeveil.results.release_folder import ReleaseFolder

if TYPE_CHECKING:
    from edgeveil import Predictions, Release, Suggestions
    from edgeveil.graph.nodes import NodeId
    from edgeveil.privacy.guarantee import Guarantee
    from edgeveil.results.suggestions import Suggestion

_PREDICTIONS_SHOWN = 20  # nodes in a table for people
_NOT_PRIVATE = "NOT PRIVATE: do not publish"

Line = tuple[Any, ...]


def print_rankings(
    result: Release,
    k: int,
    hidden: dict[NodeId, list[NodeId]],
    candidates: list[NodeId] | None,
    style: Format,
) -> None:
    """Print the first k nodes for every source, without those that are hidden from it."""
    for_people = style == "table"  # they see the ranks that the noise leaves open as one column

    def lines(source: NodeId) -> Iterator[Line]:
        left_out = hidden.get(source, ())
        for node in result.ranking(k, source, without=left_out, candidates=candidates):
            between = [node.first, node.last]
            yield *node[:4], *([_range(*between)] if for_people else between)

    columns = ["rank", "node", "score", "uncertainty"]
    columns += ["could_be_rank"] if for_people else ["first", "last"]
    many, title = counted(len(result.sources), "source"), f"{result.provenance.mechanism} for"
    _print_for_each(result, "source", many, columns, lines, style=style, title=title)


def _range(first: int | None, last: int | None) -> str | None:
    return f"{first}-{last}" if first != last else None if first is None else str(first)


def show_lists(
    result: Suggestions | ReleaseFolder,
    words: str | None,
    out: Path | None,
    per_member: Path | None,
    style: Format,
) -> None:
    """Print lists that go to no file, write those for each member, and say what they share."""
    if isinstance(result, ReleaseFolder):  # they are not in memory
        return
    result = result.in_words(words)
    if per_member is not None:
        result.write_per_member(per_member)
        say(f"{per_member}: {counted(len(result.members), 'file')}. Show each only to its member.")
    elif out is None:
        _print_suggestions(result, style)
    one = len(result.members) == 1
    words = result.remark(result.members[0]) if one else result.summary
    say(f"{words[0].upper()}{words[1:]}.")


def _print_suggestions(result: Suggestions, style: Format) -> None:
    """Print the list of every member; to people in the words of `made.nouns`."""
    whose, many = "member", result.nouns.counted_members(len(result.members))
    columns = ["rank", "node", "score", "common", "chance", "why"]
    line: Callable[[Suggestion], Line] = attrgetter(*columns)
    if style == "table":
        whose, columns = result.nouns.member, ["rank", "node", "strength", "why", "by_chance"]
        line = _for_people
    _print_for_each(
        result,
        whose,
        many,
        columns,
        lambda member: map(line, result.for_member(member)),
        style=style,
        title="suggestions for",
        summary=result.summary,
    )


def _for_people(line: Suggestion) -> Line:
    """One row; a name that does not stand out has a reason, and no word for its strength."""
    strength = line.strength if line.stands_out else None
    return line.rank, line.node, strength, line.why, line.by_chance


def _print_for_each(
    result: Release | Suggestions,
    whose: str,
    many: str,
    columns: list[str],
    lines: Callable[[NodeId], Iterable[Line]],
    *,
    style: Format,
    title: str,
    **metadata: Any,
) -> None:
    """Print the lines of every source; if there are several, a column named `whose` says whose."""
    several = len(result.sources) > 1
    first, own = result.sources[0], 0 if several else 1
    print_table(
        [whose, *columns][own:],
        [(source, *line)[own:] for source in result.sources for line in lines(source)],
        style=style,
        metadata={
            **({} if several else {whose: first}),
            **_protection(result.guarantee),
            **metadata,
        },
        title=f"{title} {many if several else first}",
        warning="" if result.guarantee.protects else _NOT_PRIVATE,
    )


def _protection(guarantee: Guarantee) -> dict[str, Any]:
    return {"guarantee": guarantee.as_dict(), "says": str(guarantee)}


def print_predictions(result: Predictions, style: Format) -> None:
    """Print all predictions; to people the first ones, without the probability of each class."""
    shown, measured = result.table(), result.quality
    if style == "table":
        shown = shown.select("node", "class", "probability").head(_PREDICTIONS_SHOWN)
    names = ("class", "recall", "precision", "average_precision")
    by_class: list[dict[str, Any]] = []
    if measured is not None:
        columns = (measured.recall, measured.precision, measured.average_precision)
        rows = zip(result.classes, *columns, strict=True)
        by_class = [dict(zip(names, row, strict=True)) for row in rows]
    print_table(
        shown.columns,
        shown.rows(),
        style=style,
        metadata={
            "classes": list(result.classes),
            "labelled": result.n_labelled,
            "uses_graph": result.uses_graph,
            "accuracy": result.accuracy,
            "accuracy_interval": None if measured is None else measured.accuracy_interval,
            "accuracy_without_graph": result.accuracy_without_graph,
            "by_class": by_class,
            **_protection(result.guarantee),
            "summary": result.summary,
        },
        title=f"predicted classes of {counted(len(result.nodes), 'node')}",
        warning="" if result.guarantee.protects else _NOT_PRIVATE,
    )
    if style == "table" and len(result.nodes) > len(shown):
        say(f"{len(result.nodes) - len(shown):,} more: --out writes all, --format csv prints all.")
