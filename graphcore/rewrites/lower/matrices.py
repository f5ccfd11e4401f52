"""Lowering of ops on matrices: batch first, then the dims of the matrices."""

from __future__ import annotations

from graphcore.ir import Node, Size, TensorType
from graphcore.ir.sizes import count
from graphcore.ops import linalg
from graphcore.ops.named import matrices
from graphcore.rewrites.plain import reshape, transpose

from .table import align, lower

Sizes = dict[str, Size]
SOLVES = (matrices.solve, matrices.solve_triangular, matrices.solve_tridiagonal)


@lower(*(op for op in matrices.PLAIN if op not in SOLVES))
def lower_matrices(node: Node, *xs: Node) -> Node:
    return plain(node, [laid_out(x, *of) for x, of in zip(xs, operands(node), strict=True)])


def plain(node: Node, xs: list[Node]) -> Node:
    """The plain op on matrices laid out."""
    attrs = {name: value for name, value in node.attrs.items() if name not in ("dims", "new")}
    return matrices.PLAIN[node.op](*xs, **attrs)


def operands(node: Node) -> list[tuple[TensorType, tuple[str, ...], Sizes]]:
    """Of each operand its type, the dims of its matrices, and the batch of all."""
    letters = linalg.SIGNATURES[matrices.PLAIN[node.op]].operands
    parts = matrices.letter_names(node.attrs["dims"], letters)
    types = [x.type for x in node.inputs]
    batch: Sizes = {}
    for type, own in zip(types, parts, strict=True):
        batch |= {dim: size for dim, size in type.sizes.items() if dim not in own}
    return [(type, own, batch) for type, own in zip(types, parts, strict=True)]


def laid_out(x: Node, type: TensorType, own: tuple[str, ...], batch: Sizes) -> Node:
    """`x` as (*batch, *dims of its own)."""
    sizes = batch | type.sizes
    dims = (*batch, *own)
    target = TensorType(type.dtype, tuple(sizes[dim] for dim in dims), dims)
    return align(x, type.dims or (), target).label(dims)


@lower(*SOLVES)
def lower_solve(node: Node, *xs: Node) -> Node:
    """Right-hand sides that share a matrix are columns of one: it is factored once."""
    *matrix, right = operands(node)
    type, own, _ = right
    batch: Sizes = {}
    for given, core, _ in matrix:
        batch |= {dim: size for dim, size in given.sizes.items() if dim not in core}
    columns = {dim: size for dim, size in type.sizes.items() if dim not in (*batch, *own)}
    b = laid_out(xs[-1], type, (*own, *columns), batch)
    wide = (*batch.values(), type.size(own[0]), count(columns.values()))
    a = [laid_out(x, given, core, batch) for x, (given, core, _) in zip(xs, matrix, strict=False)]
    found = plain(node, [*a, reshape(b, wide)]).label((*batch, *node.attrs["new"], None))
    found = reshape(found, (*batch.values(), type.size(own[0]), *columns.values()))
    have = (*batch, *node.attrs["new"], *columns)
    return transpose(found, [have.index(dim) for dim in node.type.dims])
