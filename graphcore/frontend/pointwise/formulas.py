"""Elementwise functions that are composed of several ops, under NumPy's names."""

from __future__ import annotations

import math

import numpy as np

from graphcore.frontend.core.arguments import require_order, whole
from graphcore.frontend.core.base import Tensor, refusal, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, apply, common, single, weak_like
from graphcore.frontend.core.weak import Call
from graphcore.frontend.shape.dims import broadcast_all
from graphcore.ir.dtypes import loop_dtypes
from graphcore.ir.help_text import parameters
from graphcore.ops import elementwise as ops

from . import elementwise as e
from .casting import as_float, astype, with_nan

__all__ = [
    "around",
    "clip",
    "deg2rad",
    "degrees",
    "divmod",
    "fabs",
    "fix",
    "float_power",
    "frexp",
    "isclose",
    "isneginf",
    "isposinf",
    "ldexp",
    "modf",
    "nan_to_num",
    "positive",
    "rad2deg",
    "radians",
    "round",
    "sinc",
    "where",
]


def computed_like(ufunc: np.ufunc, x: Operand) -> Tensor:
    """`x` in the dtype in which `ufunc` would compute."""
    node = single(x)
    try:
        return astype(wrap(node), loop_dtypes(ufunc, node.type.dtype)[0])
    except TypeError:
        reason = f"is not defined for {node.type.dtype}"
        raise type_refusal(reason, node, cure="cast the operand with astype first") from None


@parameters(
    condition="A bool tensor.",
    x="The value where the condition holds.",
    y="The value elsewhere.",
)
def where(condition: Operand, x: Operand, y: Operand) -> Tensor:
    """`x` where the condition holds, else `y`.

    The dims are those of the condition, then the new ones of `x` and of `y`. The dtype is the
    common one of `x` and `y`. The condition must be bool. A nan in the value not chosen does not
    reach the result, nor its derivative.

    >>> x = gc.constant([-1.0, 1.0], "row")
    >>> gc.compile([], gc.where(x > 0, gc.log(x), 0.0))()
    array([0., 0.])
    """
    both = common(x, y)
    made = ops.where(single(condition), *both)
    return wrap(weak_like(made, (x, y), Call(where, (condition, x, y))))


def keep_where(x: Operand, condition: Operand, other: Operand | None = None) -> Tensor:
    """`x` where the condition holds, else `other`: the method `x.where(condition, other)`.

    As `gc.where`, but the dims of `x` come first. Without `other` it is nan; integers then become
    floats, float32 those of up to 16 bits, float64 all others.

    >>> import graphcore as gc
    >>> x = gc.constant([1, 2, 3], "row")
    >>> gc.compile([], [x.where(x > 1), x.where(x > 1, 0)])()
    [array([nan,  2.,  3.]), array([0, 2, 3])]
    """
    node, mask = single(x), single(condition)
    if other is None:
        node, other = with_nan(node)
    return where(broadcast_all((node, mask))[1], wrap(node), other)


