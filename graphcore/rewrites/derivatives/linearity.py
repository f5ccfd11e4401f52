"""How the rule of a custom_pullback varies with its cotangents: it must be linear in them.

The graph of a linear rule need not show it: a loop may go on until a residual is small, and
conjugate gradients divide one square by another. So two facts are found for each value:

growth   if all cotangents are multiplied by a factor, the power of it by which the value is. A rule
         that grows by another power than 1 is not linear, whatever its loops do.
bend     the first op whose derivative depends on the cotangents. A rule without one can be
         transposed without knowing them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from fractions import Fraction
from functools import cache
from itertools import product as product_of
from math import isfinite, log
from typing import NamedTuple, TypeAlias

import numpy as np

from graphcore.analysis.dataflow import Forward, Known
from graphcore.analysis.paths import of_floats
from graphcore.ir import Graph, Node, Op, Trait, reached
from graphcore.ir.axes import values
from graphcore.ir.dtypes import differentiable
from graphcore.ir.transform import substitute
from graphcore.ops import autodiff, control, leaf, tensor
from graphcore.ops import elementwise as ops

from .partials import Partial, Select, Wins
from .tables import PARTIALS, TRANSPOSE, VJP


class Growth(Enum):
    """What is said in place of a power: a zero has ANY, sin(ct) has NONE, others are UNKNOWN."""

    ANY = "any"
    NONE = "none"
    UNKNOWN = "unknown"


Power: TypeAlias = Fraction | Growth


class Varies(NamedTuple):
    """How a value varies with the cotangents, if it does."""

    growth: Power = Fraction(0)
    at_all: bool = False
    bend: Node | None = None


Parts: TypeAlias = Known[Varies]
"""How each of a node's values varies."""

ALIKE = frozenset(
    {
        *(*TRANSPOSE, ops.where, tensor.norm, tensor.sort, autodiff.stop_gradient),
        *(tensor.max_, tensor.min_, tensor.cummax, tensor.cummin),
    }
)
"""Ops, not elementwise, whose result grows as their float operands do, if these grow alike."""


def variation(rule: Graph, cotangents: int) -> list[Varies]:
    """How each output of a rule varies with its last params, so many cotangents."""
    fixed = [Varies()] * (len(rule.params) - cotangents)
    return Variation().of_outputs(rule, [*fixed, *[Varies(Fraction(1), True)] * cotangents])


class Variation(Forward[Varies]):
    """How values vary; a power becomes unknown at the latest where values are joined."""

    unknown = Varies()

    def join(self, node: Node, several: Sequence[Varies]) -> Varies:
        """It may vary as any of them does; the first bend is named."""
        bend = next((part.bend for part in several if part.bend), None)
        varies = any(part.at_all for part in several)
        return Varies(power_of_sum([part.growth for part in several]), varies, bend)

    def chosen(self, node: Node, index: Varies, several: Sequence[Varies]) -> Varies:
        """The choice may vary as well."""
        part = self.join(node, several)
        return after_choice(node, part) if index.at_all else part

    def of_steps(
        self, node: Node, own: Sequence[Varies], params: Sequence[Varies]
    ) -> Sequence[Varies]:
        """The number of steps may vary as well."""
        made = super().of_steps(node, own, params)
        if (
            node.op is control.scan
            or not self.of_outputs(node.attrs["predicate"], params)[0].at_all
        ):
            return made
        return [after_choice(node, part) for part in made]

    def after(self, node: Node, given: Sequence[Varies], known: Known[Varies]) -> Sequence[Varies]:
        """A derivative is linear, and a function has one of its own."""
        if node.op in DERIVATIVES:
            return derivative_growth(node, given, known, self)
        return super().after(node, given, known)

    def of_node(
        self, node: Node, given: Sequence[Varies], known: Known[Varies]
    ) -> Sequence[Varies]:
        """How the values of a node vary, given how its inputs do."""
        count = len(values(node.type))
        if not (varying := [i for i, part in enumerate(given) if part.at_all]):
            return [Varies(growth(node, given, None))] * count
        bend = next((part.bend for part in given if part.bend), None)
        if bend is None and bends(node, varying, known):
            bend = node
        return [Varies(growth(node, given, bend), True, bend)] * count


