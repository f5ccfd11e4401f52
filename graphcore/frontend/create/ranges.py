"""Tensors computed from positions: ranges, powers and indicators."""

from __future__ import annotations

import operator
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from graphcore.frontend.core import arguments
from graphcore.frontend.core.arguments import SizeLike, Whole
from graphcore.frontend.core.base import Base, Tensor, brief, refusal, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, array, common, promote, single
from graphcore.frontend.core.preferred_dtype import default, of_numbers
from graphcore.frontend.core.values_as_sizes import value_of
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.elementwise import equal, floor, power
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.shape.dims import transpose
from graphcore.ir import INT, Expression, Node, Size
from graphcore.ir.dtypes import FLOAT
from graphcore.ir.help_text import parameters
from graphcore.ir.sizes import maximum
from graphcore.ops import leaf

__all__ = [
    "arange",
    "geomspace",
    "linspace",
    "logspace",
    "one_hot",
    "vander",
]


SPACED = {
    "start": "The start: a number, or a tensor whose dims come after `dim`.",
    "stop": "The end: a number, or a tensor whose dims come after `dim`.",
    "num": "The number of values, or a size.",
    "dim": "The new dim.",
    "endpoint": "Whether `stop` is the last value; otherwise it is left out.",
    "dtype": "The dtype of the result.",
}


@parameters(
    start="The first value: a number, a size, or the value of integer inputs.",
    stop="The end, which is excluded: a number, a size, or the value of integer inputs.",
    step="The step, a number other than 0; also a size or a value of integer inputs, 1 or more.",
    dim="The one dim of the result.",
    dtype="The dtype of the result.",
)
def arange(
    start: complex | Expression | Tensor,
    stop: complex | Expression | Tensor | None = None,
    step: complex | Expression | Tensor = 1,
    *,
    dim: str,
    dtype: npt.DTypeLike | None = None,
    like: Operand | None = None,
) -> Tensor:
    """`start, start + step, ...` up to but excluding `stop`; `arange(stop)` starts at 0.

    Integers and sizes give int64 by default, floats that of `default_dtype`, float64.

    GraphError if the step is 0, or if an end is not a real number or a size.

    >>> gc.compile([], [gc.arange(5, dim="t"), gc.arange(0, 1, 0.25, dim="t")])()
    [array([0, 1, 2, 3, 4]), array([0.  , 0.25, 0.5 , 0.75])]
    >>> x = gc.tensor("x", {"batch": None})
    >>> gc.arange(x.sizes["batch"], dim="batch")
    <Tensor: i64[batch]>
    """
    if stop is None:
        start, stop = 0, start
    (name,) = arguments.names((dim,))
    start, stop, step = (
        value_of(what, x) if isinstance(x, Base) else x
        for what, x in (("an end", start), ("an end", stop), ("the step", step))
    )
    for end in (start, stop, step):
        if end is None or isinstance(end, (bool, complex)):
            cure = "give real numbers or sizes"
            raise type_refusal(f"{end!r} is not an end or a step", cure=cure)
    if isinstance(step, Real) and step == 0:
        raise refusal("the step is 0", cure="use a nonzero step")
    ends: tuple[Any, ...] = (start, stop, step)
    if any(isinstance(end, Expression) for end in ends) or is_long(*ends):
        made = count_up(name, start, stop, step)
    elif type(start) is type(stop) is int and (start, step, type(step)) == (0, 1, int):
        made = iota(name, max(stop, 0))
    else:
        values = array_made(lambda: np.arange(*ends), ends)
        made = wrap(array(values.astype(of_numbers(ends, values.dtype)), (name,)))
    wanted = arguments.made_dtype(dtype, like)
    return made if wanted is None else astype(made, wanted)