@parameters(
    x="A tensor or number.",
    min="The lower bound, aligned by name; None means no bound.",
    max="The upper bound, aligned by name; None means no bound.",
)
def clip(x: Operand, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """`x` limited to the range from `min` to `max`; None means no bound.

    `minimum(maximum(x, min), max)`: where `min` is above `max`, the result is `max`. At a bound the
    derivative is shared evenly.

    >>> gc.compile([], gc.clip(gc.constant([-1.0, 0.5, 3.0], "row"), 0, 1))()
    array([0. , 0.5, 1. ])
    """
    bounds = [bound for bound in (min, max) if bound is not None]
    made, *ends = common(x, *bounds)
    if min is not None:
        made = ops.maximum(made, ends[0])
    if max is not None:
        made = ops.minimum(made, ends[-1])
    return wrap(weak_like(made, (x, *bounds), Call(clip, (x, min, max))))


@parameters(
    x="A tensor or number.",
    decimals="The number of decimals; of a negative one the digits before the point are rounded.",
)
def round(x: Operand, decimals: int = 0) -> Tensor:
    """`x` rounded to a number of decimals, halves to even, in the same dtype.

    >>> x = gc.constant([0.125, 2.5], "row")
    >>> gc.compile([], [gc.round(x, 2), gc.round(x)])()
    [array([0.12, 2.5 ]), array([0., 2.])]
    """
    node = single(x)
    digits = whole(decimals, "decimals", node, least=None)
    value, dtype = wrap(node), node.type.dtype
    if dtype.kind in "iu" and digits >= 0:
        return value
    if digits == 0:
        return e.rint(value)
    if dtype.kind == "b":
        raise refusal("bool has no decimals", value, cure="cast it with astype")
    if abs(digits) > 308:
        cure = "use -308 to 308, the powers of ten that float64 holds"
        raise refusal(f"decimals={digits} is out of range", value, cure=cure)
    scale = 10.0 ** abs(digits)
    rounded = e.rint(value * scale) / scale if digits > 0 else e.rint(value / scale) * scale
    if dtype.kind == "c":  # complex products of infinite numbers are nan
        return where(e.isfinite(value), rounded, value)
    return astype(rounded, dtype) if dtype.kind in "iu" else rounded


around = round


def fix(x: Operand) -> Tensor:
    """`x` rounded towards zero: `trunc`.

    >>> gc.compile([], gc.fix(gc.constant([1.7, -1.7], "row")))()
    array([ 1., -1.])
    """
    return e.trunc(x)


def divmod(x: Operand, y: Operand) -> tuple[Tensor, Tensor]:
    """Floor of `x / y`, and the remainder, which has the sign of `y`.

    >>> gc.compile([], list(gc.divmod(gc.constant([7, -7], "row"), 3)))()
    [array([ 2, -3]), array([1, 2])]
    """
    return e.floor_divide(x, y), e.remainder(x, y)


def modf(x: Operand) -> tuple[Tensor, Tensor]:
    """The fraction and the integral part of `x`, both with its sign.

    >>> gc.compile([], list(gc.modf(gc.constant([1.75, -1.75], "row"))))()
    [array([ 0.75, -0.75]), array([ 1., -1.])]
    """
    value = computed_like(np.modf, x)
    whole = e.trunc(value)
    return e.copysign(where(e.isinf(value), 0.0, value - whole), value), whole


def ldexp(x: Operand, exponent: Operand) -> Tensor:
    """`x * 2**exponent` for integer exponents, exact unless the result overflows or underflows.

    >>> gc.compile([], gc.ldexp(gc.constant([1.0, 3.0], "row"), gc.constant([4, -1], "row")))()
    array([16. ,  1.5])
    """
    return apply(ops.ldexp, x, exponent)


def frexp(x: Operand) -> tuple[Tensor, Tensor]:
    """Mantissa with magnitude in [0.5, 1), and the int32 exponent: `x = mantissa * 2**exponent`.

    0, nan and infinities have exponent 0 and are their own mantissa.

    >>> gc.compile([], list(gc.frexp(gc.constant([8.0, -0.75], "row"))))()
    [array([ 0.5 , -0.75]), array([4, 0], dtype=int32)]
    """
    value = computed_like(np.frexp, x)
    ordinary = e.isfinite(value) & (value != 0)
    size = where(ordinary, e.absolute(value), 0.5)
    # The logarithm may round across a power of two, where the exponent is one off.
    guess = astype(e.floor(e.log2(size)), np.int32) + np.int32(1)
    fraction = ldexp(size, -guess)
    exponent = guess + astype(e.greater_equal(fraction, 1), np.int32)
    exponent = exponent - astype(e.less(fraction, 0.5), np.int32)
    return ldexp(value, -exponent), exponent


def float_power(x: Operand, y: Operand) -> Tensor:
    """`x ** y` in float64 or complex128, so that integers may have negative exponents.

    >>> gc.compile([], gc.float_power(gc.constant([2, 4], "row"), -1))()
    array([0.5 , 0.25])
    """
    base, exponent = two_operands(x, y)
    dtype = np.result_type(base.dtype, exponent.dtype, np.float64)
    return e.power(astype(base, dtype), astype(exponent, dtype))


def two_operands(x: Operand, y: Operand) -> tuple[Tensor, Tensor]:
    """Two operands as tensors; a Python number takes the dtype of the other."""
    left, right = common(x, y)
    return wrap(left), wrap(right)


def positive(x: Operand) -> Tensor:
    """`x` itself; refused for bool, as in NumPy.

    >>> gc.positive(gc.tensor("x", {"row": 2}))
    <Tensor x: f64[row=2]>
    """
    return computed_like(np.positive, x)


def fabs(x: Operand) -> Tensor:
    """`|x|` as a float; refused for complex numbers.

    >>> gc.compile([], gc.fabs(gc.constant([-2, 3], "row")))()
    array([2., 3.])
    """
    return e.absolute(computed_like(np.fabs, x))


def deg2rad(x: Operand) -> Tensor:
    """Degrees as radians: `x * pi / 180`.

    >>> gc.compile([], gc.deg2rad(gc.constant([90.0, 180.0], "row")))()
    array([1.57079633, 3.14159265])
    """
    return computed_like(np.deg2rad, x) * (math.pi / 180)


def rad2deg(x: Operand) -> Tensor:
    """Radians as degrees: `x * 180 / pi`.

    >>> gc.compile([], gc.rad2deg(gc.constant([0.5, 1.0], "row")))()
    array([28.64788976, 57.29577951])
    """
    return computed_like(np.rad2deg, x) * (180 / math.pi)


radians, degrees = deg2rad, rad2deg


def sinc(x: Operand) -> Tensor:
    """`sin(pi * x) / (pi * x)`, and 1 at 0.

    >>> gc.compile([], gc.sinc(gc.constant([0.0, 0.5], "row")))()
    array([1.        , 0.63661977])
    """
    value = as_float(wrap(single(x)))
    # Near 0 by its series, exact to the last digit there, as are its derivatives.
    near = e.absolute(value) < 0.05
    angle = math.pi * where(near, 1, value)
    t = e.square(math.pi * where(near, value, 0))
    series = 0 * t
    for n in range(6, -1, -1):
        series = series * t + (-1) ** n / math.factorial(2 * n + 1)
    return where(near, series, e.sin(angle) / angle)


@parameters(
    x="A tensor of real numbers.",
    nan="The replacement of nan.",
    posinf="The replacement of inf; by default the largest finite number of the dtype.",
    neginf="The replacement of -inf; by default the smallest finite number of the dtype.",
)
def nan_to_num(
    x: Operand, nan: Operand = 0.0, posinf: Operand | None = None, neginf: Operand | None = None
) -> Tensor:
    """`x` with nan and infinities replaced by numbers.

    >>> x = gc.constant([1.0, float("nan"), float("inf")], "row")
    >>> gc.compile([], gc.nan_to_num(x, posinf=9.0))()
    array([1., 0., 9.])
    """
    value = wrap(single(x))
    require_order(value)
    if value.dtype.kind != "f":
        return value
    bounds = np.finfo(value.dtype)
    high = float(bounds.max) if posinf is None else posinf
    low = float(bounds.min) if neginf is None else neginf
    below = where(value == np.inf, high, value)
    return where(e.isnan(value), nan, where(value == -np.inf, low, below))


def isposinf(x: Operand) -> Tensor:
    """Whether `x` is positive infinity.

    >>> gc.compile([], gc.isposinf(gc.constant([1.0, float("inf"), -float("inf")], "row")))()
    array([False,  True, False])
    """
    value = wrap(single(x))
    require_order(value)
    return value == math.inf


def isneginf(x: Operand) -> Tensor:
    """Whether `x` is negative infinity.

    >>> gc.compile([], gc.isneginf(gc.constant([1.0, float("inf"), -float("inf")], "row")))()
    array([False, False,  True])
    """
    value = wrap(single(x))
    require_order(value)
    return value == -math.inf


@parameters(
    x="A tensor or number.",
    y="A tensor or number, aligned by name.",
    rtol="The tolerance relative to `y`.",
    atol="The absolute tolerance.",
    equal_nan="Whether two nan are close.",
)
def isclose(
    x: Operand, y: Operand, rtol: Operand = 1e-5, atol: Operand = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether `|x - y| <= atol + rtol * |y|`; equal infinities are close.

    >>> gc.compile([], gc.isclose(gc.constant([0.5, 0.5 + 1e-9, 0.6], "row"), 0.5))()
    array([ True,  True, False])
    """
    left, right = two_operands(x, y)
    if left.dtype.kind in "biu" and right.dtype.kind in "biu":
        left, right = astype(left, np.float64), astype(right, np.float64)
    near = e.absolute(left - right) <= atol + rtol * e.absolute(right)
    close = near & ~e.isinf(right) | e.equal(left, right)
    return close | e.isnan(left) & e.isnan(right) if equal_nan else close
