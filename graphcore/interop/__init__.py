"""Arrays and graphs of other libraries: their coordinates followed through a program, and doors."""

from importlib import import_module
from typing import Any

DOORS = {"from_pytensor": "pytensor", "to_pytensor": "pytensor"}
"""Functions that need another library, and the package here that has them."""


def __getattr__(name: str) -> Any:
    """A function of `DOORS`, whose library is imported when it is asked for."""
    if name not in DOORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{DOORS[name]}"), name)
