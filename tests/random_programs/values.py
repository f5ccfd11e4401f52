"""Arrays with named dims, and dual numbers over them for exact derivatives of any order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.special


class Refused(Exception):
    """What a program asks for has no meaning, for instance sizes that differ."""


class Unclear(Exception):
    """Rounding decides here, so two right programs may disagree."""


class Disconnected(Unclear):
    """A result does not depend on what it is differentiated by."""


class Hidden:
    """A dim that no program can name: the directions of a derivative."""

    __slots__ = ()


class Value:
    """What programs compute with: an array, or a dual number made of two values."""

    __slots__ = ()

    @property
    def base(self) -> Array:
        """The value itself, without its tangents."""
        raise NotImplementedError

    @property
    def dims(self) -> tuple[Any, ...]:
        return self.base.names

    @property
    def sizes(self) -> dict[Any, int]:
        return dict(zip(self.base.names, self.base.data.shape, strict=True))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.base.data.shape

    def transpose(self, *dims: Any) -> Value:
        from .arranging import transpose

        return transpose(self, *dims)

    def __getitem__(self, mask: Array) -> Value:
        from .choosing import masked

        return masked(self, mask)

    def where(self, condition: Array, other: Any, *, drop: bool) -> Value:
        from .choosing import where_kept

        return where_kept(self, condition, other)

    @property
    def at(self) -> Any:
        from .arranging import Places

        return Places(self)

    def __add__(self, other: Any) -> Value:
        return add(self, other)

    def __radd__(self, other: Any) -> Value:
        return add(other, self)

    def __sub__(self, other: Any) -> Value:
        return add(self, multiply(-1, other))

    def __rsub__(self, other: Any) -> Value:
        return add(other, multiply(-1, self))

    def __mul__(self, other: Any) -> Value:
        return multiply(self, other)

    def __rmul__(self, other: Any) -> Value:
        return multiply(other, self)

    def __truediv__(self, other: Any) -> Value:
        return multiply(self, smooth("reciprocal", lifted(other)))

    def __rtruediv__(self, other: Any) -> Value:
        return multiply(other, smooth("reciprocal", self))

    def __pow__(self, other: Any) -> Value:
        return power(self, other)

    def __neg__(self) -> Value:
        return multiply(-1, self)

    def __abs__(self) -> Value:
        return where(compared(np.greater, self, 0), self, -self)

    def __gt__(self, other: Any) -> Array:
        return compared(np.greater, self, other)

    def __lt__(self, other: Any) -> Array:
        return compared(np.less, self, other)

    def __ge__(self, other: Any) -> Array:
        return compared(np.greater_equal, self, other)

    def __le__(self, other: Any) -> Array:
        return compared(np.less_equal, self, other)


class Array(Value):
    """An array whose axes have names."""

    __slots__ = ("data", "names")

    def __init__(self, names: Sequence[Any], data: Any) -> None:
        self.names, self.data = tuple(names), np.asarray(data)
        assert len(self.names) == self.data.ndim, (self.names, self.data.shape)
        if len(set(self.names)) < len(self.names):
            raise Refused(f"dims {self.names}")

    @property
    def base(self) -> Array:
        return self


class Dual(Value):
    """A value and its tangent, of the derivative number `tag`: later ones lie inside earlier."""

    __slots__ = ("primal", "tag", "tangent")

    def __init__(self, tag: int, primal: Value, tangent: Value) -> None:
        self.tag, self.primal, self.tangent = tag, primal, tangent

    @property
    def base(self) -> Array:
        return self.primal.base


def lifted(x: Any) -> Value:
    """A number as a value."""
    return x if isinstance(x, Value) else Array((), x)


def whole(size: Any) -> int:
    """A size: an integer, or a value that is one."""
    return int(lifted(size).base.data)


# ---- arrays


def union(*xs: Array) -> dict[Any, int]:
    """The sizes of all dims, in order of first appearance; they must agree."""
    sizes: dict[Any, int] = {}
    for x in xs:
        for name, size in zip(x.names, x.data.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise Refused(f"sizes {sizes[name]} and {size} of {name!r}")
    return sizes


def turned(x: Array, names: Iterable[Any]) -> np.ndarray:
    """The data of `x` with an axis for each of `names`, of size 1 for those that it lacks."""
    names = tuple(names)
    if names == x.names:
        return x.data
    data = x.data.transpose([x.names.index(n) for n in names if n in x.names])
    return data[tuple([slice(None) if n in x.names else None for n in names])]


def spread(x: Array, sizes: dict[Any, int]) -> np.ndarray:
    """The same, repeated along new dims."""
    return np.broadcast_to(turned(x, sizes), tuple(sizes.values()))


def pointwise(function: Callable[..., Any], *xs: Array) -> Array:
    names = tuple(union(*xs))
    return Array(names, function(*[turned(x, names) for x in xs]))


def axis(x: Array, dim: Any) -> int:
    if dim not in x.names:
        raise Refused(f"no dim {dim!r} in {x.names}")
    return x.names.index(dim)


# ---- dual numbers


def highest(*xs: Value) -> int:
    return max((x.tag for x in xs if isinstance(x, Dual)), default=0)


def split(x: Value, tag: int) -> tuple[Value, Value | None]:
    """The value and its tangent of the derivative `tag`, if it has one."""
    return (x.primal, x.tangent) if isinstance(x, Dual) and x.tag == tag else (x, None)


def zero(x: Value) -> Value:
    return Array(x.base.names, np.zeros(x.base.data.shape))


def linear(function: Callable[..., Array], *xs: Any) -> Value:
    """`function`, linear in its operands together, of values and of their tangents."""
    xs = tuple(map(lifted, xs))
    tag = highest(*xs)
    if not tag:
        return function(*xs)
    primals, tangents = zip(*[split(x, tag) for x in xs], strict=True)
    moved = [zero(p) if t is None else t for p, t in zip(primals, tangents, strict=True)]
    return Dual(tag, linear(function, *primals), linear(function, *moved))


def add(x: Any, y: Any) -> Value:
    return linear(lambda x, y: pointwise(np.add, x, y), x, y)


def product(function: Callable[[Array, Array], Array], x: Any, y: Any) -> Value:
    """`function` is linear in each of its two operands."""
    x, y = lifted(x), lifted(y)
    tag = highest(x, y)
    if not tag:
        return function(x, y)
    (x, dx), (y, dy) = split(x, tag), split(y, tag)
    parts = [] if dx is None else [product(function, dx, y)]
    parts += [] if dy is None else [product(function, x, dy)]
    tangent = parts[0] if len(parts) == 1 else add(*parts)
    return Dual(tag, product(function, x, y), tangent)


def multiply(x: Any, y: Any) -> Value:
    return product(lambda x, y: pointwise(np.multiply, x, y), x, y)


def moved(slope: Value, tangent: Value) -> Value:
    """Their product, 0 where the tangent is, whatever the slope."""

    def times(slope: Array, tangent: Array) -> Array:
        with np.errstate(all="ignore"):
            return pointwise(lambda s, t: np.where(t == 0, 0, s * t), slope, tangent)

    return product(times, slope, tangent)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


LARGE = 1e6
"""From here on the order of a sum decides the digits of its sine that are compared."""


def periodic(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A sine or cosine of numbers that are not too large."""

    def of_moderate(x: Any) -> Any:
        if (np.abs(x) > LARGE).any():
            raise Unclear
        return function(x)

    return of_moderate


