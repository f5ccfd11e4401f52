"""The part of graphcore's interface that random programs use, computed at once."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import choosing, matrices
from .arranging import (  # noqa: F401
    broadcast_like,
    concat,
    expand_dims,
    flip,
    isel,
    rename,
    repeat,
    roll,
    several,
    stack,
    take_along,
    tile,
    total,
    transpose,
    unstack,
    windows,
)
from .choosing import dropna, unique  # noqa: F401
from .control import (  # noqa: F401
    checkpoint,
    cond,
    custom_pullback,
    fori_loop,
    map,
    scan,
    switch,
    while_loop,
)  # fmt: skip
from .values import (
    Array,
    Hidden,
    Refused,
    Unclear,
    Value,
    axis,
    compared,
    lifted,
    linear,
    multiply,
    smooth,
    where,
    whole,
)  # fmt: skip


def constant(data: Any, dims: Any = ()) -> Array:
    return Array((dims,) if isinstance(dims, str) else dims, data)


sin, cos, tanh, log, sqrt, square, arctan, arcsinh, expm1, log1p = (
    (lambda x, name=name: smooth(name, x))
    for name in [
        "sin",
        "cos",
        "tanh",
        "log",
        "sqrt",
        "square",
        "arctan",
        "arcsinh",
        "expm1",
        "log1p",
    ]
)


def exp(x: Any) -> Value:
    """Not of the logarithm of 0: it hides that there is no derivative."""
    if np.isneginf(lifted(x).base.data).any():
        raise Unclear
    return smooth("exp", x)


def maximum(x: Any, y: Any) -> Value:
    return where(compared(np.greater, x, y), x, y)


def minimum(x: Any, y: Any) -> Value:
    return where(compared(np.less, x, y), x, y)


def clip(x: Value, low: float, high: float) -> Value:
    return minimum(maximum(x, low), high)


def arctan2(x: Value, y: Value) -> Value:
    """Of a `y` that is positive."""
    return arctan(x / y)


def hypot(x: Value, y: Value) -> Value:
    return sqrt(x * x + y * y)


def logaddexp(x: Value, y: Value) -> Value:
    return log(exp(x) + exp(y))


def absolute(x: Value) -> Value:
    return where(compared(np.greater, x, 0, exact=True), x, -x)


def greater(x: Any, y: Any) -> Array:
    """For the ends of loops, where nobody sees which way rounding decides."""
    return compared(np.greater, x, y, exact=True)


def astype(x: Value, dtype: Any) -> Value:
    if np.iscomplexobj(x.base.data) and np.dtype(dtype).kind != "c":
        raise Refused("complex to real")
    return linear(lambda x: Array(x.names, x.data.astype(dtype)), x)


def full_like(x: Value, value: Any) -> Value:
    if isinstance(value, Value):
        raise Refused("full_like of a tensor")
    return Array(x.dims, np.full(x.shape, value))


def zeros(sizes: Mapping[str, Any]) -> Array:
    return Array(tuple(sizes), np.zeros([whole(n) for n in sizes.values()]))


def stop_gradient(x: Value) -> Value:
    return x.base


# ---- reductions


def may_skip(reduction: Callable[..., Value]) -> Callable[..., Value]:
    """The same with `skipna=`."""

    def called(x: Value, *args: Any, skipna: bool = False) -> Value:
        return (choosing.skipping(reduction) if skipna else reduction)(x, *(args or (None,)))

    return called


@may_skip
def sum(x: Value, dim: Any = None) -> Value:
    return total(x, several(dim, x))


@may_skip
def mean(x: Value, dim: Any = None) -> Value:
    count = np.prod([x.sizes[d] for d in several(dim, x)])
    if not count:
        raise Unclear
    return sum(x, dim) * (1 / count)


@may_skip
def var(x: Value, dim: Any = None) -> Value:
    return mean(square(x - mean(x, dim)), dim)


@may_skip
def prod(x: Value, dim: Any = None) -> Value:
    for d in several(dim, x):
        made: Value = sum(x, d) * 0 + 1
        for i in range(x.sizes[d]):
            made = made * isel(x, {d: i})
        x = made
    return x


@may_skip
def max(x: Value, dim: Any = None) -> Value:
    dims = several(dim, x)
    x_ = x.base
    axes = tuple(axis(x_, d) for d in dims)
    if 0 in [x.sizes[d] for d in dims]:
        raise Unclear
    if not dims:
        return x
    rest = [s for d, s in x.sizes.items() if d not in dims]
    many = int(np.prod([x.sizes[d] for d in dims]))
    ordered = np.sort(np.moveaxis(x_.data, axes, range(len(axes))).reshape(many, *rest), 0)
    with np.errstate(all="ignore"):
        if len(ordered) > 1 and not np.all(ordered[-1] - ordered[-2] > 1e-7):
            raise Unclear
    largest = x_.data == x_.data.max(axes, keepdims=True)
    found = Array(x_.names, largest | np.isnan(x_.data))
    return sum(where(found, x, 0.0), dim)


@may_skip
def min(x: Value, dim: Any = None) -> Value:
    return -max(-x, dim)


def largest(x: Value, dim: Any) -> Array:
    """The largest numbers, which take no part in derivatives."""
    dims = several(dim, x)
    axes = tuple(axis(x.base, d) for d in dims)
    found = x.base.data.max(axes, initial=-np.inf)
    return Array([d for d in x.dims if d not in dims], np.where(np.isneginf(found), 0, found))


def logsumexp(x: Value, dim: Any = None) -> Value:
    top = largest(x, dim)
    return log(sum(exp(x - top), dim)) + top


def softmax(x: Value, dim: Any = None) -> Value:
    y = exp(x - largest(x, dim))
    return y / sum(y, dim)


# ---- along one dim


def cumsum(x: Value, dim: str) -> Value:
    def running(x: Array) -> Array:
        wide = np.longdouble if x.data.dtype.kind == "f" else x.data.dtype
        return Array(x.names, x.data.cumsum(axis(x, dim), wide).astype(x.data.dtype))

    return linear(running, x)


def along(x: Value, dim: str, step: Callable[[Value, Value], Value]) -> Value:
    """Running results; the dims keep their order."""
    if not x.sizes[dim]:
        return x
    made = [isel(x, {dim: 0})]
    for i in range(1, x.sizes[dim]):
        made.append(step(made[-1], isel(x, {dim: i})))
    return transpose(concat(made, dim), *x.dims)


def cumprod(x: Value, dim: str) -> Value:
    return along(x, dim, lambda old, new: old * new)


def cummax(x: Value, dim: str) -> Value:
    return along(x, dim, maximum)


def diff(x: Value, dim: str) -> Value:
    return isel(x, {dim: slice(1, None)}) - isel(x, {dim: slice(None, -1)})


def sort(x: Value, dim: str) -> Value:
    place = axis(x.base, dim)
    gaps = np.diff(np.sort(x.base.data, place), axis=place)
    if gaps.size and not gaps.min() > 1e-7:
        raise Unclear
    return take_along(x, Array(x.dims, np.argsort(x.base.data, place)), dim)


def one_hot(x: Value, classes: int, dim: str = "class") -> Value:
    return Array((*x.dims, dim), (x.base.data[..., None] == np.arange(classes)) * 1.0)


def diag(x: Value, dim: str, dims: Sequence[str] = ("row", "col")) -> Value:
    n, (row, col) = x.sizes[dim], dims
    eye = Array(dims, np.eye(n))
    if set(dims) & (set(x.dims) - {dim}):
        raise Refused("clash")
    inner = object()
    turned = rename(rename(x, {dim: inner}), {inner: row})
    made = multiply(turned, eye)
    return transpose(made, *[d for d in x.dims if d != dim], row, col)


def diagonal(x: Value, dims: Sequence[str] = ("row", "col"), dim: str = "diag") -> Value:
    row, col = dims
    if dim in x.dims and dim not in dims:
        raise Refused("clash")

    def seen(x: Array) -> Array:
        names = [n for n in x.names if n not in dims]
        return Array([*names, dim], np.diagonal(x.data, 0, axis(x, row), axis(x, col)))

    return linear(seen, x)


def nonzero(
    x: Value, size: Any = None, dim: Any = None, fill_value: int = 0, name: str = "nonzero"
) -> Any:
    """Along one dim; without a size there are as many places as the fullest row has."""
    base, (dim,) = x.base, several(dim, x)
    if name in base.names and name != dim:
        raise Refused("clash")
    moved = np.moveaxis(base.data, axis(base, dim), -1)
    if not isinstance(size, int):
        size = np.count_nonzero(moved, -1).max(initial=0)
    found = np.full((*moved.shape[:-1], size), fill_value)
    for place in np.ndindex(moved.shape[:-1]):
        at = np.flatnonzero(moved[place])[:size]
        found[place][: len(at)] = at
    return {dim: Array([*[d for d in base.names if d != dim], name], found)}


def linspace(start: Any, stop: Any, num: int, *, dim: str) -> Value:
    x, y = lifted(start), lifted(stop)
    if dim in x.dims or dim in y.dims:
        raise Refused("clash")
    step = Array((dim,), np.arange(num) / builtins.max(num - 1, 1))
    return step * (y - x) + x


def eye(sizes: Mapping[str, int]) -> Array:
    return Array(tuple(sizes), np.eye(*sizes.values()))


def arange(n: Any, *, dim: str) -> Array:
    return Array((dim,), np.arange(whole(n)))


def shift(x: Value, shifts: Mapping[str, int], fill_value: Any = None) -> Value:
    ((dim, _),) = shifts.items()
    empty = Array((dim,), np.arange(x.sizes[dim]) == 0)
    return transpose(where(empty, fill_value, roll(x, {dim: 1})), *x.dims)


def pad(x: Value, width: Mapping[str, int], constant_values: float) -> Value:
    ((dim, _),) = width.items()
    end = Array((dim,), [constant_values])
    return transpose(concat([end, x, end], dim), *x.dims)


def tril(x: Value, dims: Sequence[str]) -> Value:
    a, b = dims
    kept = Array(dims, np.arange(x.sizes[a])[:, None] >= np.arange(x.sizes[b]))
    return transpose(where(kept, x, 0.0), *x.dims)


def trace(x: Value, dims: Sequence[str]) -> Value:
    inner = Hidden()
    return sum(diagonal(x, dims, inner), [inner])


def vander(x: Value, n: int, dim: str = "power") -> Value:
    if dim in x.dims:
        raise Refused("clash")
    power = sum(x * 0.0, []) + 1.0
    made = [power]
    for _ in range(n - 1):
        made.append(made[-1] * x)
    return transpose(concat(made[::-1], dim), *x.dims, dim)


def max_pool(x: Value, sizes: Mapping[str, int]) -> Value:
    (width,) = sizes.values()
    inner = Hidden()
    return max(windows(x, sizes, inner, stride=width), [inner])


@may_skip
def median(x: Value, dim: Any) -> Value:
    inner = Hidden()
    merged = sort(stack(x, {inner: several(dim, x)}), inner)
    n = merged.sizes[inner]
    return 0.5 * (isel(merged, {inner: (n - 1) // 2}) + isel(merged, {inner: n // 2}))


@may_skip
def quantile(x: Value, shares: Any, dim: str) -> Value:
    if not isinstance(shares, float) and "quantile" in x.dims and dim != "quantile":
        raise Refused("clash")
    ordered, n = sort(x, dim), x.sizes[dim]
    if not n:
        raise Unclear

    def between(share: float) -> Value:
        at = share * (n - 1)
        low = int(at)
        high = builtins.min(low + 1, n - 1)
        one, other = isel(ordered, {dim: low}), isel(ordered, {dim: high})
        return one + (other - one) * (at - low)

    if isinstance(shares, float):
        return between(shares)
    return concat([between(share) for share in shares], "quantile")


def fillna(x: Value, value: Any) -> Value:
    return where(Array(x.dims, np.isnan(x.base.data)), value, x)


# ---- groups

REDUCTIONS: dict[str, Callable[..., Value]] = {
    "sum": sum, "prod": prod, "mean": mean, "max": max, "min": min, "median": median,
    "var": var, "quantile": quantile,
    "first": lambda x, row: isel(x, {row: 0}), "last": lambda x, row: isel(x, {row: -1}),
}  # fmt: skip
EMPTY = {"sum": 0.0, "prod": 1.0}
groupby = choosing.groups({kind: (f, EMPTY.get(kind)) for kind, f in REDUCTIONS.items()})
segment_sum, segment_prod, segment_mean, segment_max, segment_min = (
    (lambda *args, kind=kind, **more: getattr(groupby(*args, **more), kind)())
    for kind in ("sum", "prod", "mean", "max", "min")
)


def argmax(x: Value, dim: str) -> Value:
    place = axis(x.base, dim)
    ordered = np.sort(x.base.data, place)
    if not x.sizes[dim] or (np.diff(ordered, axis=place) < 1e-7).any():
        raise Unclear
    return Array([d for d in x.dims if d != dim], x.base.data.argmax(place))


def norm(x: Value, dim: Any) -> Value:
    return sqrt(sum(x * x, dim))


def cov(x: Value, y: Value, dim: str) -> Value:
    n = x.sizes[dim]
    if n < 2:
        raise Unclear
    return sum((x - mean(x, dim)) * (y - mean(y, dim)), dim) * (1 / (n - 1))


def conv(x: Value, kernel: Value, dims: Mapping[str, str]) -> Value:
    ((dim, lag),) = dims.items()
    inner = Hidden()
    k = rename(kernel, {lag: inner})
    both = [d for d in k.dims if d in x.dims]
    made = sum(windows(x, {dim: k.sizes[inner]}, inner) * k, [inner, *both])
    rest = [d for d in x.dims if d in made.dims]
    return transpose(made, *rest, *[d for d in made.dims if d not in rest])


def top_k(x: Value, k: int, dim: str) -> Any:
    n = x.sizes[dim]
    if n < k:
        raise Refused("more than there are")
    return SimpleNamespace(values=isel(flip(sort(x, dim), dim), {dim: slice(0, k)}))


def trapezoid(x: Value, *, dim: str) -> Value:
    before, after = isel(x, {dim: slice(None, -1)}), isel(x, {dim: slice(1, None)})
    return 0.5 * sum(before + after, dim)


def cumulative_sum(x: Value, dim: str, *, include_initial: bool) -> Value:
    zero = Array((dim,), [0.0])
    return transpose(cumsum(concat([zero, x], dim), dim), *x.dims)


def dot(*xs: Value, dim: Any) -> Value:
    made = xs[0]
    for x in xs[1:]:
        made = made * x
    return sum(made, dim)


special = SimpleNamespace(
    softmax=softmax,
    logsumexp=logsumexp,
    log_softmax=lambda x, dim: x - logsumexp(x, dim),
    xlogy=lambda x, y: x * log(y),
    **{name: partial(smooth, name) for name in ("sigmoid", "softplus", "erf", "gammaln")},
)
linalg = matrices
