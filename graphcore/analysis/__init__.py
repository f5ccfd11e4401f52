"""Facts about the nodes of a graph, found from the graph alone.

An analysis never changes a graph. Rewrites do not store properties of nodes: they call analyses.
"""
