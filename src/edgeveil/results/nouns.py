"""What members, their neighbours and their edges are called: friends, or accounts and payments."""

from __future__ import annotations

from dataclasses import dataclass

from edgeveil._internal.words import counted
from edgeveil.errors import ParameterError

_LONGEST = 40  # letters of a noun


@dataclass(frozen=True, kw_only=True)
class Nouns:
    """Nouns for a graph in tables, pages and reasons, in the plural; public.

    They change words that people read: no number, no file format, no guarantee and no noise. They
    are not stored.

    Attributes
    ----------
    members : str
        Those who get lists.
    edges : str
        What connects them.
    neighbours : str
        Those whom an edge connects to a member.

    Examples
    --------
    >>> Nouns.of("accounts, payments").common(3)
    'about 3 common accounts'
    >>> Nouns.of("numbers,calls,contacts").own(1)
    '1 contact'
    >>> Nouns().common(1)
    'about 1 common friend'
    """

    members: str = "members"
    edges: str = "friendships"
    neighbours: str = "friends"

    def __post_init__(self) -> None:
        for noun in (self.members, self.edges, self.neighbours):
            letters = isinstance(noun, str) and noun.replace(" ", "").replace("-", "")
            if not letters or not letters.isalpha() or len(noun) > _LONGEST:
                raise ParameterError(
                    f"words are nouns in the plural, such as accounts,payments, got {noun!r}"
                )

    @classmethod
    def of(cls, words: Nouns | str | None) -> Nouns:
        """Nouns from ``"accounts,payments"``, or with neighbours as a third; None: friends."""
        if words is None or isinstance(words, Nouns):
            return words or cls()
        parts = [part.strip() for part in words.split(",")]
        if len(parts) not in (2, 3):
            raise ParameterError(
                "words are two nouns or three: who gets lists, what connects them, and what those "
                f"at the other end are called, as in accounts,payments; got {words!r}"
            )
        return cls(members=parts[0], edges=parts[1], neighbours=parts[-1 if parts[2:] else 0])

    @property
    def member(self) -> str:
        """The singular of `members`."""
        return singular(self.members)

    @property
    def edge(self) -> str:
        """The singular of `edges`."""
        return singular(self.edges)

    def common(self, count: int) -> str:
        """The reason for a suggestion: "about 3 common friends"."""
        return f"about {_number_of(count, self.neighbours, 'common ')}"

    def own(self, count: int) -> str:
        """A member's neighbours: "12 friends", or "12 linked accounts" if members are accounts."""
        linked = "linked " if self.neighbours == self.members else ""
        return _number_of(count, self.neighbours, linked)

    def listed(self, count: int) -> str:
        """How many different members are suggested: "4,000 distinct people"."""
        people = "people" if self.members == "members" else self.members
        return f"{_number_of(count, people, 'distinct ', thousands=True)}"

    def follows(self) -> str:
        """The reason that the suggested one has an edge to the member, in a directed graph."""
        return "follows you" if self == FRIENDS else f"has {self.edges} to you"

    def followed(self, count: int) -> str:
        """The reason that those whom a member follows follow the suggested one."""
        if self == FRIENDS:
            return f"followed by about {count} whom you follow"
        senders = _number_of(count, self.members)
        return f"{self.edges} from about {senders} that you have {self.edges} to"

    def counted_members(self, count: int, verb: str = "") -> str:
        """How many members, and what they do: "1 account was"."""
        if self.members == "members":
            return counted(count, "member", verb)
        agreeing = counted(count, "member", verb).partition(" ")[2].partition(" ")[2]
        return f"{_number_of(count, self.members, thousands=True)} {agreeing}".rstrip()


FRIENDS = Nouns()


def singular(noun: str) -> str:
    """The singular of an English noun that is formed regularly, and of people.

    >>> [singular(n) for n in ("accounts", "companies", "branches", "people", "nurses", "staff")]
    ['account', 'company', 'branch', 'person', 'nurse', 'staff']
    """
    head, _, last = noun.rpartition(" ")
    if last == "people":
        last = "person"
    elif last.endswith("ies") and len(last) > 4:
        last = f"{last[:-3]}y"
    elif last.endswith(("ches", "shes", "xes", "sses")):
        last = last[:-2]
    elif last.endswith("s") and not last.endswith("ss"):
        last = last[:-1]
    return f"{head} {last}".strip()


def _number_of(count: int, noun: str, adjective: str = "", *, thousands: bool = False) -> str:
    number = f"{count:,}" if thousands else str(count)
    return f"{number} {adjective}{singular(noun) if count == 1 else noun}"
