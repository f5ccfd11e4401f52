"""Functional updates: `x.at[positions].set(y)` is `x` with the values `y` at these positions."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from graphcore.frontend.core.arguments import names, present
from graphcore.frontend.core.base import Base, Tensor, refusal, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, common, keep_checks_of
from graphcore.frontend.core.suggestions import Listing
from graphcore.frontend.core.wrong_calls import worded_methods
from graphcore.frontend.pointwise import elementwise as e
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.formulas import keep_where
from graphcore.frontend.shape.dims import broadcast_to, join, with_size
from graphcore.ir import INT, Literal, Node, Op, Size
from graphcore.ir.errors import GraphIndexError
from graphcore.ir.sizes import same
from graphcore.ops import elementwise, leaf, named

from .indexing import by_name, isel, pick, selection
from .picked_positions import kept_size


class At(Listing):
    """`x.at`: indexed by `x.at[...]`, which takes whatever `x[...]` takes."""

    __slots__ = ("_x",)

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __repr__(self) -> str:
        return f"<At {self._x!r}>"

    def __getitem__(self, key: Any) -> Region:
        return Region(self._x, key)


def without_masks(x: Tensor, key: Any) -> tuple[dict[str, Any], Tensor | None]:
    """The indexers in brackets by name, and the conjunction of those that are bool tensors."""
    if is_mask(key):
        wanted, masks = {}, [key]
    else:
        given = by_name(x, key)
        wanted = {dim: at for dim, at in given.items() if not is_mask(at)}
        masks = [mask for dim, mask in given.items() if dim not in wanted]
        for dim, mask in given.items():
            if dim not in wanted and mask.dims != (dim,):
                cure = f"index by the mask alone, x.at[mask], or give it the one dim {dim!r}"
                reason = f"a mask for dim {dim!r} has the dims {mask.dims}"
                raise refusal(reason, x, mask, cure=cure, kind=GraphIndexError)
    for mask in masks:
        for dim in mask.dims:
            if dim not in x.dims:
                cure = "a mask has only dims of the tensor it selects from"
                reason = f"a mask has a dim {dim!r} that {x.node.type} lacks"
                raise refusal(reason, x, mask, cure=cure, kind=GraphIndexError)
    return wanted, reduce(e.logical_and, masks) if masks else None


def is_mask(indexer: Any) -> bool:
    """Whether an indexer is a bool tensor, whose positions are known only at the call."""
    return isinstance(indexer, Base) and indexer.dtype.kind == "b"


@worded_methods
class Region(Listing):
    """The elements `x.at[...]` of a tensor, to be changed in a new tensor.

    Values broadcast by name to the dims of `x[...]`; other dims or sizes are refused. They are cast
    to the dtype of `x`, as in NumPy's in-place arithmetic: casts from complex to real and from
    floats to integers are refused. If a position occurs several times, all its values are applied
    in turn.

    A mask known only at the call, such as `x.at[x > 0]` or `x.at[{"row": mask}]`, selects elements
    along its dims. The values lack these dims, or are as many as a mask of one dim selects.

    >>> import graphcore as gc
    >>> x = gc.constant([1.0, 2.0, 3.0], "row")
    >>> gc.compile([], [x.at[1:].set(0), x.at[[0, 0]].add(10), x.at[{"row": -1}].get()])()
    [array([1., 0., 0.]), array([21.,  2.,  3.]), array(3.)]
    """

    __slots__ = ("_at", "_inner", "_mask", "_x")

    def __init__(self, x: Tensor, key: Any) -> None:
        node = x.node
        wanted, self._mask = without_masks(x, key)
        dims = present(node, names(tuple(wanted), node), "raise")
        self._at = selection(node, {dim: wanted[dim] for dim in node.type.dims if dim in dims})
        self._x = wrap(self._at.x)
        self._inner = pick(self._at._replace(indices={}))

    def __repr__(self) -> str:
        return f"<Region {self.get().node.type} of {self._x!r}>"

    def get(self) -> Tensor:
        """The elements: `x[...]`."""
        if self._mask is None:
            return self._region()
        if len(self._mask.dims) == 1:
            return isel(self._region(), {self._mask.dims[0]: self._mask})
        cure = "name the elements: x.isel(gc.nonzero(mask))"
        reason = f"a mask of the dims {self._mask.dims} selects elements that have no dim"
        raise type_refusal(reason, self._x, self._mask, cure=cure)

    def set(self, y: Operand) -> Tensor:
        """`x` with `y` at these elements; of several values for one position the last wins.

        Only the value that remains has a derivative.
        """
        return self._keep(self._put(self._values(y)))

    def add(self, y: Operand) -> Tensor:
        """`x` with `y` added there."""
        return self._keep(e.add(self._x, wrap(self._spread(self._values(y)))))

    def subtract(self, y: Operand) -> Tensor:
        """`x` with `y` subtracted there."""
        values = self._values(y)
        return self._keep(e.subtract(self._x, wrap(self._spread(values))))

    def multiply(self, y: Operand) -> Tensor:
        """`x` multiplied by `y` there; the derivative is exact where values are 0."""
        return self._scale(e.multiply, y)

    def divide(self, y: Operand) -> Tensor:
        """`x` divided by `y` there, or by the product of several values; `x` must be a float."""
        if self._x.dtype.kind not in "fc":
            cure = "cast it: x.astype('float64')"
            raise type_refusal(f"quotients cannot be cast to {self._x.dtype}", self._x, cure=cure)
        return self._scale(e.divide, y)

    def power(self, y: Operand) -> Tensor:
        """`x` to the power of `y` there; positions must be known and must not repeat."""
        values = self._values(y)
        if not self._distinct():
            cure = "index with slices, integers, masks or known positions that do not repeat"
            reason = "positions may repeat, and powers of powers depend on their order"
            raise refusal(reason, self._x, values, cure=cure)
        return self._keep(self._put(e.power(self._region(), wrap(values)).node))

    def min(self, y: Operand) -> Tensor:
        """`x` with the minimum of itself and `y` there; tied values share the derivative."""
        return self._extreme(e.minimum, named.scatter_min, y)

    def max(self, y: Operand) -> Tensor:
        """`x` with the maximum of itself and `y` there; tied values share the derivative."""
        return self._extreme(e.maximum, named.scatter_max, y)

    def _scale(self, scale: Callable[..., Tensor], y: Operand) -> Tensor:
        """The elements scaled by a factor, which is the product of all values for a position."""
        values = self._values(y)
        if self._distinct():
            return self._keep(self._put(scale(self._region(), wrap(values)).node))
        factors = wrap(self._together(named.scatter_prod, values))
        return self._keep(self._back(scale(wrap(self._inner), factors).node))

    def _extreme(self, single: Callable[..., Tensor], several: Op, y: Operand) -> Tensor:
        """The elements changed by a function of two values, or by an op of many."""
        values = self._values(y)
        if self._distinct():
            return self._keep(self._put(single(self._region(), wrap(values)).node))
        return self._keep(self._back(self._combine(several, values)))

    def _region(self) -> Tensor:
        """The elements at all indexers except masks known only at the call."""
        return wrap(pick(self._at))

    def _keep(self, changed: Tensor) -> Tensor:
        """`changed`, except where the mask keeps `x`."""
        return changed if self._mask is None else keep_where(changed, self._mask, self._x)

    def _values(self, y: Operand) -> Node:
        """`y` in the dtype of `x`, with the dims of the region."""
        region, dtype = self._region(), self._x.dtype
        _, values = common(region, y)
        if self._mask is not None and not set(self._mask.dims).isdisjoint(values.type.dims):
            values = self._where_selected(values)
        if not np.can_cast(values.type.dtype, dtype, "same_kind"):
            cast = f"cast them: y.astype({str(dtype)!r})"
            part = "take their real part" if values.type.dtype.kind == "c" else cast
            cure = f"{part}, or cast the tensor that is updated"
            reason = f"values of {values.type.dtype} cannot be cast to {dtype}"
            raise type_refusal(reason, self._x, values, cure=cure)
        for dim, size in values.type.sizes.items():
            if dim not in region.dims:
                cure = f"the elements have the dims {region.dims}: sum over it or index it; to "
                cure += "give each position its own value, name the positions: "
                cure += f"gc.constant(index, {dim!r})"
                reason = f"the values have a dim {dim!r} that the elements lack"
                raise refusal(reason, region, values, cure=cure)
            if same(size, region.sizes[dim]) is False:
                cure = "give a value for each element, or drop the dim: size 1 is never stretched"
                reason = f"dim {dim!r} has {region.sizes[dim]} elements and {size} values"
                raise refusal(reason, region, values, cure=cure)
        return broadcast_to(astype(wrap(values), dtype).node, region.sizes).node

    def _where_selected(self, values: Node) -> Node:
        """A value for each element that a mask of one dim selects, where these elements are."""
        mask = self._mask
        assert mask is not None
        if len(mask.dims) != 1:
            cure = "choose for each element with gc.where(mask, values, x)"
            reason = f"the values have the dims of a mask of several, {mask.dims}"
            raise refusal(reason, mask, values, cure=cure)
        (dim,) = mask.dims
        many = kept_size(dim, None, lambda: named.sum_(mask.node, dims=(dim,)), "kept")
        values = with_size(values, dim, many)
        rest = {other: size for other, size in values.type.sizes.items() if other != dim}
        none = leaf.full(
            value=Literal(0, values.type.dtype), shape=(1, *rest.values()), dims=(dim, *rest)
        )
        rank = wrap(named.cumsum(astype(mask, INT).node, dims=(dim,))) - 1
        at = wrap(
            elementwise.where(mask.node, rank.node, leaf.extent(size=many, dtype=INT, dims=()))
        )
        return isel(wrap(join([values, none], dim)), {dim: at}).node

    def _over(self) -> tuple[str, ...]:
        """The dims of the region that come from the positions."""
        kept = [dim for dim in self._inner.type.dims if dim not in self._at.indices]
        return tuple(dim for dim in self._region().dims if dim not in kept)

    def _distinct(self) -> bool:
        """Whether no position occurs twice: each dim of the positions has one index of its own."""
        indices = self._at.indices.values()
        distinct = {
            i.type.dims for i in indices if i.op is leaf.constant and i.attrs["value"].distinct
        }
        return all((dim,) in distinct for dim in self._over())

    def _combine(self, op: Op, values: Node) -> Node:
        """The indexed part, combined with the values by `op`."""
        at = self._at.indices
        return op(self._inner, values, *at.values(), over=self._over(), dims=tuple(at))

    def _put(self, values: Node) -> Tensor:
        """`x` with these values of the region."""
        if self._at.indices:
            return self._back(self._combine(named.put, values))
        if not self._ranges()[0]:  # of `x` nothing is left to read
            return wrap(keep_checks_of(values, self._x.node))
        return self._back(values)

    def _back(self, inner: Node) -> Tensor:
        """`x` with its ranges and single positions replaced by `inner`."""
        dims, starts, steps, _ = self._ranges()
        if not dims:
            return wrap(inner)
        part = self._with_positions(inner)
        return wrap(named.overwrite(self._x.node, part, dims=dims, starts=starts, steps=steps))

    def _spread(self, values: Node) -> Node:
        """Zeros like `x` with values of the region added: the transpose of `get`."""
        if self._at.indices:
            values = self._together(named.scatter, values)
        dims, starts, steps, sizes = self._ranges()
        if not dims:
            return values
        part = self._with_positions(values)
        return named.embed(part, dims=dims, starts=starts, sizes=sizes, steps=steps)

    def _together(self, op: Op, values: Node) -> Node:
        """Values of the region, combined by `op` at their positions."""
        at = self._at.indices
        sizes = tuple(self._inner.type.size(dim) for dim in at)
        return op(values, *at.values(), over=self._over(), dims=tuple(at), sizes=sizes)

    def _ranges(
        self,
    ) -> tuple[tuple[str, ...], tuple[Size, ...], tuple[int, ...], tuple[Size, ...]]:
        """Dims indexed by ranges or single positions, with starts, steps and sizes."""
        ranges = {dim: (start, step) for dim, (start, _, step) in self._at.ranges.items()}
        ranges |= {dim: (start, 1) for dim, start in self._at.positions.items()}
        starts, steps = zip(*ranges.values(), strict=True) if ranges else ((), ())
        return tuple(ranges), starts, steps, tuple(self._x.sizes[dim] for dim in ranges)

    def _with_positions(self, inner: Node) -> Node:
        """`inner` with size-1 dims for those that single positions dropped."""
        dims = tuple(self._at.positions)
        if not dims:
            return inner
        sizes = (*(1,) * len(dims), *inner.type.shape)
        return named.broadcast(inner, dims=(*dims, *inner.type.dims), sizes=sizes)
