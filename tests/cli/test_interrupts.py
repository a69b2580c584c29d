"""A Ctrl-C that a library swallowed is raised at the next step of the work."""

from __future__ import annotations

import pytest

from edgeveil.cli.interrupts import raise_if_interrupted, watching
from edgeveil.cli.progress import counting


class Swallows:
    """Python cannot raise out of a finaliser: it hands the error to sys.unraisablehook."""

    def __init__(self, error):
        self.error = error

    def __del__(self):
        raise self.error


def test_a_lost_interrupt_is_raised_between_two_steps():
    with watching(), counting("rows") as progress:
        progress(1, 3)
        Swallows(KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            progress(2, 3)
        progress(3, 3)  # once


def test_other_lost_errors_are_reported_as_ever(monkeypatch):
    told = []
    monkeypatch.setattr("sys.unraisablehook", lambda lost: told.append(lost.exc_value))
    with watching():
        Swallows(ValueError("a"))
        raise_if_interrupted()
    assert [str(error) for error in told] == ["a"]
