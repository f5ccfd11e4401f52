"""VJP: ops that are neither elementwise nor linear, `(node, ct) -> cotangent of each operand`.

None stands for an operand that the result does not vary with. Every rule is linear in `ct` and
made of plain ops, so the pushforward is its transpose and derivatives of any order follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

from graphcore.analysis.values import is_infinite
from graphcore.ir import Node, Op, full_like
from graphcore.ops import autodiff, elementwise, tensor
from graphcore.rewrites import plain
from graphcore.rewrites.plain_matrices import index, t
from graphcore.rewrites.shields import contracted, shield

from .positions import scatter_extreme_vjp, scatter_prod_vjp

Vjp: TypeAlias = Callable[[Node, Node], "tuple[Node | None, ...]"]


def where_greater_vjp(node: Node, ct: Node) -> tuple[Node | None, ...]:
    """Linear in the value; constant, except for jumps, in the operands compared"""
    _, x, y = node.inputs
    return tensor.where_greater(ct, x, y), None, None


def multiply_no_nan_vjp(node: Node, ct: Node) -> tuple[Node, Node]:
    """That of the product, and 0 where x is 0 at a factor that is not finite"""
    x, factor = node.inputs
    counts = elementwise.logical_or(
        elementwise.isfinite(factor), elementwise.not_equal(x, full_like(x, 0))
    )
    return plain.where(counts, shield(ct, factor), 0), plain.where(counts, shield(ct, x), 0)


def extreme_vjp(node: Node, ct: Node) -> tuple[Node]:
    """x̄ = ȳ / (number of ties) where x is the extreme value, 0 elsewhere"""
    (x,), axes = node.inputs, node.attrs["axes"]
    chosen = elementwise.equal(x, plain.unsum(node, axes, x))
    for part in left_in(x):
        chosen = elementwise.logical_and(chosen, part)
    ties = plain.sum_over(plain.cast(chosen, ct.type.dtype), axes)
    if (initial := node.attrs.get("initial")) is not None:
        ties = ties + plain.cast(plain.equals(node, initial.item()), ct.type.dtype)
    return (plain.where(chosen, plain.unsum(ct / plain.nonzero(ties), axes, x), 0),)


def left_in(x: Node) -> Iterator[Node]:
    """Where `x` is no infinity that stands for an element left out by a mask."""
    if x.op is elementwise.where:
        mask, one, other = x.inputs
        if is_infinite(other):
            yield mask
        if is_infinite(one):
            yield elementwise.logical_not(mask)


def sort_vjp(node: Node, ct: Node) -> tuple[Node]:
    """x̄ = ȳ at the positions where values came from; tied values keep their order"""
    (x,), axis = node.inputs, node.attrs["axis"]
    shape = x.type.shape
    order = tensor.argsort(x, axis=axis, size=shape[axis], descending=False)
    places = [order if at == axis else index(x, at) for at in range(x.type.ndim)]
    return (tensor.scatter(ct, *places, axes=tuple(range(x.type.ndim)), shape=shape),)


def prod_vjp(node: Node, ct: Node) -> tuple[Node]:
    """x̄[i] = ȳ * (product before i) * (product after i): exact where values are 0"""
    (x,), axis = node.inputs, node.attrs["axis"]
    before = products_before(x, axis)
    after = plain.flip(products_before(plain.flip(x, axis), axis), axis)
    return (shield(plain.unsum(ct, (axis,), x), before * after),)


def products_before(x: Node, axis: int) -> Node:
    """The product of all values before each."""
    return plain.shift(tensor.cumprod(x, axis=axis), axis, 1)


def cumprod_vjp(node: Node, ct: Node) -> tuple[Node]:
    """x̄[i] = (product before i) * s[i], with s[i] = ȳ[i] + x[i+1] s[i+1]"""
    (x,), axis = node.inputs, node.attrs["axis"]
    return (shield(backwards(x, ct, axis), products_before(x, axis)),)


def running_extreme_vjp(node: Node, ct: Node) -> tuple[Node]:
    """x̄[i] = sum of ȳ[t] / (number of ties so far) over t >= i while x[i] is the extreme value"""
    (x,), axis = node.inputs, node.attrs["axis"]
    hit = elementwise.equal(x, node)
    stays = plain.cast(elementwise.equal(node, plain.shift(node, axis, 0)), ct.type.dtype)
    ties = tensor.recurrence(stays, plain.cast(hit, ct.type.dtype), axis=axis)
    return (plain.where(hit, backwards(stays, ct / plain.nonzero(ties), axis), 0),)


def logcumsumexp_vjp(node: Node, ct: Node) -> tuple[Node]:
    """x̄[i] = e^(x[i] - y[i]) s[i], with s[i] = ȳ[i] + e^(y[i] - y[i+1]) s[i+1]

    As y is rounded it is taken apart: y = m + log(t), where m is the largest value so far and t the
    sum of e^(x - m). Where y is inf, the n values so far that are inf share: 1 / n, with
    n[i] / n[i+1] for the rest.
    """
    (x,), axis = node.inputs, node.attrs["axis"]
    above = plain.equals(node, math.inf)
    most = plain.cast(plain.equals(x, math.inf), ct.type.dtype)
    n = tensor.cumsum(most, axis=axis)
    m = autodiff.stop_gradient(plain.where(elementwise.isinf(node), 0, tensor.cummax(x, axis=axis)))
    power = plain.where(above, 0, elementwise.exp(plain.where(above, 0, x) - m))
    fall = elementwise.exp(elementwise.minimum(plain.shift(m, axis, 0) - m, full_like(m, 0)))
    t = tensor.recurrence(fall, power, axis=axis)
    share = plain.where(above, most / plain.nonzero(n), power / plain.nonzero(t))
    rest = plain.where(
        above,
        plain.shift(n, axis, 0) / plain.nonzero(n),
        fall * plain.shift(t, axis, 0) / plain.nonzero(t),
    )
    return (shield(backwards(rest, ct, axis), share),)


def recurrence_vjp(node: Node, ct: Node) -> tuple[Node, Node]:
    """b̄ = s with s[t] = h̄[t] + a[t+1] s[t+1], and ā[t] = s[t] h[t-1]"""
    (a, _), axis = node.inputs, node.attrs["axis"]
    s = backwards(a, ct, axis)
    return shield(s, plain.shift(node, axis, 0)), s


def backwards(a: Node, b: Node, axis: int) -> Node:
    """s[t] = b[t] + a[t+1] s[t+1]"""
    later = plain.shift(plain.flip(a, axis), axis, 0)
    return plain.flip(tensor.recurrence(later, plain.flip(b, axis), axis=axis), axis)


def norm_vjp(node: Node, ct: Node) -> tuple[Node]:
    """x̄ = ȳ x / |x|, and 0 where |x| is 0"""
    (x,), axes = node.inputs, node.attrs["axes"]
    known = plain.where(plain.equals(node, 0), 0, ct)
    return (shield(plain.unsum(known, axes, x), x / plain.unsum(plain.nonzero(node), axes, x)),)


def logsumexp_vjp(node: Node, ct: Node) -> tuple[Node]:
    """x̄ = ȳ softmax(x)"""
    (x,), axes = node.inputs, node.attrs["axes"]
    return (shield(plain.unsum(ct, axes, x), tensor.softmax(x, axes=axes)),)


def softmax_vjp(node: Node, ct: Node) -> tuple[Node]:
    """x̄ = p (p̄ - sum(p p̄))"""
    axes = node.attrs["axes"]
    mean = plain.unsum(plain.sum_over(shield(ct, node), axes), axes, node)
    return (shield(ct - mean, node),)


def log_softmax_vjp(node: Node, ct: Node) -> tuple[Node]:
    """x̄ = ȳ - softmax(x) sum(ȳ)"""
    (x,), axes = node.inputs, node.attrs["axes"]
    total = plain.unsum(plain.sum_over(ct, axes), axes, node)
    return (ct - shield(total, tensor.softmax(x, axes=axes)),)


def einsum_vjp(node: Node, ct: Node) -> tuple[Node, ...]:
    """Each operand's cotangent is ȳ contracted with all the others."""
    operands, result = node.attrs["operands"], node.attrs["result"]
    shares = []
    for i, (x, letters) in enumerate(zip(node.inputs, operands, strict=True)):
        others = [y for j, y in enumerate(node.inputs) if j != i]
        there = [of for j, of in enumerate(operands) if j != i]
        known = {*result}.union(*there)
        left = tuple(letter for letter in letters if letter in known)
        is_outer = known <= {*left}
        if others and is_outer:  # nothing is summed: one factor is smaller than the product
            others[0] = contracted(ct, others[0])
        share = tensor.einsum(ct, *others, operands=(result, *there), result=left)
        if others and not is_outer:
            share = contracted(ct, share)
        alone = [axis for axis, letter in enumerate(letters) if letter not in known]
        shares.append(plain.expand(share, alone, x.type.shape))
    return tuple(shares)


