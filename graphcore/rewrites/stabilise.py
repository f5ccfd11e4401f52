"""Stable forms, found before differentiation so that derivatives are those of the stable form.

Read each line as `left = right` on the reals; the right side keeps digits where the left overflows
or cancels.
"""

from __future__ import annotations

import math

from graphcore.analysis.values import is_power_of_two, is_real, is_zero
from graphcore.ir import Node, full_like
from graphcore.ops import elementwise as e
from graphcore.ops import leaf, tensor
from graphcore.ops.special import log1mexp, sigmoid, softplus

from .engine import RuleSet
from .pattern import P, variables
from .plain import cast, equals, nonzero, where
from .powers import POWERS

(x,) = variables("x")


stabilise = RuleSet(
    [
        (P.log(1 + x), lambda x: e.log1p(x)),
        (P.log(1 - x), lambda x: e.log1p(-x)),
        (P.exp(x) - 1, lambda x: e.expm1(x)),
        (P.log(P.exp(x)), lambda x: x if is_real(x) else None),
        (P.log1p(P.exp(x)), lambda x: softplus(x) if is_real(x) else None),
        (P.log1p(-P.exp(x)), lambda x: log1mexp(x) if is_real(x) else None),
        (P.log(-P.expm1(x)), lambda x: log1mexp(x) if is_real(x) else None),
        (1 / (1 + P.exp(-x)), lambda x: sigmoid(x) if is_real(x) else None),
        (P.log(P.sigmoid(x)), lambda x: -softplus(-x) if is_real(x) else None),
        (P.log1p(-P.sigmoid(x)), lambda x: -softplus(x) if is_real(x) else None),
        (1 - P.sigmoid(x), lambda x: sigmoid(-x)),
        (1 / (1 + P.exp(x)), lambda x: sigmoid(-x) if is_real(x) else None),
        (P.sqrt(x * x), lambda x: e.absolute(x) if is_real(x) else None),
        (P.sqrt(P.square(x)), lambda x: e.absolute(x) if is_real(x) else None),
        (P.sqrt(P.exp(x)), lambda x: e.exp(x * 0.5) if is_real(x) else None),
        (P.absolute(P.exp(x)), lambda x: e.exp(x) if is_real(x) else None),
        (P.sign(P.exp(x)), lambda x: sign_of_exponential(x) if is_real(x) else None),
    ]
)


def sign_of_exponential(x: Node) -> Node:
    """1, also where exp(x) is rounded to 0; 0 for -inf, and nan for nan"""
    above = e.greater(x, full_like(x, -math.inf))
    return where(e.isnan(x), x, cast(above, x.type.dtype))


@stabilise.on(e.power, under=[e.exp])
def power_of_exponential(node: Node) -> Node | None:
    """exp(x) ** n = exp(n x), for n by which x is multiplied without rounding: powers of two

    Where products make the power, they are quicker than another exponential.
    """
    base, n = node.inputs
    if base.op is not e.exp or n.op is not leaf.full or not is_real(node):
        return None
    value = n.attrs["value"].array
    if value.item() in POWERS or not is_power_of_two(value):
        return None
    return e.exp(n * base.inputs[0])


@stabilise.on(e.sign)
def sign_of_complex(node: Node) -> Node | None:
    """sign(x) = x / |x| of a complex x, and 0 at 0: it turns with x, a real one does not

    Where one part is infinite it is the sign of this part, where both are it is nan, as in NumPy.
    """
    (x,) = node.inputs
    dtype = x.type.dtype
    if dtype.kind != "c":
        return None
    parts = [e.real(x), e.imag(x)]
    ends = [cast(where(e.isinf(part), e.sign(part), 0), dtype) for part in parts]
    end = where(
        e.logical_and(*map(e.isinf, parts)), complex(math.nan, math.nan), ends[0] + 1j * ends[1]
    )
    size = e.absolute(x)
    inner = x / nonzero(cast(size, dtype))
    return where(equals(x, 0), 0, where(e.isinf(size), end, inner))


@stabilise.on(e.log, under=[tensor.sum_])
def log_of_sum_of_exponentials(node: Node) -> Node | None:
    """log(sum(exp(x))) = logsumexp(x)"""
    match node:
        case Node(_, [Node(tensor.sum_, [Node(op, [x])], {"axes": axes})]) if op is e.exp:
            return tensor.logsumexp(x, axes=axes) if is_real(x) else None
    return None


@stabilise.on(e.divide, under=[e.exp])
def quotient_of_exponentials(node: Node) -> Node | None:
    """exp(x) / sum(exp(x)) = softmax(x)"""
    match node.inputs:
        case [
            Node(op, [x]) as top,
            Node(tensor.expand, [Node(tensor.sum_, [total], {"axes": axes})]),
        ]:
            repeated = node.inputs[1].attrs["axes"]
            if op is e.exp and total is top and axes == repeated and is_real(x):
                return tensor.softmax(x, axes=axes)
    return None


@stabilise.on(e.log, under=[tensor.softmax])
def log_of_softmax(node: Node) -> Node | None:
    """log(softmax(x)) = log_softmax(x)"""
    (p,) = node.inputs
    return tensor.log_softmax(p.inputs[0], axes=p.attrs["axes"])


@stabilise.on(e.exp, under=[tensor.log_softmax])
def exponential_of_log_softmax(node: Node) -> Node | None:
    """exp(log_softmax(x)) = softmax(x)"""
    (p,) = node.inputs
    return tensor.softmax(p.inputs[0], axes=p.attrs["axes"])


@stabilise.on(e.subtract, under=[tensor.expand])
def less_logsumexp(node: Node) -> Node | None:
    """x - logsumexp(x) = log_softmax(x)"""
    match node.inputs:
        case [x, Node(tensor.expand, [Node(tensor.logsumexp, [y], {"axes": axes})], {"axes": new})]:
            return tensor.log_softmax(x, axes=axes) if x is y and axes == new else None
    return None


def square_of_root(x: Node) -> Node | None:
    """where(v = 0, 0, sqrt(v))^2 = v, as a standard deviation is the root of a variance"""
    match x:
        case Node(
            choice, [Node(same, [v, zero]) as none, out, Node(root, [Node(_, [also, _, w])])]
        ):
            if (choice, same, root) == (e.where, e.equal, e.sqrt) and none is also and v is w:
                return v if is_zero(zero) and is_zero(out) else None
        case Node(op, [y, z]) if op is e.multiply or op is e.divide:
            of_y, of_z = square_of_root(y), square_of_root(z)
            if of_y is not None or of_z is not None:
                return x.with_inputs(of_y or e.square(y), of_z or e.square(z))
    return None


@stabilise.on(e.square, under=[e.where, e.multiply, e.divide])
def square_of_deviation(node: Node) -> Node | None:
    """std(x)^2 = var(x), and so with factors: it has no kink where it is 0"""
    return square_of_root(node.inputs[0])


@stabilise.on(e.multiply, under=[e.where, e.multiply, e.divide])
def product_of_deviations(node: Node) -> Node | None:
    """std(x) std(x) = var(x)"""
    x, y = node.inputs
    return square_of_root(x) if x is y else None
