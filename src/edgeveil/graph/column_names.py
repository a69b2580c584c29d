"""What the names of columns say: which two hold the ids, whether they are of one kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations

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
    words = {name: some for name, some in words.items() if not _NO_IDS & set(some)}
    best, found = 0, None
    for one, two in permutations(words, 2):
        left = [w for w in words[one] if w not in words[two]]
        right = [w for w in words[two] if w not in words[one]]
        common = set(words[one]) & set(words[two])
        value = _value(left, right, common, marks=not roles_only)
        value += 2 * len(common & _MEMBERS_SET) - 3 * len(common & _LABELS)
        if value > best:
            best, found = value, (one, two)
    return found


def _value(left: list[str], right: list[str], common: set[str], *, marks: bool) -> int:
    """How much two names look like a pair, by the words in which they differ."""
    if len(left) == len(right) == 1:
        one, two = left[0], right[0]
        if (one, two) in _ROLE_PAIRS:
            return 10
        if one in _MEMBERS_SET and two in _COUNTERPARTS:
            return 8
        return 4 if marks and common and (one, two) in _MARKS else _NO_PAIR
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
    one, two = map(words_of, names)
    if one == two or not all(map(_is_name, names)):
        return False
    return (
        len(one) + len(two) > 2
        or len(_MEMBERS_SET & {*one, *two}) == len(things_in(names[0]) | things_in(names[1])) == 1
    )


def is_header_of_nodes(word: str) -> bool:
    """Whether the first line of a node list is a header: id, member, user_id, accountNumber."""
    return word.lower() in _HEADS or (len(words_of(word)) > 1 and _is_name(word))


def _is_name(name: str) -> bool:
    """Whether a name consists of words for ends of edges: userId, sender account, itemid."""
    words = words_of(name)
    known = _MEMBERS_SET | _ROLE_WORDS
    return "".join(words) == re.sub("[-_ ]", "", name).lower() and all(
        word in known or things_in(word) for word in words
    )


_NODE_WORDS = "id node nodeid member memberid user userid account person customer"
_HEADS = {head for word in _NODE_WORDS.split() for head in (word, f"{word}s")}
