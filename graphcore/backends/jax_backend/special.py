"""Special functions: those of JAX, our own where it has none or a worse one, and calls of SciPy's.

They compute in the dtype of their operands, float16 in float32; some compute in float64.
"""

from __future__ import annotations

import jax.scipy.special as jaxs
import numpy as np
import scipy.special

from graphcore.backends.numpy_backend.special import ROUTINES
from graphcore.ir import Array, Node, Op
from graphcore.ops.elementwise import UFUNC, compute_dtypes

from . import bessel, formulas, gammas, incomplete, integrals, normal, oscillating
from .elementwise import cast_to
from .entries import TABLE, Emission, Entry, Value
from .host import HOST, on_host

JAXS = (
    *("erf", "erfc", "erfinv", "ndtr", "ndtri", "i0", "i1", "i0e", "i1e", "gammasgn"),
    *("dawsn", "spence"),
)
"""The functions of JAX that agree with SciPy's, at their edges too."""
FUNCTIONS: dict[str, incomplete.Rule] = {
    **{name: getattr(jaxs, name) for name in JAXS},
    **formulas.FUNCTIONS,
    **gammas.FUNCTIONS,
    **normal.FUNCTIONS,
}
"""Functions that compute in the dtype of their operands."""
IN_DOUBLE: dict[str, incomplete.Rule] = {
    "zeta": jaxs.zeta,
    **gammas.OF_TWO,
    **incomplete.FUNCTIONS,
    **integrals.FUNCTIONS,
    **bessel.FUNCTIONS,
    **oscillating.FUNCTIONS,
}
"""Functions that compute in float64."""


def pointwise(op: Op, name: str) -> Entry:
    """The entry of a special function of that name."""
    if name in incomplete.BY_ORDERS:
        return by_orders(*incomplete.BY_ORDERS[name])
    function = FUNCTIONS.get(name) or IN_DOUBLE.get(name)
    if function is None:
        HOST.add(op)
        return outside(name)

    def run(cx: Emission, node: Node, *xs: Value) -> Value:
        dtype = compute_dtypes(op, *[x.type.dtype for x in node.inputs])[-1]
        wide = np.dtype("f4") if dtype == np.float16 else dtype
        wide = np.dtype("f8") if name in IN_DOUBLE else wide
        return function(*[cast_to(x, wide) for x in xs]).astype(dtype)

    return run


def by_orders(count: int, function: incomplete.Rule) -> Entry:
    """The entry of a function of so many constant whole numbers."""

    def run(cx: Emission, node: Node, *xs: Value) -> Value:
        orders = [int(x.attrs["value"].item()) for x in node.inputs[:count]]
        found = function(*orders, *[cast_to(x, np.dtype("f8")) for x in xs[count:]])
        return found.astype(node.type.dtype)

    return run


def outside(name: str) -> Entry:
    """The entry of a function that programs of NumPy call too."""
    own = ROUTINES.get(name)

    def run(cx: Emission, node: Node, *xs: Value) -> Value:
        def compute(*arrays: Array) -> Array:
            if own is None:
                return np.asarray(getattr(scipy.special, name)(*arrays))
            return own(*arrays, np.empty(arrays[-1].shape, node.type.dtype))

        return on_host(cx, node, compute, *xs)

    return run


TABLE.update((op, pointwise(op, name)) for op, name in UFUNC.items() if isinstance(name, str))
