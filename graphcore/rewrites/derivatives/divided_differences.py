"""Functions of Hermitian matrices and their derivatives, of any order and at equal eigenvalues.

The derivative in directions b, c, ... is a sum over the order of these, of

    M(b, c, ...) = v (sum over j, ... of f[w_i, w_j, ..., w_k] b_ij c_j. ...) v^H

with divided differences of `f`, and b, c, ... in the basis of v (Daleckii & Krein 1965). A further
direction is inserted at each place, and as divided differences do not depend on the order of their
arguments, tr(x M(b, c)) = tr(b M(c, x)): so all derivatives are of this form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count

import numpy as np

from graphcore.analysis.cost import letter_sizes
from graphcore.ir import Graph, Node, full_like
from graphcore.ops import autodiff, tensor
from graphcore.ops.elementwise import absolute, conjugate, less_equal, logical_or, minimum
from graphcore.rewrites.einsums import unfold
from graphcore.rewrites.plain import Axes, cast, where
from graphcore.rewrites.plain_matrices import columns, expand_last, matmul, rows, t

from .factors import EPS, close, gaps


def matrix_function_vjp(node: Node, ct: Node) -> tuple[Node | None, ...]:
    """x̄ = M(b, ..., ȳᵀ, ...)ᵀ at all places, b̄ with ȳᵀ in its place, that of f by its numbers"""
    f, numbers = node.attrs["f"], node.attrs["numbers"]
    fixed, directions = node.inputs[: 3 + numbers], node.inputs[3 + numbers :]
    x = t(ct)

    def transposed_function(*some: Node) -> Node:
        return t(Node(node.op, (*fixed, *some), node.attrs))

    places = range(len(directions) + 1)
    total = transposed_function(*directions, x)
    for i in places[1:]:
        total = total + transposed_function(*directions[i:], x, *directions[:i])
    by_numbers, letters = [], tuple(range(ct.type.ndim))
    for i in range(numbers):
        moved = node.op(*node.inputs, f=slope(f, 1 + i), numbers=numbers)
        sides = (letters, letters)
        by_numbers.append(tensor.einsum(ct, moved, operands=sides, result=letters[:-2]))
    shares = [transposed_function(*directions[i + 1 :], x, *directions[:i]) for i in places[:-1]]
    return total, None, None, *by_numbers, *shares


def trace_of_function_vjp(node: Node, ct: Node) -> tuple[Node | None, ...]:
    """x̄ = ȳ f'(x)ᵀ"""
    f, numbers = node.attrs["f"], node.attrs["numbers"]
    back = t(autodiff.matrix_function(*node.inputs, f=slope(f, 0), numbers=numbers))
    by_numbers = (
        ct * node.op(*node.inputs, f=slope(f, 1 + i), numbers=numbers) for i in range(numbers)
    )
    return expand_last(ct, back.type.shape) * back, None, None, *by_numbers


def slope(f: Graph, i: int) -> Graph:
    """The derivative of a function by one of its params: a lazy one."""
    (y,), x = f.outputs, f.params[i]
    return Graph(f.params, (autodiff.pushforward(y, x, full_like(x, 1), ys=1, wrt=1)[0],))


FUNCTIONS = {
    autodiff.matrix_function: matrix_function_vjp,
    autodiff.trace_of_function: trace_of_function_vjp,
}
TERMS = 2
"""The number of further Taylor terms that approximate a divided difference over a small gap."""


def orders(node: Node) -> int:
    """The number of derivatives of its function from which a `matrix_function` is computed."""
    count = len(node.inputs) - 3 - int(node.attrs["numbers"])
    return count and count + (TERMS if count > 1 else 1)


def slopes(f: Graph, count: int) -> Graph:
    """A function of one value, and its derivatives by it up to that order: lazy ones."""
    found = [f]
    for _ in range(count):
        found.append(slope(found[-1], 0))
    return Graph(f.params, tuple(g.outputs[0] for g in found))


