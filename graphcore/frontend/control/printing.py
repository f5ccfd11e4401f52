"""Printing values while a program runs."""

from __future__ import annotations

from graphcore.frontend.core.base import Tensor, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.core.tracing import serial_numbers
from graphcore.ops import named

__all__ = ["print"]


def print(x: Operand, label: str = "") -> Tensor:
    """`x`, whose values are printed each time that they are computed, under `label`.

    Use the tensor that is returned: a value that no output needs is not computed, and then not
    printed. Prints come in the order in which they are written. The body of a loop prints at each
    step, a branch if it is taken. Derivatives print nothing, even where they compute values again.
    Machine code shows prints about every 30 ms, and at the end of a call, also when the call fails.

    Examples
    --------
    >>> x = gc.tensor("x", {"row": 3})
    >>> f = gc.compile([x], gc.print(x**2, "squares").sum())
    >>> f([1.0, 2.0, 3.0])
    squares: f64[row=3] = [1. 4. 9.]
    array(14.)
    """
    return wrap(named.print_(single(x), label=label, number=next(serial_numbers)))
