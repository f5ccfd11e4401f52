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

import numpy as np

from graphcore.ir import Node, Op, full_like
from graphcore.ops import elementwise as e
from graphcore.ops import special as s
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
    """`Wins` as a `Select`."""
    return Select(e.greater_equal(x, y), 1 - 0.5 * cast(e.equal(x, y), x.type.dtype))


Partial: TypeAlias = Node | complex | Select | Wins | None
Partials: TypeAlias = Callable[..., tuple[Partial, ...]]


def unless_nan(share: Select, other: Node) -> Select:
    """The share, which is whole where the other operand is nan."""
    return share._replace(condition=e.logical_or(share.condition, e.isnan(other)))


def ratio(x: Node, z: Node) -> Node:
    """x / z, but 0 where z is 0, as are its derivatives there."""
    return choose(equals(z, 0), 0, x / nonzero(z))


def phase(z: Node, x: Node) -> Node:
    """d|x| / dx = conj(x) / |x|, and 0 at 0."""
    return ratio(e.conjugate(x), z) if is_complex(x) else e.sign(x)


def is_complex(x: Node) -> bool:
    return bool(x.type.dtype.kind == "c")


def one_from(x: Node, least: float) -> Node:
    """1, and nan below a limit where a real function is nan: its slope is no number there either"""
    if is_complex(x):
        return full_like(x, 1)
    return choose(e.less(x, full_like(x, least)), full_like(x, math.nan), 1)


def complement(x: Node) -> Node:
    """1 - x^2"""
    return 1 - e.square(x) if is_complex(x) else s.square_complement(x)


def less(z: Node, x: Node, y: Node) -> Node:
    """x - y for z = log(e^x + e^y), and -inf where z is."""
    return x - choose(equals(z, -math.inf), 0, y)


def modulus_partials(z: Node, turns: Node) -> tuple[Partial, ...]:
    """1 and the whole number of times that y goes into x, less; nan where the value is"""
    none = e.isnan(z)
    return choose(none, z, 1), -choose(none, z, turns)


def cosine_partials(z: Node, x: Node, y: Node) -> tuple[Partial, ...]:
    """s^2 / r and -c s / r, for the cosine c, the sine s and the distance r"""
    sine, size = s.cosine(y, x), e.hypot(x, y)
    over = ratio(sine, size)
    return sine * over, -z * over


def inversion_slope_partials(x: Node, y: Node) -> tuple[Partial, ...]:
    """2 a (a^2 - 3 b^2) and 2 b (3 a^2 - b^2), for the inversion (a, b) of (x, y)"""
    a, b = s.inversion(x, y), s.inversion(y, x)
    left, right = e.square(a), e.square(b)
    return 2 * a * (left - 3 * right), 2 * b * (3 * left - right)


def arctan2_partials(z: Node, y: Node, x: Node) -> tuple[Partial, ...]:
    return s.inversion(x, y), -s.inversion(y, x)


def power_partials(z: Node, x: Node, y: Node) -> tuple[Partial, ...]:
    """y x^(y-1) and z log(x), with the limits 0 where both are 0 and at x = 0.

    1 / x is too large for a float where x is no normal number.
    """
    least = full_like(e.absolute(x), float(np.finfo(x.type.dtype).tiny))
    lost = e.logical_and(equals(y, 0), e.less(e.absolute(x), least))
    return (
        y * e.power(x, choose(lost, 1, y - 1)),
        z * e.log(nonzero(x)),
    )


ELEMENTARY: dict[Op, Partials] = {
    e.add: lambda z, x, y: (1, 1),
    e.subtract: lambda z, x, y: (1, -1),
    e.multiply: lambda z, x, y: (y, x),
    e.divide: lambda z, x, y: (1 / y, -(z / y)),
    e.floor_divide: lambda z, x, y: (None, None),
    e.remainder: lambda z, x, y: modulus_partials(z, e.floor_divide(x, y)),
    e.fmod: lambda z, x, y: modulus_partials(z, e.rint((x - z) / y)),
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
    e.expm1: lambda z, x: (e.exp(x),),
    e.log: lambda z, x: (one_from(x, 0) / x,),
    e.log2: lambda z, x: (one_from(x, 0) / (x * LN2),),
    e.log10: lambda z, x: (one_from(x, 0) / (x * LN10),),
    e.log1p: lambda z, x: (one_from(x, -1) / (1 + x),),
    e.logaddexp: lambda z, x, y: (s.sigmoid(less(z, x, y)), s.sigmoid(less(z, y, x))),
    e.logaddexp2: lambda z, x, y: (
        s.sigmoid(LN2 * less(z, x, y)),
        s.sigmoid(LN2 * less(z, y, x)),
    ),
    e.sin: lambda z, x: (e.cos(x),),
    e.cos: lambda z, x: (-e.sin(x),),
    e.tan: lambda z, x: (1 + e.square(z),),
    e.arcsin: lambda z, x: (1 / e.sqrt(complement(x)),),
    e.arccos: lambda z, x: (-1 / e.sqrt(complement(x)),),
    e.arctan: lambda z, x: (1 / (1 + e.square(x)) if is_complex(x) else s.arctan_slope(x),),
    e.arctan2: arctan2_partials,
    e.hypot: lambda z, x, y: (s.cosine(x, y), s.cosine(y, x)),
    e.sinh: lambda z, x: (e.cosh(x),),
    e.cosh: lambda z, x: (e.sinh(x),),
    e.tanh: lambda z, x: (1 - e.square(z) if is_complex(x) else s.tanh_slope(x, z),),
    e.arcsinh: lambda z, x: (
        1 / (e.sqrt(1 + e.square(x)) if is_complex(x) else e.hypot(x, full_like(x, 1))),
    ),
    e.arccosh: lambda z, x: (1 / (e.sqrt(x - 1) * e.sqrt(x + 1)),),
    e.arctanh: lambda z, x: (one_from(complement(x), 0) / complement(x),),
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
    # Slopes. The second operand of the first two is known by the first.
    s.sigmoid_slope: lambda z, x, y: (-e.tanh(0.5 * x) * z, None),
    s.tanh_slope: lambda z, x, y: (-2 * y * z, None),
    s.arctan_slope: lambda z, x: (-2 * (z * x) * z,),
    s.cosine: cosine_partials,
    s.inversion: lambda z, x, y: (s.inversion_slope(x, y), -2 * z * s.inversion(y, x)),
    s.inversion_slope: lambda z, x, y: inversion_slope_partials(x, y),
    s.square_complement: lambda z, x: (-2 * x,),
    e.where: lambda z, condition, x, y: (
        None,
        Select(condition),
        Select(e.logical_not(condition)),
    ),
}
