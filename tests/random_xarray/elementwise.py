"""Steps that work on each place by itself."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.random_xarray.drawing import (
    NUMBERS,
    Draw,
    Step,
    Value,
    both,
    method,
    pick,
)

SMOOTH = (
    "sin cos tanh arctan exp expm1 arcsinh square exp2 sinh cosh deg2rad rad2deg sqrt log log1p"
)
PLAIN = "negative absolute positive conjugate square fabs"
JUMPING = """floor ceil trunc rint sign isnan isfinite isinf signbit logical_not cbrt reciprocal
    invert log2 log10 arccos arcsin arctanh"""
BINARY = "add subtract multiply maximum minimum fmax fmin"
CURVED = "true_divide hypot logaddexp logaddexp2"
DECIDING = """floor_divide remainder fmod copysign arctan2 equal not_equal less less_equal greater
    greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor heaviside
    float_power gcd lcm left_shift right_shift"""
OPERATORS = {
    **dict.fromkeys(("add", "sub", "mul"), "exact"),
    "truediv": "smooth",
    **dict.fromkeys(("floordiv", "mod", "and_", "or_", "xor"), "jumps"),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), "jumps"),
}


def unary(draw: Draw, pool: list[Value]) -> Step:
    table = pick(draw, SMOOTH, PLAIN, JUMPING)
    name, x = pick(draw, *table.split()), pick(draw, *pool)
    return both(
        f"np.{name}", getattr(np, name), x, exact=table is not SMOOTH, jumps=table is JUMPING
    )


def binary(draw: Draw, pool: list[Value]) -> Step:
    table = pick(draw, BINARY, CURVED, DECIDING)
    name = pick(draw, *table.split())
    return two(draw, pool, f"np.{name}", getattr(np, name), table is not CURVED, table is DECIDING)


def operators(draw: Draw, pool: list[Value]) -> Step:
    name = pick(draw, *OPERATORS)
    kind = OPERATORS[name]
    return two(draw, pool, name, getattr(operator, name), kind != "smooth", kind == "jumps")


def two(draw: Draw, pool: list[Value], text: str, function: Any, exact: bool, jumps: bool) -> Step:
    """An operation of two values, or of one and a number on either side."""
    x = pick(draw, *pool)
    options = {"exact": exact, "jumps": jumps}
    match pick(draw, "value", "value", "right", "left"):
        case "value":
            return both(text, function, x, pick(draw, *pool), **options)
        case "right":
            number = pick(draw, *NUMBERS)
            return both(f"{text}(_, {number!r})", lambda x: function(x, number), x, **options)
    number = pick(draw, *NUMBERS)
    return both(f"{text}({number!r}, _)", lambda x: function(number, x), x, **options)


def powers(draw: Draw, pool: list[Value]) -> Step:
    n = pick(draw, 2, 3, 0, 1, 2.0, 0.5, -1.0, np.float32(2))
    x = pick(draw, *pool)
    if x.kind == "b":
        n = 3  # True ** 2 is int8, against all rules of NumPy
    return both(f"_ ** {n!r}", lambda x: x**n, x, jumps=n == -1)


def casts(draw: Draw, pool: list[Value]) -> Step:
    x = pick(draw, *pool)
    dtypes = ["float64", "float32"]
    if x.kind != "c" and np.isfinite(x.theirs).all():
        dtypes += ["int64", "int32", "bool", "complex128"]
    return method("astype", x, pick(draw, *dtypes), jumps=True)


def choices(draw: Draw, pool: list[Value]) -> Step:
    x, c, y = (pick(draw, *pool) for _ in range(3))
    condition = Value(c.ours != 0, c.theirs != 0, c.exact)
    if not c.exact:
        condition = Value(x.ours.isnull(), x.theirs.isnull(), x.exact)
    match pick(draw, "keep", "keep other", "where", "fillna", "clip", "clip both", "isnull"):
        case "keep":
            return both("where(c)", lambda x, c: x.where(c), x, condition)
        case "keep other":
            return both("where(c, y)", lambda x, c, y: x.where(c, y), x, condition, y)
        case "where":
            return Step("gc.where(c, x, y)", (condition, x, y), gc.where, xarray.where)
        case "fillna":
            return method("fillna", x, pick(draw, 0, 1.5, np.float64(2)))
        case "clip":
            return method("clip", x, pick(draw, -1, 0.5, None), pick(draw, 1, 1.25))
        case "clip both":
            return both("clip(y)", lambda x, y: x.clip(y), x, y)
    return method(pick(draw, "isnull", "notnull"), x)


def rounding(draw: Draw, pool: list[Value]) -> Step:
    decimals = pick(draw, 0, 1, 2, -1)
    return method("round", pick(draw, *pool), decimals, exact=decimals == 0, jumps=True)


def members(draw: Draw, pool: list[Value]) -> Step:
    return method("isin", pick(draw, *pool), [0, 1.5, 2], jumps=True)


STEPS = (unary, binary, operators, powers, casts, choices, rounding, members)
