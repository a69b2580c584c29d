"""Release -> Release. Nothing in here can reach the graph: that is the post-processing theorem."""

from edgeveil.postprocess.embedding import embed

__all__ = ["embed"]
