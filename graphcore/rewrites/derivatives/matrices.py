"""VJP and JVP of ops on matrices, written for the last two axes: all before them are batch.

JVP: `(node, tangent of each operand) -> tangent of each result`, None for one that does not vary.
Every rule is linear in the tangents and made of plain ops, so the cotangent map is its transpose.

The solves and what they are made of have a VJP, in which the rest ends. Transposes there are
without conjugation, as in all VJP. Where a factorisation is not unique, the derivative is that of
the choice which turns least.

Formulas: Giles (2008), "Collected matrix derivative results"; Walter & Lehmann (2010) for QR;
Golub & Pereyra (1973) for the pseudo-inverse; Higham (2008) for matrix functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from graphcore.ir.dtypes import INT, complex_for
from graphcore.ir.literal import Literal
from graphcore.ir.node import Node, full_like
from graphcore.ir.op import Op
from graphcore.ir.sizes import Size, minimum
from graphcore.ops import autodiff, leaf, linalg, tensor
from graphcore.ops.elementwise import (
    absolute,
    conjugate,
    equal,
    exp,
    greater,
    greater_equal,
    imag,
    less_equal,
    real,
)
from graphcore.rewrites.plain import (
    cast,
    equals,
    expand,
    flip,
    full,
    nonzero,
    number,
    shift,
    sum_over,
    take_range,
    transpose,
    where,
)

Vjp: TypeAlias = Callable[[Node, Node], "tuple[Node | None, ...]"]
Jvp: TypeAlias = "Callable[[Node, Sequence[Node | None]], tuple[Node | None, ...]]"
EPS = 16
"""Values that differ by less than so many units of rounding count as equal."""

# ---- words: matrices are the last two axes


def t(x: Node) -> Node:
    """Transposed."""
    rank = x.type.ndim
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def h(x: Node) -> Node:
    """Transposed and conjugated."""
    return t(conjugate(x)) if x.type.dtype.kind == "c" else t(x)


def at(*factors: Node) -> Node:
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


def below(x: Node, offset: int = 0) -> Node:
    """Where an element stands on the diagonal or below; with `offset` 1 strictly below."""
    return greater_equal(index(x, -2), index(x, -1) + offset if offset else index(x, -1))


def tril(x: Node, offset: int = 0) -> Node:
    """`x`, and 0 above the diagonal; with `offset` 1 on it as well."""
    return where(below(x, offset), x, 0)


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


def padded(x: Node, m: Size, n: Size, start: tuple[Size, Size] = (0, 0)) -> Node:
    """`x` within zeros of (m, n)."""
    batch = x.type.shape[:-2]
    if (m, n) == x.type.shape[-2:]:
        return x
    starts, steps = (*(0 for _ in batch), *start), (1,) * x.type.ndim
    return tensor.embed(x, shape=(*batch, m, n), starts=starts, steps=steps)


def hermitian(x: Node) -> Node:
    """The Hermitian matrices of which `x` gives the lower triangles."""
    strict = tril(x, 1)
    on = where(on_diagonal(x), x, 0)
    return strict + h(strict) + (cast(real(on), x.type.dtype) if x.type.dtype.kind == "c" else on)


def real_part(x: Node) -> Node:
    return real(x) if x.type.dtype.kind == "c" else x


def moving(tangents: Sequence[Node | None]) -> Node:
    """The tangent of the only operand."""
    (dx,) = tangents
    assert dx is not None
    return dx


# ---- solves


def outer(x: Node, y: Node) -> Node:
    """-x y^T, what a matrix receives of a solve"""
    return -at(x, t(y))


def solve_vjp(node: Node, ct: Node) -> tuple[Node, Node]:
    """x = a⁻¹ b:  b̄ = a⁻ᵀ x̄, ā = -b̄ xᵀ"""
    a, _ = node.inputs
    back = linalg.solve(t(a), ct, **node.attrs)
    return outer(back, node), back


def solve_triangular_vjp(node: Node, ct: Node) -> tuple[Node, Node]:
    """The same, of the triangle that is read"""
    (a, _), attrs = node.inputs, node.attrs
    back = linalg.solve_triangular(t(a), ct, **attrs | {"lower": not attrs["lower"]})
    full_share = outer(back, node)
    offset = int(attrs["unit"])
    read = tril(full_share, offset) if attrs["lower"] else t(tril(t(full_share), offset))
    return read, back


def solve_tridiagonal_vjp(node: Node, ct: Node) -> tuple[Node, ...]:
    """b̄ solves the transposed system, each coefficient receives -b̄[i] x[i-1], x[i] or x[i+1]"""
    lower, diagonal_, upper, _ = node.inputs
    rank = node.type.ndim
    back = linalg.solve_tridiagonal(
        shift(upper, rank - 2, 0), diagonal_, earlier(lower, rank - 2), ct
    )
    shifted = (shift(node, rank - 2, 0), node, earlier(node, rank - 2))
    return *[-sum_over(back * x, (rank - 1,)) for x in shifted], back


def earlier(x: Node, axis: int) -> Node:
    """Every value one place earlier along `axis`; the last one becomes 0."""
    return flip(shift(flip(x, axis), axis, 0), axis)


def inv_vjp(node: Node, ct: Node) -> tuple[Node]:
    """ā = -a⁻ᵀ ȳ a⁻ᵀ"""
    back = t(node)
    return (-at(back, ct, back),)


# ---- determinants


def det_vjp(node: Node, ct: Node) -> tuple[Node]:
    """ā = ȳ cofactor(a), which is finite at any rank"""
    (a,) = node.inputs
    rank = a.type.ndim
    return (expand(ct, (rank - 2, rank - 1), a.type.shape) * linalg.cofactor(a),)


def cofactor_vjp(node: Node, ct: Node) -> tuple[Node]:
    """The derivative of a polynomial is the mean of those on a circle around the point.

    Elements of cofactor(a + z q) are polynomials in z, whose mean over enough roots of unity,
    turned by half a step, is their value at 0. With q the polar factor of `a` every matrix on the
    circle is regular, so that det(b) (tr(b⁻¹ C̄) b⁻ᵀ - (b⁻¹ C̄ b⁻¹)ᵀ) serves at any rank and order.
    """
    (a,) = node.inputs
    dtype = complex_for(a.type.dtype)
    n = size(a, -1)
    points = 2 * (n // 2 + 1)
    shape = (*a.type.shape[:-2], points, n, n)
    circle = a.type.ndim - 2

    def spread(x: Node) -> Node:
        return expand(cast(x, dtype), (circle,), shape)

    radius, polar = ring(a)
    steps = cast(leaf.iota(size=points, dtype=INT, dims=None), dtype)
    angle = (2j * math.pi) * (steps + 0.5) / number(points, dtype, (points,))
    turn = exp(angle)
    z = expand(turn, [i for i in range(len(shape)) if i != circle], shape)
    distance = expand(cast(radius, dtype), range(circle, circle + 3), shape)
    b = spread(a) + z * distance * spread(polar)
    inverse, c = linalg.inv(b, check=False), spread(ct)
    sign, log = (linalg.slogdet(b)[i] for i in range(2))
    volume = expand_last(sign * cast(exp(log), dtype), shape)
    product = at(inverse, c)
    trace = expand_last(sum_over(diagonal(product), (circle + 1,)), shape)
    share = sum_over(volume * (trace * t(inverse) - t(at(product, inverse))), (circle,))
    mean = share / number(points, dtype, share.type.shape)
    return (mean if a.type.dtype.kind == "c" else real(mean),)


def ring(a: Node) -> tuple[Node, Node]:
    """A radius near the singular values that are not negligible, and the polar factor of `a`."""
    fixed = autodiff.stop_gradient(a)
    u, s, vh = (linalg.svd(fixed)[i] for i in range(3))
    top = expand(largest(s), (s.type.ndim - 1,), s.type.shape)
    least = -largest(where(greater(s, 1e-3 * top), -s, -math.inf), -math.inf)
    return where(equals(least, math.inf), 1, 0.5 * least), at(u, vh)


def largest(values: Node, least: float = 0) -> Node:
    """The largest of each row, and no less than `least`."""
    initial = Literal(least, values.type.dtype)
    return tensor.max_(values, axes=(values.type.ndim - 1,), initial=initial)


def expand_last(x: Node, shape: tuple[Size, ...]) -> Node:
    """A number for each matrix, for each of its elements."""
    return expand(x, (len(shape) - 2, len(shape) - 1), shape)


def slogdet_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node | None, ...]:
    """d log|det a| = Re tr(a⁻¹ da), d sign = i sign Im tr(a⁻¹ da)"""
    (a,), da = node.inputs, moving(tangents)
    rank = a.type.ndim
    trace = sum_over(t(linalg.inv(a, check=False)) * da, (rank - 2, rank - 1))
    if a.type.dtype.kind != "c":
        return None, trace
    turn = cast(imag(trace), a.type.dtype) * full(1j, a.type.dtype, trace.type.shape)
    return node[0] * turn, real(trace)


# ---- factorisations


def cholesky_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node]:
    """dl = l Φ(l⁻¹ da l⁻ᴴ), Φ the lower triangle with half its diagonal (Murray 2016)"""
    half = linalg.solve_triangular(node, hermitian(moving(tangents)), **LOWER)
    inner = h(linalg.solve_triangular(node, h(half), **LOWER))
    phi = where(on_diagonal(inner), 0.5 * inner, tril(inner))
    return (at(node, phi),)


LOWER = {"lower": True, "unit": False, "check": False}
UNIT_LOWER = LOWER | {"unit": True}


def right_divided(x: Node, r: Node) -> Node:
    """x r⁻¹ for upper triangular r"""
    return t(linalg.solve_triangular(t(r), t(x), **LOWER))


def qr_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node, Node]:
    """With c = qᴴ da and x = c₁ r₁⁻¹:  dq = q Ω + (da - q c)₁ r₁⁻¹, dr = c - Ω r

    Ω is the skew part that x has below its diagonal, and the imaginary part on it; ₁ means the
    first k columns. A complete q has no place beside it to move to.
    """
    da = moving(tangents)
    q, r = node[0], node[1]
    k, wide = minimum(size(da, -2), size(da, -1)), size(q, -1)
    c = at(h(q), da)
    leading = first(first(r, -2, k), -1, k)
    x = padded(right_divided(first(c, -1, k), leading), wide, wide)
    low = tril(x, 1)
    turn = low - h(low)
    if x.type.dtype.kind == "c":
        on = where(on_diagonal(x), x, 0)
        turn = turn + cast(imag(on), x.type.dtype) * full_like(on, 1j)
    dq = at(q, turn)
    if node.op is linalg.qr and size(q, -2) != wide:
        dq = dq + right_divided(first(da - at(q, c), -1, k), leading)
    return dq, c - at(turn, r)


def lu_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[None, Node, Node]:
    """With m = l⁻¹ da[p] and x = m₁ u₁⁻¹:  dl = l tril(x, -1), du = m - tril(x, -1) u

    Of a square matrix the last pivot divides nothing that counts: it may be 0. A tall l is
    completed by columns of the unit matrix.
    """
    da = moving(tangents)
    p, lower, u = (node[i] for i in range(3))
    m, k = size(da, -2), size(lower, -1)
    rank = da.type.ndim
    square = (*da.type.shape[:-1], m)
    chosen = expand(p, (rank - 1,), square)
    order = cast(equal(chosen, index(full(0, INT, square), -1)), da.type.dtype)
    if m != k:
        rest = padded(lower, m, m)
        wide = greater_equal(index(rest, -1), full_size(k, rest))
        whole = where(on_diagonal(rest), where(wide, 1, rest), rest)
    else:
        whole = lower
    moved = linalg.solve_triangular(whole, at(order, da), **UNIT_LOWER)
    leading = first(u, -1, k)
    if m == k:
        last = equal(index(leading, -1), full_size(k - 1, leading))
        corner = where(on_diagonal(leading), where(last, 1, leading), leading)
    else:
        corner = leading
    low = tril(right_divided(first(moved, -1, k), corner), 1)
    dl = at(whole, low)
    du = first(moved, -2, k) - at(first(low, -2, k), u)
    return None, dl, du


def full_size(n: Size, like: Node) -> Node:
    """A size at each element of `like`, as a position."""
    return number(n, INT, like.type.shape)


def close(gap: Node, values: Node) -> Node:
    """Where a gap between two of `values` is no more than rounding."""
    unit = EPS * float(np.finfo(values.type.dtype).eps)
    scale = largest(absolute(values))
    return less_equal(absolute(gap), unit * expand_last(scale, gap.type.shape))


def gaps(values: Node, like: Node, sign: int) -> Node:
    """values[j] - values[i] in (i, j), or their sum."""
    shape = (*values.type.shape, size(values, -1))
    rank = len(shape)
    left = expand(values, (rank - 2,), shape)
    right = expand(values, (rank - 1,), shape)
    return left + right if sign > 0 else left - right


def eigh_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node, Node]:
    """With c = vᴴ da v:  dw = diag(c), dv[j] = Σ v[i] c[i,j] / (w[j] - w[i]) over i ≠ j

    Vectors of one eigenvalue have no derivative: it is inf or nan.
    """
    w, v = node[0], node[1]
    c = at(h(v), hermitian(moving(tangents)), v)
    return real_part(diagonal(c)), at(v, eigen_turn(c, w))


def eigen_turn(c: Node, w: Node) -> Node:
    """c[i,j] / (w[j] - w[i]) off the diagonal, on which it is 0; nothing is between equal values"""
    gap = gaps(w, c, -1)
    apart = cast(where(close(gap, w), 0, gap), c.type.dtype)
    diagonal_ = on_diagonal(c)
    return where(diagonal_, 0, c / where(diagonal_, 1, apart))


def eigvalsh_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node]:
    """dw = diag(vᴴ da v)"""
    v = linalg.eigh(*node.inputs)[1]
    return (real_part(diagonal(at(h(v), hermitian(moving(tangents)), v))),)


def eig_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node, Node]:
    """With c = v⁻¹ da v:  dw = diag(c), and dv as for Hermitian matrices, but of unit vectors

    each turned so that its largest element stays real.
    """
    w, v = node[0], node[1]
    da = cast(moving(tangents), v.type.dtype)
    c = linalg.solve(v, at(da, v), check=False)
    dv = at(v, eigen_turn(c, w))
    axis = v.type.ndim - 2
    grown = sum_over(real(conjugate(v) * dv), (axis,))
    modulus = absolute(v)
    top = tensor.argmax(modulus, axis=axis)
    chosen = equal(index(v, -2), columns(top, v))
    pivot, moved = (sum_over(where(chosen, x, 0), (axis,)) for x in (v, dv))
    turned = imag(moved) / nonzero(real(pivot))
    change = cast(grown, w.type.dtype) + cast(turned, w.type.dtype) * full_like(w, 1j)
    return diagonal(c), dv - v * columns(change, v)


def eigvals_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node]:
    """dw = diag(v⁻¹ da v)"""
    v = linalg.eig(*node.inputs)[1]
    da = cast(moving(tangents), v.type.dtype)
    return (diagonal(linalg.solve(v, at(da, v), check=False)),)


def svd_turns(s: Node, inner: Node) -> tuple[Node, Node]:
    """How u and v turn within themselves: skew matrices, for `inner` = uᴴ da v.

    Their sum is that of the Hermitian part over s[j] - s[i], which is taken for 0 where the two are
    equal, and their difference that of the skew part over s[j] + s[i]: so u vᴴ, the polar factor,
    is exact at equal singular values.
    """
    gap, total = gaps(s, inner, -1), gaps(s, inner, 1)
    even, odd = inner + h(inner), inner - h(inner)
    apart = where(close(gap, s), math.inf, gap)
    both = even / cast(apart, inner.type.dtype)
    diagonal_ = on_diagonal(inner)
    if inner.type.dtype.kind == "c":
        other = odd / cast(total, inner.type.dtype)
    else:
        other = where(diagonal_, 0, odd / where(diagonal_, 1, total))
    return 0.5 * (both + other), 0.5 * (both - other)


def svd_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node, Node, Node]:
    """With p = uᴴ da v:  ds = diag(p), du = u Ω + (1 - u uᴴ) da v s⁻¹, dv likewise with daᴴ"""
    da = moving(tangents)
    u, s, vh = (node[i] for i in range(3))
    v = h(vh)
    inner = at(h(u), da, v)
    left, right = svd_turns(s, inner)
    du, dv = at(u, left), at(v, right)
    m, n = size(da, -2), size(da, -1)
    scale = cast(s, da.type.dtype)
    if m != size(s, -1):
        moved = at(da, v)
        du = du + (moved - at(u, at(h(u), moved))) / columns(scale, moved)
    if n != size(s, -1):
        moved = at(h(da), u)
        dv = dv + (moved - at(v, at(h(v), moved))) / columns(scale, moved)
    return du, real_part(diagonal(inner)), h(dv)


def svd_full_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node, Node, Node]:
    """The same, where u and v turn towards the vectors that belong to no singular value."""
    da = moving(tangents)
    u, s, vh = (node[i] for i in range(3))
    v, k = h(vh), size(s, -1)
    m, n = size(da, -2), size(da, -1)
    inner = at(h(u), da, v)
    left, right = svd_turns(s, first(first(inner, -2, k), -1, k))
    scale = cast(s, da.type.dtype)
    left, right = padded(left, m, m), padded(right, n, n)
    if m != k:
        low = after(first(inner, -1, k), -2, k)
        low = padded(low / columns(scale, low), m, m, (k, 0))
        left = left + low - h(low)
    if n != k:
        low = h(after(first(inner, -2, k), -1, k))
        low = padded(low / columns(scale, low), n, n, (k, 0))
        right = right + low - h(low)
    ds = real_part(diagonal(first(first(inner, -2, k), -1, k)))
    return at(u, left), ds, h(at(v, right))


def svdvals_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node]:
    """ds = diag(uᴴ da v)"""
    u, _, vh = (linalg.svd(*node.inputs)[i] for i in range(3))
    return (real_part(diagonal(at(h(u), moving(tangents), h(vh)))),)


def pinv_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node]:
    """dp = -p da p + p pᴴ daᴴ (1 - a p) + (1 - p a) daᴴ pᴴ p, at constant rank"""
    (a,), da, p = node.inputs, moving(tangents), node
    back = h(da)
    left, right = at(p, h(p), back), at(back, h(p), p)
    return (left - at(left, a, p) + right - at(p, at(a, right)) - at(p, da, p),)


# ---- matrix functions


def function_vjp(node: Node, ct: Node) -> tuple[Node]:
    """ā = Df(aᵀ)[ȳ], the upper right block of f of [[aᵀ, ȳ], [0, aᵀ]] (Higham 2008, 3.16)"""
    (a,) = node.inputs
    n = size(a, -1)
    turned = t(a)
    block = (
        padded(turned, 2 * n, 2 * n)
        + padded(turned, 2 * n, 2 * n, (n, n))
        + padded(ct, 2 * n, 2 * n, (0, n))
    )
    return (after(first(Node(node.op, (block,), node.attrs), -2, n), -1, n),)


SOLVING: dict[Op, Vjp] = {
    linalg.solve: solve_vjp,
    linalg.solve_triangular: solve_triangular_vjp,
    linalg.solve_tridiagonal: solve_tridiagonal_vjp,
    linalg.inv: inv_vjp,
    linalg.det: det_vjp,
    linalg.cofactor: cofactor_vjp,
    linalg.expm: function_vjp,
    linalg.logm: function_vjp,
    linalg.sqrtm: function_vjp,
}
JVP: dict[Op, Jvp] = {
    linalg.slogdet: slogdet_jvp,
    linalg.cholesky: cholesky_jvp,
    linalg.qr: qr_jvp,
    linalg.qr_complete: qr_jvp,
    linalg.lu: lu_jvp,
    linalg.eigh: eigh_jvp,
    linalg.eigvalsh: eigvalsh_jvp,
    linalg.eig: eig_jvp,
    linalg.eigvals: eigvals_jvp,
    linalg.svd: svd_jvp,
    linalg.svd_full: svd_full_jvp,
    linalg.svdvals: svdvals_jvp,
    linalg.pinv: pinv_jvp,
}