def in_full(w: Node, v: Node, values: Sequence[Node], directions: Sequence[Node]) -> Node:
    """A `matrix_function`, given the `slopes` of its function at the eigenvalues."""
    dtype = np.result_type(v.type.dtype, *[x.type.dtype for x in (*values, *directions)])
    batch = tuple(range(v.type.ndim - 2))
    row, col, i, j = range(len(batch), len(batch) + 4)
    v = cast(v, dtype)
    back = conjugate(v) if dtype.kind == "c" else v
    values = [cast(value, dtype) for value in values]

    def product(x: Node, y: Node, z: Node, *letters: tuple[int, ...]) -> Node:
        *operands, result = ((*batch, *own) for own in letters)
        return tensor.einsum(x, y, z, operands=tuple(operands), result=result)

    if not directions:
        return product(v, values[0], back, (row, i), (i,), (col, i), (row, col))
    inner = [
        product(back, cast(b, dtype), v, (row, i), (row, col), (col, j), (i, j)) for b in directions
    ]
    found = Divided(w, values, inner[0]).sum(inner)
    return product(v, found, back, (row, i), (i, j), (col, j), (row, col))


def as_factors(node: Node, *xs: Node) -> Node:
    """A function of a matrix times vectors, as it was written: that matrix need not be formed."""
    if all(given.op is not autodiff.matrix_function for given in node.inputs):
        return node.with_inputs(*xs)
    terms: list[tuple[Node, Axes]] = []
    fresh = count(1 + max(letter_sizes(node)))
    for given, x, letters in zip(node.inputs, xs, node.attrs["operands"], strict=True):
        parted = given.op is autodiff.matrix_function and node.type.ndim < x.type.ndim
        terms += unfold(x, letters, fresh) if parted else [(x, letters)]
    operands = tuple(letters for _, letters in terms)
    return tensor.einsum(*[x for x, _ in terms], operands=operands, result=node.attrs["result"])


class Divided:
    """Sums of divided differences of a function at eigenvalues `w`, by its derivatives there."""

    def __init__(self, w: Node, values: Sequence[Node], like: Node) -> None:
        self.values, dtype = values, like.type.dtype
        gap = gaps(w, like, -1)
        self.close = close(gap, w)
        size = minimum(absolute(rows(w, like)), absolute(columns(w, like)))
        part = float(np.finfo(w.type.dtype).eps) ** (1 / (1 + TERMS))
        self.near = logical_or(self.close, less_equal(absolute(gap), part * size))
        self.gap = cast(gap, dtype)
        self.first = self.difference(w, like)

    def difference(self, w: Node, like: Node) -> Node:
        """f[w_i, w_j], to nearly full accuracy whatever the gap is.

        The trapezoidal rule with its correction, where it equals the quotient up to rounding.
        """
        (f, slope, bend), h = self.values[:3], self.gap

        def step(x: Node) -> Node:
            return columns(x, like) - rows(x, like)

        def both(x: Node) -> Node:
            return columns(x, like) + rows(x, like)

        rise, mean = step(f), 0.5 * both(slope)
        smooth = mean - where(self.close, 0, (h / 12) * step(bend))
        size = absolute(f) + absolute(cast(w, f.type.dtype) * slope)
        rounding = EPS * float(np.finfo(size.type.dtype).eps) * both(size)
        known = logical_or(self.close, less_equal(absolute(smooth * h - rise), rounding))
        return where(known, smooth, rise / where(known, 1, h))

    def sum(self, inner: Sequence[Node], r: int = 0) -> Node:
        """Sum over j, ... of f[w_i, (r times more), w_j, ..., w_k] b_ij c_j. ... in (i, k)

        By the last argument and the first; where these are near each other, by the Taylor series in
        the last one at w_i, whose terms are sums over fewer indices.
        """
        *rest, last = inner
        if not rest and not r:
            return self.first * last
        before = self.prefix(rest, last, r)
        after = self.sum(inner, r - 1) if r else matmul(inner[0], self.sum(inner[1:]))
        series = self.prefix(rest, last, r + 1)
        power = self.gap
        for i in range(TERMS - r):
            series = series + power * self.prefix(rest, last, r + 2 + i)
            power = power * self.gap
        return where(self.near, series, (after - before) / where(self.near, 1, self.gap))

    def prefix(self, rest: Sequence[Node], last: Node, r: int) -> Node:
        """The same sum but for the last argument, times `last`."""
        if rest:
            return matmul(self.sum(rest, r), last)
        return rows(self.values[r] / math.factorial(r), last) * last
