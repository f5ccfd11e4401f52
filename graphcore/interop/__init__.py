"""Arrays and graphs of other libraries: coordinates in programs, and translations."""

from importlib import import_module
from typing import Any

TRANSLATIONS = {"from_pytensor": "pytensor", "to_pytensor": "pytensor", "to_nutpie": "nutpie"}
"""Functions that need another library, and the package here that has them."""


def __getattr__(name: str) -> Any:
    """A function of `TRANSLATIONS`, whose library is imported when it is asked for."""
    if name not in TRANSLATIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{TRANSLATIONS[name]}"), name)
