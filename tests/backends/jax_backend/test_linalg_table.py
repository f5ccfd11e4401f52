"""Linear algebra on JAX: every variant of the table, with derivatives, as NumPy calls give it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.linalg.linalg_table import TABLE
from tests.linalg.test_linalg import REAL_AND_COMPLEX, close, random_like
from tests.shares import shared


def results(name: str, dtype: str) -> list[list[np.ndarray]]:
    """Value, pullback and pushforward for a batch, by NumPy calls and by JAX."""
    variant, random = TABLE[name], np.random.default_rng(len(name))
    x = gc.tensor("x", dict(zip("bpq", (3, *variant.shape), strict=True)), dtype=dtype)
    inputs, outputs = [x], [variant.ours(x)]
    values: list[Any] = [variant.draw(random, (3,), dtype)]
    if (y := outputs[0]).dtype.kind in "fc":
        ct = gc.tensor("ct", y.sizes, dtype=y.dtype)
        v = gc.tensor("v", x.sizes, dtype=dtype)
        inputs += [ct, v]
        values += [random_like(random, t.shape, t.dtype) for t in (ct, v)]
        outputs.append(gc.pullback(y, x, ct, disconnected="zero"))
        outputs.append(gc.pushforward(y, x, v, disconnected="zero"))
    return [gc.compile(inputs, outputs, target=target)(*values) for target in ("numpy", "jax")]


@pytest.mark.parametrize(("name", "dtype"), shared(REAL_AND_COMPLEX, 16))
def test_values_and_derivatives(name: str, dtype: str) -> None:
    for wanted, found in zip(*results(name, dtype), strict=True):
        assert found.dtype == wanted.dtype
        close(found, wanted, 1e-9)
