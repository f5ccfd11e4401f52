"""What runs on the host while XLA's program waits: NumPy's routines, functions of users, prints.

An exception there would end XLA's program with words of its own. So it is kept, results are 0, and
the call fails in the op, with the number of the exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from threading import Lock
from typing import Any

import jax
import numpy as np

from graphcore.backends.numpy_backend.callbacks import CallbackError, Caller
from graphcore.backends.printing import lines_to_print, write
from graphcore.ir import INT, Array, Node, Op, TensorType
from graphcore.ir.axes import values
from graphcore.ir.types import show_dtype
from graphcore.ops import outside, tensor

from .entries import Emission, Value, entry

HOST: set[Op] = {outside.callback_}
"""Ops that run on the host: there each call waits for copies from the device and back."""


def on_host(
    cx: Emission, node: Node, compute: Callable[..., Array | Sequence[Array]], *xs: Value
) -> Value:
    """The value of a node by a function of NumPy arrays, which must not fail."""
    several = values(node.type)

    def run(*arrays: Value) -> list[Array]:
        with np.errstate(all="ignore"):
            found = compute(*map(np.asarray, arrays))
        parts = found if isinstance(found, (tuple, list)) else (found,)
        return [np.asarray(y, of.dtype) for y, of in zip(parts, several, strict=True)]

    found = tuple(jax.pure_callback(run, shapes(cx, several), *xs))
    return found[0] if isinstance(node.type, TensorType) else found


def shapes(cx: Emission, several: Sequence[TensorType]) -> list[Any]:
    """Values as JAX speaks of them."""
    struct: Any = jax.ShapeDtypeStruct
    return [struct(cx.shape(type), type.dtype) for type in several]


class Kept:
    """Errors on their way through XLA's program, by number: the newest hundred."""

    def __init__(self) -> None:
        self._lock, self._numbers = Lock(), count(1)
        self._errors: dict[int, CallbackError] = {}

    def keep(self, error: CallbackError) -> int:
        """The number of an error."""
        with self._lock:
            number = next(self._numbers)
            self._errors[number] = error
            self._errors.pop(number - 100, None)
            return number

    def take(self, number: int) -> CallbackError:
        """The error of a number."""
        with self._lock:
            return self._errors.pop(number)


KEPT = Kept()
RAISED = "a function on the host has raised"
"""The reason of a failure whose number is that of an error in `KEPT`."""


@entry(outside.callback_)
def callback(cx: Emission, node: Node, *xs: Value) -> Value:
    """A function that a user gave, for each element of the batch."""
    call, several = Caller(node.attrs), values(node.type)
    wanted = [cx.shape(type) for type in several]

    def run(*arrays: Value) -> list[Array]:
        try:
            return [np.zeros((), INT), *call(wanted, *map(np.asarray, arrays))]
        except CallbackError as error:
            zeros = [np.zeros(of, type.dtype) for of, type in zip(wanted, several, strict=True)]
            return [np.asarray(KEPT.keep(error)), *zeros]

    made = shapes(cx, [TensorType(INT, ()), *several])
    error, *found = jax.pure_callback(run, made, *xs)
    cx.fail_where(node, error != 0, RAISED, error)
    return tuple(found)


@entry(tensor.print_)
def print_(cx: Emission, node: Node, x: Value) -> Value:
    """Lines are printed in the order of the program, on a mesh in any order."""
    label, dims, dtype = node.attrs["label"], node.attrs["dims"], show_dtype(x.dtype)

    def show(value: Value) -> None:
        write(lines_to_print(label, dtype, dims, np.asarray(value)))

    jax.debug.callback(show, x, ordered=not cx.meshed)
    return x