DERIVATIVES = autodiff.LAZY | {control.custom, control.linear}


def after_choice(node: Node, part: Varies) -> Varies:
    """The variation of a value that something which varies selects, or repeats."""
    return Varies(part.growth if part.at_all else Growth.UNKNOWN, True, part.bend or node)


def derivative_growth(
    node: Node, given: Sequence[Varies], parts: Parts, analysis: Variation
) -> Sequence[Varies]:
    """A derivative is linear in its cotangents; for a custom pullback its own rule decides."""
    varying, count = [i for i, part in enumerate(given) if part.at_all], len(node.type.items)
    bend = next((part.bend for part in given if part.bend), None)
    if node.op is not control.custom:
        moving = node.attrs["moving" if node.op is control.linear else "ys"]
        if node.op is autodiff.pushforward:
            moving = node.attrs["wrt"]
        if any(i < len(given) - moving for i in varying):
            return [Varies(Growth.UNKNOWN, True, bend or node)] * count
        powers = [given[i].growth for i in varying] or [Fraction(0)]
        return [Varies(power_of_sum(powers), bool(varying), bend)] * count
    made = analysis.of_outputs(node.attrs["body"], given)
    if bend is None and varying:
        rule, results = node.attrs["rule"], leaf.values(node)
        new = dict(zip(rule.params, [*node.inputs, *results], strict=False))
        shares = substitute([rule.outputs[i] for i in varying], new)
        parts[node] = [Varies(at_all=True)] * count
        floats = all(differentiable(node.inputs[i].type.dtype) for i in varying)
        if not floats or any(reads(share, parts) for share in shares):
            bend = node
    return [part._replace(bend=bend) if part.at_all else part for part in made]


def bends(node: Node, varying: Sequence[int], parts: Parts) -> bool:
    """Whether the derivative of a node by operands that vary depends on varying values."""
    moving = [node.inputs[i] for i in varying]
    if not all(of_floats(x.type) for x in (node, *moving)):
        return True
    if node.op in (tensor.where_greater, tensor.multiply_no_nan):
        return varying != [0]  # the others are compared, or factors
    if node.op in TRANSPOSE:
        return False
    parts[node] = [Varies(at_all=True)]
    if node.op in PARTIALS:
        unknown = ops.UNKNOWN.get(node.op, ())
        partials = PARTIALS[node.op](node, *node.inputs)
        return any(i in unknown or reads(partials[i], parts) for i in varying)
    if node.op in VJP:
        shares = VJP[node.op](node, leaf.param("ct", node.type))
        return any(reads(shares[i], parts) for i in varying)
    return True


def reads(partial: Partial, parts: Parts) -> bool:
    """Whether a derivative depends on varying values; a derivative of 0 belongs to a jump."""
    match partial:
        case Select(condition, factor):
            return reads(condition, parts) or reads(factor, parts)
        case Wins(x, y):
            return reads(x, parts) or reads(y, parts)
        case Node():
            return varies_below(partial, parts)
    return partial is None or partial == 0


def varies_below(node: Node, parts: Parts) -> bool:
    """Whether a node made on the way depends on a known one that varies."""
    found = reached([node], lambda x: () if x in parts else x.inputs)
    return any(part.at_all for x in found for part in parts.get(x, ()))


