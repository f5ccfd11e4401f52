"""Activations and losses of neural networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

import graphcore as gc
from tests.operations.case import Case, Input, X, real, ufunc


def chances(x: Any, labels: Any) -> Any:
    """The loss of each row, for chances of the classes."""
    return -(labels * (x - sp.logsumexp(x.values, axis=1, keepdims=True))).sum("col")


CASES: dict[str, Case] = {
    "relu": Case(gc.nn.relu, ufunc(lambda x: np.maximum(x, 0))),
    "gelu": Case(gc.nn.gelu, ufunc(lambda x: x * sp.ndtr(x)), real(-5, 5)),
    "gelu approximate": Case(
        lambda x: gc.nn.gelu(x, approximate=True),
        ufunc(lambda x: x * sp.expit(x.dtype.type(np.sqrt(8 / np.pi))
              * (x + x.dtype.type(0.044715) * x**3))),
    ),
    "silu": Case(gc.nn.silu, ufunc(lambda x: x * sp.expit(x))),
    "cross_entropy": Case(
        lambda x, labels: gc.nn.cross_entropy(x, labels, dim="col"),
        lambda x, labels: -(x - sp.logsumexp(x.values, axis=1, keepdims=True)).isel(col=labels),
        (X, Input("row", 0, 4, "int64")), fixed=("col",),
    ),
    "cross_entropy of chances": Case(
        lambda x, labels: gc.nn.cross_entropy(x, labels, dim="col"), chances,
        (X, Input("col", 0, 1)), fixed=("col",),
    ),
}  # fmt: skip
