"""How good a private result is, on any graph: metrics and protocols.

Everything in here is the curator's analysis. It compares with exact values, so none of its
numbers may be published as if they were private.
"""
