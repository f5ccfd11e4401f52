"""Rewrites of programs: lowering, derivatives, simplification, and their order."""
