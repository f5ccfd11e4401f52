"""Why an op of finite values is nan or infinite, and the cure, where these are known."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphcore.ir import Node, Op
from graphcore.ir.provenance import Asked
from graphcore.ir.trace import Trace
from graphcore.ir.types import show_dtype
from graphcore.ops import autodiff, elementwise, linalg


class Cause(NamedTuple):
    """What happened, and what helps."""

    text: str
    cure: str


Values: TypeAlias = "Sequence[Any]"
"""The values of the operands of a pointwise op at one element."""
Explain: TypeAlias = "Callable[[Values, complex, Any], Cause | None]"
"""From the operands at one element, the result there and its dtype to the cause."""

MASK = "choose a harmless operand first: gc.log(gc.where(x > 0, x, 1))"


def log(xs: Values, y: complex, dtype: Any) -> Cause | None:
    (x,) = xs
    if x == 0:
        cure = f"keep it from 0, x.clip(1e-300) or gc.special.xlogy(x, x), or {MASK}"
        return Cause("the log of 0", cure)
    return Cause("the log of a negative number", f"keep it above 0, or {MASK}")


def log1p(xs: Values, y: complex, dtype: Any) -> Cause | None:
    (x,) = xs
    text = "the log of 0, as 1 + x is 0" if x == -1 else "the log of a negative number, 1 + x"
    return Cause(text, "keep x above -1")


def sqrt(xs: Values, y: complex, dtype: Any) -> Cause | None:
    cure = "clip it at 0 if rounding made it negative: gc.sqrt(gc.maximum(x, 0))"
    return Cause("the square root of a negative number", cure)


def divide(xs: Values, y: complex, dtype: Any) -> Cause | None:
    x, divisor = xs
    if divisor == 0 and x == 0:
        cure = "choose another divisor where it is 0: x / gc.where(y == 0, 1, y)"
        return Cause("0 divided by 0", cure)
    if divisor == 0:
        return Cause("a division by 0", "keep the divisor from 0, or leave such elements out first")
    return overflow(xs, y, dtype)


def reciprocal(xs: Values, y: complex, dtype: Any) -> Cause | None:
    return divide((1.0, *xs), y, dtype)


def power(xs: Values, y: complex, dtype: Any) -> Cause | None:
    if xs[0] == 0:
        return Cause("0 to a negative power", "keep the base from 0")
    if cmath.isnan(y):
        cure = "take the power of abs(x), or use whole exponents"
        return Cause("a negative number to a power that is not an integer", cure)
    return overflow(xs, y, dtype)


def exp(xs: Values, y: complex, dtype: Any) -> Cause | None:
    bound = math.log(float(np.finfo(dtype).max))
    cure = "stay in logs (gc.special.logsumexp, log_softmax, softplus, expit), or subtract the max"
    return Cause(f"exp overflows above {bound:.5g} in {show_dtype(dtype)}", cure)


def overflow(xs: Values, y: complex, dtype: Any) -> Cause | None:
    largest = float(np.finfo(dtype).max)
    cure = "scale the values, compute in logs" + (
        ", or use float64" if np.finfo(dtype).bits < 64 else ""
    )
    return Cause(f"an overflow: {show_dtype(dtype)} holds numbers up to {largest:.4g}", cure)


def outside(domain: str) -> Explain:
    """An op that is defined on a part of the numbers only."""
    return lambda xs, y, dtype: Cause(
        f"outside of its domain, {domain}", f"clip the operand to {domain}"
    )


def pole(at: str) -> Explain:
    """An op that has poles."""
    return lambda xs, y, dtype: (
        Cause(f"a pole: it is infinite at {at}", f"keep the operand from {at}")
        if not cmath.isnan(y)
        else Cause("outside of its domain", f"keep the operand from {at} and below")
    )


def elementwise_ops(*names: str) -> list[Op]:
    """Elementwise ops by name, those that there are."""
    return [op for op in elementwise.UFUNC if op.name in names]


EXPLAIN: dict[Op, Explain] = {
    **dict.fromkeys(elementwise_ops("log", "log2", "log10"), log),
    **dict.fromkeys(elementwise_ops("log1p"), log1p),
    **dict.fromkeys(elementwise_ops("sqrt"), sqrt),
    **dict.fromkeys(elementwise_ops("divide", "floor_divide", "remainder", "fmod"), divide),
    **dict.fromkeys(elementwise_ops("reciprocal"), reciprocal),
    **dict.fromkeys(elementwise_ops("power", "float_power"), power),
    **dict.fromkeys(elementwise_ops("exp", "exp2", "expm1", "sinh", "cosh"), exp),
    **dict.fromkeys(elementwise_ops("arcsin", "arccos"), outside("[-1, 1]")),
    **dict.fromkeys(elementwise_ops("arccosh"), outside("[1, inf)")),
    **dict.fromkeys(elementwise_ops("arctanh"), outside("(-1, 1)")),
    **dict.fromkeys(elementwise_ops("logit", "ndtri"), outside("(0, 1)")),
    **dict.fromkeys(elementwise_ops("erfinv"), outside("(-1, 1)")),
    **dict.fromkeys(elementwise_ops("gammaln", "gamma", "digamma", "psi"), pole("0")),
    **dict.fromkeys(elementwise_ops("add", "subtract", "multiply", "square"), overflow),
    elementwise.cast: overflow,
}
"""Pointwise ops that are infinite or nan at some finite operands, and how to explain it."""

EIGEN = Cause(
    "eigenvalues that are equal, or nearly: the derivative of their vectors divides by their "
    "difference",
    "differentiate functions of the matrix instead (v f(w) v^T is exact), or separate the "
    "eigenvalues by a small perturbation",
)
SINGULAR = Cause(
    "singular values that are equal, or nearly: the derivative of their vectors divides by their "
    "difference",
    "differentiate functions that do not depend on the choice of vectors, or separate the values",
)
ROOT = Cause(
    "the derivative of a square root at 0, which is infinite",
    "leave zeros out before the root: gc.sqrt(gc.where(x > 0, x, 1)), or add a small number",
)


def cause(node: Node, at: Values | None, y: complex, trace: Trace | None) -> Cause | None:
    """Why the result of a node is nan or infinite, if it is known; `at` are operands at a place."""
    ancestors = came_from(node, trace)
    if any(x.op is autodiff.turn for x in ancestors):
        of_svd = any(x.op in (linalg.svd, autodiff.svd_of) for x in ancestors)
        return SINGULAR if of_svd else EIGEN
    if any(x.op is autodiff.svd_of for x in ancestors):
        return SINGULAR
    if at is not None:
        if (root := derivative_of_root(node, at, ancestors)) is not None:
            return root
        explain = EXPLAIN.get(node.op)
        found = None if explain is None else explain(at, y, node.type.dtype)
        how = "not defined" if cmath.isnan(y) else "infinite, or too large for its dtype,"
        return found or Cause(f"{node.op.said} is {how} for these operands", "")
    if node.op.dialect == "linalg":
        return Cause(
            "a matrix that is singular, not positive definite, or too large",
            "leave check=False out to have such matrices refused, or add to the diagonal",
        )
    return None if cmath.isnan(y) else overflow((), y, node.type.dtype)


def derivative_of_root(node: Node, at: Values, ancestors: Sequence[Node]) -> Cause | None:
    """The cause of a division by 0 in the derivative of a square root."""
    divides = node.op is elementwise.divide and at[1] == 0
    if divides and any(x.op is elementwise.sqrt for x in ancestors):
        return ROOT
    return None


def came_from(node: Node, trace: Trace | None) -> list[Node]:
    """The nodes that a node stands in the place of, the nearest first."""
    found: list[Node] = []
    source: Any = node
    while trace is not None and source is not None and len(found) < 1000:
        source = trace.sources.get(source) if isinstance(source, Node) else source
        if isinstance(source, Asked):
            source = source.node
        if not isinstance(source, Node) or source in found:
            break
        found.append(source)
    return found
