"""The names of linear algebra: matrices are the last two axes, or the dims that are named."""

from __future__ import annotations

from typing import Any

import graphcore as gc

from .arrays import Positional, positional
from .words import Function

Pair = tuple[str, str]


def qr(x: gc.Tensor, dims: Pair, mode: str = "reduced") -> tuple[gc.Tensor, ...]:
    return gc.linalg.qr(x, dims, mode=mode, new="k")


def svd(x: gc.Tensor, dims: Pair, full: bool = False) -> tuple[gc.Tensor, ...]:
    return gc.linalg.svd(x, dims, full_matrices=full, new=("i'", "k", "j'") if full else "k")


def eigh(x: gc.Tensor, dims: Pair, UPLO: str = "L") -> tuple[gc.Tensor, ...]:
    return gc.linalg.eigh(x, dims, lower=UPLO == "L", new="k")


def lu(x: gc.Tensor, dims: Pair) -> tuple[gc.Tensor, ...]:
    """p, l and u with x = p l u: what moves row j of l u to its place in x."""
    order, lower, upper = gc.linalg.lu(x, dims, new="k")
    places = gc.arange(x.sizes[dims[0]], dim=dims[0])
    p = places == order.rename({dims[0]: "row of l"})
    return p.astype(lower.dtype).transpose(..., dims[0], "row of l"), lower, upper


def tri_solve(
    a: gc.Tensor, b: gc.Tensor, dims: Pair, lower: bool = True, trans: bool = False,
    left: bool = True, unit: bool = False,
) -> gc.Tensor:  # fmt: skip
    """a x = b, or x a = b if not `left`; with `trans` of the transposed matrix."""
    if trans == left:  # one of the two swaps what is summed
        swap = {dims[0]: dims[1], dims[1]: dims[0]}
        a, lower = a.rename(swap), not lower
    return gc.linalg.solve_triangular(a, b, dims, lower=lower, unit_diagonal=unit)


MATRICES: dict[str, Function] = {
    "cholesky": gc.linalg.cholesky,
    "qr": qr,
    "svd": svd,
    "svdvals": gc.linalg.svdvals,
    "eigh": eigh,
    "lu": lu,
    "inv": gc.linalg.inv,
    "pinv": gc.linalg.pinv,
    "det": gc.linalg.det,
    "slogdet": gc.linalg.slogdet,
    "matrix_power": lambda x, dims, n: gc.linalg.matrix_power(x, n, dims),
    "expm": gc.linalg.expm,
}
SYSTEMS: dict[str, Function] = {
    "solve": gc.linalg.solve,
    "tri_solve": tri_solve,
    "lstsq": gc.linalg.lstsq,
}


def norm(x: gc.Tensor, ord: Any = None, axes: Any = None, keep: bool = False) -> gc.Tensor:
    kept = gc.linalg.norm(x, axes, ord)
    return gc.expand_dims(kept, [d for d in x.dims if d not in kept.dims]) if keep else kept


def of_last_axes(function: Function) -> Function:
    """Of an array by positions, whose results are such arrays as well."""

    def apply(x: Any, *options: Any, **named: Any) -> Any:
        x = positional(x)
        made = function(x.tensor, tuple(x.dims((-2, -1))), *options, **named)
        return tuple(map(Positional, made)) if isinstance(made, tuple) else Positional(made)

    return apply


def system(function: Function) -> Function:
    """What is on the right is vectors where it has one axis less than the matrices."""

    def apply(a: Any, b: Any, *, left: bool = True, **options: Any) -> Positional:
        a, b = positional(a), positional(b)
        columns = ["column"] * (len(b.shape) + 1 - len(a.shape))
        batch = [f"batch {i}" for i in range(len(a.shape) - 2)]
        wanted = [*batch, "row", *columns] if left else [*batch, *columns, "row"]
        matrix = gc.rename(a.tensor, dict(zip(a.dims(None), [*batch, "row", "col"], strict=True)))
        right = gc.rename(b.tensor, dict(zip(b.dims(None), wanted, strict=True)))
        own = options if function is not tri_solve else options | {"left": left}
        found = function(matrix, right, ("row", "col"), **own)
        return Positional(found, ["col" if dim == "row" else dim for dim in wanted])

    return apply


def positional_tri_solve(
    a: Any, b: Any, lower: bool = True, trans: bool = False, left: bool = True, unit: bool = False
) -> Positional:
    return system(tri_solve)(a, b, lower=lower, trans=trans, left=left, unit=unit)


def positional_norm(x: Any, ord: Any = None, axes: Any = None, keep: bool = False) -> Positional:
    x = positional(x)
    found = norm(x.tensor, ord, None if axes is None else x.dims(axes), keep)
    return Positional(found, x.dims(None) if keep else None)


OF_LAST_AXES: dict[str, Function] = {
    **{name: of_last_axes(function) for name, function in MATRICES.items()},
    **{name: system(function) for name, function in SYSTEMS.items()},
    "tri_solve": positional_tri_solve,
    "norm": positional_norm,
}
