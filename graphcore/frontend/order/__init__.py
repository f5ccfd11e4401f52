"""Sorting and what follows from order: search, quantiles, interpolation, counts."""
