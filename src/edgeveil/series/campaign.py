"""A series in a ledger: the campaign that is charged to its members, and its folder."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from edgeveil.errors import LedgerError, ParameterError
from edgeveil.graph.nodes import NodeSet
from edgeveil.jobs.keys import code_of, describe, parameters_of, parameters_text
from edgeveil.ledger import Account, Batch, Campaign, Ledger
from edgeveil.ledger.generations import SERIES, plain_label
from edgeveil.ledger.prices import NANO
from edgeveil.mechanisms.member_lists import Suggest
from edgeveil.privacy.guarantee import Guarantee
from edgeveil.results.provenance import our_version
from edgeveil.series.history import History
from edgeveil.series.state import SeriesFolder, SeriesManifest

_NODES_FROM_EDGES = (
    "who has any connection at all, and from when until when, is public knowledge (no node list "
    "was given, so members were read off the edges: the start of somebody's first connection and "
    "the end of the last one show exactly)"
)


_NO_LABEL = "@graph"  # no label can be this


class Current(NamedTuple):
    """A series: where it is, its history and parameters, and its state."""

    place: SeriesFolder
    history: History
    mechanism: Suggest
    manifest: SeriesManifest  # as of its last refresh; before the first, of the one that was begun


def series_campaign(
    mechanism: Suggest, history: History, label: str, note: dict[str, str]
) -> Campaign:
    """What each member is charged for once: all snapshots, until a renewal."""
    return Campaign(
        identity=json.dumps({"series": history.identity, "of": describe(mechanism)}),
        guarantee=mechanism.guarantee,
        label=label,
        fingerprint=f"{SERIES}{history.identity}",
        code=code_of(mechanism),
        note={
            "mechanism": "series of lists",
            "parameters": parameters_text(mechanism),
            "series": history.identity,
            "version": our_version(),
            **note,
        },
    )


def returns_of(series: Campaign, number: int) -> Campaign:
    """The second charge of members who were forgotten and came back at a snapshot."""
    return replace(
        series,
        identity=json.dumps({"returned": number, "of": series.identity}),
        note={**series.note, "returned": str(number)},
    )


def windows_of(series: Campaign, key: str, number: int) -> Campaign:
    """The windows that end at a snapshot; `key` is that of the series in the ledger."""
    return replace(
        series,
        identity=json.dumps({"window": number, "of": series.identity}),
        guarantee=no_charge,
        note={**series.note, "of": key, "until": str(number)},
    )


def no_charge(n_members: int) -> Guarantee:
    """The price of windows: 0, because the charge for the series covers them."""
    theorem = "docs/theory/series.md"
    return Guarantee(
        epsilon=0.0, model="joint", n_members=n_members, theorem=theorem, collusion="shared"
    )


def names_of(nodes: NodeSet) -> list[str]:
    """The names of nodes in a ledger: their ids as text."""
    return [str(node) for node in nodes.ids.tolist()]


def erase_secrets(batches: Iterable[Batch]) -> None:
    """Mark batches stored: their rows are in the state of the series, or nobody's any more."""

    def note(path: Path) -> None:
        path.write_text("in the state of the series\n")

    for batch in batches:
        batch.store(note)


def guarantee_of_series(history: History, mechanism: Suggest, n_members: int) -> Guarantee:
    """The guarantee of all lists of a series together, for this many members."""
    claim = mechanism.guarantee(n_members)
    promises = [claim.promise, _NODES_FROM_EDGES * history.graph.read_report.nodes_from_edges]
    return replace(
        claim,
        theorem="docs/theory/series.md",
        scope="series",
        promise="; ".join(filter(None, promises)),
    )


