"""The whole table of entries: the files that have some are imported here."""

from __future__ import annotations

from . import (
    along,
    arrays,
    control,
    elementwise,
    host,
    matrices,
    positions,
    reductions,
    special,
    spectra,
    windows,
)
from .entries import TABLE

__all__ = [
    "TABLE",
    "along",
    "arrays",
    "control",
    "elementwise",
    "host",
    "matrices",
    "positions",
    "reductions",
    "special",
    "spectra",
    "windows",
]
