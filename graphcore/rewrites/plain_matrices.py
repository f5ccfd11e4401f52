"""Helpers for matrices, which are the last two axes of plain nodes: the rest is batch."""

from __future__ import annotations

from graphcore.ir import INT, Literal, Node, Size, full_like
from graphcore.ir.sizes import same
from graphcore.ops import leaf, tensor
from graphcore.ops.elementwise import conjugate, equal, greater_equal, real

from .plain import cast, expand, flip, number, shift, sum_over, take_range, transpose, where


def t(x: Node) -> Node:
    """Transposed."""
    rank = x.type.ndim
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def conj(x: Node) -> Node:
    """Conjugated."""
    return conjugate(x) if x.type.dtype.kind == "c" else x


def h(x: Node) -> Node:
    """Transposed and conjugated."""
    return t(conj(x))


def matmul(*factors: Node) -> Node:
    """The matrix product."""
    first, *rest = factors
    for x in rest:
        first = tensor.matmul(first, x)
    return first


def size(x: Node, axis: int) -> Size:
    found: Size = x.type.shape[axis]
    return found


def index(x: Node, axis: int) -> Node:
    """The position of each element of `x` along one of its axes."""
    rank, shape = x.type.ndim, x.type.shape
    steps = leaf.iota(size=shape[axis], dtype=INT, dims=None)
    return expand(steps, [other for other in range(rank) if other != axis % rank], shape)


def below(x: Node, k: int = 0) -> Node:
    """Where an element stands on diagonal `k` or below: with -1 strictly below the main one."""
    return greater_equal(index(x, -2), index(x, -1) + -k if k else index(x, -1))


def tril(x: Node, k: int = 0) -> Node:
    """`x`, and 0 above diagonal `k`, as np.tril: with -1 on the main one as well."""
    return where(below(x, k), x, 0)


def on_diagonal(x: Node) -> Node:
    return equal(index(x, -2), index(x, -1))


def diagonal(x: Node) -> Node:
    """The diagonal of square matrices."""
    return sum_over(where(on_diagonal(x), x, 0), (x.type.ndim - 1,))


def columns(x: Node, like: Node) -> Node:
    """Vectors as a factor of each column of `like`: x[..., j] in (i, j)."""
    return expand(x, (like.type.ndim - 2,), like.type.shape)


def rows(x: Node, like: Node) -> Node:
    """Vectors as a factor of each row of `like`: x[..., i] in (i, j)."""
    return expand(x, (like.type.ndim - 1,), like.type.shape)


def first(x: Node, axis: int, count: Size) -> Node:
    """The first places along an axis."""
    return x if size(x, axis) == count else take_range(x, axis % x.type.ndim, 0, count)


def after(x: Node, axis: int, count: Size) -> Node:
    """The places along an axis that come after the first `count`."""
    return take_range(x, axis % x.type.ndim, count, size(x, axis) - count)


def pad(x: Node, m: Size, n: Size, start: tuple[Size, Size] = (0, 0)) -> Node:
    """`x` within zeros of (m, n)."""
    batch = x.type.shape[:-2]
    if (m, n) == x.type.shape[-2:]:
        return x
    starts, steps = (*(0 for _ in batch), *start), (1,) * x.type.ndim
    return tensor.embed(x, shape=(*batch, m, n), starts=starts, steps=steps)


def half_triangle(x: Node) -> Node:
    """1 below the diagonal, 1/2 on it and 0 above, for the last two axes of `x`."""
    dtype = x.type.dtype
    return 0.5 * (cast(below(x), dtype) + cast(below(x, -1), dtype))


def hermitian(x: Node) -> Node:
    """The Hermitian matrices whose lower triangles are those of `x`."""
    half = tril(x) * half_triangle(x)
    return half + h(half)


def real_part(x: Node) -> Node:
    return real(x) if x.type.dtype.kind == "c" else x


def earlier(x: Node, axis: int) -> Node:
    """Every value one place earlier along `axis`; the last one becomes 0."""
    return flip(shift(flip(x, axis), axis, 0), axis)


def largest(values: Node, least: float = 0) -> Node:
    """The largest of each row, and no less than `least`."""
    initial = Literal(least, values.type.dtype)
    return tensor.max_(values, axes=(values.type.ndim - 1,), initial=initial)


def expand_last(x: Node, shape: tuple[Size, ...]) -> Node:
    """A number for each matrix, for each of its elements."""
    return expand(x, (len(shape) - 2, len(shape) - 1), shape)


def full_size(n: Size, like: Node) -> Node:
    """A size at each element of `like`, as a position."""
    return number(n, INT, like.type.shape)


def where_same(m: Size, n: Size, x: Node | complex, y: Node) -> Node:
    """`x` where two sizes are the same, which may show only at the call, else `y`."""
    alike = same(m, n)
    if alike is False:
        return y
    if alike is True:
        return x if isinstance(x, Node) else full_like(y, x)
    return where(equal(full_size(m, y), full_size(n, y)), x, y)


def eye_like(x: Node) -> Node:
    """The unit matrix for each matrix of `x`."""
    return where(on_diagonal(x), full_like(x, 1), 0)
