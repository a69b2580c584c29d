"""The private graph and its public nodes: structure, files and foreign objects, data sets."""