SMOOTH: dict[str, tuple[Callable[[Any], Any], Callable[[Value], Value]]] = {
    "sin": (periodic(np.sin), lambda x: smooth("cos", x)),
    "cos": (periodic(np.cos), lambda x: -smooth("sin", x)),
    "tanh": (np.tanh, lambda x: 1 - smooth("square", smooth("tanh", x))),
    "exp": (np.exp, lambda x: smooth("exp", x)),
    "log": (np.log, lambda x: smooth("reciprocal", x)),
    "sqrt": (np.sqrt, lambda x: 0.5 * smooth("reciprocal", smooth("sqrt", x))),
    "square": (np.square, lambda x: 2 * x),
    "reciprocal": (lambda x: 1 / x, lambda x: -smooth("square", smooth("reciprocal", x))),
    "sigmoid": (sigmoid, lambda x: smooth("sigmoid", x) * (1 - smooth("sigmoid", x))),
    "arctan": (np.arctan, lambda x: smooth("reciprocal", 1 + smooth("square", x))),
    "arcsinh": (np.arcsinh, lambda x: power(1 + smooth("square", x), -0.5)),
    "expm1": (np.expm1, lambda x: smooth("exp", x)),
    "log1p": (np.log1p, lambda x: smooth("reciprocal", 1 + x)),
    "softplus": (lambda x: np.logaddexp(x, 0), lambda x: smooth("sigmoid", x)),
    "erf": (scipy.special.erf, lambda x: 2 / np.pi**0.5 * smooth("exp", -smooth("square", x))),
    "gammaln": (scipy.special.gammaln, lambda x: smooth("polygamma 0", x)),
    **{
        f"polygamma {n}": (partial(scipy.special.polygamma, n),
                           lambda x, n=n: smooth(f"polygamma {n + 1}", x))
        for n in range(6)
    },
}  # fmt: skip
"""Functions of one number, and their slopes."""


def power(x: Any, y: Any) -> Value:
    """Of a base that is positive, or an exponent that is whole."""
    if isinstance(y, (int, float)) and y >= 0 and y == int(y):
        made: Value = 1 + 0 * lifted(x)
        for _ in range(int(y)):
            made = multiply(made, x)
        return made
    return smooth("exp", multiply(smooth("log", x), y))


def smooth(name: str, x: Any) -> Value:
    function, slope = SMOOTH[name]
    x = lifted(x)
    if isinstance(x, Dual):
        return Dual(x.tag, smooth(name, x.primal), moved(slope(x.primal), x.tangent))
    with np.errstate(all="ignore"):
        return Array(x.base.names, function(x.base.data))


CLEAR = 1e-7
"""Numbers that are compared differ by more than this, or are told apart by no reference."""


def compared(test: Any, x: Any, y: Any, *, exact: bool = False) -> Array:
    x, y = lifted(x).base, lifted(y).base
    if not exact and "f" in (x.data.dtype.kind, y.data.dtype.kind):
        gap = pointwise(np.subtract, x, y).data
        if gap.size and not np.abs(gap).min() > CLEAR:
            raise Unclear
    return pointwise(test, x, y)


def where(mask: Value, x: Any, y: Any) -> Value:
    chosen = mask.base
    return linear(lambda x, y: pointwise(np.where, chosen, x, y), x, y)
