"""Kinds of dtypes, constants, and casts between kinds as NumPy makes them on x86-64."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from graphcore.ir import DType, Node

from .builder import FALSE, PARTS, TRUE, Builder, Value, integer, real

KINDS = {
    **{"bool": "i1", "float64": "f64", "float32": "f32", "float16": "f16"},
    **{"complex128": "c128", "complex64": "c64"},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}
"""The kind of each dtype."""
DTYPES = {kind: np.dtype(name) for name, kind in KINDS.items()}
"""The dtype of each kind."""
DOUBLE = {"f16": "f64", "f32": "f64", "c64": "c128"}
"""The kinds in which errors of other kinds are added up."""


def kind_of(node: Node) -> str:
    """The kind of a node's values."""
    return kind_of_dtype(node.type.dtype)


@lru_cache(maxsize=256)
def kind_of_dtype(dtype: DType) -> str:
    """The kind of values of a dtype."""
    return KINDS[dtype.name]


def literal(x: Any, kind: str) -> Value:
    """A constant of a kind."""
    if kind == "i1":
        return TRUE if x else FALSE
    if part := PARTS.get(kind):
        z = complex(x)
        a, b = real(z.real, part), real(z.imag, part)
        return Value(f"{{ {a.typed}, {b.typed} }}", kind)
    return real(float(x), kind) if kind[0] == "f" else integer(int(x), kind)


def is_float(x: Value) -> bool:
    """Whether a value is a real float."""
    return x.kind[0] == "f"


def is_infinite(b: Builder, x: Value) -> Value:
    """Whether a float is an infinity."""
    return b.op("fcmp oeq", b.call("fabs", x), literal(float("inf"), x.kind))


def is_finite(b: Builder, x: Value) -> Value:
    """Whether a float is neither infinite nor nan."""
    return b.op("fcmp olt", b.call("fabs", x), literal(float("inf"), x.kind))


def is_unsigned(x: Value) -> bool:
    """Whether a value is an unsigned integer or a bool."""
    return x.kind[0] == "u" or x.kind == "i1"


def nonzero(b: Builder, x: Value) -> Value:
    """Whether a value is true: nan is."""
    if x.kind == "i1":
        return x
    if x.kind in PARTS:
        return b.op("or", *[nonzero(b, part) for part in b.parts(x)])
    return b.op("fcmp une" if is_float(x) else "icmp ne", x, literal(0, x.kind))


def cast(b: Builder, x: Value, to: str) -> Value:
    """A value in another kind."""
    if x.kind == to:
        return x
    if to == "i1":
        return nonzero(b, x)
    if x.kind in PARTS:
        re, im = b.parts(x)
        if to not in PARTS:
            return cast(b, re, to)
        return b.complex(cast(b, re, PARTS[to]), cast(b, im, PARTS[to]))
    if part := PARTS.get(to):
        y = cast(b, x, part)
        return b.complex(y, literal(0.0, part))
    if is_float(x):
        return between_floats(b, x, to) if to[0] == "f" else to_integer(b, x, to)
    if to[0] == "f":
        if to == "f16":  # NumPy rounds twice here
            return cast(b, cast(b, x, "f32"), to)
        return b.convert("uitofp" if is_unsigned(x) else "sitofp", x, to)
    here, there = int(x.kind[1:]), int(to[1:])
    if here > there:
        return b.convert("trunc", x, to)
    return b.convert("zext" if is_unsigned(x) else "sext", x, to)


def between_floats(b: Builder, x: Value, to: str) -> Value:
    """A float in another precision."""
    if to == "f64" or x.kind == "f16":
        half = b.convert("fpext", x, "f32") if x.kind == "f16" else x
        return half if to == "f32" else b.convert("fpext", half, "f64")
    if x.kind == "f64" and to == "f16":
        return b.convert("fptrunc", rounded_to_odd(b, x), "f16")
    return b.convert("fptrunc", x, to)


def rounded_to_odd(b: Builder, x: Value) -> Value:
    """A float64 as a float32 of odd last bit where it is inexact: to round again is to round once.

    There is no instruction from float64 to float16.
    """
    y = b.convert("fptrunc", x, "f32")
    back = b.convert("fpext", y, "f64")
    bits = b.convert("bitcast", y, "i32")
    too_far = b.op("fcmp ogt", b.call("fabs", back), b.call("fabs", x))
    down = b.op("sub", bits, b.convert("zext", too_far, "i32"))
    odd = b.convert("bitcast", b.op("or", down, integer(1, "i32")), "f32")
    return b.select(b.op("fcmp one", back, x), odd, y)


def to_integer(b: Builder, x: Value, to: str) -> Value:
    """The integer part of a float; floats outside of int32 or int64 become the lowest integer.

    Narrower integers take the last bits of an int32, as compiled C does; unsigned ones of 32 bits
    those of an int64.
    """
    if x.kind == "f16":
        x = b.convert("fpext", x, "f32")
    if to == "u64":
        top = literal(2.0**63, x.kind)
        above = b.op("fcmp oge", x, top)
        less = to_signed(b, b.select(above, b.op("fsub", x, top), x), "i64")
        flipped = b.op("xor", less, integer(1 << 63, "i64"))
        return b.select(above, flipped, less)._replace(kind="u64")
    whole = to_signed(b, x, "i64" if to in ("i64", "u32") else "i32")
    return cast(b, whole, to)


def to_signed(b: Builder, x: Value, to: str) -> Value:
    """The integer part of a float, the lowest integer where it does not fit."""
    limit = 2.0 ** (int(to[1:]) - 1)
    if x.kind == "f64" and to == "i32":
        above = b.op("fcmp ogt", x, real(-limit - 1))
    else:  # the next float below is too far away
        above = b.op("fcmp oge", x, real(-limit, x.kind))
    fits = b.op("and", above, b.op("fcmp olt", x, real(limit, x.kind)))
    whole = b.convert("fptosi", b.select(fits, x, literal(0.0, x.kind)), to)
    return b.select(fits, whole, integer(-int(limit), to))
