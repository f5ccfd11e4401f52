"""The names of the language for inputs without dims, whose axes are counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import graphcore as gc

from .arrays import Positional, axes, broadcast, dot, elementwise, matmul, positional
from .filters import conv, gather, indexed, pad, put_slice, scatter, window
from .matrices import OF_LAST_AXES
from .words import ELEMENTWISE, REDUCTIONS, Function, cast, gradient, stepping


def reduction(function: Function) -> Function:
    def reduce(x: Any, axes: Any = None, keep: bool = False, **attrs: Any) -> Positional:
        x = positional(x)
        gone = x.dims(axes)
        found = function(x.tensor, dim=gone, **attrs)
        return Positional(gc.expand_dims(found, gone), x.dims(None)) if keep else Positional(found)

    return reduce


def along(function: Function) -> Function:
    """A function along one axis, of options in order."""

    def apply(x: Any, axis: int = -1, *options: Any, **named: Any) -> Positional:
        x = positional(x)
        return Positional(function(x.tensor, x.dims(axis)[0], *options, **named))

    return apply


def cumsum(x: gc.Tensor, dim: str, reverse: bool = False) -> gc.Tensor:
    """The running sum, from the end if `reverse`."""
    return gc.flip(gc.cumsum(gc.flip(x, dim), dim), dim) if reverse else gc.cumsum(x, dim)


def transform(function: Function) -> Function:
    """A Fourier transform of `n` values along an axis."""
    return lambda x, n=None, axis=-1: along(function)(x, axis, n)


def matrices(function: Function) -> Function:
    """A function of the last two axes."""

    def apply(x: Any, *options: Any, **named: Any) -> Positional:
        x = positional(x)
        return Positional(function(x.tensor, tuple(x.dims((-2, -1))), *options, **named))

    return apply


def argument(function: Function) -> Function:
    """The position of an extreme value, on one axis or among all values."""

    def search(x: Any, axis: int | None = None) -> Positional:
        x = positional(x)
        return Positional(function(x.tensor, None if axis is None else x.dims(axis)[0]))

    return search


def reshape(x: Any, shape: Any) -> Positional:
    flat = gc.stack(positional(x).tensor, flat=...)
    sizes = [shape] if isinstance(shape, int) else list(shape)
    return Positional(gc.unstack(flat, flat=dict(zip(axes(len(sizes)), sizes))))


def transpose(x: Any, perm: Iterable[int] | None = None) -> Positional:
    x = positional(x)
    return Positional(x.tensor, reversed(x.dims(None)) if perm is None else x.dims(perm))


def matrix_transpose(x: Any) -> Positional:
    *batch, row, col = positional(x).dims(None)
    return Positional(positional(x).tensor, [*batch, col, row])


def squeeze(x: Any, axes: Any = None) -> Positional:
    x = positional(x)
    return Positional(gc.squeeze(x.tensor, None if axes is None else x.dims(axes)))


def expand(x: Any, axis: int | tuple[int, ...]) -> Positional:
    x, new = positional(x), (axis,) if isinstance(axis, int) else axis
    rank = len(x.shape) + len(new)
    at, own = {i % rank for i in new}, iter(x.dims(None))
    dims = [f"new{i}" if i in at else next(own) for i in range(rank)]
    return Positional(gc.expand_dims(x.tensor, [f"new{i}" for i in at]), dims)


def reverse(x: Any, axes: Any = None) -> Positional:
    x = positional(x)
    return Positional(gc.isel(x.tensor, dict.fromkeys(x.dims(axes), slice(None, None, -1))))


def concat(xs: list[Any], axis: int = 0) -> Positional:
    dim = positional(xs[0]).dims(axis)[0]
    return Positional(gc.concat([positional(x).tensor for x in xs], dim))


def stack(xs: list[Any], axis: int = 0) -> Positional:
    return concat([expand(x, axis) for x in xs], axis)


def slice_(x: Any, starts: Any, lengths: Any, strides: Any = None) -> Positional:
    x = positional(x)
    steps = strides or [1] * len(x.shape)
    ranges = zip(x.dims(None), starts, lengths, steps)
    taken = {dim: slice(at, at + span, step) for dim, at, span, step in ranges}
    return Positional(gc.isel(x.tensor, taken))


def take(x: Any, index: Any, axis: int = 0) -> Positional:
    x = positional(x)
    return x[(*[slice(None)] * (axis % len(x.shape)), index)]


def take_along(x: Any, index: Any, axis: int) -> Positional:
    x = positional(x)
    return Positional(gc.take_along(x.tensor, positional(index).tensor, x.dims(axis)[0]))


def lettered(x: Any, letters: str) -> gc.Tensor:
    """`x` with letters for dims, and the diagonal of those that have the same."""
    tensor = positional(x).tensor
    for i, (dim, letter) in enumerate(zip(tensor.dims, letters, strict=True)):
        again = letter in letters[:i]
        tensor = (
            gc.diagonal(tensor, (letter, dim), letter) if again else tensor.rename({dim: letter})
        )
    return tensor


def einsum(spec: str, *xs: Any) -> Positional:
    operands, arrow, result = spec.replace(" ", "").partition("->")
    letters = operands.replace(",", "")
    if not arrow:
        result = "".join(sorted(letter for letter in letters if letters.count(letter) == 1))
    named = [lettered(x, own) for x, own in zip(xs, operands.split(","), strict=True)]
    return Positional(gc.dot(*named, dim=set(letters) - set(result)), result)


def dot_general(x: Any, cx: Any, bx: Any, y: Any, cy: Any, by: Any) -> Positional:
    """Contracts the axes `cx` with `cy`; the axes `bx`, paired with `by`, come first."""
    left = [f"x{i}" for i in range(len(positional(x).shape))]
    right = [f"y{i}" for i in range(len(positional(y).shape))]
    for mine, theirs in [*zip(cx, cy, strict=True), *zip(bx, by, strict=True)]:
        right[theirs] = left[mine]
    gone, shared = [left[i] for i in cx], [left[i] for i in bx]
    named = [
        gc.rename(z.tensor, dict(zip(z.dims(None), dims)))
        for z, dims in ((positional(x), left), (positional(y), right))
    ]
    rest = [dim for dim in [*left, *right] if dim not in [*gone, *shared]]
    return Positional(gc.dot(*named, dim=gone), [*shared, *rest])


def kron(x: Any, y: Any) -> Positional:
    """Every value of `x` times all of `y`, block by block."""
    x, y = positional(x), positional(y)
    rank = max(len(x.shape), len(y.shape))
    x, y = (expand(z, tuple(range(rank - len(z.shape)))) for z in (x, y))
    blocks = gc.rename(x.tensor, {dim: f"block {dim}" for dim in axes(rank)}) * y.tensor
    merged = {f"all {dim}": (f"block {dim}", dim) for dim in axes(rank)}
    return Positional(gc.stack(blocks, merged), merged)


def cross(x: Any, y: Any) -> Positional:
    """Of vectors along the last axis."""
    x, y = positional(x), positional(y)
    shape = np.broadcast_shapes(x.shape, y.shape)
    wide = [broadcast(z, shape) for z in (x, y)]
    return Positional(gc.cross(*[z.tensor for z in wide], wide[0].dims(-1)[0]), axes(len(shape)))


def outer(x: Any, y: Any) -> Positional:
    return einsum("i,j->ij", reshape(x, -1), reshape(y, -1))


REDUCED = {name: reduction(f) for name, f in REDUCTIONS.items() if not name.startswith("arg")}

POSITIONAL: dict[str, Any] = {
    **{name: elementwise(function) for name, function in ELEMENTWISE.items()},
    **REDUCED,
    "argmax": argument(gc.argmax),
    "argmin": argument(gc.argmin),
    "cumsum": along(cumsum),
    "cumprod": along(gc.cumprod),
    "cummax": along(gc.cummax),
    "cummin": along(gc.cummin),
    "sort": along(gc.sort),
    "fft": transform(gc.fft.fft),
    "ifft": transform(gc.fft.ifft),
    "diag": matrices(gc.diagonal),
    "trace": matrices(gc.trace),
    "tril": matrices(gc.tril),
    "triu": matrices(gc.triu),
    "make_diag": along(gc.diag),
    "cast": lambda x, dtype: Positional(cast(positional(x).tensor, dtype)),
    "reshape": reshape,
    "transpose": transpose,
    "mT": matrix_transpose,
    "squeeze": squeeze,
    "expand": expand,
    "broadcast": broadcast,
    "reverse": reverse,
    "concat": concat,
    "stack": stack,
    "slice": slice_,
    "take": take,
    "take_along": take_along,
    "einsum": einsum,
    "dot": dot,
    "matmul": matmul,
    "outer": outer,
    "dot_general": dot_general,
    "kron": kron,
    "cross": cross,
    "pad": pad,
    "put_slice": put_slice,
    "gather": gather,
    "indexed_put": indexed(lambda region, u: region.set(u)),
    "indexed_add": indexed(lambda region, u: region.add(u)),
    "conv": conv,
    "window_sum": window(gc.sum, 0.0),
    "window_max": window(gc.max, -np.inf),
    "window_min": window(gc.min, np.inf),
    "window_scatter_max": scatter(gc.argmax),
    "window_scatter_min": scatter(gc.argmin),
    "grad": gradient(Positional, lambda x: positional(x).tensor),
    "np": np,
    "pi": np.pi,
    "eye": np.eye,
    "iota": lambda *shape: np.arange(float(np.prod(shape))).reshape(shape),
    **stepping(Positional, lambda x: x if np.isscalar(x) else positional(x).tensor),
    **OF_LAST_AXES,
}
