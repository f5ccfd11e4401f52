"""Every plain op on arrays, computed by JAX alone, has its meaning."""

from __future__ import annotations

import numpy as np
import pytest

from graphcore.backends.jax_backend.table import TABLE
from graphcore.ir.node import OPS
from graphcore.ops import meaning
from tests.backends.jax_backend.single_ops import compute
from tests.ir.test_axes import NODES, operands_of
from tests.reference import close


def test_every_op_on_arrays_and_matrices_has_an_entry() -> None:
    assert {op for op in OPS.values() if op.dialect in ("tensor", "linalg")} <= TABLE.keys()


TENSOR = [name for name, node in NODES.items() if node.op.dialect == "tensor"]
LONG = {
    *("expand", "log_softmax", "logsumexp", "norm", "recurrence", "recurrence of one", "softmax"),
    *("argsort", "searchsorted", "scatter two", "scatter_min", "put", "put two"),
    *("scatter by tables", "gather by tables", "overlap_add of several", "windows of several"),
    *("scatter", "scatter_prod", "scatter_max", "fft inverse", "fft", "irfft odd"),
}
"""XLA takes longest to compile these."""


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=pytest.mark.slow) if x in LONG else x for x in TENSOR]
)
def test_jax_computes_what_an_op_means(name: str) -> None:
    node = NODES[name]
    xs = operands_of(node, np.random.default_rng(5))
    (found,) = compute([(node, xs)], {"n": 3})
    for ours, wanted in zip(found, meaning.compute(node, xs, {"n": 3}), strict=True):
        assert ours.dtype == wanted.dtype
        close(ours, wanted)
