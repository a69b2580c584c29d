"""The privacy budget of a graph, on disk, charged before noise is drawn."""

from edgeveil.ledger.ledger import Account, Charge, Ledger, Price, Reservation, Spend

__all__ = ["Account", "Charge", "Ledger", "Price", "Reservation", "Spend"]
