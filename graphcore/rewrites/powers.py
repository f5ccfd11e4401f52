"""Powers with small exponents as products, which need no logarithm.

NumPy computes most of them by these same forms where the exponent is a scalar. Cubes, fourth powers
and reciprocals of squares are rounded two or three times, so they may be 2 units in the last place
from `numpy.power`; overflow, underflow, nan, infinities and the sign of zero are the same.
"""

from __future__ import annotations

from collections.abc import Callable

from graphcore.ir import Node, full_like
from graphcore.ops import leaf
from graphcore.ops.elementwise import power, reciprocal, sqrt, square

from .engine import RuleSet

powers = RuleSet()

EXACT: dict[complex, Callable[[Node], Node]] = {
    -1.0: reciprocal,
    0.0: lambda x: full_like(x, 1),
    0.5: sqrt,
    1.0: lambda x: x,
    2.0: square,
}
"""x ** n by the forms that NumPy has for a scalar n."""

ROUNDED: dict[complex, Callable[[Node], Node]] = {
    -2.0: lambda x: square(reciprocal(x)),
    3.0: lambda x: x * square(x),
    4.0: lambda x: square(square(x)),
}
"""x ** n by forms that round more than once; no step overflows or vanishes unless x ** n does."""

POWERS = EXACT | ROUNDED


@powers.on(power, under=[leaf.full])
def small_powers(node: Node) -> Node | None:
    """x ** n as products, for small n"""
    x, y = node.inputs
    if y.op is leaf.full and x.type.dtype.kind in "fc":
        form = POWERS.get(y.attrs["value"].item())
        return form(x) if form else None
    return None
