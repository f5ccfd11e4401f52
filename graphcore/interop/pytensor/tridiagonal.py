"""Rules of tridiagonal systems: LAPACK's factors with exchanges of rows, as loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphcore as gc
from graphcore.frontend.core.base import Tensor

from .rules import Apply, rule
from .values import Value, axis, full, new_names, renamed

ROW = axis(0)


def alike(node: Apply, operands: Sequence[Value], step: str) -> list[Tensor]:
    """Operands along a dim of steps, in the dtype of the result."""
    tensors = [full(x, v.type).rename({ROW: step}) for x, v in zip(operands, node.inputs)]
    return [gc.astype(x, node.outputs[0].type.dtype) for x in tensors]


@rule("LUFactorTridiagonal")
def factored(node: Apply, *diagonals: Value) -> Sequence[Value]:
    """The diagonals of the factors, the second one above, and the row that each is exchanged with.

    Row i is exchanged with the next where that has the larger pivot; rows count from 1 (gttrf).
    """
    (step,) = new_names(["step"], *diagonals)
    below, main, above = alike(node, diagonals, step)
    n = main.sizes[step]
    above = gc.pad(above, {step: (0, 1)}, constant_values=0)

    def eliminate(carry: Any, now: Any) -> Any:
        pivot, right = carry
        i, low, next_main, next_above = now
        swap = gc.abs(pivot) < gc.abs(low)
        large, small = gc.where(swap, low, pivot), gc.where(swap, pivot, low)
        factor = small / gc.where(gc.equal(large, 0), 1, large)
        first, second = gc.where(swap, next_main, right), gc.where(swap, right, next_main)
        beyond = gc.where(swap, next_above, 0)
        new = second - factor * first, gc.where(swap, -factor * next_above, next_above)
        return new, (factor, large, first, beyond, gc.where(swap, i + 2, i + 1))

    rows = gc.arange(n - 1, dim=step)
    later = {step: slice(1, None)}
    each = rows, below, main.isel(later), above.isel(later)
    start = main.isel({step: 0}), above.isel({step: 0})
    (last, _), (factors, pivots, firsts, beyonds, places) = gc.scan(eliminate, start, each, step)
    end = [x.expand_dims({step: 1}) for x in (last, gc.full({}, n))]
    found = [
        factors,
        gc.concat([pivots, end[0]], step),
        firsts,
        beyonds.isel({step: slice(0, n - 2)}),
        gc.concat([places, gc.astype(end[1], "int64")], step),
    ]
    return [renamed(x, {step: ROW}) for x in found]


@rule("SolveLUFactorTridiagonal")
def solved(node: Apply, *operands: Value) -> Value:
    """The solution of a system, or of the transposed one, from its factors."""
    (step,) = new_names(["step"], *operands)
    below, main, above, beyond, places, right = alike(node, operands, step)
    n = main.sizes[step]
    kept = gc.equal(places, gc.arange(n, dim=step) + 1).isel({step: slice(0, n - 1)})
    if node.op.transposed:
        made = backward(below, kept, forward(main, above, beyond, right, step), step)
    else:
        half = exchanged(below, kept, right, step)
        main, above, beyond, half = (gc.flip(x, step) for x in (main, above, beyond, half))
        made = gc.flip(forward(main, above, beyond, half, step), step)
    return renamed(made, {step: ROW})


def forward(main: Tensor, near: Tensor, far: Tensor, right: Tensor, step: str) -> Tensor:
    """`x[i] = (right[i] - near[i-1] x[i-1] - far[i-2] x[i-2]) / main[i]`."""
    near = gc.pad(near, {step: (1, 0)}, constant_values=0)
    far = gc.pad(far, {step: (2, 0)}, constant_values=0).isel({step: slice(0, main.sizes[step])})
    zero = gc.zeros_like(right.isel({step: 0})) + 0 * main.isel({step: 0})

    def solve(carry: Any, now: Any) -> Any:
        last, before = carry
        pivot, a, b, y = now
        x = (y - a * last - b * before) / pivot
        return (x, last), x

    made: Tensor = gc.scan(solve, (zero, zero), (main, near, far, right), step)[1]
    return made


def exchanged(below: Tensor, kept: Tensor, right: Tensor, step: str) -> Tensor:
    """The solution for the lower factor, with the exchanges of its rows."""

    def solve(carry: Tensor, now: Any) -> Any:
        factor, keeps, y = now
        first, second = gc.where(keeps, carry, y), gc.where(keeps, y, carry)
        return second - factor * first, first

    each = below, kept, right.isel({step: slice(1, None)})
    last, made = gc.scan(solve, right.isel({step: 0}), each, step)
    return gc.concat([made, last.expand_dims({step: 1})], step)


def backward(below: Tensor, kept: Tensor, right: Tensor, step: str) -> Tensor:
    """The solution for the transposed lower factor, with the exchanges of its rows."""
    n = right.sizes[step]

    def solve(carry: Tensor, now: Any) -> Any:
        factor, keeps, y = now
        x = y - factor * carry
        return gc.where(keeps, x, carry), gc.where(keeps, carry, x)

    each = below, kept, right.isel({step: slice(0, n - 1)})
    first, made = gc.scan(solve, right.isel({step: n - 1}), each, step, reverse=True)
    return gc.concat([first.expand_dims({step: 1}), made], step)
