"""Trying to break what is claimed: search for worst neighbouring graphs, attack the noise."""

from edgeveil.mechanisms.hard_pairs import Pair
from edgeveil.testing.verdict import AuditResult, audit
from edgeveil.testing.worst_pairs import anneal, worst_pair

__all__ = ["AuditResult", "Pair", "anneal", "audit", "worst_pair"]
