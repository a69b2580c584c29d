"""Non-private algorithms on graphs. Knows nothing of noise.

`pagerank`   exact Personalized PageRank, to a stated tolerance
`push_flow`  PushFlow and PushFlowCap (algorithms 1 and 2 of the paper)
`bounds`     sensitivity to one edge, and bounds on the float error: pure arithmetic
`walk`       restart probabilities, and checks of parameters
"""

from edgeveil.flow.pagerank import personalized_pagerank
from edgeveil.flow.push_rounds import push_flow, push_flow_cap
from edgeveil.flow.walk import lazy_restart

__all__ = [
    "lazy_restart",
    "personalized_pagerank",
    "push_flow",
    "push_flow_cap",
]
