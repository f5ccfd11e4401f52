"""Calls of C functions by ctypes, with arrays of the caller's between guard zones."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

import graphcore as gc
from graphcore.backends.c_function import CFunction
from graphcore.backends.c_interface import NAN
from graphcore.ir.sizes import evaluate, unknown
from tests.guards import GUARD

ZONE = 0x5A


def pointer(x: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def between_zones(x: np.ndarray, offset: int = 0) -> np.ndarray:
    """The same values with zones around them, aligned as C aligns them and no better."""
    memory = np.full(x.nbytes + 2 * GUARD, ZONE, np.uint8)
    start = GUARD + offset * x.itemsize
    y = memory[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    y[...] = x
    return y


def check_zones(*arrays: np.ndarray) -> None:
    """Nothing was written around arrays that are `between_zones`."""
    for x in arrays:
        memory = x
        while memory.base is not None:
            memory = memory.base
        start = x.ctypes.data - memory.ctypes.data
        around = np.concatenate([memory[:start], memory[start + x.nbytes :]])
        assert (around == ZONE).all(), "something was written around an array"


class Call:
    """A call of a C function: its arguments by the names of C, results full of nan before it."""

    def __init__(self, f: gc.Compiled, c: CFunction, *args: Any) -> None:
        made, boundary = c._interface, f._boundary
        arrays, sizes = boundary.bind_named(args)
        known = {**made.known, **sizes}
        self.inputs = [between_zones(np.asarray(x), 1) for x in arrays]
        count = len(arrays)
        self.results = []
        for type in made.types[count:]:
            shape = [evaluate(size, known) for size in type.shape]
            empty = np.full(shape, 0, type.dtype)
            empty.reshape(-1).view(np.uint8).fill(0xFF)
            self.results.append(between_zones(empty, 3))
        given: list[Any] = [None] * len(made.declaration.parameters)
        for table, several in ((made.inputs, self.inputs), (made.results, self.results)):
            for number, at in table.items():
                type = made.declaration.parameters[at].type
                x = several[number]
                whole = type.dtype[:3] in ("int", "uin")
                given[at] = pointer(x) if type.pointer else int(x) if whole else x.item()
        for name, at in made.sizes.items():
            own = [x.right for x in made.checks if x.left is unknown(name) and x.relation == "=="]
            given[at] = known[name] if name in known else evaluate(own[0], known)
        self.c, self.given = c, given
        self.function = ctypes.CFUNCTYPE(c.ctypes.restype, *map(plain, c.ctypes.argtypes))(
            c.address
        )

    def __call__(self) -> Any:
        return self.function(*self.given)

    def run(self) -> list[np.ndarray]:
        """The results of a call that does not fail."""
        before = [x.copy() for x in self.inputs]
        returned = self()
        made = self.c._interface
        if made.returned is not None:
            self.results[made.returned][...] = returned
        else:
            nan = made.finds_nan and any(
                np.isnan(x).any() for x in self.results if x.dtype.kind in "fc"
            )
            assert returned == (NAN if nan else made.success), str(self.c.failure())
            assert not nan or " is nan" in str(self.c.failure())
        assert self.c.failure() is None
        for x, y in zip(self.inputs, before, strict=True):
            np.testing.assert_array_equal(x, y)
        check_zones(*self.inputs, *self.results)
        return self.results


def plain(type: Any) -> Any:
    """A type for ctypes that takes any pointer."""
    return ctypes.c_void_p if hasattr(type, "contents") else type


def agree(f: gc.Compiled, *several: Sequence[Any]) -> None:
    """C functions give the bits of calls: sizes given at each call, and sizes given once."""
    own = f.cfunc()
    for args in several:
        expected = f._values(*f._given.arrange(args, {}))
        _, sizes = f._boundary.bind_named(f._given.arrange(args, {}))
        given = {name: n for name, n in sizes.items() if type(name) is str}
        for c in (own, f.cfunc(**given)):
            call = Call(f, c, *f._given.arrange(args, {}))
            for _ in range(2):
                for y, z in zip(call.run(), expected, strict=True):
                    assert y.dtype == z.dtype
                    assert y.shape == z.shape
                    np.testing.assert_array_equal(y, z)
