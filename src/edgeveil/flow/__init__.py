"""Non-private algorithms on graphs. Knows nothing of noise.

`pagerank`   exact Personalized PageRank, to a stated tolerance
`push_flow`  PushFlow and PushFlowCap, algorithms 1 and 2 of the paper
`bounds`     what one edge can change, and what floating point can: pure arithmetic
`walk`       restart probabilities and numbers of rounds
"""

from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.flow.push_flow import push_flow, push_flow_cap
from edgeveil.flow.walk import lazy_restart, precision_of_rounds, rounds_for_precision

__all__ = [
    "lazy_restart",
    "personalized_pagerank",
    "precision_of_rounds",
    "push_flow",
    "push_flow_cap",
    "rounds_for_precision",
]
