"""Ops on matrices whose dims are given by name; all other dims are batch and come first.

Each is the named form of an op of `graphcore.ops.linalg`, with its attrs and two more: `dims`,
those of the matrices and vectors of all operands one after the other, and `new`, of all results.
Right-hand sides are vectors: where a plain op has columns, a named one has batch.
"""

from __future__ import annotations

from typing import Any

from graphcore.ir import Op, Size, TensorType, TupleType, Type
from graphcore.ir.axes import NamedMatrices
from graphcore.ir.errors import GraphTypeError, require
from graphcore.ir.node import need
from graphcore.ir.op import declare
from graphcore.ir.sizes import same
from graphcore.ops import linalg

from .dims import Dims, drop, union

COLUMNS = "c"


def letter_names(names: Dims, letters: tuple[tuple[str, ...], ...]) -> list[Dims]:
    """The names for the letters of each operand, or result."""
    left = iter(names)
    parts = [tuple(next(left) for letter in own if letter != COLUMNS) for own in letters]
    assert next(left, None) is None, "as many names as letters"
    return parts


def by_name(plain: Op) -> Op:
    """Declare the named form of an op."""
    signature = linalg.SIGNATURES[plain]

    def rule(*xs: TensorType, dims: Dims, new: Dims, **attrs: Any) -> Type:
        signature.require_declared(attrs)
        known: dict[str, tuple[str, Size]] = {}
        rest = []
        for x, own, letters in zip(xs, letter_names(dims, signature.operands), signature.operands):
            rest.append(drop(x.dtype, x, own))
            require(x.dtype == xs[0].dtype and x.dtype.kind in "fc", f"takes floats, not {x}",
                    "cast it with astype", GraphTypeError)  # fmt: skip
            for dim, letter in zip(own, letters, strict=False):
                agree(x, dim, *known.setdefault(letter, (dim, x.size(dim))))
        batch = union(*rest)
        sizes = {letter: size for letter, (_, size) in known.items()}
        made = signature.types(xs[0].dtype, (), sizes | {COLUMNS: 1})
        items = made.items if isinstance(made, TupleType) else (made,)
        named = []
        for item, own in zip(items, letter_names(new, signature.results), strict=True):
            for dim in own:
                clash = f"the result already has a dim {dim!r} among its other dims"
                require(dim not in batch, clash, "rename one of them")
            require(len(set(own)) == len(own), f"dims {own} of a result name a dim twice",
                    "choose another name for the new dim")  # fmt: skip
            shape = (*batch.values(), *item.shape[: len(own)])
            named.append(TensorType(item.dtype, shape, (*batch, *own)))
        return named[0] if len(named) == 1 else TupleType(tuple(named))

    said, traits = plain.said, plain.traits
    kind = NamedMatrices()
    op = declare(Op(plain.name, "named", rule, plain.doc, axes=kind, traits=traits, said=said))
    PLAIN[op] = plain
    return op


def agree(x: TensorType, dim: str, first: str, size: Size) -> None:
    """Refuse a dim of `x` that has not the size of the dim `first`, or have the call refuse it."""
    decided = same(x.size(dim), size)
    reason = f"dims {first!r} and {dim!r} have sizes {size} and {x.size(dim)}"
    require(decided is not False, reason, "it takes a square matrix, and vectors of its size")
    if decided is None:
        need(dim, x.size(dim), "==", size)


PLAIN: dict[Op, Op] = {}
"""The plain op that each named one becomes."""

cholesky, inv, det, slogdet = map(
    by_name, (linalg.cholesky, linalg.inv, linalg.det, linalg.slogdet)
)
solve, solve_triangular, solve_tridiagonal = map(
    by_name, (linalg.solve, linalg.solve_triangular, linalg.solve_tridiagonal)
)
qr, qr_complete, lu = map(by_name, (linalg.qr, linalg.qr_complete, linalg.lu))
svd, svd_full, svdvals = map(by_name, (linalg.svd, linalg.svd_full, linalg.svdvals))
eigh, eigvalsh, eig, eigvals = map(
    by_name, (linalg.eigh, linalg.eigvalsh, linalg.eig, linalg.eigvals)
)
pinv, polar = map(by_name, (linalg.pinv, linalg.polar))
expm, logm, sqrtm = map(by_name, (linalg.expm, linalg.logm, linalg.sqrtm))