def is_long(start: Any, stop: Any, step: Any) -> bool:
    """Whether a range of integers is too long to be stored as an array."""
    ends = (start, stop, step)
    return all(isinstance(end, Integral) for end in ends) and abs((stop - start) // step) > 2**20


def array_made(make: Callable[[], Any], given: tuple[object, ...]) -> Any:
    """The array that NumPy makes of the numbers `given`; its errors are worded as ours."""
    try:
        return make()
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        numbers = ", ".join(map(brief, given))
        cure = "give finite real numbers, and a size that fits in memory"
        raise type_refusal(f"{numbers}: {error}", cure=cure) from None


def iota(dim: str, size: Size) -> Tensor:
    """0, 1, 2, ... along one dim."""
    return wrap(leaf.iota(size=size, dtype=INT, dims=(dim,)))


def count_up(dim: str, start: Any, stop: Any, step: Any) -> Tensor:
    """A range of integers whose ends may be sizes."""
    try:
        start, stop, step = (
            s if isinstance(s, Expression) else operator.index(s) for s in (start, stop, step)
        )
    except TypeError:
        cure = "with a size known only at the call, use integers, or scale the result"
        reason = f"{start!r}, {stop!r}, {step!r} are not all integers or sizes"
        raise type_refusal(reason, cure=cure) from None
    if step == 0:
        raise refusal("the step is 0", cure="use a nonzero step")
    arguments.require_sign(step)
    falls = isinstance(step, int) and step < 0
    gap, length = (start - stop, -step) if falls else (stop - start, step)
    made = iota(dim, arguments.size_of(dim, maximum((gap + length - 1) // length, 0)))
    scaled = made if step == 1 else made * step
    return scaled if isinstance(start, int) and start == 0 else scaled + start


@parameters(**SPACED)
def linspace(
    start: Operand,
    stop: Operand,
    num: Whole = 50,
    *,
    dim: str,
    endpoint: bool = True,
    dtype: npt.DTypeLike | None = None,
    like: Operand | None = None,
) -> Tensor:
    """`num` evenly spaced values from `start` to `stop`, along one dim.

    For an integer `dtype` values are rounded down.

    >>> gc.compile([], gc.linspace(0, 1, 5, dim="t"))()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    >>> gc.compile([], gc.linspace(0, 1, 5, dim="t", endpoint=False))()
    array([0. , 0.2, 0.4, 0.6, 0.8])
    """
    *nodes, sample = common(start, stop, 0.0)
    name = arguments.new_dim(dim, *nodes)
    size = arguments.size_of(name, num)
    ends = list(map(wrap, nodes))
    inside: np.dtype[Any] = sample.type.dtype
    wanted = arguments.made_dtype(dtype, like) or inside
    if isinstance(size, int) and all(end.node.op is leaf.full and not end.dims for end in ends):
        first, last = (  # exact numbers: a value is rounded once
            x if isinstance(x, int | float | complex) else end.node.attrs["value"].array
            for x, end in zip((start, stop), ends, strict=True)
        )
        rounded = inside if inside.kind == "c" else wanted
        values = array_made(
            lambda: np.linspace(first, last, size, endpoint=endpoint, dtype=rounded),
            (start, stop, num),
        )
        return astype(wrap(array(values, (name,))), wanted)
    place, intervals = iota(name, size), maximum(size - 1 if endpoint else size, 1)
    first, last = (astype(end, inside) for end in ends)
    made = first + place * ((last - first) / intervals)
    if endpoint:  # the last is exact
        made = where(place < intervals, made, last)
    if wanted.kind in "iu":
        made = floor(made)
    return astype(transpose(made, name, ...), wanted)


@parameters(**SPACED, base="The base of the powers.")
def logspace(
    start: Operand,
    stop: Operand,
    num: Whole = 50,
    *,
    dim: str,
    endpoint: bool = True,
    base: Operand = 10.0,
    dtype: npt.DTypeLike | None = None,
    like: Operand | None = None,
) -> Tensor:
    """`base` to the power of `num` evenly spaced values from `start` to `stop`, along one dim.

    >>> gc.compile([], gc.logspace(0, 3, 4, dim="t"))()
    array([   1.,   10.,  100., 1000.])
    """
    name = arguments.new_dim(dim, *common(start, stop, base))
    made = power(base, linspace(start, stop, num, dim=name, endpoint=endpoint))
    made = transpose(made, dim, ...)
    wanted = arguments.made_dtype(dtype, like)
    return made if wanted is None else astype(made, wanted)


@parameters(**SPACED)
def geomspace(
    start: Operand,
    stop: Operand,
    num: Whole = 50,
    *,
    dim: str,
    endpoint: bool = True,
    dtype: npt.DTypeLike | None = None,
    like: Operand | None = None,
) -> Tensor:
    """`num` values from `start` to `stop` in geometric progression, along one dim.

    `start * (stop / start) ** t` for evenly spaced t from 0 to 1. The ends must have the same sign.
    The result is float64, also for float32 ends, as in NumPy.

    >>> gc.compile([], gc.geomspace(1, 8, 4, dim="t"))()
    array([1., 2., 4., 8.])
    """
    nodes = common(start, stop)
    t = linspace(0.0, 1.0, num, dim=arguments.new_dim(dim, *nodes), endpoint=endpoint)
    first, last = map(wrap, nodes)
    inside = promote(first.dtype, last.dtype, FLOAT)
    first, last, t = (astype(x, inside) for x in (first, last, t))
    made = where(t < 1, first * (last / first) ** t, last)  # the last is exact
    usual = of_numbers([start, stop], inside)
    return astype(made, arguments.made_dtype(dtype, like, usual))


@parameters(
    x="Integers. One that is negative or too large gives only zeros.",
    classes="The size of the new dim.",
    dim="The new dim.",
    dtype="The dtype of the result; by default that of `default_dtype`, float64.",
)
def one_hot(
    x: Operand,
    classes: SizeLike,
    dim: str = "class",
    dtype: npt.DTypeLike | None = None,
    *,
    like: Operand | None = None,
) -> Tensor:
    """1 at the position that `x` gives along a new last dim, 0 elsewhere.

    GraphError if `x` is not an integer tensor.

    >>> gc.compile([], gc.one_hot(gc.constant([2, 0, 5], "t"), 3, dtype="int64"))()
    array([[0, 0, 1],
           [1, 0, 0],
           [0, 0, 0]])
    """
    node = single(x)
    if node.type.dtype.kind not in "iu":
        raise type_refusal("positions are integers", node, cure="cast it: x.astype('int64')")
    place = new_places(node, dim, classes)
    return astype(equal(wrap(node), place), arguments.made_dtype(dtype, like, default()))


def new_places(x: Node, dim: str, size: SizeLike) -> Tensor:
    """The positions along a dim that `x` does not have."""
    name = arguments.new_dim(dim, x)
    return iota(name, arguments.size_of(name, size))


@parameters(
    x="A tensor or number.",
    n="The number of powers.",
    dim="The new dim.",
    increasing="Whether the powers increase along it.",
)
def vander(x: Operand, n: SizeLike, dim: str = "power", increasing: bool = False) -> Tensor:
    """The powers `x ** (n - 1), ..., x, 1` along a new last dim; from 1 on if `increasing`.

    The dtype is at least int64, and float64 for float32, as in NumPy.

    >>> gc.compile([], gc.vander(gc.constant([2, 3], "t"), 3, increasing=True))()
    array([[1, 2, 4],
           [1, 3, 9]])
    """
    node = single(x)
    exponent = new_places(node, dim, n)
    if not increasing:
        exponent = exponent.sizes[dim] - 1 - exponent
    return power(wrap(node), exponent)
