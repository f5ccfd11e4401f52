"""VJP rules of updates at positions, several of which may be equal."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.ir import INT, Node, Shape, Size
from graphcore.ir.sizes import count
from graphcore.ops import elementwise, leaf, tensor
from graphcore.rewrites.plain import cast, equals, expand, flip, full, number, reshape, shift, where


def scatter_extreme_vjp(node: Node, ct: Node) -> tuple[Node | None, ...]:
    """Tied values share ȳ: ū = ȳ / (number of ties) where u is the extreme value, and x̄ as well

    An infinite x is not counted where updates equal it: then it means "nothing yet".
    """
    (x, updates, *indices), axes = node.inputs, node.attrs["axes"]

    def there(of: Node) -> Node:
        return tensor.gather(of, *indices, axes=axes)

    chosen = elementwise.equal(updates, there(node))
    arrived = tensor.scatter(cast(chosen, ct.type.dtype), *indices, axes=axes, shape=x.type.shape)
    counts = elementwise.logical_or(elementwise.isfinite(x), equals(arrived, 0))
    kept = elementwise.logical_and(elementwise.equal(x, node), counts)
    share = ct / (arrived + cast(kept, ct.type.dtype))
    return where(kept, share, 0), where(chosen, there(share), 0), *(None,) * len(indices)


def scatter_prod_vjp(node: Node, ct: Node) -> tuple[Node | None, ...]:
    """ū = ȳ * (product of the others that come to the place): exact where values are 0"""
    (updates, *indices), axes, shape = node.inputs, node.attrs["axes"], node.attrs["shape"]
    share = tensor.gather(ct, *indices, axes=axes)
    others = products_of_others(updates, indices, [shape[axis] for axis in axes])
    return share * others, *(None,) * len(indices)


def products_of_others(x: Node, indices: Sequence[Node], sizes: Sequence[Size]) -> Node:
    """For each value the product of all others at its position.

    After sorting by position, these are the values before it and after it in its run.
    """
    places = row_major(indices, sizes)
    (many,) = places.type.shape
    order = tensor.argsort(places, axis=0, size=many, descending=False)
    numbers = leaf.iota(size=many, dtype=INT, dims=None)
    rank = tensor.put(full(0, INT, (many,)), numbers, order, axes=(0,))
    rest: Shape = x.type.shape[indices[0].type.ndim :]
    rows = tensor.gather(reshape(x, (many, *rest)), order, axes=(0,))
    runs = tensor.gather(places, order, axes=(0,))
    after = flip(products_in_runs(flip(rows, 0), flip(runs, 0)), 0)
    found = products_in_runs(rows, runs) * after
    return reshape(tensor.gather(found, rank, axes=(0,)), x.type.shape)


def products_in_runs(x: Node, runs: Node) -> Node:
    """The product of all values before each in its run of equal numbers, along the first axis."""
    same = elementwise.equal(runs, shift(runs, 0, -1))
    same = expand(same, range(1, x.type.ndim), x.type.shape)
    return tensor.recurrence(
        where(same, shift(x, 0, 0), 0), where(same, full(0, x.type.dtype, x.type.shape), 1), axis=0
    )


def row_major(indices: Sequence[Node], sizes: Sequence[Size]) -> Node:
    """Positions along several axes as one number for each place, in one row."""
    shape: Shape = indices[0].type.shape
    places = full(0, INT, shape)
    for index, size in zip(indices, sizes, strict=True):
        index = cast(index, INT)
        many = number(size, INT, shape)
        negative = elementwise.less(index, full(0, INT, shape))
        places = places * many + where(negative, index + many, index)
    return reshape(places, (count(shape),))
