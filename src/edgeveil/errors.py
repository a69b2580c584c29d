"""The exception tree.

    EdgeveilError
      ParameterError      an argument is wrong                       (CLI exit code 2)
      UnknownNodeError    an id is not in the public node set        (CLI exit code 2)
      PromiseError        the graph breaks a public promise          (CLI exit code 1)
      InputError          a file or object cannot be read as a graph (CLI exit code 4)
      BudgetError         the privacy budget does not allow it       (CLI exit code 3)
      LossError           a refresh would lose too many edges        (CLI exit code 5)
      LedgerError         the ledger itself cannot be used           (CLI exit code 1)

An error is an output too: no message quotes an edge or a degree.
"""

from __future__ import annotations

__all__ = [
    "BudgetError",
    "EdgeveilError",
    "InputError",
    "LedgerError",
    "LossError",
    "ParameterError",
    "PromiseError",
    "ReadingWarning",
    "UnknownNodeError",
]


class EdgeveilError(Exception):
    """Everything edgeveil raises on purpose."""


class ParameterError(EdgeveilError, ValueError):
    """An argument is wrong; the message says what was found and what is allowed."""


class UnknownNodeError(EdgeveilError, LookupError):
    """An id is not in the node set. The node set is public, so saying so leaks nothing."""


class PromiseError(EdgeveilError):
    """The graph breaks a promise on which a guarantee rests. Nothing was drawn.

    This refusal depends on the graph and is outside of the guarantee.
    """


class InputError(EdgeveilError, ValueError):
    """A file or object cannot be read as a graph."""


class ReadingWarning(UserWarning):
    """A file was read as a graph, but may mean something else. It is for the curator only."""


class BudgetError(EdgeveilError):
    """The privacy budget does not allow the release. Nothing was charged, nothing was drawn."""


class LossError(EdgeveilError):
    """Today's graph has far fewer members or edges than the last snapshot of its series.

    Nothing was merged, charged or drawn. This refusal depends on the edges: it is for the curator
    only, and outside of the guarantee.
    """


class LedgerError(EdgeveilError):
    """The ledger cannot be opened, is damaged, or lies where it must not lie."""
