"""Elements left out where a condition does not hold, or values are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from graphcore.frontend.core.arguments import SizeLike, check_word, dim_of, whole
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.formulas import keep_where
from graphcore.frontend.pointwise.missing import notnull
from graphcore.ir import INT, Node
from graphcore.ir.help_text import parameters
from graphcore.ops import named

from .indexing import isel

__all__ = ["dropna"]


@parameters(
    dim="The dim along which positions are left out.",
    how='Whether "any" or "all" of the values at a position must be missing for it to be left out.',
    thresh="How many values must be there for a position to stay, in place of `how`.",
    size="A name for the number of positions that stay, which is computed. An integer or a size "
    "fixes it: excess positions are dropped, and lacking ones are position 0.",
)
def dropna(
    x: Operand,
    dim: str | None = None,
    *,
    how: Literal["any", "all"] = "any",
    thresh: int | None = None,
    size: SizeLike = None,
) -> Tensor:
    """`x` without the positions along `dim` at which values are missing, that is, nan.

    >>> x = gc.constant([1.0, float("nan"), 3.0], "t")
    >>> gc.compile([], gc.dropna(x, "t"))()
    array([1., 3.])
    """
    node = single(x)
    name = dim_of(node, dim)
    check_word("how", how, ("any", "all"), node)
    there = notnull(wrap(node)).node
    others = tuple(other for other in node.type.dims if other != name)
    if thresh is not None:
        seen = astype(wrap(there), INT).node
        mask = (wrap(named.sum_(seen, dims=others)) >= whole(thresh, "thresh", node)).node
    else:
        mask = (named.all_ if how == "any" else named.any_)(there, dims=others)
    return isel(wrap(node), {name: wrap(mask)}, size={name: size})


def where(
    x: Operand,
    condition: Operand,
    other: Operand | None = None,
    *,
    drop: bool = False,
    size: SizeLike | Mapping[str, SizeLike] = None,
) -> Tensor:
    """`x` where the condition holds, else `other`: the method `x.where(condition, other)`.

    As `gc.where`, but the dims of `x` come first. Without `other` it is nan; integers then become
    floats, float32 those of up to 16 bits, float64 all others. With `drop`, positions along the
    dims of the condition are left out where it holds nowhere. How many stay is computed; `size` is
    a name for it, or fixes it as in `isel`, and is a dict by dim where the condition has several.

    >>> x = gc.constant([1, 2, 3], "row")
    >>> gc.compile([], [x.where(x > 1), x.where(x > 1, 0), x.where(x > 1, drop=True)])()
    [array([nan,  2.,  3.]), array([0, 2, 3]), array([2., 3.])]
    """
    if not drop:
        if size is not None:
            raise refusal("takes a size with drop=True", single(x),
                          cure="give drop=True, or leave the size out")  # fmt: skip
        return keep_where(x, condition, other)
    node, mask = single(x), single(condition)
    dims = tuple(dim for dim in mask.type.dims if dim in node.type.dims)
    masks = {dim: wrap(held_along(mask, dim)) for dim in dims}
    sizes: Any = size if isinstance(size, Mapping) else dict.fromkeys(dims, size)

    def left(t: Tensor) -> Tensor:
        held = {dim: mask for dim, mask in masks.items() if dim in t.dims}
        return isel(t, held, size={dim: sizes.get(dim) for dim in held}) if held else t

    filled = None if other is None else left(wrap(single(other)))
    return keep_where(left(wrap(node)), left(wrap(mask)), filled)


def held_along(mask: Node, dim: str) -> Node:
    """Whether a condition holds anywhere, for each position along one of its dims."""
    return named.any_(mask, dims=tuple(other for other in mask.type.dims if other != dim))
