"""Contractions: sums of products become `einsum`, which takes in the views around it."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.analysis.cost import letter_sizes, representative
from graphcore.analysis.values import is_finite
from graphcore.ir import Node
from graphcore.ir.sizes import count
from graphcore.ops import leaf
from graphcore.ops import tensor as t
from graphcore.ops.elementwise import cast, divide, multiply, negative, square

from . import plain
from .einsums import lone_places, single, sum_axes, summed_places
from .engine import RuleSet
from .plain import Axes, other_axes, times

contraction = RuleSet()


@contraction.on(t.sum_, under=[multiply, square])
def sum_of_product(node: Node) -> Node | None:
    """sum(x * y) = einsum(x, y), in floating point, if that takes in a view; else vecdot(x, y)"""
    (x,), axes = node.inputs, node.attrs["axes"]
    if x.type.dtype.kind not in "fc":
        return None
    letters = tuple(range(x.type.ndim))
    factors = x.inputs * 2 if x.op is square else x.inputs
    result = tuple(other_axes(axes, x.type.ndim))
    if any(map(is_taken_in, factors)):
        return t.einsum(*factors, operands=(letters, letters), result=result)
    if not flat(result, axes, letters, letters, x):
        return None
    a, b = factors
    return product_of_two(a, letters, b, letters, {*result}, result)[0]


def is_taken_in(x: Node) -> bool:
    """Whether an einsum takes in the operation that makes its operand `x`."""
    return x.op in (t.transpose, t.expand, leaf.full, negative) or bool(outer_factors(x))


@contraction.on(t.einsum, under=[t.transpose, t.expand, leaf.full])
def einsum_of_view(node: Node) -> Node | None:
    """einsum(transpose(x), expand(y)): letters are reordered and left out instead"""
    changed = False
    inputs, operands = list(node.inputs), list(node.attrs["operands"])
    for i, (x, letters) in enumerate(zip(inputs, operands, strict=True)):
        if x.op is t.transpose:
            perm = x.attrs["perm"]
            operands[i] = tuple(letters[perm.index(axis)] for axis in range(len(perm)))
            inputs[i], changed = x.inputs[0], True
        elif x.op is t.expand or (x.op is leaf.full and letters):
            kept = [] if x.op is leaf.full else other_axes(x.attrs["axes"], x.type.ndim)
            operands[i] = tuple(letters[axis] for axis in kept)
            inputs[i] = plain.refill(x, ()) if x.op is leaf.full else x.inputs[0]
            changed = True
    return contract(node, inputs, operands) if changed else None


@contraction.on(t.einsum, under=[multiply, t.einsum])
def einsum_of_outer(node: Node) -> Node | None:
    """einsum(x ∘ y, z) = einsum(x, y, z) for an outer product, which is larger than its factors"""
    inputs, operands = list(node.inputs), list(node.attrs["operands"])
    for i, (x, letters) in enumerate(zip(inputs, operands, strict=True)):
        if factors := outer_factors(x):
            inputs[i : i + 1] = [y for y, _ in factors]
            operands[i : i + 1] = [tuple(letters[axis] for axis in axes) for _, axes in factors]
            return t.einsum(*inputs, operands=tuple(operands), result=node.attrs["result"])
    return None


@contraction.on(divide, under=[multiply, t.einsum])
def quotient_of_outer(node: Node) -> Node | None:
    """(x ∘ y) / z = (x / z) ∘ y, where x has all axes of z"""
    product, divisor = node.inputs
    if divisor.op is not t.expand or not (factors := outer_factors(product)):
        return None
    needed = other_axes(divisor.attrs["axes"], divisor.type.ndim)
    for i, (x, axes) in enumerate(factors):
        if set(needed) <= set(axes):
            order = [needed.index(axis) for axis in axes if axis in needed]
            lost = [place for place, axis in enumerate(axes) if axis not in needed]
            z = plain.expand(plain.transpose(divisor.inputs[0], order), lost, x.type.shape)
            factors[i] = x / z, axes
            return t.einsum(
                *[x for x, _ in factors],
                operands=tuple(axes for _, axes in factors),
                result=tuple(range(node.type.ndim)),
            )
    return None


def outer_factors(x: Node) -> list[tuple[Node, Axes]]:
    """The factors of `x` and their axes, if it is an outer product: each lacks axes of `x`."""
    if x.op is multiply and all(y.op is t.expand for y in x.inputs):
        factors = [(y.inputs[0], tuple(other_axes(y.attrs["axes"], y.type.ndim))) for y in x.inputs]
    elif x.op is t.einsum and len(x.inputs) > 1:
        result: Axes = x.attrs["result"]
        operands: tuple[Axes, ...] = x.attrs["operands"]
        if not all(letter in result for letters in operands for letter in letters):
            return []
        axes = (tuple(result.index(letter) for letter in letters) for letters in operands)
        factors = list(zip(x.inputs, axes, strict=True))
    else:
        return []
    wide = {axis for axis, size in enumerate(x.type.shape) if size != 1}
    return factors if all(wide - set(axes) for _, axes in factors) else []


def contract(node: Node, inputs: Sequence[Node], operands: Sequence[Axes]) -> Node:
    """`node` with operands that have fewer letters: the lost ones are counted or repeated."""
    sizes = letter_sizes(node)
    known = {letter for letters in operands for letter in letters}
    result: Axes = node.attrs["result"]
    inner = t.einsum(
        *inputs,
        operands=tuple(operands),
        result=tuple(letter for letter in result if letter in known),
    )
    places = count(size for letter, size in sizes.items() if letter not in {*known, *result})
    if places != 1:
        inner = times(inner, places)
    lost = [axis for axis, letter in enumerate(result) if letter not in known]
    return plain.expand(inner, lost, node.type.shape)


@contraction.on(t.einsum)
def scalars_outside(node: Node) -> Node | None:
    """einsum(c, x, y) = c * einsum(x, y) for scalars c; einsum(-x, y) = -einsum(x, y)"""
    operands = node.attrs["operands"]
    for i, (x, letters) in enumerate(zip(node.inputs, operands, strict=True)):
        if x.op is negative:
            return -node.with_inputs(*node.inputs[:i], x.inputs[0], *node.inputs[i + 1 :])
        if not letters and len(operands) > 1:
            inner = t.einsum(
                *node.inputs[:i],
                *node.inputs[i + 1 :],
                operands=operands[:i] + operands[i + 1 :],
                result=node.attrs["result"],
            )
            factor = x if x.type.dtype == node.type.dtype else cast(x, dtype=node.type.dtype)
            found = inner * plain.expand_to(factor, inner.type.shape)
            return found if is_finite(x) else plain.unless_empty(summed_places(node), found)
    return None


@contraction.on(t.einsum)
def one_operand(node: Node) -> Node | None:
    """einsum(x) is a sum and a transpose"""
    if len(node.inputs) > 1:
        return None
    (x,), (letters,) = node.inputs, node.attrs["operands"]
    return single(x, letters, node.attrs["result"])


def cheapest_order(node: Node) -> list[tuple[int, ...]]:
    """The order of pairwise contractions that takes the fewest operations."""
    if len(node.inputs) == 2:
        return [(0, 1)]
    from opt_einsum.paths import greedy, optimal

    sizes = {letter: representative(size) for letter, size in letter_sizes(node).items()}
    search = optimal if len(node.inputs) <= 5 else greedy
    sets = [frozenset(letters) for letters in node.attrs["operands"]]
    return list(search(sets, frozenset(node.attrs["result"]), sizes, None))


def pairwise(node: Node) -> Node:
    """An einsum of any number of operands as matrix products of two at a time."""
    terms = list(zip(node.inputs, node.attrs["operands"], strict=True))
    result: Axes = node.attrs["result"]
    for pair in cheapest_order(node):
        chosen = [terms[i] for i in sorted(pair)]
        terms = [term for i, term in enumerate(terms) if i not in pair]
        wanted = {*result, *(letter for _, letters in terms for letter in letters)}
        while len(chosen) > 1:
            (x, a), (y, b) = chosen.pop(), chosen.pop()
            keep = wanted | {letter for _, letters in chosen for letter in letters}
            chosen.append(product_of_two(y, b, x, a, keep, result))
        terms.append(chosen[0])
    ((x, letters),) = terms
    return plain.unless_empty(lone_places(node), single(x, letters, result))


def product_of_two(
    x: Node, a: Axes, y: Node, b: Axes, keep: set[int], result: Axes
) -> tuple[Node, Axes]:
    """Two operands as one, and its letters: batch, then those of x alone, then those of y alone."""
    x, a = summed_alone(x, a, keep | set(b))
    y, b = summed_alone(y, b, keep | set(a))
    both = set(a) & set(b)
    inner = [letter for letter in a if letter in both and letter not in keep]
    order = {letter: i for i, letter in enumerate(result)}
    if first(b, both, order) < first(a, both, order):
        x, a, y, b = y, b, x, a
    batch = sorted((both & keep), key=lambda letter: order.get(letter, a.index(letter)))
    left = [letter for letter in a if letter not in both]
    right = [letter for letter in b if letter not in both]
    letters = (*batch, *left, *right)
    if not inner or not (left or right or flat(batch, inner, a, b, x)):
        return elementwise_product(x, a, y, b, (*letters, *inner), len(letters)), letters
    sizes = dict(zip(a, x.type.shape, strict=True)) | dict(zip(b, y.type.shape, strict=True))
    if left and right:
        found = t.matmul(
            merge_axes(x, a, batch, left, inner), merge_axes(y, b, batch, inner, right)
        )
    elif left:
        found = t.matvec(merge_axes(x, a, batch, left, inner), merge_axes(y, b, batch, inner))
    elif right:
        found = t.matvec(merge_axes(y, b, batch, right, inner), merge_axes(x, a, batch, inner))
    else:
        found = t.vecdot(merge_axes(x, a, batch, inner), merge_axes(y, b, batch, inner))
    return plain.reshape(found, tuple(sizes[letter] for letter in letters)), letters


def flat(batch: Sequence[int], inner: Sequence[int], a: Axes, b: Axes, x: Node) -> bool:
    """Whether both operands are vectors without a copy, and real: vecdot would conjugate."""
    return x.type.dtype.kind != "c" and (not batch or a == b == (*batch, *inner))


def first(letters: Axes, both: set[int], order: dict[int, int]) -> int:
    """The position in the result of the first letter that one operand has alone."""
    return min([order.get(k, len(order)) for k in letters if k not in both], default=len(order))


def summed_alone(x: Node, letters: Axes, needed: set[int]) -> tuple[Node, Axes]:
    """`x` summed over the letters nobody else has."""
    kept = tuple(letter for letter in letters if letter in needed)
    gone = [axis for axis, letter in enumerate(letters) if letter not in needed]
    return sum_axes(x, gone), kept


def elementwise_product(x: Node, a: Axes, y: Node, b: Axes, letters: Axes, kept: int) -> Node:
    """x * y over all letters, summed over those after the first `kept`."""
    sizes = dict(zip(a, x.type.shape, strict=True)) | dict(zip(b, y.type.shape, strict=True))
    shape = tuple(sizes[letter] for letter in letters)

    def spread(value: Node, own: Axes) -> Node:
        present = [letter for letter in letters if letter in own]
        ordered = plain.transpose(value, [own.index(letter) for letter in present])
        return plain.expand(ordered, [i for i, k in enumerate(letters) if k not in own], shape)

    return sum_axes(spread(x, a) * spread(y, b), range(kept, len(letters)))


def merge_axes(x: Node, letters: Axes, batch: Sequence[int], *groups: Sequence[int]) -> Node:
    """`x` as (*batch, one axis for each group).

    Its last axis stays the last, so that a copy, if one is needed, runs along memory: the matrices
    are transposed afterwards, which is a view.
    """
    sizes = dict(zip(letters, x.type.shape, strict=True))
    last = [letter for letter in letters if sizes[letter] != 1][-1:]
    if len(groups) == 2 and last and last[0] in groups[0]:
        swapped = merge_axes(x, letters, batch, groups[1], groups[0])
        rank = swapped.type.ndim
        return plain.transpose(swapped, (*range(rank - 2), rank - 1, rank - 2))
    ordered = [*batch, *(letter for group in groups for letter in group)]
    shape = (
        *(sizes[letter] for letter in batch),
        *(count(sizes[letter] for letter in group) for group in groups),
    )
    moved = plain.transpose(x, [letters.index(k) for k in ordered])
    if all(lie_together(group, letters, x) for group in groups):
        return plain.reshape(moved, shape)
    return t.pack(moved, shape=shape)


def lie_together(group: Sequence[int], letters: Axes, x: Node) -> bool:
    """Whether axes of `x` can be seen as one: those of windows cannot, as they overlap."""
    first = letters.index(group[0]) if group else 0
    together = letters[first : first + len(group)] == tuple(group) and x.op is not t.windows
    return len(group) < 2 or together
