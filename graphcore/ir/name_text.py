"""Names of users as text: short, and on one line."""

from __future__ import annotations


def show_dim(name: str) -> str:
    """A dim's name, cut in its middle and escaped so that it stays on its line."""
    return escape(name if len(name) <= 24 else f"{name[:11]}…{name[-12:]}")


def escape(name: str) -> str:
    """A name that stays on its line."""
    return str(name) if name.isprintable() else ascii(str(name))[1:-1]
