"""The data structures of every part: nodes, ops, types, sizes, graphs and contracts."""
