"""Options for reading edge lists, and which columns are the ids; refuses if that is ambiguous."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edgeveil.errors import InputError, ParameterError
from edgeveil.graph.lines import is_integer
from edgeveil.graph.nodes import NodeSet, integer_of

Columns = tuple[str | int, str | int]

SAMPLE = 20  # rows from which columns are detected

_TIME = re.compile(r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2}|$)|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|\d{1,2}:\d\d")
_MANY = 20  # edges; fewer may share no id by chance
# Seconds and milliseconds since 1970, from 2001 to 2039
_SECONDS = (1_000_000_000, 2_200_000_000)


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options of a reader of edge lists; see `edgeveil.read_graph`.

    `text`: ids are text in any case. `one_kind`: both columns hold the same kind of nodes.
    `time`: the column with times, if asked for.
    """

    nodes: NodeSet | None = None
    header: bool | None = None
    columns: Columns | None = None
    delimiter: str | None = None
    text: bool = False
    one_kind: bool = False
    time: str | int | None = None

    def __post_init__(self) -> None:
        columns, delimiter = self.columns, self.delimiter
        if columns is not None:
            pair = not isinstance(columns, str) and len(columns) == 2 and columns[0] != columns[1]
            if not (pair and all(isinstance(c, (str, int)) for c in columns)):
                raise ParameterError(
                    f"columns must be two different names or positions, got {columns!r}"
                )
        if self.header is False and self.by_name:
            raise ParameterError("columns by name need a header; give positions with header=False")
        if delimiter is not None and (len(delimiter.encode()) != 1 or delimiter in '"\r\n'):
            raise ParameterError(f"delimiter must be one ASCII character, got {delimiter!r}")

    @property
    def as_text(self) -> bool:
        """Whether ids are read as text in any case."""
        return self.text or (self.nodes is not None and self.nodes.kind == "str")

    @property
    def by_name(self) -> bool:
        """Whether a column is given by name, so that there must be a header."""
        return any(isinstance(column, str) for column in (*(self.columns or ()), self.time))


