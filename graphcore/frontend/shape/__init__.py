"""Dims reordered, renamed, added, removed, merged and split."""
