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
from graphcore.ops import elementwise as e
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


def as_selection(x: Node, y: Node) -> Select:
    """The same as a selection."""
    return Select(e.greater_equal(x, y), 1 - 0.5 * cast(e.equal(x, y), x.type.dtype))


Partial: TypeAlias = Node | complex | Select | Wins | None
Partials: TypeAlias = Callable[..., tuple[Partial, ...]]


def unless_nan(share: Select, other: Node) -> Select:
    """The same, and the whole of it where the other operand is nan."""
    return share._replace(condition=e.logical_or(share.condition, e.isnan(other)))


def ratio(x: Node, z: Node) -> Node:
    """x / z, but 0 where z is 0, as are its derivatives there."""
    return choose(equals(z, 0), 0, x / nonzero(z))


def phase(z: Node, x: Node) -> Node:
    """d|x| / dx = conj(x) / |x|, and 0 at 0."""
    return ratio(e.conjugate(x), z) if x.type.dtype.kind == "c" else e.sign(x)


def weight(z: Node, x: Node) -> Node:
    """e^(x - z) for z = log(e^x + ...); 0 where z is -inf, as then x is."""
    return e.exp(x - choose(equals(z, -math.inf), 0, z))


def power_partials(z: Node, x: Node, y: Node) -> tuple[Partial, ...]:
    """y x^(y-1) and z log(x), with the limits 0 at y = 0 and at x = 0."""
    return (
        y * e.power(x, choose(equals(y, 0), 1, y - 1)),
        z * e.log(nonzero(x)),
    )


ELEMENTARY: dict[Op, Partials] = {
    e.add: lambda z, x, y: (1, 1),
    e.subtract: lambda z, x, y: (1, -1),
    e.multiply: lambda z, x, y: (y, x),
    e.divide: lambda z, x, y: (1 / y, -(z / y)),
    e.floor_divide: lambda z, x, y: (None, None),
    e.remainder: lambda z, x, y: (1, -e.floor(x / y)),
    e.fmod: lambda z, x, y: (1, -e.trunc(x / y)),
    e.power: power_partials,
    e.negative: lambda z, x: (-1,),
    e.absolute: lambda z, x: (phase(z, x),),
    e.sign: lambda z, x: (None,),
    e.square: lambda z, x: (2 * x,),
    e.sqrt: lambda z, x: (0.5 / z,),
    e.cbrt: lambda z, x: (1 / (3 * e.square(z)),),
    e.reciprocal: lambda z, x: (-e.square(z),),
    e.exp: lambda z, x: (z,),
    e.exp2: lambda z, x: (z * LN2,),
    e.expm1: lambda z, x: (z + 1,),
    e.log: lambda z, x: (1 / x,),
    e.log2: lambda z, x: (1 / (x * LN2),),
    e.log10: lambda z, x: (1 / (x * LN10),),
    e.log1p: lambda z, x: (1 / (1 + x),),
    e.logaddexp: lambda z, x, y: (weight(z, x), weight(z, y)),
    e.logaddexp2: lambda z, x, y: (weight(z * LN2, x * LN2), weight(z * LN2, y * LN2)),
    e.sin: lambda z, x: (e.cos(x),),
    e.cos: lambda z, x: (-e.sin(x),),
    e.tan: lambda z, x: (1 + e.square(z),),
    e.arcsin: lambda z, x: (1 / e.sqrt(1 - e.square(x)),),
    e.arccos: lambda z, x: (-1 / e.sqrt(1 - e.square(x)),),
    e.arctan: lambda z, x: (1 / (1 + e.square(x)),),
    e.arctan2: lambda z, y, x: (
        ratio(x, e.square(x) + e.square(y)),
        -ratio(y, e.square(x) + e.square(y)),
    ),
    e.hypot: lambda z, x, y: (ratio(x, z), ratio(y, z)),
    e.sinh: lambda z, x: (e.cosh(x),),
    e.cosh: lambda z, x: (e.sinh(x),),
    e.tanh: lambda z, x: (1 - e.square(z),),
    e.arcsinh: lambda z, x: (1 / e.sqrt(1 + e.square(x)),),
    e.arccosh: lambda z, x: (1 / (e.sqrt(x - 1) * e.sqrt(x + 1)),),
    e.arctanh: lambda z, x: (1 / (1 - e.square(x)),),
    e.floor: lambda z, x: (None,),
    e.ceil: lambda z, x: (None,),
    e.trunc: lambda z, x: (None,),
    e.rint: lambda z, x: (None,),
    e.copysign: lambda z, x, y: (
        e.copysign(full_like(x, 1), x) * e.copysign(full_like(y, 1), y),
        None,
    ),
    e.nextafter: lambda z, x, y: (1, None),
    e.spacing: lambda z, x: (None,),
    e.heaviside: lambda z, x, y: (None, Select(equals(x, 0))),
    e.maximum: lambda z, x, y: (Wins(x, y), Wins(y, x)),
    e.minimum: lambda z, x, y: (Wins(y, x), Wins(x, y)),
    e.fmax: lambda z, x, y: (unless_nan(as_selection(x, y), y), unless_nan(as_selection(y, x), x)),
    e.fmin: lambda z, x, y: (unless_nan(as_selection(y, x), y), unless_nan(as_selection(x, y), x)),
    e.where: lambda z, condition, x, y: (
        None,
        Select(condition),
        Select(e.logical_not(condition)),
    ),
}
