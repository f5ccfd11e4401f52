"""Whole derivatives: Jacobians and Hessians, made of the lazy ones by vectorising them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from graphcore.ir.names import Hidden, apart
from graphcore.ir.sizes import count, upper_bound
from graphcore.ops import autodiff

from .base import wrap
from .creation import ones
from .derivatives import check, grad, pushforward_of, shield
from .elementwise import astype, equal
from .ranges import iota
from .shape import rename, transpose
from .tracing import placeholder
from .trees import flatten
from .vectorize import dims_in_use, widened

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian"]

Tree = Any
"""A tensor, or nested lists, tuples and dicts of tensors."""


def jacobian(y: Tree, wrt: Tree) -> Tree:
    """The derivative of every element of `y` by every element of `wrt`.

    In the structure of `y`, each of its tensors replaced by the structure of `wrt`. The dims are
    those of the `y`, then those of the `wrt`; of these, one that `y` has as well gets a prime:
    "row'". In reverse mode where `y` has no more elements than `wrt`, else in forward mode.

    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": 3})
    >>> w = gc.tensor("w", {"row": 3, "col": 2})
    >>> gc.jacobian((w * x).sum("row"), x), gc.jacobian(x * x, x)
    (<Tensor: f64[col=2, row=3]>, <Tensor: f64[row=3, row'=3]>)
    """
    ys, mirrored = flatten(y, "jacobian: y")
    xs, rebuild = flatten(wrt, "jacobian: wrt")
    check("jacobian", [t.node for t in ys], [t.node for t in xs], "error")
    return mirrored([rebuild(rows_of(one, xs)) for one in ys])


def hessian(y: Tensor, wrt: Tree) -> Tree:
    """The second derivative of a scalar `y` by every two elements of `wrt`.

    In the structure of `wrt`, each of its tensors replaced by the structure of `wrt`; dims as in
    `jacobian`.

    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": 3})
    >>> gc.hessian((x**3).sum(), x)
    <Tensor: f64[row=3, row'=3]>
    """
    return jacobian(grad(y, wrt), wrt)


def hvp(y: Tensor, wrt: Tree, v: Tree) -> Tree:
    """The Hessian of a scalar `y` times `v`, which has the structure and dims of `wrt`.

    The pushforward of the gradient, at a few times the cost of `y` (Pearlmutter 1994).

    >>> import graphcore as gc
    >>> x, v = gc.tensor("x", {"row": 3}), gc.tensor("v", {"row": 3})
    >>> gc.hvp((x**3).sum(), x, v)
    <Tensor: f64[row=3]>
    """
    return pushforward_of("hvp", grad(y, wrt), wrt, v, "error")


def rows_of(y: Tensor, xs: Sequence[Tensor]) -> list[Tensor]:
    """The Jacobian of one tensor by several."""
    names = Names(dims_in_use([y.node, *[x.node for x in xs]]))
    total = sum((x.node.type.count for x in xs[1:]), xs[0].node.type.count) if xs else 0
    surplus = upper_bound(total - count(y.shape))
    if surplus is None or surplus >= 0:
        return by_rows(y, xs, names)
    return [by_columns(y, x, names) for x in xs]


class Names:
    """Makes dims that no tensor of a program has, whose dims are `taken`."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken

    def beside(self, dims: Iterable[str]) -> dict[str, str]:
        """A new dim for each."""
        found: dict[str, str] = {}
        for dim in dims:
            found[dim] = apart(Hidden(dim), self.taken)
            self.taken.add(found[dim])
        return found


def by_rows(y: Tensor, xs: Sequence[Tensor], names: Names) -> list[Tensor]:
    """Every unit cotangent pulled back at once."""
    rows = names.beside(y.dims)
    ct = placeholder("ct", y.node.type)
    ys, sources = shield([y.node], [x.node for x in xs])
    pulled = autodiff.pullback(*ys, *sources, ct, ys=1, wrt=len(xs))
    found = widened([pulled[i] for i in range(len(xs))], {ct: units(y, rows).node})
    return [finished(wrap(f), y, rows, x, {}) for f, x in zip(found, xs, strict=True)]


def by_columns(y: Tensor, x: Tensor, names: Names) -> Tensor:
    """Every unit tangent pushed forward at once."""
    columns = names.beside(x.dims)
    tangent = placeholder("tangent", x.node.type)
    ys, sources = shield([y.node], [x.node])
    pushed = autodiff.pushforward(*ys, *sources, tangent, ys=1, wrt=1)
    (found,) = widened([pushed[0]], {tangent: units(x, columns).node})
    return finished(wrap(found), y, {}, x, columns)


def units(x: Tensor, names: dict[str, str]) -> Tensor:
    """1 where the places along `names` are those along the dims of `x`, else 0."""
    made = ones({}, x.dtype)
    for dim, name in names.items():
        size = x.sizes[dim]
        made = made * astype(equal(iota(name, size), iota(dim, size)), x.dtype)
    return transpose(made, *names.values(), *x.dims)


def finished(
    found: Tensor, y: Tensor, rows: dict[str, str], x: Tensor, columns: dict[str, str]
) -> Tensor:
    """The dims of `y`, then those of `x`, with a prime where `y` has them too."""
    last = {dim: apart(dim, (*y.dims, *x.dims)) if dim in y.dims else dim for dim in x.dims}
    back = {new: dim for dim, new in rows.items()}
    found = rename(found, back | {columns.get(dim, dim): new for dim, new in last.items()})
    return transpose(found, *y.dims, *last.values())
