"""What runs on the host while XLA's program waits: NumPy's routines, functions of users, prints.

An exception there would end XLA's program with words of its own. So it is kept, results are 0, and
the call fails in the op, with the number of the exception.

The setting for 64 bits belongs to a thread, and XLA calls from threads of its own, where JAX would
round arguments and results to 32 bits. So numbers of 64 bits travel as two words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from threading import Lock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.linalg import LinAlgError

from graphcore.backends.numpy_backend.callbacks import CallbackError, Caller
from graphcore.backends.printing import lines_to_print, write
from graphcore.ir import INT, Array, DType, Node, Op, TensorType
from graphcore.ir.axes import values
from graphcore.ir.types import show_dtype
from graphcore.ops import outside, tensor

from .entries import Emission, Value, entry

HOST: set[Op] = {outside.callback_}
"""Ops that run on the host: there each call waits for copies from the device and back."""


def is_wide(dtype: DType) -> bool:
    """Whether a number of a dtype has parts of 64 bits."""
    return dtype.itemsize == (16 if dtype.kind == "c" else 8)


def in_words(x: Value) -> Value:
    """An array as it travels to the host."""
    if not is_wide(x.dtype):
        return x
    if x.dtype.kind == "c":
        x = jnp.stack([jnp.real(x), jnp.imag(x)], -1)
    return lax.bitcast_convert_type(x, jnp.uint32)


def of_words(x: Value, dtype: DType) -> Value:
    """An array as it comes from the host."""
    if not is_wide(dtype):
        return x
    if dtype.kind != "c":
        return lax.bitcast_convert_type(x, dtype)
    parts = lax.bitcast_convert_type(x, jnp.float64)
    return lax.complex(parts[..., 0], parts[..., 1])


def words_of(dtype: DType) -> tuple[int, ...]:
    """The axes that an array has more where its numbers are words."""
    return ((2, 2) if dtype.kind == "c" else (2,)) if is_wide(dtype) else ()


Compute = Callable[..., Sequence[Array]]
"""From arrays to arrays, on the host."""


def call_host(compute: Compute, made: Sequence[Any], *xs: Value) -> list[Value]:
    """The results of a function of NumPy arrays; `made` are their shapes and dtypes."""
    given = [(x.shape, x.dtype) for x in xs]

    def run(*arrays: Any) -> list[Array]:
        words = [np.ascontiguousarray(x) for x in arrays]
        found = compute(
            *[x.reshape(-1).view(of).reshape(shape) for x, (shape, of) in zip(words, given)]
        )
        return [sent(np.asarray(y, of), shape) for y, (shape, of) in zip(found, made, strict=True)]

    struct: Any = jax.ShapeDtypeStruct
    shapes = [
        struct((*shape, *words_of(of)), np.uint32 if is_wide(of) else of) for shape, of in made
    ]
    found = jax.pure_callback(run, shapes, *map(in_words, xs))
    return [of_words(y, of) for y, (_, of) in zip(found, made, strict=True)]


def sent(y: Array, shape: Sequence[int]) -> Array:
    """A result on the host as it travels to the device."""
    y = np.ascontiguousarray(y).reshape(shape)
    if not is_wide(y.dtype):
        return y
    return y.reshape(-1).view(np.uint32).reshape(*shape, *words_of(y.dtype))


def on_host(cx: Emission, node: Node, compute: Callable[..., Any], *xs: Value) -> Value:
    """The value of a node by a function of NumPy arrays; floats are nan where it has none."""
    made = [(cx.shape(type), type.dtype) for type in values(node.type)]

    def run(*arrays: Array) -> Sequence[Array]:
        with np.errstate(all="ignore"):
            try:
                found = compute(*arrays)
            except LinAlgError:
                return [np.full(shape, np.nan, of) for shape, of in made]
        return found if isinstance(found, (tuple, list)) else [found]

    found = call_host(run, made, *xs)
    return found[0] if isinstance(node.type, TensorType) else tuple(found)


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
    call = Caller(node.attrs)
    made = [(cx.shape(type), type.dtype) for type in values(node.type)]
    shapes = [shape for shape, _ in made]

    def run(*arrays: Array) -> Sequence[Array]:
        try:
            return [np.zeros((), INT), *call(shapes, *arrays)]
        except CallbackError as error:
            return [np.asarray(KEPT.keep(error)), *[np.zeros(*each) for each in made]]

    number, *found = call_host(run, [((), INT), *made], *xs)
    cx.fail_where(node, number != 0, RAISED, number)
    return tuple(found)


@entry(tensor.print_)
def print_(cx: Emission, node: Node, x: Value) -> Value:
    """Lines are printed in the order of the program, but not on a mesh."""
    label, dims, dtype = node.attrs["label"], node.attrs["dims"], x.dtype
    shape = x.shape

    def show(value: Any) -> None:
        array = np.ascontiguousarray(value).reshape(-1).view(dtype).reshape(shape)
        write(lines_to_print(label, show_dtype(dtype), dims, array))

    jax.debug.callback(show, in_words(x), ordered=not cx.meshed)
    return x
