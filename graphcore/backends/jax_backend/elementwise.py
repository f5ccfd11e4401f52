"""Elementwise ops that NumPy has ufuncs for, and casts and choices.

Operands are cast to the dtypes of NumPy's loop, so that its promotion holds and JAX's never
decides; float16 is computed in float32, as NumPy does. A rule stands here where JAX's function of
the name answers differently: at zeros, infinities, nan, and for integers and complex numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphcore.ir import Node, Op
from graphcore.ir.types import DType
from graphcore.ops import elementwise as e
from graphcore.ops.elementwise import UFUNC, compute_dtypes

from . import complexes, floats, integers
from .entries import TABLE, Emission, Entry, Value, entry

Rule: TypeAlias = Callable[..., Value]

EXACT = (e.nextafter, e.spacing, e.signbit)
"""Ops on the form of a float, which float32 has not for float16."""
OTHER_NAMES = {"absolute": "abs", "conjugate": "conj", "divide": "true_divide"}


def pointwise(op: Op) -> Entry:
    """The entry of an op that has a ufunc."""

    def run(cx: Emission, node: Node, *xs: Value) -> Value:
        *wanted, found = compute_dtypes(op, *[x.type.dtype for x in node.inputs])
        function = rule(op, wanted[0])
        if wanted[0] == np.float16 and op not in EXACT:
            wanted = [np.dtype("f4") if dtype.kind == "f" else dtype for dtype in wanted]
        values = [cast_to(x, dtype) for x, dtype in zip(xs, wanted, strict=True)]
        return cast_to(function(*values), found)

    return run


def rule(op: Op, dtype: DType) -> Rule:
    """The function of an op for operands of a dtype."""
    for kinds, function in RULES.get(op, {}).items():
        if dtype.kind in kinds:
            return function
    name = getattr(UFUNC[op], "__name__", "")
    found: Rule = getattr(jnp, OTHER_NAMES.get(name, name))
    return found


# ---- casts


def cast_to(x: Value, dtype: DType) -> Value:
    """A value in another dtype, as NumPy's `astype` on x86 and as machine code has it."""
    if x.dtype == dtype:
        return x
    if x.dtype.kind == "c" and dtype.kind not in "bc":
        x = jnp.real(x)
    if dtype.kind == "b":
        return x != 0
    if x.dtype.kind == "f" and dtype.kind in "iu":
        return to_integer(x, dtype)
    if x.dtype.kind in "iu" and dtype == np.float16:
        x = x.astype(np.float32)  # NumPy rounds twice here
    return x.astype(dtype)


def to_integer(x: Value, dtype: DType) -> Value:
    """The integer part of a float; floats outside of int32 or int64 become the lowest integer.

    Narrower integers take the last bits of an int32; unsigned ones of 32 bits those of an int64.
    """
    if x.dtype == np.float16:
        x = x.astype(np.float32)
    if dtype == np.uint64:
        top = np.array(2.0**63, x.dtype)
        above = x >= top
        less = to_signed(jnp.where(above, x - top, x), np.dtype("i8")).astype(dtype)
        return jnp.where(above, less ^ np.uint64(2**63), less)
    wide = dtype == np.int64 or dtype == np.uint32
    return to_signed(x, np.dtype("i8" if wide else "i4")).astype(dtype)


def to_signed(x: Value, dtype: DType) -> Value:
    """The integer part of a float, the lowest integer where it does not fit."""
    lowest = np.iinfo(dtype).min
    limit = np.array(-float(lowest), x.dtype)
    narrow = x.dtype == np.float64 and dtype == np.int32
    above = x > -limit - 1 if narrow else x >= -limit  # the next float below is too far away
    fits = above & (x < limit)
    whole = jnp.where(fits, x, jnp.zeros_like(x)).astype(dtype)
    return jnp.where(fits, whole, np.array(lowest, dtype))


# ---- comparisons


def mixed(relation: str) -> Rule:
    """A comparison, also of signed with unsigned integers of 64 bits, which no dtype holds both."""
    plain: Rule = getattr(jnp, relation)

    def run(x: Value, y: Value) -> Value:
        if x.dtype == y.dtype:
            return plain(x, y)
        if x.dtype.kind == "i":
            found, below = plain(x.astype(np.uint64), y), x < 0
            return jnp.where(below, relation in ("less", "less_equal", "not_equal"), found)
        found, below = plain(x, y.astype(np.uint64)), y < 0
        return jnp.where(below, relation in ("greater", "greater_equal", "not_equal"), found)

    return run


def itself(x: Value) -> Value:
    return x


