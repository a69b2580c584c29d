"""Estimates from released values: post-processing.

Everything in here is a function of released values, public parameters, and what a member knows
itself. Nothing in here can import a graph or draw noise.
"""
