"""Logarithms of values that are made of exponentials, as sums of logarithms that do not overflow.

    log(c exp(x) + sigmoid(y)) = logaddexp(log(c) + x, -softplus(-y))

All parts must be known to be positive or 0: `log_of` reads the whole value, and gives None where it
finds a part of which that is not known. Found before differentiation, so that slopes are stable
as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from graphcore.analysis.values import is_real
from graphcore.ir import Node, Op, full_like, unwrap
from graphcore.ops import elementwise as e
from graphcore.ops import leaf, tensor
from graphcore.ops import special as s

from . import plain
from .engine import RuleSet
from .pattern import P, variables

x, y, z, c = variables("x y z c")

logarithms = RuleSet(
    [
        (1 - P.ndtr(x), lambda x: s.ndtr(-x)),
        (P.log1p(-P.ndtr(x)), lambda x: s.log_ndtr(-x)),
        (1 - P.erf(x), lambda x: s.erfc(x)),
        (1 - P.erfc(x), lambda x: s.erf(x)),
        (1 + P.erf(x), lambda x: s.erfc(-x)),
        (2 - P.erfc(x), lambda x: s.erfc(-x)),
        (c + c * P.erf(x), lambda c, x: c * s.erfc(-x) if c.op is leaf.full else None),
        (c - c * P.erf(x), lambda c, x: c * s.erfc(x) if c.op is leaf.full else None),
        (1 - P.gammainc(x, y), lambda x, y: s.gammaincc(x, y)),
        (1 - P.gammaincc(x, y), lambda x, y: s.gammainc(x, y)),
        (1 - P.betainc(x, y, z), lambda x, y, z: s.betaincc(x, y, z)),
        (1 - P.betaincc(x, y, z), lambda x, y, z: s.betainc(x, y, z)),
        (0 + P.sigmoid(x), lambda x: s.sigmoid(x)),
        (0 + P.ndtr(x), lambda x: s.ndtr(x)),
        (0 + P.exp(x), lambda x: e.exp(x)),
        (P.log(P.erfc(x) * 0.5), lambda x: s.log_ndtr(x * -math.sqrt(2))),
        (P.log(P.erfc(x) / 2), lambda x: s.log_ndtr(x * -math.sqrt(2))),
    ]
)

MOST_OPS_DEEP = 16
"""The most ops, one on the other, through which a positive value is read."""


def log_of(x: Node, depth: int = MOST_OPS_DEEP) -> Node | None:
    """The logarithm of a value that is known to be positive or 0, without overflow, if it is."""
    if is_known(x):
        return e.log(x) if not is_negative(x) else None
    if not depth or not is_real(x) or x.op not in LOGS:
        return None
    return LOGS[x.op](x, depth - 1)


def is_known(x: Node) -> bool:
    """Whether a value is known when the program is compiled, or is a size."""
    return is_real(x) and x.op in (leaf.full, leaf.constant, leaf.extent)


def is_negative(x: Node) -> bool:
    """Whether a known value has an element that is below 0, or nan."""
    return x.op is not leaf.extent and not bool((x.attrs["value"].array >= 0).all())


def logs_of(x: Node, depth: int) -> list[Node] | None:
    """The logarithms of all operands, if one of them is not known."""
    if all(map(is_known, x.inputs)):
        return None
    found = [log_of(y, depth) for y in x.inputs]
    return None if None in found else [y for y in found if y is not None]


def log_of_sum(x: Node, depth: int) -> Node | None:
    """log(a + b) = logaddexp(log(a), log(b)), and log(1 + b) = softplus(log(b))"""
    if (found := logs_of(x, depth)) is None:
        return None
    for one, other in ((0, 1), (1, 0)):
        if x.inputs[one].op is leaf.full and x.inputs[one].attrs["value"].is_(1):
            return s.softplus(found[other])
    return e.logaddexp(*found)


def log_of_product(x: Node, depth: int) -> Node | None:
    """log(a b) = log(a) + log(b), and log(a / b) = log(a) - log(b)"""
    if (found := logs_of(x, depth)) is None:
        return None
    a, b = found
    return a + b if x.op is e.multiply else a - b


def log_of_choice(x: Node, depth: int) -> Node | None:
    """log(where(c, a, b)) = where(c, log(a), log(b))"""
    condition, *parts = x.inputs
    found = [found for y in parts if (found := log_of(y, depth)) is not None]
    return e.where(condition, *found) if len(found) == 2 and not all(map(is_known, parts)) else None


def log_of_power(n: float) -> Callable[[Node, int], Node | None]:
    """log(a^n) = n log(a)"""

    def scaled(x: Node, depth: int) -> Node | None:
        found = log_of(x.inputs[0], depth)
        return None if found is None else found * n

    return scaled


def log_of_total(x: Node, depth: int) -> Node | None:
    """log(sum(a)) = logsumexp(log(a))"""
    found = None if is_known(x.inputs[0]) else log_of(x.inputs[0], depth)
    return None if found is None else tensor.logsumexp(found, axes=x.attrs["axes"])


def log_of_repeated(x: Node, depth: int) -> Node | None:
    """log(expand(a)) = expand(log(a))"""
    found = log_of(x.inputs[0], depth)
    return None if found is None else x.with_inputs(found)


def log_of_erfc(x: Node, depth: int) -> Node:
    """log(erfc(x)) = log(2) + log_ndtr(-sqrt(2) x), and log1p(-erf(x)) near 1 and above"""
    (y,) = x.inputs
    small = e.less(x, full_like(x, 0.5))
    tail = s.log_ndtr(y * -math.sqrt(2)) + math.log(2)
    return e.where(small, tail, e.log1p(-plain.where(small, 0, s.erf(y))))


LOGS: dict[Op, Callable[[Node, int], Node | None]] = {
    e.exp: lambda x, depth: x.inputs[0],
    s.sigmoid: lambda x, depth: -s.softplus(-x.inputs[0]),
    s.ndtr: lambda x, depth: s.log_ndtr(x.inputs[0]),
    s.erfc: log_of_erfc,
    tensor.softmax: lambda x, depth: tensor.log_softmax(x.inputs[0], axes=x.attrs["axes"]),
    e.add: log_of_sum,
    e.multiply: log_of_product,
    e.divide: log_of_product,
    e.where: log_of_choice,
    e.square: log_of_power(2),
    e.sqrt: log_of_power(0.5),
    e.reciprocal: log_of_power(-1),
    tensor.sum_: log_of_total,
    tensor.expand: log_of_repeated,
}
"""The logarithms of values made of positive ones."""


@logarithms.on(e.log, under=LOGS)
def log_of_exponentials(node: Node) -> Node | None:
    """log(exp(x) + exp(y)) = logaddexp(x, y), and its kin"""
    return log_of(node.inputs[0])


@logarithms.on(e.log, under=[e.subtract, e.expm1])
def log_of_difference(node: Node) -> Node | None:
    """log(a - b) = log(a) + log1mexp(log(b) - log(a)); that of 0 - 0 is -inf"""
    return difference(node.inputs[0])


def difference(x: Node) -> Node | None:
    """The logarithm of a difference of values made of exponentials; nan where it is below 0."""
    if x.op is e.expm1 and is_real(x):
        return x.inputs[0] + s.log1mexp(-x.inputs[0])
    if x.op is not e.subtract or (found := logs_of(x, MOST_OPS_DEEP)) is None:
        return None
    a, b = found
    return a + s.log1mexp(b - plain.where(plain.equals(a, -math.inf), 0, a))


@logarithms.on(e.log, under=[e.multiply, e.divide])
def log_of_scaled(node: Node) -> Node | None:
    """log(exp(x) y) = x + log(y), as it has the sign of y; log(y / exp(x)) = log(y) - x"""
    (product,) = node.inputs
    a, b = product.inputs
    of_a, of_b = ((None if is_known(y) else log_of(y)) or difference(y) for y in (a, b))
    if of_a is None and of_b is None:
        return None
    of_a, of_b = of_a or e.log(a), of_b or e.log(b)
    return of_a + of_b if product.op is e.multiply else of_a - of_b


@logarithms.on(e.log1p, under=[e.negative, *LOGS])
def log1p_of_exponentials(node: Node) -> Node | None:
    """log(1 + a) = softplus(log(a)), and log(1 - a) = log1mexp(log(a))"""
    (x,) = node.inputs
    part = unwrap(x, e.negative)
    found = None if is_known(part) else log_of(part)
    if found is None:
        return None
    return s.softplus(found) if part is x else s.log1mexp(found)


@logarithms.on(e.divide, under=[e.add])
def share_of_exponentials(node: Node) -> Node | None:
    """a / (a + b) = sigmoid(log(a) - log(b))"""
    part, total = node.inputs
    if total.op is not e.add or part not in total.inputs:
        return None
    a, b = total.inputs if part is total.inputs[0] else total.inputs[::-1]
    if is_known(a) and is_known(b):
        return None
    of_a, of_b = log_of(a), log_of(b)
    return None if of_a is None or of_b is None else s.sigmoid(of_a - of_b)


COMPLEMENTS: dict[Op, Op] = {
    s.gammainc: s.gammaincc,
    s.gammaincc: s.gammainc,
    s.betainc: s.betaincc,
    s.betaincc: s.betainc,
}
"""Functions from 0 to 1, and what 1 less than them is."""


@logarithms.on(e.log, under=COMPLEMENTS)
def log_of_probability(node: Node) -> Node | None:
    """log(p) = log1p(-q) for a probability near 1, with q = 1 - p"""
    (p,) = node.inputs
    return (
        accurate_log(p, Node(COMPLEMENTS[p.op], p.inputs, p.attrs)) if p.op in COMPLEMENTS else None
    )


@logarithms.on(e.log, under=[s.erf])
def log_of_erf(node: Node) -> Node | None:
    """log(erf(x)) = log1mexp(log(erfc(x)))"""
    (x,) = node.inputs
    return s.log1mexp(e.log(s.erfc(x.inputs[0]))) if is_real(x) and x.op is s.erf else None


@logarithms.on(e.log1p, under=[e.negative])
def log_of_complement(node: Node) -> Node | None:
    """log1p(-p) = log(q) for a probability near 1, with q = 1 - p"""
    (q,) = node.inputs[0].inputs
    if q.op is s.erf:
        return e.log(s.erfc(q.inputs[0]))
    return e.log(Node(COMPLEMENTS[q.op], q.inputs, q.attrs)) if q.op in COMPLEMENTS else None


def accurate_log(p: Node, q: Node) -> Node:
    """log(p) for p + q = 1, from the smaller of both."""
    small = e.less(p, full_like(p, 0.5))
    return e.where(small, e.log(plain.where(small, p, 1)), e.log1p(-plain.where(small, 0, q)))


@logarithms.on(e.log, under=[e.square, e.absolute, e.power, e.multiply])
def log_of_power_of_product(node: Node) -> Node | None:
    """log(prod(x)^n) = n sum(log|x|) for even n, and log|prod(x)| = sum(log|x|)"""
    (x,) = node.inputs
    base, n = x.inputs[0], x.inputs[-1]
    if base.op is not tensor.prod or not is_real(base):
        return None
    times = {e.square: 2.0, e.absolute: 1.0, e.multiply: 2.0 if base is n else 0.0}.get(x.op, 0.0)
    if x.op is e.power and n.op is leaf.full:
        times = n.attrs["value"].item()
    even = x.op is e.absolute or (times and times % 2 == 0)
    total = tensor.sum_(e.log(e.absolute(base.inputs[0])), axes=(base.attrs["axis"],))
    return total * times if even else None
