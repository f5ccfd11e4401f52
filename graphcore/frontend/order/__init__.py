"""Sorting and functions that depend on order: search, quantiles, interpolation, counts."""
