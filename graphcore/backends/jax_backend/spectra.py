"""How JAX finds orthonormal factors, singular values, eigenvalues, and functions of matrices.

Iterations may not end for numbers that are not finite. They get zeros in place of such a matrix,
and all its results are nan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphcore.backends.numpy_backend import linalg as routines
from graphcore.ir import Node
from graphcore.ops import linalg

from .entries import Emission, Value
from .host import HOST, on_host
from .matrices import adjoint, all_finite, nan_where, of_matrices, product, solved


def iterated(function: Callable[[Value], Any], a: Value) -> tuple[Value, ...]:
    """The results of a function of finite matrices; nan for others."""
    finite = all_finite(a)
    found = function(jnp.where(finite[..., None, None], a, 0))
    batch = a.ndim - 2
    return tuple([nan_where(~finite, y, y.ndim - batch) for y in found])


@of_matrices(linalg.qr, linalg.qr_complete)
def qr(cx: Emission, node: Node, a: Value) -> tuple[Value, ...]:
    """By reflections, whose signs are LAPACK's."""
    return tuple(lax.linalg.qr(a, full_matrices=node.op is linalg.qr_complete))


def singular_vectors(a: Value, full: bool = False) -> tuple[Value, ...]:
    """u, s and v^H."""
    return iterated(lambda a: lax.linalg.svd(a, full_matrices=full), a)


@of_matrices(linalg.svd, linalg.svd_full)
def svd(cx: Emission, node: Node, a: Value) -> tuple[Value, ...]:
    """u, s and v^H."""
    return singular_vectors(a, node.op is linalg.svd_full)


@of_matrices(linalg.svdvals)
def svdvals(cx: Emission, node: Node, a: Value) -> Value:
    """Singular values alone."""
    return iterated(lambda a: [lax.linalg.svd(a, compute_uv=False)], a)[0]


def eigenvectors(a: Value) -> tuple[Value, Value]:
    """Eigenvalues and eigenvectors of the Hermitian matrix whose lower triangle is given."""
    whole = jnp.tril(a) + adjoint(jnp.tril(a, -1))
    w, v = iterated(lambda a: lax.linalg.eigh(a, symmetrize_input=False)[::-1], whole)
    return w, v


@of_matrices(linalg.eigh)
def eigh(cx: Emission, node: Node, a: Value) -> tuple[Value, Value]:
    """Eigenvalues rise."""
    return eigenvectors(a)


@of_matrices(linalg.eigvalsh)
def eigvalsh(cx: Emission, node: Node, a: Value) -> Value:
    """JAX computes the vectors as well."""
    return eigenvectors(a)[0]


def general(a: Value, vectors: bool) -> tuple[Value, ...]:
    """Eigenvalues, and eigenvectors if they are asked for."""
    return iterated(
        lambda a: lax.linalg.eig(
            a, compute_left_eigenvectors=False, compute_right_eigenvectors=vectors
        ),
        a,
    )


@of_matrices(linalg.eig)
def eig(cx: Emission, node: Node, a: Value) -> tuple[Value, ...]:
    """Eigenvalues and eigenvectors."""
    return general(a, True)


@of_matrices(linalg.eigvals)
def eigvals(cx: Emission, node: Node, a: Value) -> Value:
    """Eigenvalues alone."""
    return general(a, False)[0]


@of_matrices(linalg.pinv)
def pinv(cx: Emission, node: Node, a: Value) -> Value:
    """By default singular values within rounding of zero count as zero."""
    rtol = node.attrs["rtol"]
    if rtol is None:
        rtol = max(a.shape[-2:]) * float(np.finfo(a.dtype).eps)
    u, s, vh = singular_vectors(a)
    large = s > rtol * s[..., :1]
    inverse = jnp.where(large, 1 / jnp.where(large, s, 1), 0).astype(a.dtype)
    return product(adjoint(vh), inverse[..., None] * adjoint(u))


@of_matrices(linalg.polar)
def polar(cx: Emission, node: Node, a: Value) -> Value:
    """u v^H."""
    u, _, vh = singular_vectors(a)
    return product(u, vh)


@of_matrices(linalg.cofactor)
def cofactor(cx: Emission, node: Node, a: Value) -> Value:
    """det(u) det(v^H) conj(u) diag(products of all singular values but one) conj(v^H)"""
    u, s, vh = singular_vectors(a)
    ones = jnp.ones_like(s[..., :1])
    before = jnp.cumprod(jnp.concatenate([ones, s], -1), -1)[..., :-1]
    after = jnp.cumprod(jnp.concatenate([ones, s[..., ::-1]], -1), -1)[..., -2::-1]
    others = (before * after)[..., None, :].astype(a.dtype)
    volume = jnp.linalg.det(u) * jnp.linalg.det(vh)
    return volume[..., None, None] * product(u * others, vh).conj()


@of_matrices(linalg.lyapunov)
def lyapunov(cx: Emission, node: Node, h: Value, c: Value) -> Value:
    """In the basis of eigenvectors c is divided by the sums of two eigenvalues."""
    w, v = eigenvectors(h)
    inner = product(adjoint(v), c, v) / (w[..., :, None] + w[..., None, :])
    return product(v, inner, adjoint(v))


COEFFICIENTS = (
    *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0),
    *(129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0),
    *(40840800.0, 960960.0, 16380.0, 182.0, 1.0),
)
PADE = tuple([c / COEFFICIENTS[0] for c in COEFFICIENTS])
"""The approximant of degree 13, which is 1 for 0."""
REACH = 5.371920351148152
"""Up to this norm the approximant has all digits of doubles (Higham 2005)."""


@of_matrices(linalg.expm)
def expm(cx: Emission, node: Node, a: Value) -> Value:
    """Scaled by a power of 2 for the approximant, which is squared as often."""
    size = jnp.abs(a).sum(-2).max(-1)
    times = jnp.ceil(jnp.log2(jnp.maximum(size / REACH, 1)))
    times = jnp.where(jnp.isfinite(times), times, 0)
    a = a * jnp.exp2(-times)[..., None, None].astype(a.dtype)
    unit = jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
    a2 = product(a, a)
    powers = [unit, a2, a4 := product(a2, a2), a6 := product(a4, a2)]

    def even(b: tuple[float, ...]) -> Value:
        low = sum(c * x for c, x in zip(b[:4], powers, strict=True))
        high = sum(c * x for c, x in zip(b[4:], powers[1:], strict=True))
        return low + product(a6, high)

    odd = product(a, even(PADE[1::2]))
    rest = even(PADE[::2])
    found = solved(lax.linalg.lu(rest - odd), rest + odd)

    def squared(k: Value, x: Value) -> Value:
        return jnp.where((k < times)[..., None, None], product(x, x), x)

    return lax.fori_loop(0, times.max().astype(jnp.int32), squared, found)


HOST.update((linalg.logm, linalg.sqrtm))


@of_matrices(linalg.logm)
def logm(cx: Emission, node: Node, a: Value) -> Value:
    """SciPy's: JAX has none."""
    return on_host(cx, node, routines.logm, a)


@of_matrices(linalg.sqrtm)
def sqrtm(cx: Emission, node: Node, a: Value) -> Value:
    """SciPy's: that of JAX needs a CPU, and gives complex numbers."""
    return on_host(cx, node, routines.sqrtm, a)