def growth(node: Node, given: Sequence[Varies], bend: Node | None) -> Power:
    """The power by which a node's value grows."""
    if not node.inputs:
        value = node.attrs.get("value")
        return Fraction(0) if value is None or value.array.any() else Growth.ANY
    floats = [differentiable(x.type.dtype) for x in node.inputs]
    powers = [part.growth for part, real in zip(given, floats, strict=True) if real]
    known = of_powers(node, powers) if powers else None
    varying = [part.growth for part in given if part.at_all]
    if not varying:
        return Growth.ANY if known is Growth.ANY else Fraction(0)
    counted = any(part.at_all and not real for part, real in zip(given, floats, strict=True))
    if not of_floats(node.type) or (counted and node.op is not ops.where):
        return Growth.UNKNOWN
    if known is not None:
        return known
    if all(power in (0, Growth.ANY) for power in powers):
        return Fraction(0)
    if bend is None:
        return power_of_sum(varying)
    alone = len(varying) == 1 and isinstance(varying[0], Fraction)
    return Growth.NONE if alone and node.op in PARTIALS else Growth.UNKNOWN


def of_powers(node: Node, powers: Sequence[Power]) -> Power | None:
    """The power by which an op's result grows, if its float operands grow by these; if known."""
    if node.op is tensor.where_greater:
        return powers[0]
    if Trait.PRODUCT in node.op.traits or node.op in (ops.multiply, tensor.multiply_no_nan):
        return power_of_product(powers)
    if node.op is ops.divide:
        return power_of_product([powers[0], raise_power(powers[1], Fraction(-1))])
    if (own := degree(node.op, len(powers))) is not None and (own == 1 or len(powers) == 1):
        return raise_power(power_of_sum(powers), own)
    if node.op is ops.power and node.inputs[1].op is leaf.full:
        exponent = node.inputs[1].attrs["value"].item()
        if isinstance(exponent, float) and isfinite(exponent):
            return raise_power(powers[0], Fraction(exponent))
    return power_of_sum(powers) if node.op in ALIKE else None


@cache
def degree(op: Op, operands: int) -> Fraction | None:
    """The power by which an elementwise op grows if its operands are scaled; None if by none.

    That is computed, so no op can be forgotten; of special functions none is known.

    >>> from graphcore.ops.elementwise import exp, hypot, sqrt
    >>> degree(sqrt, 1), degree(hypot, 2), degree(exp, 1)
    (Fraction(1, 2), Fraction(1, 1), None)
    """
    ufunc = ops.UFUNC.get(op)
    if not isinstance(ufunc, np.ufunc) or f"{'d' * operands}->d" not in ufunc.types:
        return None
    points = np.array([*product_of((7e-3, -4e-3, 0.0, 3.3), repeat=operands)]).T
    factor = 64.0  # whose square and cube roots are exact
    with np.errstate(all="ignore"):
        ratios = ufunc(*points * factor) / ufunc(*points)
        ratios = ratios[np.isfinite(ratios)]
        if not len(ratios) or (ratios <= 0).any():
            return None
        power = Fraction(log(ratios[0], factor)).limit_denominator(6)
        return power if np.allclose(ratios, factor**power, rtol=1e-12) else None


def power_of_sum(powers: Iterable[Power]) -> Power:
    """The power of a sum, or of a choice."""
    found = {power for power in powers if power is not Growth.ANY}
    if not found:
        return Growth.ANY
    return found.pop() if len(found) == 1 else Growth.UNKNOWN


def power_of_product(powers: Iterable[Power]) -> Power:
    """The power of a product."""
    total: Power = Fraction(0)
    for power in powers:
        match total, power:
            case (Growth.ANY, _) | (_, Growth.ANY):
                total = Growth.ANY
            case Fraction(), Fraction():
                total = total + power
            case (Growth.NONE, Fraction()) | (Fraction(), Growth.NONE):
                total = Growth.NONE
            case _:
                total = Growth.UNKNOWN
    return total


def raise_power(power: Power, by: Fraction) -> Power:
    """The power of a value that is raised to `by`."""
    if isinstance(power, Fraction):
        return power * by
    return power if power is Growth.ANY and by > 0 else Growth.UNKNOWN