def is_numeric(text: str) -> bool:
    """Whether the text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_time(text: str) -> bool:
    """Whether the text is a date or a time of day."""
    return _TIME.match(text) is not None


class ColumnPositions(NamedTuple):
    """Positions of columns; None: there is no weight, or times were not asked for."""

    first: int
    second: int
    weight: int | None = None
    time: int | None = None


def find_columns(
    names: Sequence[str] | None,
    rows: Sequence[Sequence[str]],
    options: ReadOptions,
    where: str,
    *,
    in_memory: bool = False,
) -> ColumnPositions:
    """Find the columns; refuse two of ids whose names are of two kinds of nodes."""
    positions = _take_columns(names, rows, options, where, in_memory=in_memory)
    if names is not None and not options.one_kind:
        pair = names[positions.first], names[positions.second]
        if things_in(pair[0]) != things_in(pair[1]):
            named = f"the columns {pair[0]!r} and {pair[1]!r} name"
            raise InputError(f"{where}: {named} {_TWO_KINDS}")
    return positions


_TWO_KINDS = (
    "two kinds of nodes (a bipartite graph). A list of friends needs one kind: user 7 and item 7 "
    "would become one node. docs/guide.md says what can be done with such data. If both columns "
    "hold ids of one kind, say one_kind=True (--one-kind)"
)


def refuse_two_kinds(
    where: str, n: int, ends: Callable[[], Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]]]
) -> None:
    """Refuse edges between indices below `n` whose two columns share no id, as of users and items.

    Stars share no id either, and are of one kind: so each column must have two ids or more that
    stand beside different ids.
    """
    sides, count = np.zeros(n, dtype=np.uint8), 0
    for u, v in ends():
        sides[u] |= 1
        sides[v] |= 2
        if np.any(sides[u] == 3) or np.any(sides[v] == 3):
            return
        count += len(u)
    if count < _MANY:
        return
    beside, several = np.full(n, -1, dtype=np.int32), np.zeros(n, dtype=np.bool_)
    for edges in ends():
        for own, other in (edges, edges[::-1]):
            new = beside[own] < 0
            beside[own[new]] = other[new]
            several[own[beside[own] != other]] = True
    if all(np.count_nonzero(several & (sides == side)) >= 2 for side in (1, 2)):
        raise InputError(f"{where}: the two columns share no id, so they seem to hold {_TWO_KINDS}")


def _take_columns(
    names: Sequence[str] | None,
    rows: Sequence[Sequence[str]],
    options: ReadOptions,
    where: str,
    *,
    in_memory: bool,
) -> ColumnPositions:
    """The columns of the two ids, of the weight, and of the times if they are asked for.

    By default the first two columns, and the third is a weight if it is numeric; with `columns`,
    one called ``weight`` is. `rows` are the first ones. `in_memory`: a table, not a file.
    """
    width, listed = len(rows[0] if names is None else names), list(names or ())
    time = None if options.time is None else _position(options.time, listed, width, where)
    if options.columns is not None:
        first, second = (_position(column, listed, width, where) for column in options.columns)
        if time in (first, second):
            raise ParameterError(f"the times cannot be in a column of ids, got {options.time!r}")
        weight = listed.index("weight") if "weight" in listed else None
        return ColumnPositions(first, second, None if weight in (first, second) else weight, time)
    others = [i for i in range(width) if i != time]
    if len(others) < 2:
        raise InputError(f"{where} has {len(others)} column, an edge needs two")
    if len(others) > 2:
        left = None if names is None else [names[i] for i in others]
        shown = [[row[i] for i in others if i < len(row)] for row in rows]
        _refuse_ambiguous(left, shown, options.nodes, where, in_memory)
    return ColumnPositions(others[0], others[1], others[2] if len(others) > 2 else None, time)


def _position(column: str | int, names: list[str], width: int, where: str) -> int:
    if isinstance(column, int) and not 0 <= column < width:
        raise InputError(f"{where} has no column {column}: there are {width}, from 0")
    if isinstance(column, str) and column not in names:
        listed = ", ".join(names) or "none"
        raise InputError(f"{where} has no column {column!r}; its columns are: {listed}")
    return column if isinstance(column, int) else names.index(column)


def _refuse_ambiguous(
    names: Sequence[str] | None,
    rows: Sequence[Sequence[str]],
    nodes: NodeSet | None,
    where: str,
    in_memory: bool,
) -> None:
    """Raise unless there is a reason to take the first two columns.

    Reasons: their names; the node list contains the first row; or the first rows have two
    integers and then anything, or two names and then a number, and no times.
    """
    pair = None if names is None else likely_pair(names, roles_only=True)
    if names is not None and (are_names_of_ids(names[:2]) or set(pair or ()) == set(names[:2])):
        return
    rows = [row for row in rows if len(row) > 2]
    if nodes is not None and rows and all(_is_node(text, nodes) for text in rows[0][:2]):
        return
    usual = [two for two in combinations(names or (), 2) if are_names_of_ids(two)]
    if not pair and not usual and (not rows or _first_two_are_ids(rows)):
        return
    example: Sequence[str | int]
    if names is None:  # the first line may be an edge, so it is not quoted
        columns, example = f"{len(rows[0])} columns", _plausible(None, rows)
    else:
        columns = f"the columns {', '.join(names)}"
        likely = pair or (usual[0] if usual else likely_pair(names))
        example = likely or [names[i] for i in _plausible(names, rows)]
    hint = (
        f"Say columns={tuple(example)!r}, or on the command line --columns "
        f"{shlex.quote(','.join(map(str, example)))} (names in the first line, or positions from 0)"
    )
    if in_memory:
        hint = f"Say columns={tuple(example)!r}"
    raise InputError(f"{where} has {columns}. Which two are the ids? {hint}")


def _plausible(names: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> list[int]:
    """Two columns that are neither times nor measures, by their names and first values."""
    width = len(rows[0] if names is None else names)
    values = [[row[i] for row in rows if i < len(row) and row[i]] for i in range(width)]
    left = [
        i
        for i, column in enumerate(values)
        if not any(map(is_time, column))
        and not (all(map(is_integer, column)) and _are_seconds(column))
        and not (all(map(is_numeric, column)) and not all(map(is_integer, column)))
        and not (names is not None and OTHERS & set(words_of(names[i])))
    ]
    named = [i for i in left if names is not None and "id" in words_of(names[i])]
    return (named if len(named) > 1 else left if len(left) > 1 else [1, 2])[:2]


def _is_node(text: str, nodes: NodeSet) -> bool:
    if nodes.kind == "str":
        return text in nodes
    return integer_of(text) in nodes


def _first_two_are_ids(rows: Sequence[Sequence[str]]) -> bool:
    first, second, third = ([row[i] for row in rows if row[i]] for i in range(3))
    if any(map(is_time, first + second)):
        return False
    integers = [all(map(is_integer, column)) for column in (first, second, third)]
    if all(integers) and _are_seconds(first) and not _are_seconds(second):
        return False
    return integers[0] == integers[1] and (integers[0] or all(map(is_numeric, third)))


def _are_seconds(column: Sequence[str]) -> bool:
    """Whether integers are times since 1970, in seconds or milliseconds."""
    numbers = [int(text) for text in column if len(text) < 20]
    return any(are_seconds(numbers, factor) for factor in (1, 1000))


def are_seconds(numbers: Sequence[int], factor: int) -> bool:
    """Whether integers, divided by the factor, are seconds since 1970."""
    low, high = _SECONDS
    return all(low * factor < number < high * factor for number in numbers)


# -- what the names of columns say ---------------------------------------------------------

# Usual names of id columns, and of columns with numbers or times
_IDS = """
source target src dst from to source_id target_id from_id to_id fromnodeid tonodeid node1 node2
node_1 node_2 id1 id2 id_1 id_2 follower followed followee following user friend user_id friend_id
user1 user2 user_1 user_2 person1 person2 member1 member2 caller callee sender receiver recipient
payer payee node_a node_b origin destination head tail person_1 person_2 member_1 member_2
"""
_OTHERS = """
weight strength count rating score value amount number duration time timestamp ts date datetime
day year created created_at createdat since start end unixtime unix_time epoch event_time
"""
IDS, OTHERS = set(_IDS.split()), set(_OTHERS.split())

# Words in the names of columns for things that are nobody's friends
_THINGS = """
item product movie film book song track artist album page url website group event tag category
article video game app restaurant business store shop merchant isbn sku asin paper course topic
keyword hashtag venue hotel recipe brand
"""
_THINGS_SET = set(_THINGS.split())
# Words for those who have edges, and for what they are known by
_MEMBERS = """
user member person people friend customer client account player actor author reader subscriber
node vertex id ids identifier number phone msisdn iban uid
"""
_MEMBERS_SET = set(_MEMBERS.split())
_MOST = 100  # columns whose names are compared
# Columns with these words hold neither end of an edge, although their names may come in pairs
_MEASURES = "balance bal currency amt price fee lat lon lng latitude longitude x y type"
_NO_IDS = OTHERS - {"number"} | set(_MEASURES.split())
_LABELS = {"name", "country", "city", "bank", "label", "kind", "age", "gender", "email"}

# The words in which the names of two id columns differ: the first end, and what it is paired with
_ROLES = """
source target|destination|dest|dst|sink
src dst|dest|target|tgt
from to
sender receiver|recipient|beneficiary|receiving
sending receiving
payer payee
payor payee
caller callee|called|receiver|recipient
calling called
follower followee|followed|following
user friend|contact|followed
ego alter
buyer seller
debtor creditor
debit credit
lender borrower
orig dest|destination|benef
origin destination|dest
originator beneficiary
donor recipient
giver receiver|recipient
inviter invitee
inviting invited
parent child
citing cited
head tail
"""
_ROLE_PAIRS = {
    (first, second)
    for first, seconds in (line.split() for line in _ROLES.strip().splitlines())
    for second in seconds.split("|")
}
_ROLE_WORDS = {word for pair in _ROLE_PAIRS for word in pair}
_MARKS = {("a", "b"), ("1", "2"), ("0", "1"), ("left", "right"), ("first", "second")}
# What a second column has more than the first: account, counterparty_account
_COUNTERPARTS = {"friend", "other", "counterparty", "contact", "partner", "peer", "neighbour"}
_COUNTERPARTS |= {"neighbor", "second", "linked", "related", "to"}
_NO_PAIR = -99


def words_of(name: str) -> list[str]:
    """The words in the name of a column: user and id for userId, USER_ID and "User Id".

    >>> words_of("userId"), words_of("FROM_NODE_ID"), words_of("node12")
    (['user', 'id'], ['from', 'node', 'id'], ['node', '12'])
    """
    return [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)]


def likely_pair(names: Sequence[str], *, roles_only: bool = False) -> tuple[str, str] | None:
    """The two columns whose names say that they hold the ends of an edge, the first end first.

    Names that differ in a pair of roles are believed more than those that differ in a mark (a and
    b, 1 and 2), which do not count with `roles_only`.

    >>> likely_pair(["timestamp", "receiver_account", "sender_account", "amount"])
    ('sender_account', 'receiver_account')
    >>> likely_pair(["day", "phone_a", "phone_b"]), likely_pair(["when", "amount"])
    (('phone_a', 'phone_b'), None)
    """
    words = {name: words_of(name) for name in names[:_MOST]}
    ends = [name for name in words if not _NO_IDS & set(words[name])]
    best, likely = 0, None
    for first, second in permutations(ends, 2):
        left = [w for w in words[first] if w not in words[second]]
        right = [w for w in words[second] if w not in words[first]]
        common = set(words[first]) & set(words[second])
        value = _value(left, right, common, marks=not roles_only)
        value += 2 * len(common & _MEMBERS_SET) - 3 * len(common & _LABELS)
        if value > best:
            best, likely = value, (first, second)
    return likely


def _value(left: list[str], right: list[str], common: set[str], *, marks: bool) -> int:
    """How much two names look like a pair, by the words in which they differ."""
    if len(left) == len(right) == 1:
        pair = left[0], right[0]
        if pair in _ROLE_PAIRS:
            return 10
        if pair[0] in _MEMBERS_SET and pair[1] in _COUNTERPARTS:
            return 8
        return 4 if marks and common and pair in _MARKS else _NO_PAIR
    alike = not left and len(right) == 1 and common & _MEMBERS_SET
    return 8 if alike and right[0] in _COUNTERPARTS else _NO_PAIR


def things_in(name: str) -> set[str]:
    """Words for things in the name of a column: {"item"} for itemId, item_id, ITEMS."""
    return {
        w
        for word in words_of(name)
        for w in (word, word[:-1], word.removesuffix("id"))
        if w in _THINGS_SET
    }


def are_names_of_ids(names: Sequence[str]) -> bool:
    """Whether these are usual names of id columns, as a whole."""
    return all(name.lower() in IDS for name in names)


def is_header_of_ids(names: Sequence[str]) -> bool:
    """Whether two words are names of id columns, and hardly ids themselves.

    >>> is_header_of_ids(["user_id", "item_id"]), is_header_of_ids(["customer", "product"])
    (True, True)
    >>> is_header_of_ids(["user_7", "user_8"]), is_header_of_ids(["album", "song"])
    (False, False)
    """
    first, second = map(words_of, names)
    if first == second or not all(map(_is_name, names)):
        return False
    members, things = _MEMBERS_SET & {*first, *second}, things_in(names[0]) | things_in(names[1])
    return len(first) + len(second) > 2 or len(members) == len(things) == 1


def is_header_of_nodes(word: str) -> bool:
    """Whether the first line of a node list is a header: id, member, user_id, accountNumber."""
    return word.lower() in _HEADS or (len(words_of(word)) > 1 and _is_name(word))


def _is_name(name: str) -> bool:
    """Whether a name consists of words for ends of edges: userId, sender account, itemid."""
    words = words_of(name)
    for_ends = _MEMBERS_SET | _ROLE_WORDS
    return "".join(words) == re.sub("[-_ ]", "", name).lower() and all(
        word in for_ends or things_in(word) for word in words
    )


_NODE_WORDS = "id node nodeid member memberid user userid account person customer"
_HEADS = {head for word in _NODE_WORDS.split() for head in (word, f"{word}s")}
