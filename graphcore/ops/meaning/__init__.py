"""What each plain op means, in functions of NumPy and SciPy alone: backends are judged by it.

`MEANING[op](*arrays, **attrs)` is its result, or a tuple of them, for attrs in which sizes are
numbers. Results may be views of operands. Nothing fails: what has no value is nan, so that
callers turn NumPy's warnings off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphcore.ir import Array, Expression, Node, Op
from graphcore.ir.sizes import evaluate
from graphcore.ops import elementwise, leaf

from .matrices import MATRICES
from .special import function
from .tensors import TENSORS


def cast(x: Array, dtype: np.dtype[Any]) -> Array:
    """The real part of a complex number stands for it among numbers that are not."""
    return (x.real if dtype.kind not in "cb" else x).astype(dtype)


MEANING: dict[Op, Callable[..., Any]] = {
    **{op: f if isinstance(f, np.ufunc) else function(f) for op, f in elementwise.UFUNC.items()},
    elementwise.real: np.real,
    elementwise.imag: np.imag,
    elementwise.cast: cast,
    elementwise.where: np.where,
    leaf.constant: lambda value, **_: value.array,
    leaf.full: lambda value, shape, **_: np.broadcast_to(value.array, shape),
    leaf.iota: lambda size, dtype, **_: np.arange(size, dtype=dtype),
    leaf.extent: lambda size, dtype, **_: np.asarray(size, dtype),
    **TENSORS,
    **MATRICES,
}
"""The function of each op that computes values from values."""


def compute(node: Node, arrays: Sequence[Array], sizes: Mapping[str, int]) -> list[Array]:
    """The results of a plain node, for the values of its operands and of unknown sizes."""
    attrs = {name: in_numbers(value, sizes) for name, value in node.attrs.items()}
    found = MEANING[node.op](*arrays, **attrs)
    return [np.asarray(y) for y in (found if isinstance(found, tuple) else (found,))]


def in_numbers(value: Any, sizes: Mapping[str, int]) -> Any:
    """An attr with numbers in place of sizes."""
    if isinstance(value, tuple):
        return tuple([in_numbers(part, sizes) for part in value])
    return evaluate(value, sizes) if isinstance(value, Expression) else value
