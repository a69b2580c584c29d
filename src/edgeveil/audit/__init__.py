"""Trying to break what is claimed: search for worst neighbouring graphs, attack the noise."""
