"""PARTIALS: elementwise ops, `(z, *operands) -> d z / d operand`, one for each operand.

`z` is the op's own result, so nothing is computed twice. A partial is a node, a number, a
`Select`, a `Wins`, or None where the derivative is zero, or refused as `UNKNOWN` says. For complex
operands of holomorphic ops these are the complex derivatives. Here are the elementary functions;
special.py has the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from graphcore.ir.node import Node, full_like
from graphcore.ir.op import Op
from graphcore.ops.elementwise import (
    absolute,
    add,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    cbrt,
    ceil,
    conjugate,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    fmax,
    fmin,
    fmod,
    greater_equal,
    heaviside,
    hypot,
    isnan,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    power,
    reciprocal,
    remainder,
    rint,
    sign,
    sin,
    sinh,
    spacing,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    trunc,
    where,
)
from graphcore.rewrites.plain import cast, equals, nonzero
from graphcore.rewrites.plain import where as choose


class Select(NamedTuple):
    """A partial that is `factor` where the condition holds and zero elsewhere.

    Zero whatever flows: a cotangent of nan or a factor of infinity does not leak past it.
    """

    condition: Node
    factor: Node | float = 1


LN2, LN10 = math.log(2), math.log(10)


class Wins(NamedTuple):
    """A partial that is 1 where x > y, a half where they are tied, and zero elsewhere."""

    x: Node
    y: Node


def chosen(x: Node, y: Node) -> Select:
    """The same as a selection."""
    return Select(greater_equal(x, y), 1 - 0.5 * cast(equal(x, y), x.type.dtype))


Partial: TypeAlias = Node | complex | Select | Wins | None
Partials: TypeAlias = Callable[..., tuple[Partial, ...]]


def unless_nan(share: Select, other: Node) -> Select:
    """The same, and the whole of it where the other operand is nan."""
    return share._replace(condition=logical_or(share.condition, isnan(other)))


def ratio(x: Node, z: Node) -> Node:
    """x / z, but 0 where z is 0, as are its derivatives there."""
    return choose(equals(z, 0), 0, x / nonzero(z))


def phase(z: Node, x: Node) -> Node:
    """d|x| / dx = conj(x) / |x|, and 0 at 0."""
    return ratio(conjugate(x), z) if x.type.dtype.kind == "c" else sign(x)


def weight(z: Node, x: Node) -> Node:
    """e^(x - z) for z = log(e^x + ...); 0 where z is -inf, as then x is."""
    return exp(x - choose(equals(z, -math.inf), 0, z))


def power_partials(z: Node, x: Node, y: Node) -> tuple[Partial, ...]:
    """y x^(y-1) and z log(x), with the limits 0 at y = 0 and at x = 0."""
    return (
        y * power(x, choose(equals(y, 0), 1, y - 1)),
        z * log(nonzero(x)),
    )


ELEMENTARY: dict[Op, Partials] = {
    add: lambda z, x, y: (1, 1),
    subtract: lambda z, x, y: (1, -1),
    multiply: lambda z, x, y: (y, x),
    divide: lambda z, x, y: (1 / y, -z / y),
    floor_divide: lambda z, x, y: (None, None),
    remainder: lambda z, x, y: (1, -floor(x / y)),
    fmod: lambda z, x, y: (1, -trunc(x / y)),
    power: power_partials,
    negative: lambda z, x: (-1,),
    absolute: lambda z, x: (phase(z, x),),
    sign: lambda z, x: (None,),
    square: lambda z, x: (2 * x,),
    sqrt: lambda z, x: (0.5 / z,),
    cbrt: lambda z, x: (1 / (3 * square(z)),),
    reciprocal: lambda z, x: (-square(z),),
    exp: lambda z, x: (z,),
    exp2: lambda z, x: (z * LN2,),
    expm1: lambda z, x: (z + 1,),
    log: lambda z, x: (1 / x,),
    log2: lambda z, x: (1 / (x * LN2),),
    log10: lambda z, x: (1 / (x * LN10),),
    log1p: lambda z, x: (1 / (1 + x),),
    logaddexp: lambda z, x, y: (weight(z, x), weight(z, y)),
    logaddexp2: lambda z, x, y: (weight(z * LN2, x * LN2), weight(z * LN2, y * LN2)),
    sin: lambda z, x: (cos(x),),
    cos: lambda z, x: (-sin(x),),
    tan: lambda z, x: (1 + square(z),),
    arcsin: lambda z, x: (1 / sqrt(1 - square(x)),),
    arccos: lambda z, x: (-1 / sqrt(1 - square(x)),),
    arctan: lambda z, x: (1 / (1 + square(x)),),
    arctan2: lambda z, y, x: (
        ratio(x, square(x) + square(y)),
        -ratio(y, square(x) + square(y)),
    ),
    hypot: lambda z, x, y: (ratio(x, z), ratio(y, z)),
    sinh: lambda z, x: (cosh(x),),
    cosh: lambda z, x: (sinh(x),),
    tanh: lambda z, x: (1 - square(z),),
    arcsinh: lambda z, x: (1 / sqrt(1 + square(x)),),
    arccosh: lambda z, x: (1 / (sqrt(x - 1) * sqrt(x + 1)),),
    arctanh: lambda z, x: (1 / (1 - square(x)),),
    floor: lambda z, x: (None,),
    ceil: lambda z, x: (None,),
    trunc: lambda z, x: (None,),
    rint: lambda z, x: (None,),
    copysign: lambda z, x, y: (copysign(full_like(x, 1), x) * copysign(full_like(y, 1), y), None),
    nextafter: lambda z, x, y: (1, None),
    spacing: lambda z, x: (None,),
    heaviside: lambda z, x, y: (None, Select(equals(x, 0))),
    maximum: lambda z, x, y: (Wins(x, y), Wins(y, x)),
    minimum: lambda z, x, y: (Wins(y, x), Wins(x, y)),
    fmax: lambda z, x, y: (unless_nan(chosen(x, y), y), unless_nan(chosen(y, x), x)),
    fmin: lambda z, x, y: (unless_nan(chosen(y, x), y), unless_nan(chosen(x, y), x)),
    where: lambda z, condition, x, y: (
        None,
        Select(condition),
        Select(logical_not(condition)),
    ),
}
