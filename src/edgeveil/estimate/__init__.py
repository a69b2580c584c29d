"""What can be concluded from released values alone: statistics after the noise.

Everything in here is a function of values that are already private, of public parameters, and
of what a recipient knows itself. Nothing in here can import a graph or draw noise.
"""