RULES: dict[Op, dict[str, Rule]] = {
    e.absolute: {"c": complexes.absolute, "bu": itself},
    e.divide: {"c": complexes.divide},
    e.reciprocal: {
        "iu": lambda x: to_integer(1 / x.astype(np.float64), x.dtype),
        "c": complexes.reciprocal,
    },
    e.floor_divide: {"iu": integers.floor_divide, "f": lambda x, y: floats.divided(x, y)[0]},
    e.remainder: {"iu": integers.remainder, "f": lambda x, y: floats.divided(x, y)[1]},
    e.fmod: {"iu": integers.fmod, "f": lax.rem},
    e.power: {"iu": integers.power, "c": complexes.power},
    e.sign: {"f": floats.sign, "c": complexes.sign},
    e.sqrt: {"c": complexes.sqrt},
    e.exp: {"c": complexes.exp},
    e.exp2: {"f": floats.exp2, "c": complexes.exp2},
    e.expm1: {"c": complexes.expm1},
    e.log: {"c": complexes.log},
    e.log2: {"c": complexes.log2},
    e.log10: {"c": complexes.log10},
    e.log1p: {"f": floats.log1p, "c": complexes.log1p},
    e.logaddexp: {"f": floats.logaddexp},
    e.logaddexp2: {"f": floats.logaddexp2},
    e.sin: {"c": complexes.rotated(complexes.sinh)},
    e.cos: {"c": complexes.cos},
    e.tan: {"c": complexes.rotated(complexes.tanh)},
    e.arcsin: {"c": complexes.rotated(complexes.arcsinh)},
    e.arccos: {"c": complexes.arccos},
    e.arctan: {"c": complexes.rotated(complexes.arctanh)},
    e.hypot: {"f": floats.hypot},
    e.sinh: {"f": floats.sinh, "c": complexes.sinh},
    e.cosh: {"f": floats.cosh, "c": complexes.cosh},
    e.tanh: {"c": complexes.tanh},
    e.arcsinh: {"c": complexes.arcsinh},
    e.arccosh: {"c": complexes.arccosh},
    e.arctanh: {"f": floats.arctanh, "c": complexes.arctanh},
    e.floor: {"biu": itself},
    e.ceil: {"biu": itself},
    e.trunc: {"biu": itself},
    e.heaviside: {"f": floats.heaviside},
    e.maximum: {"c": complexes.extreme("greater_equal")},
    e.minimum: {"c": complexes.extreme("less_equal")},
    e.fmax: {"c": complexes.known_extreme("greater_equal")},
    e.fmin: {"c": complexes.known_extreme("less_equal")},
    e.ldexp: {"f": floats.ldexp},
    e.nextafter: {"f": floats.nextafter},
    e.spacing: {"f": floats.spacing},
    e.conjugate: {"biuf": itself},
    e.less: {"biuf": mixed("less"), "c": complexes.ordered("less")},
    e.less_equal: {"biuf": mixed("less_equal"), "c": complexes.ordered("less_equal")},
    e.greater: {"biuf": mixed("greater"), "c": complexes.ordered("greater")},
    e.greater_equal: {"biuf": mixed("greater_equal"), "c": complexes.ordered("greater_equal")},
    e.equal: {"biuf": mixed("equal")},
    e.not_equal: {"biuf": mixed("not_equal")},
    e.left_shift: {"iu": lax.shift_left},
    e.right_shift: {"i": lax.shift_right_arithmetic, "u": lax.shift_right_logical},
    e.gcd: {"iu": integers.gcd},
    e.lcm: {"iu": integers.lcm},
}
"""Functions by the kinds of dtypes that they are for; JAX's function of the name is for others."""

TABLE.update((op, pointwise(op)) for op, f in UFUNC.items() if isinstance(f, np.ufunc))


# ---- ops with rules of their own


@entry(e.power)
def power(cx: Emission, node: Node, x: Value, y: Value) -> Value:
    """Negative powers of integers are refused, as by NumPy."""
    dtypes = compute_dtypes(node.op, *[operand.type.dtype for operand in node.inputs])
    if dtypes[1].kind == "i":
        reason = "Integers to negative integer powers are not allowed"
        cx.fail_where(node, jnp.any(y < 0), reason)
    return pointwise(node.op)(cx, node, x, y)


@entry(e.real)
def real(cx: Emission, node: Node, z: Value) -> Value:
    return jnp.real(z)


@entry(e.imag)
def imag(cx: Emission, node: Node, z: Value) -> Value:
    return jnp.imag(z)


@entry(e.cast)
def cast(cx: Emission, node: Node, x: Value) -> Value:
    return cast_to(x, node.type.dtype)


@entry(e.where)
def where(cx: Emission, node: Node, condition: Value, x: Value, y: Value) -> Value:
    return jnp.where(condition, cast_to(x, node.type.dtype), cast_to(y, node.type.dtype))
