"""JVP of factorisations: `(node, tangent of each operand) -> tangent of each result`.

None stands for an operand that does not vary. Every rule is linear in the tangents and made of
plain ops, so the cotangent map is its transpose. Where a factorisation is not unique, the
derivative is that of the choice which turns least.

Formulas: Giles (2008), "Collected matrix derivative results"; Walter & Lehmann (2010) for QR;
Golub & Pereyra (1973) for the pseudo-inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from graphcore.ir import INT, Node, Op, Size, full_like
from graphcore.ir.sizes import minimum, same
from graphcore.ops import autodiff, linalg, tensor
from graphcore.ops import elementwise as e
from graphcore.rewrites.plain import cast, equals, expand, full, nonzero, sum_over, where
from graphcore.rewrites.plain_matrices import (
    after,
    columns,
    diagonal,
    expand_last,
    eye_like,
    first,
    full_size,
    h,
    hermitian,
    index,
    largest,
    matmul,
    on_diagonal,
    pad,
    real_part,
    size,
    t,
    tril,
    where_same,
)

from .solving import LOWER

Jvp: TypeAlias = "Callable[[Node, Sequence[Node | None]], tuple[Node | None, ...]]"
EPS = 16
"""Values that differ by less than this number of units of rounding count as equal."""


def only_tangent(tangents: Sequence[Node | None]) -> Node:
    """The tangent of the only operand."""
    (dx,) = tangents
    assert dx is not None
    return dx


def slogdet_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node | None, ...]:
    """d log|det a| = Re tr(a⁻¹ da), d sign = i sign Im tr(a⁻¹ da)"""
    (a,), da = node.inputs, only_tangent(tangents)
    rank = a.type.ndim
    trace = sum_over(t(linalg.inv(a, check=False)) * da, (rank - 2, rank - 1))
    if a.type.dtype.kind != "c":
        return None, trace
    turn = cast(e.imag(trace), a.type.dtype) * full(1j, a.type.dtype, trace.type.shape)
    return node[0] * turn, e.real(trace)


UNIT_LOWER = LOWER | {"unit": True}


def right_divided(x: Node, r: Node) -> Node:
    """x r⁻¹ for upper triangular r"""
    return t(linalg.solve_triangular(t(r), t(x), **LOWER))


def without_last_pivot(r: Node, m: Size) -> Node:
    """Upper triangular `r`, but 1 for its last pivot if it has `m` rows.

    `m` is the number of rows of the factored matrix. With as many rows in `r`, the last pivot
    divides nothing that counts, and it is 0 where the matrix is singular.
    """
    k = size(r, -1)
    last = e.logical_and(on_diagonal(r), e.equal(index(r, -1), full_size(k - 1, r)))
    return where_same(m, k, where(last, 1, r), r)


def qr_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node, Node]:
    """With c = qᴴ da and x = c₁ r₁⁻¹:  dq = q Ω + (da - q c)₁ r₁⁻¹, dr = c - Ω r

    Ω is the skew part that x has below its diagonal, and the imaginary part on it; ₁ means the
    first k columns. The columns of a complete q are a basis, so that it only turns.
    """
    da = only_tangent(tangents)
    q, r = node[0], node[1]
    m, wide = size(da, -2), size(q, -1)
    k = minimum(m, size(da, -1))
    c = matmul(h(q), da)
    leading = first(first(r, -2, k), -1, k)
    corner = without_last_pivot(leading, m)
    turning = leading if da.type.dtype.kind == "c" else corner
    x = pad(right_divided(first(c, -1, k), turning), wide, wide)
    low = tril(x, -1)
    turn = low - h(low)
    if x.type.dtype.kind == "c":
        on = where(on_diagonal(x), x, 0)
        turn = turn + cast(e.imag(on), x.type.dtype) * full_like(on, 1j)
    dq = matmul(q, turn)
    if same(m, wide) is not True:
        beside = right_divided(first(da - matmul(q, c), -1, k), corner)
        dq = dq + where_same(m, wide, 0, beside)
    return dq, c - matmul(turn, r)


def lu_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[None, Node, Node]:
    """With m = l⁻¹ da[p] and x = m₁ u₁⁻¹:  dl = l tril(x, -1), du = m - tril(x, -1) u

    Of a square matrix the last pivot divides nothing that counts: it may be 0. A tall l is
    completed by columns of the unit matrix.
    """
    da = only_tangent(tangents)
    p, lower, u = (node[i] for i in range(3))
    m, k = size(da, -2), size(lower, -1)
    rank = da.type.ndim
    square = (*da.type.shape[:-1], m)
    chosen = expand(p, (rank - 1,), square)
    order = cast(e.equal(chosen, index(full(0, INT, square), -1)), da.type.dtype)
    if m != k:
        rest = pad(lower, m, m)
        wide = e.greater_equal(index(rest, -1), full_size(k, rest))
        whole = where(on_diagonal(rest), where(wide, 1, rest), rest)
    else:
        whole = lower
    moved = linalg.solve_triangular(whole, matmul(order, da), **UNIT_LOWER)
    corner = without_last_pivot(first(u, -1, k), m)
    low = tril(right_divided(first(moved, -1, k), corner), -1)
    dl = matmul(whole, low)
    du = first(moved, -2, k) - matmul(first(low, -2, k), u)
    return None, dl, du


def close(gap: Node, values: Node) -> Node:
    """Where a gap between two of `values` is no more than rounding."""
    unit = EPS * float(np.finfo(values.type.dtype).eps)
    scale = largest(e.absolute(values))
    return e.less_equal(e.absolute(gap), unit * expand_last(scale, gap.type.shape))


def gaps(values: Node, like: Node, sign: int) -> Node:
    """values[j] - values[i] in (i, j), or their sum."""
    shape = (*values.type.shape, size(values, -1))
    rank = len(shape)
    left = expand(values, (rank - 2,), shape)
    right = expand(values, (rank - 1,), shape)
    return left + right if sign > 0 else left - right


def eigh_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node, Node]:
    """With c = vᴴ da v:  dw = diag(c), dv[j] = Σ v[i] c[i,j] / (w[j] - w[i]) over i ≠ j

    Vectors of one eigenvalue have no derivative: it is inf or nan. A function of the matrix has
    one, see `derivatives/divided_differences.py`.
    """
    w, v = node[0], node[1]
    c = matmul(h(v), hermitian(only_tangent(tangents)), v)
    return real_part(diagonal(c)), matmul(v, eigen_turn(c, w))


def eigen_turn(c: Node, w: Node) -> Node:
    """c[i,j] / (w[j] - w[i]) off the diagonal, on which it is 0; the divisor is 0 between equals"""
    gap = gaps(w, c, -1)
    return autodiff.turn(c, cast(where(close(gap, w), 0, gap), c.type.dtype), back=False)


def turn_vjp(node: Node, ct: Node) -> tuple[Node, Node]:
    """x̄ = ȳ / gap, and that of the gap is -x̄ x / gap"""
    gap = node.inputs[1]
    other = autodiff.turn(ct, gap, back=not node.attrs["back"])
    share, quotient = (node, other) if node.attrs["back"] else (other, node)
    return other, -tensor.multiply_no_nan(share, quotient)


def quotient(node: Node, x: Node, gap: Node) -> Node:
    """A `turn` as plain ops: the inf and nan of the vectors of equal eigenvalues are made here."""
    rank, left_out = x.type.ndim, on_diagonal(x)
    if node.attrs["back"]:
        still = tensor.all_(equals(x, 0), axes=(rank - 2,))
        left_out = e.logical_or(left_out, expand(still, (rank - 2,), x.type.shape))
    return where(left_out, 0, x / where(left_out, 1, gap))


def eigvalsh_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node]:
    """dw = diag(vᴴ da v)"""
    v = linalg.eigh(*node.inputs)[1]
    return (real_part(diagonal(matmul(h(v), hermitian(only_tangent(tangents)), v))),)


def eig_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node, Node]:
    """With c = v⁻¹ da v:  dw = diag(c), and dv as for Hermitian matrices, but of unit vectors

    each turned so that its largest element stays real.
    """
    w, v = node[0], node[1]
    da = cast(only_tangent(tangents), v.type.dtype)
    c = linalg.solve(v, matmul(da, v), check=False)
    dv = matmul(v, eigen_turn(c, w))
    axis = v.type.ndim - 2
    grown = sum_over(e.real(e.conjugate(v) * dv), (axis,))
    n = size(v, -1)
    modulus = pad(e.absolute(v), n + 1, n)  # a matrix may be empty, and nothing has no largest
    top = tensor.argmax(modulus, axis=axis)
    chosen = e.equal(index(v, -2), columns(top, v))
    pivot, moved = (sum_over(where(chosen, x, 0), (axis,)) for x in (v, dv))
    phase = e.imag(moved) / nonzero(e.real(pivot))
    change = cast(grown, w.type.dtype) + cast(phase, w.type.dtype) * full_like(w, 1j)
    return diagonal(c), dv - v * columns(change, v)


def eigvals_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node]:
    """dw = diag(v⁻¹ da v)"""
    v = linalg.eig(*node.inputs)[1]
    da = cast(only_tangent(tangents), v.type.dtype)
    return (diagonal(linalg.solve(v, matmul(da, v), check=False)),)


def varying_factors(a: Node, factors: Node) -> Node:
    """The factors of `a`, whose further derivatives are inf or nan between equal values.

    The first derivative takes the rotation of the vectors of equal values to be 0. That is right
    for functions that do not depend on the choice of vectors, but says nothing about further
    derivatives.
    """
    return autodiff.svd_of(a, *[autodiff.stop_gradient(factors[i]) for i in range(3)])


def inverse_gaps(s: Node, like: Node) -> Node:
    """1 / (s[j] - s[i]) in (i, j), and 0 between equal values."""
    gap = gaps(s, like, -1)
    equal_ = close(gap, s)
    return where(equal_, 0, 1 / where(equal_, 1, gap))


def unbounded_gaps(s: Node, like: Node) -> Node:
    """The same, infinite between two equal values."""
    gap, diagonal_ = gaps(s, like, -1), on_diagonal(like)
    return where(diagonal_, 0, 1 / where(diagonal_, 1, where(close(gap, s), 0, gap)))


Between: TypeAlias = Callable[[Node, Node], Node]


def svd_turns(s: Node, inner: Node, between: Between) -> tuple[Node, Node]:
    """How u and v turn within themselves: skew matrices, for `inner` = uᴴ da v.

    Their sum is that of the Hermitian part over s[j] - s[i], for which `between` stands, and their
    difference that of the skew part over s[j] + s[i]: so u vᴴ, the polar factor, is exact at equal
    singular values.
    """
    total = gaps(s, inner, 1)
    even, odd = inner + h(inner), inner - h(inner)
    both = even * cast(between(s, inner), inner.type.dtype)
    if inner.type.dtype.kind == "c":
        other = odd / cast(total, inner.type.dtype)
    else:
        diagonal_ = on_diagonal(inner)
        other = where(diagonal_, 0, odd / where(diagonal_, 1, total))
    return 0.5 * (both + other), 0.5 * (both - other)


def polar_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node]:
    """With p = uᴴ a and c = uᴴ da:  du = u Ω + (da - u c) p⁻¹, p Ω + Ω p = c - cᴴ"""
    (a,), u, da = node.inputs, node, only_tangent(tangents)
    p, c = matmul(h(u), a), matmul(h(u), da)
    du = matmul(u, linalg.lyapunov(p, c - h(c)))
    m, n = size(a, -2), size(a, -1)
    if same(m, n) is not True:
        regular = where_same(m, n, eye_like(p), p)
        beside = t(linalg.solve(t(regular), t(da - matmul(u, c)), check=False))
        du = du + where_same(m, n, 0, beside)
    return (du,)


def svd_moved(factors: Node, da: Node, between: Between) -> tuple[Node, Node, Node]:
    """With p = uᴴ da v:  ds = diag(p), du = u Ω + (1 - u uᴴ) da v s⁻¹, dv likewise with daᴴ"""
    u, s, vh = (factors[i] for i in range(3))
    v = h(vh)
    inner = matmul(h(u), da, v)
    left, right = svd_turns(s, inner, between)
    du, dv = matmul(u, left), matmul(v, right)
    k = size(s, -1)
    if same(size(da, -2), k) is not True:
        du = du + moved_beside(u, s, matmul(da, v))
    if same(size(da, -1), k) is not True:
        dv = dv + moved_beside(v, s, matmul(h(da), u))
    return du, real_part(diagonal(inner)), h(dv)


def moved_beside(u: Node, s: Node, moved: Node) -> Node:
    """(1 - u uᴴ) moved s⁻¹, and 0 if the columns of `u` are a whole basis, whatever `s` is."""
    m, k = size(u, -2), size(u, -1)
    scale = columns(cast(where_same(m, k, 1, s), moved.type.dtype), moved)
    return where_same(m, k, 0, (moved - matmul(u, matmul(h(u), moved))) / scale)


def svd_full_moved(factors: Node, da: Node, between: Between) -> tuple[Node, Node, Node]:
    """The same, where u and v turn towards the vectors that belong to no singular value."""
    u, s, vh = (factors[i] for i in range(3))
    v, k = h(vh), size(s, -1)
    m, n = size(da, -2), size(da, -1)
    inner = matmul(h(u), da, v)
    core = first(first(inner, -2, k), -1, k)
    left, right = svd_turns(s, core, between)
    scale = cast(s, da.type.dtype)
    left, right = pad(left, m, m), pad(right, n, n)
    if m != k:
        low = after(first(inner, -1, k), -2, k)
        low = pad(low / columns(scale, low), m, m, (k, 0))
        left = left + low - h(low)
    if n != k:
        low = h(after(first(inner, -2, k), -1, k))
        low = pad(low / columns(scale, low), n, n, (k, 0))
        right = right + low - h(low)
    return matmul(u, left), real_part(diagonal(core)), h(matmul(v, right))


def svd_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node, Node, Node]:
    """As above, the vectors of equal values not turning among themselves"""
    return svd_moved(varying_factors(node.inputs[0], node), only_tangent(tangents), inverse_gaps)


def svd_full_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node, Node, Node]:
    """As above, the vectors of equal values not turning among themselves"""
    return svd_full_moved(
        varying_factors(node.inputs[0], node), only_tangent(tangents), inverse_gaps
    )


def svd_of_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node | None, ...]:
    """As above, inf or nan between equal values"""
    da, *_ = tangents
    assert da is not None
    full_ = (size(node[0], -1), size(node[2], -2)) == da.type.shape[-2:]
    return (svd_full_moved if full_ else svd_moved)(node, da, unbounded_gaps)


def svdvals_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node]:
    """ds = diag(uᴴ da v)"""
    (a,) = node.inputs
    u, _, vh = (varying_factors(a, linalg.svd(a))[i] for i in range(3))
    return (real_part(diagonal(matmul(h(u), only_tangent(tangents), h(vh)))),)


def pinv_jvp(node: Node, tangents: Sequence[Node | None]) -> tuple[Node]:
    """dp = -p da p + p pᴴ daᴴ (1 - a p) + (1 - p a) daᴴ pᴴ p, at constant rank"""
    (a,), da, p = node.inputs, only_tangent(tangents), node
    back = h(da)
    left, right = matmul(p, h(p), back), matmul(back, h(p), p)
    return (left - matmul(left, a, p) + right - matmul(p, matmul(a, right)) - matmul(p, da, p),)


JVP: dict[Op, Jvp] = {
    linalg.slogdet: slogdet_jvp,
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
    autodiff.svd_of: svd_of_jvp,
    linalg.pinv: pinv_jvp,
    linalg.polar: polar_jvp,
}
TURNING = {autodiff.turn: turn_vjp}
