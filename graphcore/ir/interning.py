"""Weak tables in which equal things are one object, freed with their last use."""

from __future__ import annotations

from typing import Any, Generic, TypeVar
from weakref import ref

from .locks import new_lock

Value = TypeVar("Value")


class Entry(ref[Value]):
    """A weak reference that knows the key it is filed under."""

    __slots__ = ("key",)
    key: Any


class Interned(Generic[Value]):
    """Values by key, held weakly; safe under threads, as entries are never replaced.

    Leaner than a WeakValueDictionary, as this runs once for every node built.
    """

    __slots__ = ("_forget", "entries")

    def __init__(self) -> None:
        entries: dict[Any, Entry[Value]] = {}
        lock = new_lock()  # a finalizer, which removes an entry, may run while it is held

        def forget(entry: Entry[Value]) -> None:
            with lock:  # else another thread may replace the entry between look-up and removal
                if entries.get(entry.key) is entry:
                    del entries[entry.key]

        self.entries, self._forget = entries, forget

    def get(self, key: Any) -> Value | None:
        """The value filed under `key`, if it is still in use."""
        entry = self.entries.get(key)
        return None if entry is None else entry()

    def add(self, key: Any, value: Value) -> Value:
        """File `value`, unless another thread was first; the one that is filed."""
        entry = Entry(value, self._forget)
        entry.key = key
        while True:
            held = self.entries.setdefault(key, entry)
            if held is entry:
                return value
            if (first := held()) is not None:
                return first
            self._forget(held)

    def __len__(self) -> int:
        return len(self.entries)
