"""Derivatives as lazy nodes: wanted, but not yet expanded into the ops that compute them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from graphcore.ir import Graph, Node, TensorType, TupleType
from graphcore.ir.axes import Derives, Opaque, Same
from graphcore.ir.dtypes import promote
from graphcore.ir.errors import require
from graphcore.ir.node import agree_in_type
from graphcore.ir.op import op

from .leaf import values

CURE = "give it the same dims and sizes"


@op(axes=Derives("ys"))
def pullback(*operands: TensorType, ys: int, wrt: int) -> TupleType:
    """(*y, *wrt, *cotangent of y) -> the cotangent of each wrt. Nothing is differentiated yet."""
    require(len(operands) == 2 * ys + wrt, f"takes {2 * ys + wrt} operands")
    for y, ct in zip(operands[:ys], operands[ys + wrt :], strict=True):
        agree_in_type(y, ct, f"the cotangent of {y} cannot be {ct}", CURE)
    return TupleType(operands[ys : ys + wrt])


@op(axes=Derives())
def pushforward(*operands: TensorType, ys: int, wrt: int) -> TupleType:
    """(*y, *wrt, *tangent of wrt) -> the tangent of each y. Nothing is differentiated yet."""
    require(len(operands) == ys + 2 * wrt, f"takes {ys + 2 * wrt} operands")
    for x, tangent in zip(operands[ys : ys + wrt], operands[ys + wrt :], strict=True):
        agree_in_type(x, tangent, f"the tangent of {x} cannot be {tangent}", CURE)
    return TupleType(operands[:ys])


def pull(ys: Sequence[Node], wrt: Sequence[Node], cts: Iterable[Node]) -> list[Node]:
    """The cotangents of `wrt`, given those of `ys`."""
    return values(pullback(*ys, *wrt, *cts, ys=len(ys), wrt=len(wrt)))


def push(ys: Sequence[Node], wrt: Sequence[Node], tangents: Iterable[Node]) -> list[Node]:
    """The tangents of `ys`, given those of `wrt`."""
    return values(pushforward(*ys, *wrt, *tangents, ys=len(ys), wrt=len(wrt)))


LAZY = frozenset({pullback, pushforward})
"""Derivatives that are still to be expanded."""

Item = TypeVar("Item")


def group(
    lazy: Node, items: Sequence[Item]
) -> tuple[Sequence[Item], Sequence[Item], Sequence[Item]]:
    """Items for the operands of a lazy derivative: for `ys`, for `wrt`, and for cts or tangents."""
    first, last = lazy.attrs["ys"], lazy.attrs["ys"] + lazy.attrs["wrt"]
    return items[:first], items[first:last], items[last:]


@op(axes=Same())
def barrier(x: TensorType, *, mark: int = 0) -> TensorType:
    """`x`, but no rule looks through it: it marks a node that a derivative is with respect to.

    Another `mark` makes another node, where several derivatives are with respect to equal values.
    """
    return x


@op(axes=Same())
def stop_gradient(x: TensorType) -> TensorType:
    """`x`, whose derivative is zero."""
    return x


@op(axes=Opaque())
def kinked(
    share: TensorType, ct: TensorType, x: TensorType, r: TensorType, *, axes: tuple[int, ...]
) -> TensorType:
    """`share`, what flows to `x` of `ct`, the cotangent of a size of x: r = |x|, norm(x) over axes.

    It is ct x / r, and 0 where r is 0, as if `ct` were constant there. Where `ct` goes to 0 with r,
    as that of a smooth function does, the share goes with x as ct does with r.
    """
    return share


@op(axes=Opaque())
def kinked_tangent(
    share: TensorType, tangent: TensorType, x: TensorType, r: TensorType, *, axes: tuple[int, ...]
) -> TensorType:
    """`share`, what `tangent` of x adds to that of a size of x: the counterpart of `kinked`."""
    return share


KINKED = frozenset({kinked, kinked_tangent})
"""Shares of derivatives that know what they are made of, as they have no derivative at a kink."""


@op(axes=Opaque())
def svd_of(x: TensorType, *factors: TensorType) -> TupleType:
    """`factors`: u, s and v^H of `x`, as they vary with it; inf or nan between equal values."""
    return TupleType(factors)


@op(axes=Opaque())
def turn(x: TensorType, gap: TensorType, *, back: bool) -> TensorType:
    """x / gap off the diagonal, on which it is 0: how eigenvectors turn; or the transpose of that.

    The transpose is 0 in columns of zeros, even where the gap is 0: these vectors do not count.
    """
    return x


@op(axes=Opaque())
def matrix_function(
    x: TensorType, w: TensorType, v: TensorType, *rest: TensorType, f: Graph, numbers: int
) -> TensorType:
    """f(x) = v f(w) v^H of Hermitian matrices, or its derivative in some directions.

    `f(w, *numbers)` is elementwise; the first of `rest` are these numbers, one for each matrix, and
    the others the directions: v (sum of f[w_i, w_j, ...] b1[i, j] b2[j, ...] ...) v^H with the
    divided differences of `f`, and with the directions b in the basis of v.
    """
    dtypes = [v.dtype, f.outputs[0].type.dtype, *[b.dtype for b in rest[numbers:]]]
    return TensorType(promote(*dtypes), v.shape)


@op(axes=Opaque())
def trace_of_function(
    x: TensorType, w: TensorType, v: TensorType, *numbers_: TensorType, f: Graph, numbers: int
) -> TensorType:
    """The sum of f(w), which is the trace of a `matrix_function` without directions."""
    return TensorType(f.outputs[0].type.dtype, w.shape[:-1])


WRITTEN = LAZY | {barrier, stop_gradient}
"""The ops that users write; passes make the others."""
FUNCTIONS = frozenset({matrix_function, trace_of_function})
"""Functions of matrices, which are found before derivatives are expanded."""
