"""All elementwise ops of a dtype in one kernel, at every size: through buffers, masks and tails."""

from __future__ import annotations

import numpy as np
import pytest

from graphcore.backends.llvm_kernels.arithmetic import KINDS, RULES, emits
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.node import Node
from graphcore.ops import elementwise as e
from graphcore.ops.elementwise import UFUNC

from .native import SIZES, Both, N, given, needs_machine_code
from .test_arithmetic import CANCELLING, INEXACT, UNSIGNED_ZERO, arity, distance, edges

pytestmark = needs_machine_code

COMMON = ("bool", "int64", "float64", "float32")
LOOSE = {*CANCELLING, e.log1p}  # of complex numbers log1p cancels as well


def made(dtype: str) -> list[Node]:
    """A node of each op that machine code computes for a dtype."""
    x, y = given("x", N, dtype=dtype), given("y", N, dtype=dtype)
    nodes = [e.where(e.not_equal(x, y), x, y)]
    for op in RULES:
        if isinstance(UFUNC.get(op, ""), np.ufunc):
            try:
                node = op(*(x, y)[: arity(op)])
            except GraphTypeError:
                continue
            if emits(node):
                nodes.append(node)
    return nodes


def wanted(node: Node, arrays: list[np.ndarray]) -> np.ndarray:
    if node.op is e.where:
        return np.where(arrays[0] != arrays[1], *arrays)
    return UFUNC[node.op](*arrays[: len(node.inputs)])


def values(dtype: str, size: int, seed: int) -> np.ndarray:
    """Edges of a dtype in some order, nan and infinities among them in every lane."""
    rng = np.random.default_rng(seed)
    return rng.choice(edges(np.dtype(dtype)), size).astype(dtype)


@pytest.mark.parametrize(
    "dtype", [pytest.param(d, marks=() if d in COMMON else pytest.mark.slow) for d in KINDS]
)
def test_at_every_size(dtype: str) -> None:
    nodes = made(dtype)
    both = Both(nodes, ("n",))
    for size in SIZES:
        for seed, rubbish in enumerate((0x7F, 0xFF)):
            arrays = [values(dtype, size, 2 * seed), values(dtype, size, 2 * seed + 1)]
            used = arrays[: len(both.params)]
            found = both.native(used, (size,), rubbish)
            with np.errstate(all="ignore"):
                for node, y in zip(nodes, found, strict=True):
                    agree(node, y, wanted(node, arrays))


def agree(node: Node, found: np.ndarray, expected: np.ndarray) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), node
    if found.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, expected, str(node.op))
        return
    bound = 16 if node.op in LOOSE else INEXACT[found.dtype.kind]
    assert np.nanmax(distance(found, expected), initial=0) <= bound, node.op
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), str(node.op))
    if found.dtype.kind == "f" and node.op not in UNSIGNED_ZERO:
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))
