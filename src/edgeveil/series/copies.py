"""Whether ledger, history and state of a series belong together, or one is an older copy.

Windows that an older copy lacks were drawn all the same, and must not be drawn a second time. Each
of the three records something about the others. What this does not detect draws nothing twice
from one secret over other data: see `edgeveil.jobs.keys.noise_for`.
"""

from __future__ import annotations

import json

import numpy as np

from edgeveil._internal.files import write_note
from edgeveil.errors import LedgerError, ParameterError
from edgeveil.ledger import Ledger
from edgeveil.ledger.generations import plain_label
from edgeveil.series.campaign import names_of
from edgeveil.series.history import History
from edgeveil.series.state import SeriesFolder, SeriesManifest, damaged

NOTE = "refreshed.json"  # in the history: the snapshot that was worked on last


def note_work(ledger: Ledger, history: History, series: str, until: int) -> None:
    """Note in the history which snapshot is worked on, and the ledger's last entry.

    So an older copy of ledger and state is detected as long as the history is current.
    """
    entry = ledger.entry() or (0, "")
    write_note(history.path / NOTE, {"series": series, "until": until, "entry": entry})


def check_copies(
    ledger: Ledger, place: SeriesFolder, history: History, label: str, series: str | None
) -> None:
    """Refuse, before anything is changed, unless ledger, history and state belong together.

    `series` is the key of the label's series in the ledger; None if a new one starts.

    Raises
    ------
    LedgerError
        If one of them is of another series, or an older copy.
    ParameterError
        If the folder holds the series of another label.
    """
    noted = _noted(history)
    _check_folder(ledger, place, noted, label)
    if series is None:
        return
    manifest, pending = place.manifest_of(series), place.pending_of(series)
    begun = pending.until if pending else 0
    states = [state for state in (manifest, pending) if state and state.until]
    if any(token_of(history, state.until) != state.token for state in states):
        raise LedgerError(
            f"{history.path} was restored from an older copy: this series was refreshed with "
            f"snapshot {max(manifest.until, begun)} of it. Restore the newer history, or renew"
        )
    worked_on = noted.until if noted.series == series else 0
    if 0 < begun < manifest.until or (worked_on > manifest.until and worked_on != begun):
        latest = max(worked_on, manifest.until)
        raise LedgerError(
            f"{place.path} was restored from an older copy: snapshot {latest} was refreshed, "
            "and it does not know. Restore the newer copy, or renew"
        )
    _check_windows(ledger, place, history, manifest, begun)


def _check_folder(ledger: Ledger, place: SeriesFolder, noted: SeriesManifest, label: str) -> None:
    """Refuse a folder of another ledger or label; also if its series was renewed since."""
    manifest, pending = place.manifest() or SeriesManifest(""), place.pending()
    for entry in (manifest.entry, noted.entry):
        if entry[0] and ledger.entry(entry[0]) != entry:
            raise LedgerError(
                f"{ledger.location} lacks an entry that {place.path} was refreshed with: it is "
                "another ledger, or was restored from an older copy. Windows drawn since then must "
                "not be drawn again: restore the newer ledger"
            )
    series = {manifest.series, *([pending.series] if pending else [])}
    labels = {plain_label(entry.label) for entry in ledger.charges() if entry.campaign in series}
    if labels - {plain_label(label)}:
        raise ParameterError(f"{place.path} holds the series of another label")


def _check_windows(
    ledger: Ledger, place: SeriesFolder, history: History, manifest: SeriesManifest, begun: int
) -> None:
    """Refuse unless the ledger and the state have the same windows, member by member.

    Windows that were recorded after the state was committed are those of an interrupted refresh.
    All others are in the state: of each member it has the number and the end of the last one, so
    a copy of the folder with windows of its own is noticed.
    """
    charges = [
        charge for charge in ledger.charges() if charge.note.get("series") == history.identity
    ]
    windows = [charge for charge in charges if charge.note.get("of") == manifest.series]
    later = [charge for charge in windows if charge.seq > manifest.entry[0]]
    agree = all(not charge.released and int(charge.note["until"]) == begun for charge in later)
    ends = {
        charge.seq: int(charge.note["until"])
        for charge in windows
        if charge.seq <= manifest.entry[0]
    }
    nodes = history.nodes
    index_of = dict(zip(names_of(nodes), range(len(nodes)), strict=True))
    # Who was forgotten and has returned has other windows than before, since it returned.
    returns = {
        charge.seq: int(charge.note["returned"]) for charge in charges if "returned" in charge.note
    }
    since = {name: returns[seq] for seq, name in ledger.rows_at(sorted(returns))}
    counts, last = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
    earlier = set[str]()  # whose windows belong to somebody who was forgotten
    state = place.columns(len(nodes), manifest)
    for seq, name in ledger.rows_at(sorted(ends)):
        index = index_of.get(name, -1)
        if index < 0 or not state.charged[index] or ends[seq] < since.get(name, 0):
            earlier.add(name)
        else:
            counts[index] += 1
            last[index] = max(last[index], ends[seq])
    for recorded, drawn in ((counts, state.windows), (last, state.last)):
        drawn[history.forgotten] = 0  # erased from the state by the next refresh
        agree &= np.array_equal(recorded, drawn)
    if not agree or len(earlier) > len(history.forgotten):
        raise LedgerError(
            f"{place.path} and {ledger.location} do not hold the same windows: one of them was "
            "restored from an older copy, or a copy of the folder was refreshed as well. Go on "
            "with the newest of both, or renew"
        )


def token_of(history: History, number: int) -> str:
    """The token of a snapshot; empty if the history does not have it."""
    snapshots = history.snapshots
    return snapshots[number - 1].token if number <= len(snapshots) else ""


def _noted(history: History) -> SeriesManifest:
    """The note in the history."""
    try:
        note = json.loads((history.path / NOTE).read_bytes())
        noted = {name: note[name] for name in ("series", "until", "entry")}
        return SeriesManifest.from_dict({**vars(SeriesManifest("")), **noted})
    except FileNotFoundError:
        return SeriesManifest("")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged(history.path / NOTE, history.path.parent) from error
