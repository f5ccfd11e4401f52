"""What a function reads besides its arrays: static values as keys, and whether they changed."""

from __future__ import annotations

import dis
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from operator import is_
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .base import Base


def key_of(value: Any, forget: Callable[[Any], None]) -> Any:
    """A hashable key of a static value; a TypeError if it is not hashable.

    Numbers differ by type, 1 from 1.0 and True, and 0.0 from -0.0; one nan is like another. The key
    of an object that equals nothing but itself does not keep it alive.
    """
    kind: Any = type(value)
    if isinstance(value, NUMBERS):
        return number_key(value)
    if isinstance(value, tuple):
        return kind, tuple([key_of(part, forget) for part in value])
    if isinstance(value, frozenset):
        return kind, frozenset(key_of(part, forget) for part in value)
    if kind is dict:  # of a function's **options
        return kind, tuple([(name, key_of(value[name], forget)) for name in sorted(value)])
    hash(value)
    if kind.__hash__ is object.__hash__ and kind.__weakrefoffset__:
        return weakref.ref(value, forget)
    return kind, value


NUMBERS = float, complex, np.generic


def number_key(value: Any) -> Any:
    """The type and bits of a number."""
    if isinstance(value, np.generic):
        return type(value), value.tobytes()
    if isinstance(value, complex):
        return type(value), value.real.hex(), value.imag.hex()
    return type(value), value.hex()


def holds(key: Any, gone: weakref.ref[Any]) -> bool:
    """Whether a key belongs to an object that no longer exists."""
    return key is gone or (
        isinstance(key, tuple | frozenset) and any(holds(part, gone) for part in key)
    )


def state_of(value: Any) -> list[Any]:
    """All that can be seen in a value, in one list: equal for as long as nothing in it changed.

    It holds arrays by their bytes, and no object that could hold `value` in turn.
    """
    state: list[Any] = []
    seen: dict[int, tuple[int, Any]] = {}
    todo = [value]
    while todo:
        one = todo.pop()
        kind = type(one)
        if kind in ATOMS:
            state.append((kind, one))
        elif isinstance(one, NUMBERS):
            state.append(number_key(one))
        elif id(one) in seen:
            state.append(seen[id(one)][0])
        else:
            seen[id(one)] = len(seen), one  # which keeps it, so that no other object has its id
            before = len(todo)
            todo += parts_of(one, state)
            state.append((kind, len(todo) - before))
    return state


ATOMS = frozenset({int, bool, str, bytes, type(None)})
CONTAINERS = list, tuple, set, frozenset, deque
WHOLE = FunctionType, BuiltinFunctionType, ModuleType, type, Base
"""Classes whose objects are compared by identity: their attributes are not read."""


def parts_of(one: Any, state: list[Any]) -> Iterable[Any]:
    """The parts of an object to look at next; values that have no parts are added to `state`."""
    if isinstance(one, CONTAINERS):
        return one
    if isinstance(one, dict):
        return [*one, *one.values()]
    parts: list[Any] = []
    plain = type(one) is np.ndarray
    if not plain:
        state.append(Same(one))
        if isinstance(one, WHOLE) or hasattr(one, "__dask_graph__"):
            return parts
    with suppress(Exception):  # which classes that we do not know may raise
        if hasattr(one, "__array__"):
            array = np.asarray(one)
            state.append((array.dtype, array.shape))
            if array.dtype.hasobject:
                parts += array.ravel().tolist()
            else:
                state.append(array.tobytes())
        if not plain:
            parts.append(object.__getstate__(one))
    return parts


class Same:
    """An object that equals itself alone, not kept alive where that can be."""

    def __init__(self, value: Any) -> None:
        try:
            self.value: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self.value = lambda: value

    def __eq__(self, other: object) -> bool:
        found = self.value()
        return isinstance(other, Same) and found is not None and found is other.value()

    __hash__ = None  # type: ignore[assignment]  # a state is compared, not looked up


class Reads:
    """The names of its module and of enclosing functions that a function reads, with their values.

    Functions of the same module that it calls read for it.
    """

    def __init__(self, function: Any) -> None:
        self.module = getattr(function, "__globals__", {})
        self.names: list[str] = []
        self.cells: list[CellType] = []
        seen, todo = set(), [function]
        while todo:
            one = todo.pop()
            one = getattr(one, "__wrapped__", one)
            here = isinstance(one, FunctionType) and one.__globals__ is self.module
            if not here or one in seen:
                continue
            seen.add(one)
            names, cells = global_names(one.__code__), one.__closure__ or ()
            todo += [*map(self.module.get, names), *map(contents, cells)]
            self.names += names
            self.cells += cells
        self.values = [*map(self.module.get, self.names), *map(contents, self.cells)]

    def changed(self) -> bool:
        """Whether a name means another object than it did."""
        now = *map(self.module.get, self.names), *map(contents, self.cells)
        if all(map(is_, now, self.values)):
            return False
        return not all(map(alike, now, self.values))


def contents(cell: CellType) -> Any:
    """The value of a variable of an enclosing function, None if it is not set yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def alike(a: object, b: object) -> bool:
    """Whether two objects are one, or equal numbers or texts."""
    if type(a) is type(b) and (isinstance(a, NUMBERS) or type(a) in ATOMS):
        return state_of(a) == state_of(b)
    return a is b


def global_names(code: CodeType) -> set[str]:
    """The names that code reads from its module, in functions inside it too."""
    found = {one.argval for one in dis.get_instructions(code) if one.opname == "LOAD_GLOBAL"}
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return found.union(*map(global_names, inner))
