"""Derivatives, and programs rebuilt on inputs with more dims."""
