"""Files and foreign objects -> `Graph`, and a `Graph` -> a folder that opens at once.

    read_graph   a path: edge list, Parquet, .mat, MatrixMarket, or a folder of save_graph
    as_graph     an object in memory: scipy, numpy, networkx, igraph, networkit, any Arrow table
    save_graph   a graph -> a folder
    open_graph   that folder -> the graph, memory-mapped
    build_graph  files of edges larger than memory -> a folder

No foreign library is imported here: objects are recognised, polars and scipy.io load late.
"""

from edgeveil.graph.building import build_graph
from edgeveil.graph.objects import as_graph
from edgeveil.graph.read import read_graph
from edgeveil.graph.saved import open_graph, save_graph

__all__ = ["as_graph", "build_graph", "open_graph", "read_graph", "save_graph"]
