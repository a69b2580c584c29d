"""Griffe extension: simple tables of reStructuredText in docstrings become Markdown tables."""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["RstTables", "to_markdown"]

_RULE = re.compile(r"^ *=+( +=+)+ *$")


class RstTables(griffe.Extension):
    """Rewrite each docstring as it is collected."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by griffe for every module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(text: str) -> str:
    """Turn simple tables into Markdown; a line without a first cell goes on the one above."""
    out: list[str] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        rules = [i for i in range(at, len(lines)) if _RULE.match(lines[i])]
        if lines[at : at + 1] and _RULE.match(lines[at]) and len(rules) >= 2:
            end = rules[2] if len(rules) > 2 and "" not in lines[at : rules[2]] else rules[1]
            head = lines[at + 1 : rules[1]] if end != rules[1] else []
            body = lines[(rules[1] if head else at) + 1 : end]
            out += ["", *_table(_columns(lines[at]), head, body), ""]
            at = end + 1
        else:
            out.append(lines[at])
            at += 1
    return "\n".join(out)


def _columns(rule: str) -> list[slice]:
    starts = [found.start() for found in re.finditer(r"=+", rule)]
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], None], strict=True)]


def _table(columns: list[slice], head: list[str], body: list[str]) -> list[str]:
    def cells(line: str) -> list[str]:
        return [line[column].strip() for column in columns]

    rows: list[list[str]] = []
    for line in body:
        new = cells(line)
        if new[0] or not rows:
            rows.append(new)
        else:
            rows[-1] = [f"{old} {more}".strip() for old, more in zip(rows[-1], new, strict=True)]
    names = cells(head[0]) if head else [""] * len(columns)
    lines = [names, *rows]
    text = [f"| {' | '.join(row)} |" for row in lines]
    return [text[0], "|" + "---|" * len(columns), *text[1:]]
