"""The whole table of entries: the files that have some are imported here."""

from __future__ import annotations

from . import control
from .entries import TABLE

__all__ = ["TABLE", "control"]
