"""What every part speaks of: nodes, ops, types, sizes, graphs and contracts."""
