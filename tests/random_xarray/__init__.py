"""Random programs said twice, to xarray and to graphcore, step by step.

A step is a function that means the same on DataArrays and on tensors, or a pair of functions. A
value is `exact` while rounding cannot have touched it: what jumps (comparisons, floor, positions of
extremes) is asked of exact values only, where a last digit cannot decide.
"""

from __future__ import annotations

from tests.random_xarray import elementwise, places, reductions, shape
from tests.random_xarray.drawing import LARGEST as LARGEST
from tests.random_xarray.drawing import Draw, Step, Value, pick
from tests.random_xarray.drawing import inputs as inputs
from tests.random_xarray.drawing import quiet as quiet

FAMILIES = (*elementwise.STEPS, *reductions.STEPS, *shape.STEPS, *places.STEPS)


def draw_step(draw: Draw, pool: list[Value]) -> Step:
    """One more step, mostly of the last value."""
    return pick(draw, *FAMILIES)(draw, [pool[-1], pool[-1], *pool])
