"""Who joins a series, and is charged for all of its lists.

A member who was forgotten and came back is a new node. Its windows count every edge once more, so
it is charged once more.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgeveil.ledger import Campaign, Ledger
from edgeveil.series.campaign import erase_secrets, returns_of

_BATCH = 8192  # members that are charged together


def joining(
    ledger: Ledger, series: Campaign, number: int, entry: int, missing: Mapping[str, bool]
) -> list[tuple[Campaign, list[str]]]:
    """Whom a refresh up to snapshot `number` charges: for the first time, and once more.

    Parameters
    ----------
    entry : int
        The last entry of the ledger that the state knows of. Who was charged by then was in the
        state once, and was forgotten. Who was charged later was charged by this refresh, before it
        was interrupted, and joins even if it has left since.
    missing : dict
        The members whom the state does not have, and whether each is a member now.
    """
    charged, returns = ledger.rows_of(series, missing), returns_of(series, number)
    returned = [name for name, at in charged.items() if at <= entry]
    begun = (charged.keys() - returned) | ledger.rows_of(returns, returned).keys()
    whom = [name for name, is_member in missing.items() if is_member or name in begun]
    again = set(returned)
    return [
        (series, [name for name in whom if name not in again]),
        (returns, [name for name in whom if name in again]),
    ]


def charge(ledger: Ledger, campaign: Campaign, members: list[str]) -> list[str]:
    """Charge those whose budget allows it; return all who were charged, now or before."""
    paid = list[str]()
    erase_secrets(ledger.open_batches(campaign))  # no noise is drawn for a charge
    for at in range(0, len(members), _BATCH):
        some = members[at : at + _BATCH]
        unable = set(ledger.newcomers(campaign, some).unable)
        able = [name for name in some if name not in unable]
        if able:
            ledger.charge(campaign, able)
        paid += able
    erase_secrets(ledger.open_batches(campaign))
    return paid
