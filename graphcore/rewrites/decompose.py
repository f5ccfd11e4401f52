"""The last lowering: ops kept whole for derivative rules become matrix products and simple ops."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from graphcore.analysis.values import is_zero
from graphcore.ir import Literal, Node, Op, Size, full_like
from graphcore.ir.sizes import maximum, minimum
from graphcore.ops import elementwise, leaf, linalg, special, tensor

from . import plain
from .contraction import pairwise
from .engine import Rule, RuleSet
from .matrix_exponential import decompose_expm
from .plain_matrices import h, half_triangle, hermitian, matmul, tril


def exponentials(x: Node, axes: plain.Axes) -> tuple[Node, Node, Node]:
    """m = max(x), e^(x - m), and its sum; m is no -inf, so that nothing is nan where x is -inf."""
    highest = elementwise.real(x) if x.type.dtype.kind == "c" else x
    lowest = Literal(np.finfo(highest.type.dtype).min, highest.type.dtype)
    m = plain.cast(tensor.max_(highest, axes=axes, initial=lowest), x.type.dtype)
    e = elementwise.exp(x - plain.unsum(m, axes, x))
    return m, e, plain.sum_over(e, axes)


def decompose_logsumexp(node: Node) -> Node:
    """m + log(sum(e^(x - m))), and inf where m is"""
    (x,) = node.inputs
    m, _, total = exponentials(x, node.attrs["axes"])
    return plain.where(plain.equals(m, math.inf), math.inf, m + elementwise.log(total))


def decompose_softmax(node: Node) -> Node:
    """e^(x - m) / sum(e^(x - m)); where all are -inf the sum is 0, and 1 divides as well"""
    (x,), axes = node.inputs, node.attrs["axes"]
    _, e, total = exponentials(x, axes)
    if x.type.dtype.kind == "c":
        return e / plain.unsum(plain.nonzero(total), axes, x)
    # The largest value adds 1 to the sum, so that any other sum is at least that.
    return e / plain.unsum(elementwise.maximum(total, full_like(total, 1)), axes, x)


def decompose_log_softmax(node: Node) -> Node:
    """(x - m) - log(sum(e^(x - m)))"""
    (x,), axes = node.inputs, node.attrs["axes"]
    m, _, total = exponentials(x, axes)
    return (x - plain.unsum(m, axes, x)) - plain.unsum(elementwise.log(total), axes, x)


def decompose_softplus(node: Node) -> Node:
    """max(x, 0) + log1p(e^-|x|), vectorised where logaddexp is not"""
    (x,) = node.inputs
    zero = full_like(x, 0)
    return elementwise.maximum(x, zero) + elementwise.log1p(
        elementwise.exp(-elementwise.absolute(x))
    )


def decompose_sigmoid(node: Node) -> Node:
    """1 / (1 + e^-x)"""
    (x,) = node.inputs
    return 1 / (1 + elementwise.exp(-x))


def decompose_log1mexp(node: Node) -> Node:
    """log(-(e^x - 1)) near 0, log1p(-e^x) far below (Maechler 2012)"""
    (x,) = node.inputs
    near = elementwise.greater(x, full_like(x, -math.log(2)))
    return plain.where(
        near,
        elementwise.log(-elementwise.expm1(x)),
        elementwise.log1p(-elementwise.exp(x)),
    )


def decompose_arctan_slope(node: Node) -> Node:
    """1 / (1 + x^2)"""
    (x,) = node.inputs
    return 1 / (1 + elementwise.square(x))


def decompose_cosine(node: Node) -> Node:
    """x / hypot(x, y), and 0 / 0 is 0"""
    x, y = node.inputs
    return x / plain.nonzero(elementwise.hypot(x, y))


def decompose_square_complement(node: Node) -> Node:
    """(1 - x) (1 + x)"""
    (x,) = node.inputs
    return (1 - x) * (1 + x)


def decompose_inversion_slope(node: Node) -> Node:
    """(y - x) (y + x) / hypot(x, y)^4, and 0 / 0 is 0"""
    x, y = node.inputs
    size = plain.nonzero(elementwise.hypot(x, y))
    return (y - x) / size * ((y + x) / size) / size / size


def decompose_inversion(node: Node) -> Node:
    """x / hypot(x, y) / hypot(x, y), and 0 / 0 is 0"""
    x, y = node.inputs
    size = plain.nonzero(elementwise.hypot(x, y))
    return x / size / size


def pseudo_huber_parts(delta: Node, r: Node) -> tuple[Node, Node, Node, Node, Node]:
    """|r|, min(delta, |r|), and h = hypot(delta, r), delta and |r| as parts of max(delta, |r|)"""
    size = elementwise.absolute(r)
    less, more = elementwise.minimum(delta, size), elementwise.maximum(delta, size)
    part, quadratic = less / plain.nonzero(more), elementwise.greater_equal(delta, size)
    h = elementwise.sqrt(1 + elementwise.square(part))
    return size, less, h, plain.where(quadratic, 1, part), plain.where(quadratic, part, 1)


def decompose_pseudo_huber(node: Node) -> Node:
    """delta r^2 / (h + delta), and 0 where one of them is"""
    size, less, h, delta, _ = pseudo_huber_parts(*node.inputs)
    return plain.where(plain.equals(less, 0), 0, size * (less / (h + delta)))


def decompose_pseudo_huber_by_delta(node: Node) -> Node:
    """r (r / h) (r / (h + delta))^2"""
    size, _, h, delta, r = pseudo_huber_parts(*node.inputs)
    half = r / (h + delta)
    return size * (r / h) * half * half


def decompose_pseudo_huber_by_r(node: Node) -> Node:
    """delta r / h"""
    _, less, h, _, _ = pseudo_huber_parts(*node.inputs)
    return elementwise.copysign(less, node.inputs[1]) / h


STEPS = 10
"""So many steps higher the asymptotic series of the digamma function is exact to the last digit."""
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def asymptotic(n: int) -> list[float]:
    """The coefficients of 1/x, 1/x^2, ... in the n-th derivative of log(x) - digamma(x), * (-1)^n

    Of digamma(x) itself for n > 0 (DLMF 5.11.2, 5.15.8).
    """
    found = [0.0] * (2 * len(BERNOULLI) + n)
    if n:
        found[n - 1] = float(math.factorial(n - 1))
    found[n] = math.factorial(n) / 2
    for k, b in enumerate(BERNOULLI, 1):
        found[2 * k + n - 1] = b * math.factorial(2 * k + n - 1) / math.factorial(2 * k)
    return found


def divided_difference(coefficients: Sequence[float], a: Node, b: Node) -> Node:
    """(p(a) - p(b)) / (a - b) of p(t) = c0 t + c1 t^2 + ..."""
    value, found = full_like(a, coefficients[-1]), full_like(a, coefficients[-1])
    for c in coefficients[-2::-1]:
        value = c + a * value
        found = value + b * found
    return found


def decompose_digamma_step(node: Node) -> Node:
    """The difference of each term of the asymptotic series, after some steps of the recurrence.

    1/y^p - 1/x^p = -(m / x y) (1/y^(p-1) + ... + 1/x^(p-1)), for y = x + m (DLMF 5.5.2, 5.15.5)
    """
    order, x, m = node.inputs
    n = int(order.attrs["value"].item())
    y = x + m
    steps = STEPS + n

    def difference(coefficients: Sequence[float], a: Node, b: Node) -> Node:
        return m * a * b * divided_difference(coefficients, a, b)

    total = difference(asymptotic(n), 1 / (y + steps), 1 / (x + steps))
    power = [0.0] * n + [float(math.factorial(n))]
    for k in range(steps):
        total = total + difference(power, 1 / (y + k), 1 / (x + k))
    if n:
        return total if n % 2 == 0 else -total
    low, high = x + steps, y + steps
    near = elementwise.less(elementwise.absolute(m), 0.5 * low)
    log = elementwise.log(plain.where(near, 1, high / low))
    return total + plain.where(near, elementwise.log1p(plain.where(near, m / low, 0)), log)


def product_of_no_places(node: Node) -> Node | None:
    """where(n = 0, 0, x y) = x[:, :k] y[:k], where k = 0 if n is, and all otherwise

    The product of parts, which are views, spares a pass over the result.
    """
    condition, zero, product = node.inputs
    size = compared_with_zero(condition)
    return None if size is None or not is_zero(zero) else empty_without(size, product)


def empty_without(size: Size, product: Node) -> Node | None:
    """A product of matrices, or a view of one, that adds nothing up if a size is 0."""
    if product.op in (tensor.reshape, tensor.transpose):
        inner = empty_without(size, product.inputs[0])
        return inner and product.with_inputs(inner)
    if product.op is not tensor.matmul:
        return None
    x, y = product.inputs
    places = x.type.shape[-1] * minimum(size, 1)
    return tensor.matmul(
        plain.take_range(x, x.type.ndim - 1, 0, places),
        plain.take_range(y, y.type.ndim - 2, 0, places),
    )


def compared_with_zero(condition: Node) -> Size | None:
    """The size n of a condition n = 0, which may be repeated."""
    match condition:
        case Node(tensor.expand, [x]):
            return compared_with_zero(x)
        case Node(elementwise.equal, [Node(leaf.extent) as n, zero]) if is_zero(zero):
            found: Size = n.attrs["size"]
            return found
    return None


FEWER = 4
"""Where windows are added up in blocks there are at least so many times fewer terms."""


def overlap_in_blocks(node: Node) -> Node | None:
    """y[q s + r] = sum of x[q - i, i s + r] over i, for windows that move by s places.

    Windows are cut into blocks of s places, which lie on each other whole: of all terms that are
    added up, none is nothing.
    """
    (x,), attrs = node.inputs, node.attrs
    axes, wide = attrs["axes"], len(attrs["axes"])
    for k, (axis, s, d) in enumerate(zip(axes, attrs["strides"], attrs["dilations"], strict=True)):
        at = axes[0] + k
        size = x.type.shape[at]
        count = (size + (s - 1)) // s
        known = isinstance(size, int) and isinstance(count, int)
        if d != 1 or not (0 < count * FEWER <= size if known else s >= FEWER):
            continue
        x = with_end(x, at, count * s)
        x = plain.reshape(x, (*x.type.shape[:at], count, s, *x.type.shape[at + 1 :]))
        order = [i for i in range(x.type.ndim) if i != at + 1]
        order.insert(axis + wide + 1, at + 1)
        x = plain.transpose(x, order)
        blocks = x.type.shape[axis + wide] + (count - 1)
        sizes, strides = [*attrs["sizes"]], [*attrs["strides"]]
        sizes[k], strides[k] = blocks, 1
        later = tuple([other + (other > axis) for other in axes])
        moved = {"axes": later, "sizes": tuple(sizes), "strides": tuple(strides)}
        y = tensor.overlap_add(x, **attrs | moved)
        y = plain.reshape(y, (*y.type.shape[:axis], blocks * s, *y.type.shape[axis + 2 :]))
        return with_end(y, axis, node.type.shape[axis])
    return None


def with_end(x: Node, axis: int, size: Size) -> Node:
    """The first `size` places of `x` along an axis; zeros where it has none."""
    own = x.type.shape[axis]
    if own == size:
        return x
    shape, zeros = list(x.type.shape), (0,) * x.type.ndim
    if not (isinstance(own, int) and isinstance(size, int) and size < own):
        shape[axis] = maximum(own, size)
        x = tensor.embed(x, shape=tuple(shape), starts=zeros, steps=(1,) * x.type.ndim)
    return x if x.type.shape[axis] == size else plain.take_range(x, axis, 0, size)


def cotangent_of_complex_factor(node: Node) -> Node | None:
    """The lower triangle of l⁻ᴴ (p + pᴴ) l⁻¹ for p = lᴴ g, each time with half the diagonal.

    Backends have routines of their own for real matrices.
    """
    lower, g = map(tril, node.inputs)
    if node.type.dtype.kind != "c":
        return None
    x = hermitian(matmul(h(lower), g))
    for _ in range(2):
        x = h(linalg.solve_triangular(h(lower), x, lower=False, unit=False, check=False))
    return tril(x + h(x)) * (0.5 * half_triangle(x))


DECOMPOSE: dict[Op, Rule] = {
    tensor.logsumexp: decompose_logsumexp,
    tensor.softmax: decompose_softmax,
    tensor.log_softmax: decompose_log_softmax,
    special.softplus: decompose_softplus,
    special.sigmoid: decompose_sigmoid,
    special.log1mexp: decompose_log1mexp,
    special.arctan_slope: decompose_arctan_slope,
    special.cosine: decompose_cosine,
    special.inversion: decompose_inversion,
    special.inversion_slope: decompose_inversion_slope,
    special.square_complement: decompose_square_complement,
    special.pseudo_huber: decompose_pseudo_huber,
    special.pseudo_huber_by_delta: decompose_pseudo_huber_by_delta,
    special.pseudo_huber_by_r: decompose_pseudo_huber_by_r,
    special.digamma_step: decompose_digamma_step,
    tensor.einsum: pairwise,
    linalg.expm: decompose_expm,
}


def decomposition_without(whole: frozenset[Op]) -> RuleSet:
    """The rules by which ops are taken apart, but for those that stay whole."""
    rules = RuleSet()
    for op, rule in DECOMPOSE.items():
        if op not in whole:
            rules.add(rule, [op], [])
    rules.add(overlap_in_blocks, [tensor.overlap_add], [])
    rules.add(cotangent_of_complex_factor, [linalg.cholesky_cotangent], [])
    products = [tensor.matmul, tensor.reshape, tensor.transpose]
    rules.add(product_of_no_places, [elementwise.where], products)
    return rules


decomposition = decomposition_without(frozenset())
