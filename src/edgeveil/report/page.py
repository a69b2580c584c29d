"""`write_page`: PageData, plain frozen data -> one HTML file that needs no network.

The file holds data, script and style. The data is JSON inside a script element of a type that no
browser runs, and every character that could end that element is escaped; the page inserts it as
text, never as HTML. A content security policy in the file allows only this script, by its hash, and
no request at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from importlib.resources import files
from operator import attrgetter
from pathlib import Path
from string import Template
from typing import Any

from edgeveil._internal.files import write_atomically
from edgeveil.errors import ParameterError
from edgeveil.evaluation.measurements import Result

# "<", ">" and "&" could end the script element or open a comment in it. Non-ASCII characters,
# U+2028 and U+2029 among them, are escaped by ensure_ascii.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


@dataclass(frozen=True, kw_only=True)
class ListedNode:
    """One entry of a list."""

    node: int | str
    score: float  # as released
    first: int | None = None  # best and worst rank that are possible given the noise
    last: int | None = None
    why: str = ""  # the reason, from released values
    chance: float | None = None  # suggestions: share of such names expected from noise alone
    strength: str = ""  # suggestions: `chance` in a word, such as "strong"
    right: bool | None = None  # whether the list's `truth` holds for it; for the curator only

    def __post_init__(self) -> None:
        if not math.isfinite(self.score):
            raise ParameterError(f"score must be a finite number, got {self.score}")


@dataclass(frozen=True, kw_only=True)
class MemberList:
    """A list of nodes for one member, best first: a ranking or suggestions.

    A list that is not private (exact values, seeded noise) is marked "for the curator only" and
    shown beside the private ones of the same member.
    """

    dataset: str  # name of the graph
    member: int | str
    mechanism: str
    rows: Sequence[ListedNode]
    epsilon: float | None = None  # None: nothing is protected
    private: bool = False
    alone: bool = True  # whether only its member may see it (joint model), or anyone
    promise: str = ""  # str(guarantee)
    in_short: str = ""  # of suggestions: what is protected, in everyday words
    charged: str = ""  # what the member has been charged in all, in words
    remark: str = ""  # what the member should know about it, from released values
    group: str = ""  # degree group of the member, as results name it; for the curator only
    truth: str = ""  # what `right` means, "one of 4 hidden friends"; for the curator only

    def __post_init__(self) -> None:
        if self.epsilon is not None and not 0 <= self.epsilon < math.inf:
            raise ParameterError(
                f"epsilon must be None or a finite number >= 0, got {self.epsilon}"
            )
        if self.private and self.epsilon is None:
            raise ParameterError("a list without an epsilon is not private: set private=False")


@dataclass(frozen=True, kw_only=True)
class Charges:
    """The charges of a ledger, from `edgeveil.report.charges.charges_of`."""

    ledger: str  # where it is
    words: Sequence[str]  # caps and what is left of them, in sentences
    cap: float  # the epsilon that may be charged to one member
    steps: Sequence[tuple[str, float]]  # times, and the highest epsilon charged to any member
    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]  # one for each charge


@dataclass(frozen=True, kw_only=True)
class PageData:
    """Everything that the report page shows. A section without data is left out."""

    title: str
    summary: Sequence[str] = ()  # paragraphs below the heading
    predictions: dict[str, Any] | None = None  # of `page_from_predictions`: JSON for the page
    lists: Sequence[MemberList] = ()  # released ones, and for the curator those without privacy
    results: Sequence[Result] = ()  # for the picture and the table; for the curator only
    notes: Sequence[str] = ()  # paragraphs under "What the numbers say"; for the curator only
    charges: Charges | None = None  # for the curator only


def write_page(path: str | os.PathLike[str], data: PageData) -> None:
    """Write the report page: one file, to be opened in any browser, offline.

    The file contains everything in `data`, also what is for the curator only. It has mode 0600,
    and replaces an existing file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(f"{folder}/report.html", PageData(title="An empty report"))
    """
    text = render_page(data).encode()
    write_atomically(Path(path), lambda part: part.write_bytes(text))


def render_page(data: PageData) -> str:
    """The text of the page: an HTML document."""
    assets = files(__package__)
    script = assets.joinpath("page.js").read_text(encoding="utf-8")
    digest = hashlib.sha256(script.encode()).digest()
    packed = json.dumps(
        _packed(data),
        ensure_ascii=True,
        allow_nan=False,
        separators=(",", ":"),
        default=lambda number: number.item(),  # numpy's own
    )
    # One pass: a "$title" inside of the data stays as it is.
    return Template(assets.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(_printable(data.title)),
        version=html.escape(version("edgeveil")),
        style=assets.joinpath("page.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(digest).decode(),
        data=packed.translate(_ESCAPES),
    )


def _packed(data: PageData) -> dict[str, Any]:
    """Rows as plain lists: a page of a thousand numbers stays small."""
    results = [replace(r, epsilon=None) if r.epsilon == math.inf else r for r in data.results]
    return {
        **vars(data),
        "results": {
            "columns": [field.name for field in fields(Result)],
            "rows": [list(vars(row).values()) for row in results],
        },
        "lists": [_packed_list(entry) for entry in data.lists],
        "charges": None if data.charges is None else vars(data.charges),
    }


def _packed_list(entry: MemberList) -> dict[str, Any]:
    # Ids as text: JavaScript would round an integer above 2**53 to another id.
    others = attrgetter("first", "last", "why", "right", "chance", "strength")
    rows = [[str(row.node), float(f"{row.score:.6g}"), *others(row)] for row in entry.rows]
    return {**vars(entry), "member": str(entry.member), "rows": rows}


def _printable(text: str) -> str:
    """Lone surrogates cannot be written as UTF-8; show them as the replacement character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