def matmul_vjp(node: Node, ct: Node) -> tuple[Node, Node]:
    """C = A B:  Ā = C̄ Bᵀ, B̄ = Aᵀ C̄"""
    a, b = node.inputs
    return contracted(ct, tensor.matmul(ct, t(b))), contracted(ct, tensor.matmul(t(a), ct))


def matvec_vjp(node: Node, ct: Node) -> tuple[Node, Node]:
    """y = A x:  Ā = ȳ xᵀ, x̄ = Aᵀ ȳ"""
    a, x = node.inputs
    rank = a.type.ndim
    rows = plain.expand(ct, (rank - 1,), a.type.shape)
    columns = plain.expand(x, (rank - 2,), a.type.shape)
    return shield(rows, columns), contracted(ct, tensor.matvec(t(a), ct))


def vecdot_vjp(node: Node, ct: Node) -> tuple[Node, Node]:
    """z = x · y:  x̄ = z̄ y, ȳ = z̄ x"""
    x, y = node.inputs
    spread = plain.unsum(ct, (x.type.ndim - 1,), x)
    return shield(spread, y), shield(spread, x)


MIXING: dict[Op, Vjp] = {
    tensor.where_greater: where_greater_vjp,
    tensor.multiply_no_nan: multiply_no_nan_vjp,
    tensor.max_: extreme_vjp,
    tensor.min_: extreme_vjp,
    tensor.scatter_max: scatter_extreme_vjp,
    tensor.scatter_min: scatter_extreme_vjp,
    tensor.scatter_prod: scatter_prod_vjp,
    tensor.sort: sort_vjp,
    tensor.prod: prod_vjp,
    tensor.cumprod: cumprod_vjp,
    tensor.cummax: running_extreme_vjp,
    tensor.cummin: running_extreme_vjp,
    tensor.print_: lambda node, ct: (ct,),  # no tangent map of its own, which would print tangents
    tensor.logcumsumexp: logcumsumexp_vjp,
    tensor.recurrence: recurrence_vjp,
    tensor.norm: norm_vjp,
    tensor.logsumexp: logsumexp_vjp,
    tensor.softmax: softmax_vjp,
    tensor.log_softmax: log_softmax_vjp,
    tensor.einsum: einsum_vjp,
    tensor.matmul: matmul_vjp,
    tensor.matvec: matvec_vjp,
    tensor.vecdot: vecdot_vjp,
}
