"""How good a private result is, on any graph: metrics and protocols.

For the curator only: results are compared with exact values, so none of the numbers may be
published as if they were private.
"""
