"""Trying to break what is claimed: search for worst neighbouring graphs, attack the noise."""

from edgeveil.auditing.verdict import AuditResult, audit
from edgeveil.auditing.worst_pairs import anneal, worst_pair
from edgeveil.mechanisms.hard_pairs import Pair

__all__ = ["AuditResult", "Pair", "anneal", "audit", "worst_pair"]
