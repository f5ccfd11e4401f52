"""Ops that a package of its own declares: a SciPy function, and a reduction with a name."""

from __future__ import annotations

import numpy as np
import scipy.special

import graphcore as gc
from graphcore.backends.numpy_backend.by_function import computed_by
from graphcore.backends.numpy_backend.emit import EMIT
from graphcore.frontend.core.lift import apply
from graphcore.ir.axes import Reduces
from graphcore.ir.dtypes import float_for
from graphcore.ir.op import op
from graphcore.ir.types import TensorType
from graphcore.ops.elementwise import elementwise, exp, log1p
from graphcore.ops.named.derived import by_name
from graphcore.ops.tensor import Axes, without
from graphcore.rewrites.derivatives import PARTIALS, VJP
from graphcore.rewrites.plain import unsum

# A SciPy function: one declaration, one derivative.
boxcox1p = elementwise(
    "boxcox1p",
    "((1 + x) ** y - 1) / y, and log(1 + x) where y is 0",
    scipy.special.boxcox1p,
    unknown=(1,),
    module=__name__,
)
PARTIALS[boxcox1p] = lambda z, x, y: (exp((y - 1) * log1p(x)), None)


def transformed(x: gc.Tensor, y: float) -> gc.Tensor:
    """The Box-Cox transformation of 1 + x."""
    return apply(boxcox1p, x, y)


# A reduction: by axes, which is what is differentiated and emitted, and derived from it by dims.
@op(axes=Reduces("axes"), dialect="tensor")
def energy_(x: TensorType, *, axes: Axes) -> TensorType:
    """Sum of x^2 over `axes`."""
    return TensorType(float_for(x.dtype), without(x.shape, axes))


energy = by_name(energy_)
VJP[energy_] = lambda node, ct: (
    2 * unsum(ct, node.attrs["axes"], node.inputs[0]) * node.inputs[0],
)
EMIT[energy_] = computed_by(lambda x, axes: np.square(x).sum(axes))


def energy_of(x: gc.Tensor, dim: str) -> gc.Tensor:
    """Sum of x^2 over `dim`."""
    return gc.Tensor(energy(x.node, dims=(dim,)))
