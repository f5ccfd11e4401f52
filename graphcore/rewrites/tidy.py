"""The rules that hold everywhere: nothing is lost by them, and they make other rules find more."""

from __future__ import annotations

from .algebra import algebra
from .motion import motion
from .powers import powers

tidy = algebra | powers | motion
"""Algebra that is exact, powers as products, and views that meet views."""
