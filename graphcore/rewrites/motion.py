"""Motion of `expand`, `transpose`, `reshape` and `slice`: work is done small, and views meet views.

Repetition moves towards the results, so that what is repeated is computed once; transposes move
the same way through elementwise ops and vanish where two meet.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product

from graphcore.analysis.values import is_positive_zero
from graphcore.ir.axes import Along, How, Joins, Pointwise, Ranges, Reduces, Source, new_place
from graphcore.ir.node import Attrs, Node
from graphcore.ir.sizes import Shape, Size, count, lower_bound, same
from graphcore.ops import leaf
from graphcore.ops import tensor as t
from graphcore.ops.elementwise import add, negative
from graphcore.ops.leaf import iota

from . import plain
from .engine import RuleSet
from .plain import Axes, other_axes, refill, times

motion = RuleSet()


@motion.on(Pointwise, Reduces, Along, Joins, Ranges, under=[t.expand])
def repeat_later(node: Node) -> Node | None:
    """f(expand(x), expand(y), c) = expand(f(x, y, c)), over batch axes that all of them repeat"""
    common: set[int] | None = None
    for x in node.inputs:
        if x.op is t.expand:
            common = set(x.attrs["axes"]) if common is None else common & set(x.attrs["axes"])
        elif x.op is not leaf.full:
            return None
        if common is not None and not common:
            return None
    kind = node.op.axes
    places = {axis: axis for axis in common or ()}
    if not node.op.pointwise:  # a range along a repeated axis repeats the same
        hows = (How.EACH, How.MOVED) if isinstance(kind, Ranges) else (How.EACH,)
        found = {Source((axis,), how): axis for axis in places for how in hows}
        columns = enumerate(zip(*kind.sources(node)[0], strict=True))
        places = {found[x]: i for i, (x, *more) in columns if x in found and {x}.issuperset(more)}
    if not places:
        return None
    smaller = tuple(less_repeated(x, places) for x in node.inputs)
    new = Node(node.op, smaller, Attrs(kind.without(node, places)))
    return plain.expand(new, places.values(), node.type.shape)


def less_repeated(x: Node, axes: Collection[int]) -> Node:
    """`x`, repeated everywhere along `axes`, without them."""
    shape = tuple(size for axis, size in enumerate(x.type.shape) if axis not in axes)
    if x.op is leaf.full:
        return refill(x, shape)
    repeated = [new_place(axis, axes) for axis in x.attrs["axes"] if axis not in axes]
    return plain.expand(x.inputs[0], repeated, shape)


@motion.on(Pointwise, under=[t.transpose, t.windows])
def view_later(node: Node) -> Node | None:
    """f(view(x), view(y), c) = view(f(x, y, c)), of transposes, and of windows without gaps"""
    view, *others = [x for x in node.inputs if x.op is not leaf.full]
    if any(x.op is not view.op or x.attrs != view.attrs for x in others):
        return None
    shape, attrs = view.inputs[0].type.shape, view.attrs
    if view.op is t.windows:
        steps = zip(attrs["sizes"], attrs["strides"], strict=True)
        if any((lower_bound(size) or 0) < stride for size, stride in steps):
            return None
        if any(x.inputs[0].type.shape != shape for x in others):
            return None
    operands = [refill(x, shape) if x.op is leaf.full else x.inputs[0] for x in node.inputs]
    return Node(view.op, (node.with_inputs(*operands),), attrs)


@motion.on(t.expand, t.reshape, t.transpose, t.slice_, t.windows, under=[leaf.full])
def view_of_full(node: Node) -> Node | None:
    """view(c) = c"""
    return refill(node.inputs[0], node.type.shape)


@motion.on(t.transpose)
def transpose_of_view(node: Node) -> Node | None:
    """transpose(transpose(x, p), q) = transpose(x, p[q]); transpose(expand(x)) = expand(x)"""
    (x,), perm = node.inputs, node.attrs["perm"]
    if perm == tuple(range(len(perm))):
        return x
    if x.op is t.transpose:
        return plain.transpose(x.inputs[0], [x.attrs["perm"][axis] for axis in perm])
    if x.op is t.expand:
        kept = other_axes(x.attrs["axes"], len(perm))
        new = [i for i, axis in enumerate(perm) if axis in x.attrs["axes"]]
        inner = plain.transpose(x.inputs[0], [kept.index(axis) for axis in perm if axis in kept])
        return plain.expand(inner, new, node.type.shape)
    return None


@motion.on(t.expand)
def expand_of_expand(node: Node) -> Node | None:
    """expand(expand(x)) = expand(x), over the axes of both"""
    (x,), axes = node.inputs, node.attrs["axes"]
    if not axes:
        return x
    if x.op is t.expand:
        kept = other_axes(axes, node.type.ndim)
        return plain.expand(
            x.inputs[0], {*axes, *(kept[axis] for axis in x.attrs["axes"])}, node.type.shape
        )
    return None


@motion.on(t.reshape)
def reshape_of_reshape(node: Node) -> Node | None:
    """reshape(reshape(x)) = reshape(x), and none where the shape is the same"""
    (x,), shape = node.inputs, node.attrs["shape"]
    if x.op is t.reshape:
        return plain.reshape(x.inputs[0], shape)
    return x if x.type.shape == shape else None


@motion.on(t.reshape, under=[t.expand])
def reshape_of_expand(node: Node) -> Node | None:
    """reshape(expand(x)) = expand(reshape(x)), if no axis that is new is merged with one of x"""
    (x,) = node.inputs
    runs = factors(x.type.shape, node.type.shape)
    if runs is None:
        return None
    repeated = []
    for old, new in runs:
        if set(old) <= set(x.attrs["axes"]):
            repeated += new
        elif set(old) & set(x.attrs["axes"]):
            return None
    shape = tuple(node.type.shape[axis] for axis in other_axes(tuple(repeated), node.type.ndim))
    return plain.expand(plain.reshape(x.inputs[0], shape), repeated, node.type.shape)


@motion.on(t.reshape, under=[t.transpose])
def reshape_of_transpose(node: Node) -> Node | None:
    """reshape(transpose(x)) = transpose(reshape(x)), if axes that are merged stood together in x"""
    (x,) = node.inputs
    (source,), perm = x.inputs, x.attrs["perm"]
    runs = factors(x.type.shape, node.type.shape)
    if runs is None:
        return None
    placed = [([perm[axis] for axis in old], new) for old, new in runs]
    for old, _ in placed:
        if old != list(range(old[0], old[0] + len(old))):
            return None
    placed.sort()
    order = [axis for _, new in placed for axis in new]
    small = plain.reshape(source, tuple(node.type.shape[axis] for axis in order))
    return plain.transpose(small, [order.index(axis) for axis in range(node.type.ndim)])


def factors(source: Shape, target: Shape) -> list[tuple[list[int], list[int]]] | None:
    """The shortest runs of axes of two shapes that hold as many values as each other, in order.

    None where they do not show, or where an axis of size 1 comes out of nothing.
    """
    runs = []
    i = j = 0
    while i < len(source) or j < len(target):
        lengths = product(range(1, len(source) - i + 1), range(len(target) - j + 1))
        for old, new in sorted(lengths, key=sum):
            if same(count(source[i : i + old]), count(target[j : j + new])):
                break
        else:
            return None
        runs.append((list(range(i, i + old)), list(range(j, j + new))))
        i, j = i + old, j + new
    return runs


@motion.on(t.slice_)
def slice_of_slice(node: Node) -> Node | None:
    """slice(x, everything) = x; slice(slice(x)) is one slice"""
    (x,), attrs = node.inputs, node.attrs
    starts, steps = attrs["starts"], attrs["steps"]
    if node.type.shape == x.type.shape and not any(start != 0 for start in starts):
        return x if all(step == 1 for step in steps) else None
    if x.op is t.slice_:
        return t.slice_(x.inputs[0], sizes=attrs["sizes"], **ranges_of(x, node))
    return None


def ranges_of(a: Node, b: Node) -> dict[str, Axes]:
    """On each axis the places of `a` that are the places of `b` in it."""
    both = zip(*[x.attrs[name] for x in (a, b) for name in ("starts", "steps")], strict=True)
    starts, steps = zip(*[(s + by * t, by * step) for s, by, t, step in both], strict=True)
    return {"starts": starts, "steps": steps}


@motion.on(t.concat, under=[leaf.full])
def concat_of_zeros(node: Node) -> Node | None:
    """concat(0, x, 0) = embed(x)"""
    axis = node.attrs["axis"]
    given = [x for x in node.inputs if not is_positive_zero(x)]
    if len(given) != 1 or len(node.inputs) == 1:
        return None
    (x,) = given
    starts: list[Size] = [0] * x.type.ndim
    for before in node.inputs[: node.inputs.index(x)]:
        starts[axis] = starts[axis] + before.type.shape[axis]
    return t.embed(x, shape=node.type.shape, starts=tuple(starts), steps=(1,) * x.type.ndim)


@motion.on(t.embed)
def embed_of_view(node: Node) -> Node | None:
    """embed(x) = slice(x), if that is as large; embed(embed(x)) is one embed"""
    (x,), attrs = node.inputs, node.attrs
    if x.type.shape == node.type.shape:  # every place is taken, forwards or backwards
        return t.slice_(x, starts=attrs["starts"], sizes=x.type.shape, steps=attrs["steps"])
    if x.op is not t.embed:
        return None
    return t.embed(x.inputs[0], shape=node.type.shape, **ranges_of(node, x))


@motion.on(t.slice_, under=[t.overwrite])
def slice_of_overwrite(node: Node) -> Node | None:
    """slice(overwrite(x, u)) = u, at the same places"""
    (x,) = node.inputs
    part = x.inputs[1]
    same_places = all(x.attrs[name] == node.attrs[name] for name in ("starts", "steps"))
    return part if same_places and part.type.shape == node.type.shape else None


@motion.on(t.overwrite)
def overwrite_of_all(node: Node) -> Node | None:
    """overwrite(x, u) = slice(u), if u is as large; overwrite(overwrite(x, u), v) has v alone"""
    (x, part), attrs = node.inputs, node.attrs
    if part.type.shape == node.type.shape:  # every place is taken, forwards or backwards
        return t.slice_(part, sizes=part.type.shape, **attrs)
    if x.op is t.overwrite and x.attrs == attrs and x.inputs[1].type.shape == part.type.shape:
        return t.overwrite(x.inputs[0], part, **attrs)
    return None


MOST_PARTS = 64
"""Parts that a concat takes in, and terms that a sum is looked through: chains stay linear."""


@motion.on(add, under=[t.embed])
def embeds_put_together(node: Node) -> Node | None:
    """embed(x) + embed(y) + ... = embed(concat(x, y, ...)), if each goes on where another ends"""
    parts = embedded_terms(node)
    if not parts or len({part.attrs["steps"] for part in parts}) > 1:
        return None
    ranges = [tuple(zip(part.attrs["starts"], part.inputs[0].type.shape)) for part in parts]
    apart = [axis for axis, pairs in enumerate(zip(*ranges)) if len(set(pairs)) > 1]
    if len(apart) != 1:
        return None
    (axis,), steps = apart, parts[0].attrs["steps"]
    begins = {pairs[axis][0]: part.inputs[0] for pairs, part in zip(ranges, parts)}
    ends = {start + size * steps[axis] for start, size in (pairs[axis] for pairs in ranges)}
    if len(begins) < len(parts) or len(firsts := begins.keys() - ends) != 1:
        return None
    (start,), order = firsts, list[Node]()
    at = start
    while (x := begins.pop(at, None)) is not None:
        order.append(x)
        at = at + x.type.shape[axis] * steps[axis]
    if begins:
        return None
    starts = parts[0].attrs["starts"]
    starts = (*starts[:axis], start, *starts[axis + 1 :])
    return t.embed(t.concat(*order, axis=axis), shape=node.type.shape, starts=starts, steps=steps)


def embedded_terms(node: Node) -> list[Node]:
    """The terms of a sum, if all are embedded, and not too many."""
    found: list[Node] = []
    stack = list(node.inputs)
    while stack:
        x = stack.pop()
        if x.op is t.embed and len(found) < MOST_PARTS:
            found.append(x)
        elif x.op is add:
            stack.extend(x.inputs)
        else:
            return []
    return found


@motion.on(t.concat, under=[t.concat])
def concat_of_concat(node: Node) -> Node | None:
    """concat(concat(x, y), z) = concat(x, y, z)"""
    axis = node.attrs["axis"]
    parts = [
        part
        for x in node.inputs
        for part in (x.inputs if x.op is t.concat and x.attrs["axis"] == axis else (x,))
    ]
    return t.concat(*parts, axis=axis) if len(node.inputs) < len(parts) <= MOST_PARTS else None


@motion.on(t.sum_)
def sum_of_view(node: Node) -> Node | None:
    """sum(expand(x)) = count * x; sum(sum(x)) is one; sum(one place) = x"""
    (x,), axes = node.inputs, node.attrs["axes"]
    if all(x.type.shape[axis] == 1 for axis in axes):
        return plain.cast(plain.reshape(x, node.type.shape), node.type.dtype)
    if x.op is t.sum_:
        kept = other_axes(x.attrs["axes"], x.inputs[0].type.ndim)
        return t.sum_(
            x.inputs[0], axes=tuple(sorted((*x.attrs["axes"], *(kept[axis] for axis in axes))))
        )
    if x.op in (t.expand, leaf.full):  # all that is repeated is summed: the rest has moved outside
        new = x.attrs.get("axes", axes)
        rest = [new_place(axis, new) for axis in axes if axis not in new]
        inner = plain.sum_over(less_repeated(x, new), rest)
        return times(inner, count(x.type.shape[axis] for axis in new))
    if x.op is negative:
        return -t.sum_(x.inputs[0], axes=axes)
    return None


@motion.on(Reduces, under=[t.transpose])
def reduction_of_transpose(node: Node) -> Node:
    """max(transpose(x)) = transpose(max(x)), over the axes as they stood"""
    (x,) = node.inputs
    perm = x.attrs["perm"]
    return in_order(node, x.inputs, [perm.index(axis) for axis in range(len(perm))])


def in_order(node: Node, operands: Sequence[Node], perm: Sequence[int]) -> Node:
    """`node` computed of operands whose axes are in the order `perm`, and seen as before."""
    kind = node.op.axes
    attrs = kind.permute(node, tuple(perm))
    assert attrs is not None
    new = Node(node.op, tuple(operands), node.attrs if attrs is node.attrs else Attrs(attrs))
    if node.op.pointwise:  # as most, so that this is quick
        kept = list(range(len(perm)))
    else:
        ((sources, *_),) = kind.sources(node)
        kept = [axis for source in sources if source for axis in source.axes]
    order = [axis for axis in perm if axis in kept]
    if node.labels is not None:
        new = new.label(tuple(node.labels[kept.index(axis)] for axis in order))
    return plain.transpose(new, [order.index(axis) for axis in kept])


@motion.on(t.sum_, under=[t.scatter])
def sum_of_scatter(node: Node) -> Node | None:
    """sum(scatter(u, i, 0, 1, 2, ...)) over the axis of i = u: each value lands in its own row"""
    (x,), axes = node.inputs, node.attrs["axes"]
    updates, *indices = x.inputs
    walked = {}
    for axis, index in zip(x.attrs["axes"], indices, strict=True):
        if axis not in axes:
            source, place = unexpand(index)
            if source.op is not iota or source.attrs["size"] != x.type.shape[axis]:
                return None
            walked[axis] = place
    if set(axes) - set(x.attrs["axes"]) or len(axes) != 1 or len(walked) != len(indices) - 1:
        return None
    positions = indices[0].type.ndim
    if sorted(walked.values()) != list(range(positions)):
        return None
    rest = [axis for axis in range(x.type.ndim) if axis not in x.attrs["axes"]]
    order = {axis: positions + i for i, axis in enumerate(rest)} | walked
    kept = [axis for axis in range(x.type.ndim) if axis not in axes]
    return plain.transpose(updates, [order[axis] for axis in kept])


@motion.on(t.scatter_add, under=[leaf.full])
def scatter_to_zeros(node: Node) -> Node | None:
    """scatter_add(0, u, i) = scatter(u, i)"""
    x, *given = node.inputs
    return (
        t.scatter(*given, axes=node.attrs["axes"], shape=node.type.shape)
        if is_positive_zero(x)
        else None
    )


def unexpand(x: Node) -> tuple[Node, int]:
    """The vector that `x` repeats along all other axes, and its axis; else `x` itself."""
    if x.op is not t.expand:
        return x, 0
    (place, *more) = other_axes(x.attrs["axes"], x.type.ndim) or [0]
    return (x if more else x.inputs[0]), place
