"""Positions in order along a dim, and search in sorted values."""

from __future__ import annotations

from graphcore.ir import INT, Size, TensorType
from graphcore.ir.axes import Along, Searches
from graphcore.ir.errors import require
from graphcore.ir.node import need
from graphcore.ir.op import op
from graphcore.ir.sizes import lower_bound, upper_bound
from graphcore.ops import tensor

from .derived import FORMS, Form
from .dims import drop, has, union


@op(axes=Along("dim", moves=True))
def argsort(x: TensorType, *, dim: str, size: Size, descending: bool) -> TensorType:
    """Positions of the first `size` values along `dim` in order, as the plain op has them."""
    has(x, (dim,))
    left = x.size(dim) - size
    most, least = upper_bound(left), lower_bound(left)
    require(
        most is None or most >= 0,
        f"dim {dim!r} of {x} has fewer than {size} elements",
        "ask for fewer",
    )
    if least is None or least < 0:
        need(dim, size - 1, "<", x.size(dim))
    new = x.sizes | {dim: size}
    return TensorType(INT, tuple(new.values()), x.dims)


FORMS[argsort] = Form(tensor.argsort, "axis", "dim", lambda dtype: dtype)


@op(axes=Searches())
def searchsorted(x: TensorType, values: TensorType, *, dim: str, side: str) -> TensorType:
    """How many values of `x`, sorted along `dim`, are below each of `values`.

    With `side` "right" those that are equal count as well. Operands align by name.
    """
    sizes = union(drop(INT, x, (dim,)), values)
    return TensorType.of(INT, sizes)
