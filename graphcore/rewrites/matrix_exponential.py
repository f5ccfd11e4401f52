"""The exponential of matrices in plain ops: a Taylor series of the matrix made small, squared."""

from __future__ import annotations

from functools import reduce
from math import factorial
from operator import add

import numpy as np

from graphcore.ir import INT, Graph, Hidden, Node, full_like
from graphcore.ops import control, leaf, tensor
from graphcore.ops import elementwise as e

from . import plain_matrices
from .plain import cast, equals, expand_to, full, sum_over, where

POWERS, BLOCKS = 5, 4
"""The powers that the series is made of, and the number of its parts: its degree is 20."""
LIMIT = 1.4384
"""How large a matrix may be for the error of the series to be below half a unit in the last place:
it is the exponential of another matrix, which differs by so little (Higham 2005, Al-Mohy 2011)."""
ROOTS = 8
"""A matrix whose fifth power is taken is below this root of the largest number of its dtype."""


def decompose_expm(node: Node) -> Node:
    """(1 + x + x^2 / 2! + ... + x^20 / 20!)^(2^s), where x = a / 2^s

    The fourth and fifth powers of `a` decide how small x must be: far from normal they are far
    smaller than `a` is, and squares that are not needed cost accuracy (Al-Mohy, Higham 2009). So
    that none overflows, they are those of a matrix b of size 1.
    """
    (a,) = node.inputs
    exponent = if_finite(positive(e.ceil(e.log2(one_norm(a)))))
    powers = [a * power_of_two(-exponent, a)]
    for k in range(1, POWERS):
        powers.append(plain_matrices.matmul(powers[k // 2], powers[k - 1 - k // 2]))
    size = reduce(e.maximum, [one_norm(powers[k - 1]) ** (1 / k) for k in (POWERS - 1, POWERS)])
    most = np.finfo(size.type.dtype).maxexp // ROOTS
    halvings = e.maximum(e.ceil(exponent + e.log2(size / LIMIT)), exponent - most)
    halvings = if_finite(positive(halvings))
    scale = power_of_two(exponent - halvings, a)
    powers = [plain_matrices.eye_like(a), *[x * scale**k for k, x in enumerate(powers, 1)]]
    total = terms(POWERS * (BLOCKS - 1), powers)
    for block in reversed(range(BLOCKS - 1)):
        total = plain_matrices.matmul(total, powers[-1]) + terms(POWERS * block, powers[:-1])
    return squared(total, powers[1], cast(halvings, INT))


def terms(first: int, powers: list[Node]) -> Node:
    """Terms of the series from the one of x^first on, without this power."""
    return reduce(add, [x * (1 / factorial(first + k)) for k, x in enumerate(powers)])


def if_finite(x: Node) -> Node:
    """`x`, and 0 in place of nan and infinity."""
    return where(e.isfinite(x), x, 0)


def positive(x: Node) -> Node:
    """max(x, 0)"""
    return e.maximum(x, full_like(x, 0))


def one_norm(a: Node) -> Node:
    """The largest sum of magnitudes of a column."""
    return plain_matrices.largest(sum_over(e.absolute(a), (a.type.ndim - 2,)))


def power_of_two(exponent: Node, like: Node) -> Node:
    """2^exponent for all elements of each matrix of `like`."""
    return plain_matrices.expand_last(cast(e.exp2(exponent), like.type.dtype), like.type.shape)


def squared(total: Node, x: Node, times: Node) -> Node:
    """e^x, squared as often as `times` says for each matrix.

    Where x is triangular its diagonal has exponentials of its own, which squares would round.
    """
    batch = range(times.type.ndim)
    exact = e.logical_and(plain_matrices.on_diagonal(x), is_triangular(x))

    def settled(y: Node, own: Node, exact: Node) -> Node:
        return where(exact, plain_matrices.columns(e.exp(own), y), y)

    most = tensor.max_(times, axes=tuple(batch)) if batch else times
    own = plain_matrices.diagonal(x)
    operands = full(0, INT), settled(total, own, exact), own, exact, times, most
    params = [leaf.param(Hidden(f"operand{i}"), x.type) for i, x in enumerate(operands)]
    step, y, own, exact, times, most = params
    square = settled(plain_matrices.matmul(y, y), 2 * own, exact)
    if batch:
        going = e.less(expand_to(step, times.type.shape), times)
        square = where(plain_matrices.expand_last(going, y.type.shape), square, y)
    body = Graph(tuple(params), (step + 1, square, 2 * own))
    ends = Graph(tuple(params), (e.less(step, most),))
    return control.while_loop(*operands, predicate=ends, body=body, carries=3, trips=None)[1]


def is_triangular(x: Node) -> Node:
    """Whether there are only zeros above or below the diagonal, for all elements of a matrix."""
    zero, axes = equals(x, 0), (x.type.ndim - 2, x.type.ndim - 1)
    lower, upper = [
        tensor.all_(e.logical_or(zero, side), axes=axes)
        for side in (plain_matrices.below(x), plain_matrices.t(plain_matrices.below(x)))
    ]
    return plain_matrices.expand_last(e.logical_or(lower, upper), x.type.shape)