def series_folder(ledger: Ledger, label: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """The folder with a label's history and state: beside the ledger's file, or its artifacts."""
    if folder is not None:
        return Path(folder)
    name = plain_label(label)  # "Friends" and "friends" are the same label
    if name and (not re.fullmatch(r"[\w.-]{1,100}", name) or name.startswith(".")):
        raise ParameterError(f"a series needs a label of letters, digits, - and _, got {label!r}")
    beside = str(ledger.folder) if "://" in ledger.location else ledger.location
    return Path(f"{beside}.series") / (name or _NO_LABEL)


def had_series(ledger: Ledger, label: str) -> bool:
    """Whether a label has a series, also one that was renewed, or begun and not charged yet."""
    if (ledger.last_fingerprint(label) or "").startswith(SERIES):
        return True
    if ledger.fingerprint(label) is not None:  # lists that were made one by one
        return False
    try:
        return (series_folder(ledger, label) / "history" / "history.json").exists()
    except (ParameterError, LedgerError):  # a label, or a ledger, that no series has
        return False


def last_series(ledger: Ledger, label: str) -> float | None:
    """The epsilon of the series that a label has or had; None if there was none."""
    if not (ledger.last_fingerprint(label) or "").startswith(SERIES):
        return None
    name = plain_label(label)
    charges = ledger.charges()
    priced = [
        charge for charge in charges if plain_label(charge.label) == name and charge.epsilon_nano
    ]
    return priced[-1].epsilon_nano / NANO


def highest_epsilon(account: Account, lists: Suggest, n_members: int, n_series: int) -> float:
    """The highest epsilon at which what is left allows so many series more, or renewals.

    `account` is that of the member with the least left, and `lists` what makes the lists.
    """

    def pooled(epsilon: float) -> float:
        return replace(lists, epsilon=epsilon).guarantee(n_members).pooled_epsilon

    return account.highest_price(n_series, pooled=pooled)


def current_series(
    ledger: Ledger, label: str, folder: str | os.PathLike[str] | None = None
) -> Current | None:
    """The series that a label has now; None if it has none or was renewed.

    Raises
    ------
    LedgerError
        If the folder does not hold the series that the ledger knows.
    """
    fingerprint = ledger.fingerprint(label) or ""
    if not fingerprint.startswith(SERIES):
        return None
    place = SeriesFolder(series_folder(ledger, label, folder))
    history = place.history()
    if history is None or fingerprint != f"{SERIES}{history.identity}":
        raise LedgerError(
            f"{place.path} does not hold the series of {label or 'this graph'}: name the folder "
            "that does, restore it, or renew the series (edgeveil ledger renew)"
        )
    for manifest in (place.manifest(), place.pending()):
        note = None if manifest is None else ledger.note(manifest.series)
        if manifest is None or note is None:
            continue
        mechanism = Suggest(**json.loads(note["parameters"]))
        if ledger.campaign_key(series_campaign(mechanism, history, label, {})) == manifest.series:
            return Current(place, history, mechanism, manifest)
    raise LedgerError(
        f"{place.path} was restored from an older copy: it does not know the series of "
        f"{label or 'this graph'}. Restore the newer copy, or renew (edgeveil ledger renew)"
    )


def series_to_refresh(
    ledger: Ledger, label: str, folder: str | os.PathLike[str] | None, mechanism: Suggest
) -> Current | None:
    """The series to refresh, or None if a new one starts.

    Raises
    ------
    LedgerError
        If the label has lists that do not belong to a series.
    ParameterError
        If its series has other parameters.
    """
    whose = label or "this graph"
    current = current_series(ledger, label, folder)
    if current is None and ledger.fingerprint(label) is not None:
        raise LedgerError(
            f"lists of {whose} were made one by one. Use another label for the series, or "
            "restart this label, which charges all members anew: edgeveil ledger renew"
        )
    if current is not None and current.mechanism != mechanism:
        given = parameters_of(mechanism)
        of_series = parameters_of(current.mechanism)
        name = next(name for name, value in of_series.items() if value != given[name])
        began, now = (
            f"{value:g}" if isinstance(value, float) else str(value)
            for value in (of_series[name], given[name])
        )
        raise ParameterError(
            f"the series of {whose} was begun with {name} = {began}, and {now} is given. All its "
            f"lists have the same: give {began}, or start a new series, which charges all members "
            "anew: edgeveil ledger renew"
        )
    return current
