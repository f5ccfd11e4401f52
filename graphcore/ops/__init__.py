"""Declarations of ops with their type rules, a module for each dialect."""

from . import special as special  # declares elementwise ops, so it comes before all who list them
