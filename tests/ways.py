"""Compiled functions run as one generated function, or step by step: the same either way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import graphcore as gc
from graphcore.backends.numpy_backend.running import Generated, Stepwise

WAYS = (Generated, Stepwise)


def run_as(compiled: gc.Compiled, way: Any) -> Callable[[Mapping[str, Any]], list[np.ndarray]]:
    """The function of values by name that runs in one of the ways."""
    function = compiled._function.run_as(way)
    names = [param.name for param in compiled._boundary.params]
    return lambda values: function(*compiled._boundary.bind([values[name] for name in names]))


def require_same_bits(compiled: gc.Compiled, values: Mapping[str, Any]) -> None:
    """Both ways give the same bits, in the first call and with the memory of the first."""
    functions = [run_as(compiled, way) for way in WAYS]
    for _ in range(2):
        for x, y in zip(*[function(values) for function in functions], strict=True):
            assert type(x) is type(y) is np.ndarray
            assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())
