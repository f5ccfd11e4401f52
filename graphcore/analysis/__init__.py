"""Facts about the nodes of a graph, found from the graph alone.

An analysis never changes a graph, and no rewrite carries a property along: it asks here.
"""
