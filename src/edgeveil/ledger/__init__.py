"""The privacy budget of a graph, on disk, charged before noise is drawn."""

from edgeveil.ledger.ledger import Account, Batch, Campaign, Charge, Charged, Ledger, Price

__all__ = ["Account", "Batch", "Campaign", "Charge", "Charged", "Ledger", "Price"]
