"""Sums and other reductions over dims, running along them, by group, and of products."""
