"""Jacobians and Hessians: lazy derivatives, vectorised over unit cotangents or tangents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import EllipsisType
from typing import Any, Literal, get_args, overload

from graphcore.frontend.core.arguments import check_word
from graphcore.frontend.core.base import Tensor, wrap
from graphcore.frontend.core.tracing import placeholder
from graphcore.frontend.core.trees import T, Tree, flatten
from graphcore.frontend.create.inputs import ones
from graphcore.frontend.create.ranges import iota
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.elementwise import equal
from graphcore.frontend.shape.dims import broadcast_to, keep_labels, rename, transpose
from graphcore.ir.help_text import parameters
from graphcore.ir.names import all_apart, hidden_names
from graphcore.ir.sizes import count, evaluate, unknowns
from graphcore.ops import autodiff

from .derivatives import (
    derivative_error,
    grad,
    of_instances,
    pushforward_of,
    require_differentiable,
    shield,
)
from .vectorize import dims_in_use, widen_roots

__all__ = ["hessian", "hvp", "jacobian"]


Mode = Literal["forward", "reverse"]

UNKNOWN_SIZE_AS = 1 << 20
"""The number used for an unknown size where the cheaper mode is chosen."""


@overload
def jacobian(
    y: Tensor,
    wrt: T,
    *,
    per: str | Iterable[str] | EllipsisType = ...,
    mode: Mode | None = ...,
) -> T: ...
@overload
def jacobian(
    y: Tree,
    wrt: Tree,
    *,
    per: str | Iterable[str] | EllipsisType = ...,
    mode: Mode | None = ...,
) -> Any: ...
@parameters(
    y="A float tensor, or nested lists, tuples and dicts of them.",
    wrt="Inputs or inner tensors of `y`, in any structure.",
    per="Dims of instances that do not mix, as in `grad`: only the blocks of a block-diagonal "
    "Jacobian are computed, with each dim of `per` once. The `y` must have these dims.",
    mode='"reverse" pulls back one cotangent for each element of `y`, "forward" pushes forward one '
    "tangent for each element of `wrt`. By default the mode that takes fewer of them, or reverse "
    "if they take equally many. A size known only at the call counts as a large one.",
)
def jacobian(
    y: Tree,
    wrt: Tree,
    *,
    per: str | Iterable[str] | EllipsisType = (),
    mode: Mode | None = None,
) -> Tree:
    """The derivative of every element of `y` with respect to every element of `wrt`.

    It has the structure of `y`, each of its tensors replaced by the structure of `wrt`. The dims
    are those of the `y`, then those of the `wrt`. A dim of the `wrt` that the `y` has too gets a
    prime: "row'".

    GraphError as `grad`.

    >>> x = gc.tensor("x", {"row": 2})
    >>> f = gc.compile([x], gc.jacobian(x * x[{"row": 0}], x))
    >>> f([3.0, 5.0])
    array([[6., 0.],
           [5., 3.]])
    >>> gc.jacobian(x * x, x)
    <Tensor: f64[row=2, row'=2]>
    >>> w = gc.tensor("w", {"row": 2, "col": 2})
    >>> gc.jacobian(x * w, w, per="row")
    <Tensor: f64[row=2, col=2, col'=2]>
    """
    ys, mirrored = flatten(y, "y")
    xs, rebuild = flatten(wrt, "wrt")
    require_differentiable([t.node for t in ys], [t.node for t in xs], "error")
    if mode is not None:
        check_word("mode", mode, get_args(Mode), *ys)
    return mirrored([rebuild(rows_of(one, xs, per, mode)) for one in ys])


@overload
def hessian(y: Tensor, wrt: Tensor) -> Tensor: ...
@overload
def hessian(y: Tensor, wrt: Tree) -> Any: ...
@parameters(
    y="A float tensor without dims.",
    wrt="Inputs or inner tensors of `y`, in any structure.",
)
def hessian(y: Tensor, wrt: Tree) -> Tree:
    """The second derivative of a scalar `y` with respect to every two elements of `wrt`.

    It has the structure of `wrt`, each of its tensors replaced by the structure of `wrt`; the dims
    are as in `jacobian`.

    >>> x = gc.tensor("x", {"row": 2})
    >>> gc.compile([x], gc.hessian((x**3).sum(), x))([1.0, 2.0])
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    return jacobian(grad(y, wrt), wrt)


@parameters(
    y="A float tensor without dims.",
    wrt="Inputs or inner tensors of `y`, in any structure.",
    v="Tensors in the structure of `wrt`, each with the dims of its tensor.",
)
def hvp(y: Tensor, wrt: T, v: Tree) -> T:
    """The Hessian of a scalar `y` times `v`, which has the structure and dims of `wrt`.

    The pushforward of the gradient, at a few times the cost of `y` (Pearlmutter 1994).

    >>> x, v = gc.tensor("x", {"row": 2}), gc.tensor("v", {"row": 2})
    >>> gc.compile([x, v], gc.hvp((x**3).sum(), x, v))([1.0, 2.0], [1.0, 10.0])
    array([  6., 120.])
    """
    return pushforward_of(grad(y, wrt), wrt, v, "error")


def rows_of(
    y: Tensor, xs: Sequence[Tensor], per: str | Iterable[str] | EllipsisType, mode: Mode | None
) -> list[Tensor]:
    """The Jacobian of one tensor with respect to several; a block for each position along `per`."""
    axes: tuple[str, ...] = ()
    if not (isinstance(per, tuple) and per == ()):
        nodes = [x.node for x in xs]
        (new, along), wide, axes = of_instances(y.node, nodes, per)
        for axis in axes:
            if axis not in new.type.sizes or along.get(axis) != (axis,):
                reason = f"per: no dim of the result has the instances along {axis!r} alone"
                cure = f"unstack it, or rename it to {axis!r}"
                raise derivative_error(reason, [y.node, *nodes], cure)
        y, xs = wrap(new), [wrap(wide[node]) for node in nodes]
    in_use = dims_in_use([y.node, *[x.node for x in xs]])
    if (mode or fewer(y, xs, axes)) == "reverse":
        return by_rows(y, xs, axes, in_use)
    return [by_columns(y, x, axes, in_use) for x in xs]


def fewer(y: Tensor, xs: Sequence[Tensor], axes: Sequence[str]) -> Mode:
    """The mode that needs fewer cotangents or tangents for the blocks along `axes`."""
    sizes = [count(z.sizes[dim] for dim in z.dims if dim not in axes) for z in (y, *xs)]
    surplus = sum(sizes[1:]) - sizes[0]
    try:
        typical = evaluate(surplus, dict.fromkeys(unknowns(surplus), UNKNOWN_SIZE_AS))
        return "reverse" if typical >= 0 else "forward"
    except ValueError:  # a size divides by the difference of unknown ones
        return "reverse"


def by_rows(y: Tensor, xs: Sequence[Tensor], axes: Sequence[str], in_use: set[str]) -> list[Tensor]:
    """All unit cotangents pulled back at once."""
    rows = hidden_names([dim for dim in y.dims if dim not in axes], in_use)
    ct = placeholder("ct", y.node.type)
    ys, sources = shield([y.node], [x.node for x in xs])
    found = widen_roots(autodiff.pull(ys, sources, [ct]), {ct: units(y, rows).node})
    return [result_dims(wrap(f), y, rows, x, {}, axes) for f, x in zip(found, xs, strict=True)]


def by_columns(y: Tensor, x: Tensor, axes: Sequence[str], in_use: set[str]) -> Tensor:
    """All unit tangents pushed forward at once."""
    columns = hidden_names([dim for dim in x.dims if dim not in axes], in_use)
    tangent = placeholder("tangent", x.node.type)
    ys, sources = shield([y.node], [x.node])
    (found,) = widen_roots(autodiff.push(ys, sources, [tangent]), {tangent: units(x, columns).node})
    return result_dims(wrap(found), y, {}, x, columns, axes)


def units(x: Tensor, names: Mapping[str, str]) -> Tensor:
    """1 where positions along `names` equal those along the corresponding dims of `x`, else 0."""
    made = ones({}, x.dtype)
    for dim, name in names.items():
        size = x.sizes[dim]
        made = made * astype(equal(iota(name, size), iota(dim, size)), x.dtype)
    sizes = {name: x.sizes[dim] for dim, name in names.items()} | x.sizes
    return broadcast_to(made.node, sizes)


def result_dims(
    found: Tensor,
    y: Tensor,
    rows: Mapping[str, str],
    x: Tensor,
    columns: Mapping[str, str],
    axes: Sequence[str],
) -> Tensor:
    """The dims of `y`, then those of `x` except `axes`, with a prime where `y` has them too."""
    own = [dim for dim in x.dims if dim not in axes]
    primed = all_apart({dim: dim for dim in own if dim in y.dims}, (*y.dims, *x.dims))
    last = {dim: primed.get(dim, dim) for dim in own}
    back = {new: dim for dim, new in rows.items()}
    found = rename(found, back | {columns.get(dim, dim): new for dim, new in last.items()})
    made = transpose(found, *y.dims, *last.values())
    named = keep_labels(made.node, y.node, y.dims)
    return wrap(keep_labels(named, rename(x, primed).node, last.values()))
