"""VJP of Cholesky factors, solves, determinants and matrix functions.

Transposes are without conjugation, as in all VJP.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from graphcore.ir import INT, Node, Op
from graphcore.ir.dtypes import complex_for
from graphcore.ops import autodiff, leaf, linalg
from graphcore.ops.elementwise import exp, greater, real
from graphcore.rewrites.plain import cast, equals, expand, number, shift, sum_over, where
from graphcore.rewrites.plain_matrices import (
    after,
    conj,
    diagonal,
    earlier,
    expand_last,
    first,
    h,
    half_triangle,
    hermitian,
    largest,
    matmul,
    pad,
    size,
    t,
    tril,
)

Vjp: TypeAlias = Callable[[Node, Node], "tuple[Node | None, ...]"]


def outer(x: Node, y: Node) -> Node:
    """-x y^T, the cotangent of the matrix of a solve"""
    return -matmul(x, t(y))


def cholesky_vjp(node: Node, ct: Node) -> tuple[Node]:
    """a = l lᴴ; as an op, since blocks of l and l̄ take a sixth of the time of whole matrices"""
    return (conj(linalg.cholesky_cotangent(node, conj(ct))),)


def cholesky_cotangent_vjp(node: Node, ct: Node) -> tuple[Node, Node]:
    """The result is Φ(2 x) for 2 x = l⁻ᴴ (p + pᴴ) l⁻¹ and p = Φ(lᴴ g).

    Φ is the lower triangle with half its diagonal (Murray 2016). With w = ȳ + ȳᴴ, the diagonal
    once, and n = Φ(l⁻¹ w l⁻ᴴ):  ḡ = l n, which is the tangent of l for that of a, and
    l̄ = g nᴴ - 2 x w l⁻ᴴ.
    """
    lower, g = map(tril, node.inputs)
    half = linalg.solve_triangular(lower, hermitian(conj(ct)), **LOWER)
    inner = h(linalg.solve_triangular(lower, h(half), **LOWER))
    n = inner * half_triangle(inner)
    share = matmul(g, h(n)) - matmul(node + h(node), h(half))
    return conj(tril(share)), conj(matmul(lower, n))


LOWER = {"lower": True, "unit": False, "check": False}


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
    k = -int(attrs["unit"])
    read = tril(full_share, k) if attrs["lower"] else t(tril(t(full_share), k))
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


def lyapunov_vjp(node: Node, ct: Node) -> tuple[Node, Node]:
    """h x + x h = c:  c̄ solves the same with hᵀ and x̄, h̄ = -(c̄ xᵀ + xᵀ c̄)"""
    matrix, _ = node.inputs
    back = linalg.lyapunov(t(matrix), ct)
    return -(matmul(back, t(node)) + matmul(t(node), back)), back


def inv_vjp(node: Node, ct: Node) -> tuple[Node]:
    """ā = -a⁻ᵀ ȳ a⁻ᵀ"""
    back = t(node)
    return (-matmul(back, ct, back),)


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
    product = matmul(inverse, c)
    trace = expand_last(sum_over(diagonal(product), (circle + 1,)), shape)
    share = sum_over(volume * (trace * t(inverse) - t(matmul(product, inverse))), (circle,))
    mean = share / number(points, dtype, share.type.shape)
    return (mean if a.type.dtype.kind == "c" else real(mean),)


def ring(a: Node) -> tuple[Node, Node]:
    """A radius near the singular values that are not negligible, and the polar factor of `a`."""
    fixed = autodiff.stop_gradient(a)
    u, s, vh = (linalg.svd(fixed)[i] for i in range(3))
    top = expand(largest(s), (s.type.ndim - 1,), s.type.shape)
    least = -largest(where(greater(s, 1e-3 * top), -s, -math.inf), -math.inf)
    return where(equals(least, math.inf), 1, 0.5 * least), matmul(u, vh)


def function_vjp(node: Node, ct: Node) -> tuple[Node]:
    """ā = Df(aᵀ)[ȳ], the upper right block of f of [[aᵀ, ȳ], [0, aᵀ]] (Higham 2008, 3.16)"""
    (a,) = node.inputs
    n = size(a, -1)
    transposed = t(a)
    block = (
        pad(transposed, 2 * n, 2 * n)
        + pad(transposed, 2 * n, 2 * n, (n, n))
        + pad(ct, 2 * n, 2 * n, (0, n))
    )
    return (after(first(Node(node.op, (block,), node.attrs), -2, n), -1, n),)


SOLVING: dict[Op, Vjp] = {
    linalg.cholesky: cholesky_vjp,
    linalg.cholesky_cotangent: cholesky_cotangent_vjp,
    linalg.solve: solve_vjp,
    linalg.solve_triangular: solve_triangular_vjp,
    linalg.solve_tridiagonal: solve_tridiagonal_vjp,
    linalg.lyapunov: lyapunov_vjp,
    linalg.inv: inv_vjp,
    linalg.det: det_vjp,
    linalg.cofactor: cofactor_vjp,
    linalg.expm: function_vjp,
    linalg.logm: function_vjp,
    linalg.sqrtm: function_vjp,
}
