"""Checks, files, words, compiled loops and their cache. Nothing here knows a graph."""
