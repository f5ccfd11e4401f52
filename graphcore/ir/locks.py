"""Locks that a forked child finds free.

A fork copies the memory but one thread alone. Locks that other threads held would stay shut.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import Any
from weakref import WeakSet

_locks: WeakSet[Any] = WeakSet()


def new_lock() -> Any:
    """A lock that a thread may take several times, free in a child of a fork."""
    lock = RLock()
    _locks.add(lock)
    return lock


def free() -> None:
    """Free the locks of threads that this child does not have."""
    for lock in _locks:
        if not lock._is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=free)
