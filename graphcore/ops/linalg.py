"""Ops on matrices: the last axes of their operands, every axis before them is batch.

An op is declared by the shapes of its operands and results: `"m n -> m k, k, k n"`. Equal letters
are equal sizes, `k` is the smaller of m and n. All operands have one dtype and the same batch.
Its attrs are declared by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from graphcore.ir import INT, DType, Op, Size, TensorType, Trait, TupleType, Type
from graphcore.ir.axes import Matrices
from graphcore.ir.dtypes import DtypeRule, complex_for, real_of
from graphcore.ir.errors import GraphTypeError, require
from graphcore.ir.op import declare
from graphcore.ir.sizes import minimum

from .tensor import differ


class Signature(NamedTuple):
    """The letters of each operand and of each result, the dtypes of the results, and the attrs."""

    operands: tuple[tuple[str, ...], ...]
    results: tuple[tuple[str, ...], ...]
    kinds: tuple[DtypeRule, ...]
    attrs: tuple[str, ...]

    def require_declared(self, given: Iterable[str]) -> None:
        """Refuse attrs that are not declared."""
        for name in given:
            cure = f"its attributes are {', '.join(self.attrs)}" if self.attrs else "leave it out"
            require(
                name in self.attrs, f"there is no attribute {name!r}", cure, kind=GraphTypeError
            )

    def types(self, dtype: DType, batch: tuple[Size, ...], sizes: dict[str, Size]) -> Type:
        """The type of the results, for sizes by letter."""
        if {"m", "n"} <= sizes.keys():
            sizes = sizes | {"k": minimum(sizes["m"], sizes["n"])}
        items = tuple(
            TensorType(kind(dtype), (*batch, *(sizes[letter] for letter in letters)))
            for letters, kind in zip(self.results, self.kinds, strict=True)
        )
        return items[0] if len(items) == 1 else TupleType(items)


SIGNATURES: dict[Op, Signature] = {}


def matrices(
    name: str,
    letters: str,
    axes: str,
    doc: str,
    kinds: tuple[DtypeRule, ...] = (),
    *,
    attrs: str = "",
    may_raise: bool = False,
    said: str = "",
) -> Op:
    """Declare an op; without `kinds` its results have the dtype of its operands.

    Each axis has a letter of its own in `axes`, where those of `letters` say which have equal
    sizes; `k` are columns, each computed by itself.
    """
    operands, results = (
        tuple(tuple(part.split()) for part in side.split(",")) for side in letters.split("->")
    )
    signature = Signature(operands, results, kinds or (same,) * len(results), tuple(attrs.split()))

    def rule(*xs: TensorType, **given: Any) -> Type:
        signature.require_declared(given)
        batch = xs[0].shape[: xs[0].ndim - len(operands[0])]
        sizes: dict[str, Size] = {}
        for x, own in zip(xs, operands, strict=True):
            first = x.ndim - len(own)
            require(x.dtype in (xs[0].dtype, INT), f"dtype of {x}", "", GraphTypeError)
            require(x.dims is None and first == len(batch), f"rank of {x}")
            require(not any(map(differ, x.shape[:first], batch)), f"batch of {x}")
            for letter, size in zip(own, x.shape[first:], strict=True):
                require(not differ(sizes.setdefault(letter, size), size), f"sizes of {x}")
        return signature.types(xs[0].dtype, batch, sizes)

    kind, traits = Matrices(axes, batch="k"), [Trait.MAY_RAISE] if may_raise else []
    op = declare(Op(name, "linalg", rule, doc, axes=kind, traits=traits, said=said))
    SIGNATURES[op] = signature
    return op


def same(dtype: DType) -> DType:
    """The dtype of the operands."""
    return dtype


def positions(dtype: DType) -> DType:
    """Integers, whatever the operands."""
    return INT


cholesky = matrices(
    "cholesky",
    "n n -> n n",
    "r c -> r c",
    "lower triangle l with a = l l^H; only the lower one of a is read",
    attrs="check",
    may_raise=True,
)
cholesky_cotangent = matrices(
    "cholesky_cotangent",
    "n n, n n -> n n",
    "r c, r c -> r c",
    "lower triangle of the cotangent of a, for l = cholesky(a) and the cotangent of l; only lower "
    "triangles are read",
)
inv = matrices("inv", "n n -> n n", "r c -> c r", "inverse", attrs="check", may_raise=True)
solve = matrices(
    "solve",
    "n n, n c -> n c",
    "r c, r k -> c k",
    "x with a x = b",
    attrs="check",
    may_raise=True,
)
solve_triangular = matrices(
    "solve_triangular",
    "n n, n c -> n c",
    "r c, r k -> c k",
    "x with t x = b, where t is the `lower` triangle of a or the upper one; with `unit` its "
    "diagonal counts as ones",
    attrs="lower unit check",
    may_raise=True,
)
solve_tridiagonal = matrices(
    "solve_tridiagonal",
    "n, n, n, n c -> n c",
    "n, n, n, n k -> n k",
    "x with lower[i] x[i-1] + diagonal[i] x[i] + upper[i] x[i+1] = b[i]",
    may_raise=True,
)
det = matrices("det", "n n -> ", "r c -> ", "determinant")
cofactor = matrices(
    "cofactor", "n n -> n n", "r c -> r c", "derivative of the determinant by each element"
)
slogdet = matrices(
    "slogdet",
    "n n -> , ",
    "r c -> , ",
    "sign of the determinant, and log of its size",
    (same, real_of),
)
qr = matrices(
    "qr",
    "m n -> m k, k n",
    "r c -> r new, new c",
    "a = q r, q with orthonormal columns, r upper triangular",
)
qr_complete = matrices(
    "qr_complete", "m n -> m m, m n", "r c -> r new, new c", "a = q r with q square", said="qr"
)
lu = matrices(
    "lu",
    "m n -> m, m k, k n",
    "r c -> old, old new, new c",
    "the order of the rows of a in which they are l u, unit lower l, and upper u",
    (positions, same, same),
)
svd = matrices(
    "svd",
    "m n -> m k, k, k n",
    "r c -> r new, new, new c",
    "a = u diag(s) v^H with orthonormal columns of u and v, and s falling",
    (same, real_of, same),
)
svd_full = matrices(
    "svd_full",
    "m n -> m m, k, n n",
    "r c -> r new, new, new c",
    "the same with u and v square",
    (same, real_of, same),
    said="svd",
)
svdvals = matrices("svdvals", "m n -> k", "r c -> new", "singular values, falling", (real_of,))
eigh = matrices(
    "eigh",
    "n n -> n, n n",
    "r c -> new, r new",
    "eigenvalues, rising, and eigenvectors in columns of the Hermitian a whose lower triangle is "
    "given",
    (real_of, same),
)
eigvalsh = matrices(
    "eigvalsh", "n n -> n", "r c -> new", "eigenvalues of a Hermitian matrix, rising", (real_of,)
)
eig = matrices(
    "eig",
    "n n -> n, n n",
    "r c -> new, r new",
    "eigenvalues and eigenvectors in columns",
    (complex_for, complex_for),
)
eigvals = matrices("eigvals", "n n -> n", "r c -> new", "eigenvalues", (complex_for,))
pinv = matrices(
    "pinv",
    "m n -> n m",
    "r c -> c r",
    "pseudo-inverse; singular values up to `rtol` s[0] count as 0",
    attrs="rtol",
)
polar = matrices(
    "polar",
    "m n -> m n",
    "r c -> r c",
    "the matrix with orthonormal columns nearest to a; m is at least n",
)
lyapunov = matrices(
    "lyapunov",
    "n n, n n -> n n",
    "a b, r c -> r c",
    "x with h x + x h = c, for Hermitian positive definite h",
)
expm = matrices("expm", "n n -> n n", "r c -> r c", "e ** a, the matrix exponential")
logm = matrices(
    "logm", "n n -> n n", "r c -> r c", "principal logarithm of a matrix; nan where it is not real"
)
sqrtm = matrices(
    "sqrtm",
    "n n -> n n",
    "r c -> r c",
    "principal square root of a matrix; nan where it is not real",
)

# Factors that ops on one matrix share, or the steps of a loop: `rewrites/shared_factors.py`.
lu_factor = matrices(
    "lu_factor",
    "n n -> n n, n",
    "r c -> r c, c",
    "the transpose of the LU factors of the transpose in one matrix, and column exchanges",
    (same, positions),
)
lu_solve = matrices(
    "lu_solve",
    "n n, n, n c -> n c",
    "r c, i, r k -> c k",
    "x with a x = b for factored a; a^T x = b if `transposed`",
    attrs="transposed check",
    may_raise=True,
)
lu_det = matrices("lu_det", "n n, n -> ", "r c, i -> ", "determinant of a factored matrix")
lu_slogdet = matrices(
    "lu_slogdet", "n n, n -> , ", "r c, i -> , ", "slogdet of a factored matrix", (same, real_of)
)
FACTORED = frozenset({lu_factor, lu_solve, lu_det, lu_slogdet})
