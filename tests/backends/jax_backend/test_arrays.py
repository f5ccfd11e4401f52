"""Every plain op on arrays, computed by JAX alone, has its meaning: for all dtypes and sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.jax_backend.table import TABLE
from graphcore.ir import Node, TensorType
from graphcore.ir.node import OPS
from graphcore.ir.sizes import evaluate
from graphcore.ops import leaf, meaning, outside, tensor
from tests.backends.jax_backend.single_ops import Found, compute
from tests.ir.test_axes import NODES, operands_of
from tests.reference import close
from tests.shares import shared

slow = pytest.mark.slow


def test_every_op_on_arrays_and_matrices_has_an_entry() -> None:
    assert {op for op in OPS.values() if op.dialect in ("tensor", "linalg")} <= TABLE.keys()


TENSOR = [name for name, node in NODES.items() if node.op.dialect == "tensor"]
QUICK = {
    *("reshape", "concat", "slice", "embed", "overwrite with a whole axis", "windows", "print"),
    *("callback", "sum", "max", "any", "argmax", "cumsum", "sort", "rfft odd", "einsum"),
    *("matmul", "matvec", "gather"),
}
"""XLA compiles these in less time than others."""


@pytest.mark.parametrize("name", [x if x in QUICK else pytest.param(x, marks=slow) for x in TENSOR])
def test_jax_computes_what_an_op_means(name: str) -> None:
    node = NODES[name]
    xs = operands_of(node, np.random.default_rng(5))
    (found,) = compute([(node, xs)], {"n": 3})
    for ours, wanted in zip(found, meaning.compute(node, xs, {"n": 3}), strict=True):
        assert ours.dtype == wanted.dtype
        close(ours, wanted)


DTYPES = ("f8", "f4", "f2", "c16", "c8", "i8", "i4", "i1", "u8", "u1", "?")
EDGES = {
    "f": [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 0.5],
    "i": [0, 1, -1, 3, -128, 127],
    "u": [0, 1, 2, 255, 128],
    "b": [0, 1],
}
INDEXED = {
    *(tensor.gather, tensor.put, tensor.scatter, tensor.scatter_prod),
    *(tensor.scatter_add, tensor.scatter_max, tensor.scatter_min),
}
DIFFERENT = {
    ("prod", "c", "edges"): "products of complex numbers with infinite parts",
    ("cumprod", "c", "edges"): "products of complex numbers with infinite parts",
    ("logsumexp", "c", "edges"): "powers of complex numbers with infinite parts",
    ("softmax", "c", "edges"): "powers of complex numbers with infinite parts",
    ("log_softmax", "c", "edges"): "powers of complex numbers with infinite parts",
    ("log_softmax", "f", "edges"): "inf - inf beside inf is nan, as where it is taken apart",
    ("fft inverse", "c", "edges"): "which values meet infinite ones is the algorithm's affair",
    ("searchsorted", "c", "edges"): "JAX orders complex numbers with nan in another way",
    ("einsum alone", "f", "edges"): "sums of each operand are multiplied: inf times 0",
}
"""Where JAX differs from NumPy, and why that stays."""


class Case(NamedTuple):
    """An op for operands of one dtype, and what it means for them."""

    node: Node
    operands: list[np.ndarray]
    n: int
    kind: str
    wanted: list[np.ndarray]


def draw(random: np.random.Generator, dtype: Any, shape: list[int], kind: str) -> np.ndarray:
    """Numbers in general, few different ones, or those at the edges of arithmetic."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        found = np.empty(shape, dtype)
        found.real, found.imag = (draw(random, found.real.dtype, shape, kind) for _ in range(2))
        return found
    if kind == "edges":
        return random.choice(np.array(EDGES[dtype.kind]).astype(dtype), size=shape)
    if kind == "ties":
        return random.integers(0, 3, size=shape).astype(dtype)
    if dtype.kind == "f":
        return random.normal(size=shape).astype(dtype)
    return random.integers(0, 100, size=shape).astype(dtype)


def cases(node: Node) -> Iterator[Case]:
    """The op of a node for operands of all dtypes, sizes 3, 1 and 0, and kinds of values."""
    random = np.random.default_rng(0)
    for dtype in DTYPES:
        data = len(node.inputs) - (len(node.attrs["axes"]) if node.op in INDEXED else 0)
        types = [
            TensorType(np.dtype(dtype) if i < data else x.type.dtype, x.type.shape)
            for i, x in enumerate(node.inputs)
        ]
        try:
            params = [leaf.param(f"x{i}", type) for i, type in enumerate(types)]
            made = Node(node.op, tuple(params), node.attrs)
            result = made.type.dtype
        except (TypeError, ValueError, AttributeError):
            continue  # the op does not take the dtype
        if result.kind == "f" and dtype[0] in "iu?":
            continue  # lowering casts operands of these ops first
        for n in (3, 1, 0):
            for kind in ("drawn", "ties", "edges"):
                xs = operands_for(made, n, kind, random)
                try:
                    with np.errstate(all="ignore"):
                        wanted = meaning.compute(made, xs, {"n": n})
                except (ArithmeticError, IndexError, TypeError, ValueError):
                    continue  # there is nothing to choose from
                if wanted[0].dtype == result:
                    yield Case(made, xs, n, kind, wanted)


def operands_for(node: Node, n: int, kind: str, random: np.random.Generator) -> list[np.ndarray]:
    """Operands with positions inside of their axes."""
    found = []
    axes = node.attrs["axes"] if node.op in INDEXED else ()
    whole = node.attrs["shape"] if "shape" in node.attrs else node.inputs[0].type.shape
    for i, x in enumerate(node.inputs):
        shape = [evaluate(size, {"n": n}) for size in x.type.shape]
        at = i - (len(node.inputs) - len(axes))
        if at < 0:
            found.append(draw(random, x.type.dtype, shape, kind))
        else:
            size = evaluate(whole[axes[at]], {"n": n})
            found.append(random.integers(-size, max(size, 1), size=shape))
    if node.op is tensor.searchsorted:
        found[0] = np.sort(found[0], -1)
    return found


def computed(some: list[Case]) -> Iterator[tuple[Case, Found]]:
    """The results of cases; those of one size in one program."""
    for n in (3, 1, 0):
        same = [case for case in some if case.n == n]
        found = compute([(case.node, case.operands) for case in same], {"n": n})
        yield from zip(same, found, strict=True)


LIMITS = {"f8": 1e-12, "c16": 1e-12, "f4": 1e-5, "c8": 1e-5, "f2": 1e-2}


def agree(y: np.ndarray, of: np.ndarray) -> bool:
    """Equal, or up to rounding, measured by the largest value."""
    assert (y.dtype, y.shape) == (of.dtype, of.shape)
    if y.dtype.kind not in "fc":
        return bool((y == of).all())
    limit, finite = LIMITS[of.dtype.str[1:]], np.isfinite(of)
    scale = np.abs(of[finite]).max(initial=1)
    return bool(np.isclose(y, of, limit, limit * scale, equal_nan=True).all())


OTHERS = {tensor.print_, outside.callback_}
"""Ops that have no meaning without a function of the user's."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", shared([x for x in TENSOR if NODES[x].op not in OTHERS], 4))
def test_all_dtypes_and_sizes(name: str) -> None:
    differences = set()
    for case, found in computed([*cases(NODES[name])]):
        kind = case.node.inputs[0].type.dtype.kind
        for y, of in zip(found, case.wanted, strict=True):
            if not agree(y, of):
                differences.add((name, kind, case.kind))
        for reason, flag in found.failures.items():
            assert not flag.any(), reason
    assert differences == {key for key in DIFFERENT if key[0] == name}


def test_windows_are_weighed_and_parts_are_read_where_they_are_written() -> None:
    """As on NumPy: few places by one loop, steps and gaps and axes in any order, and gradients."""
    x = gc.tensor("x", {"row": None, "batch": 2, "col": 9})
    kernel = gc.tensor("kernel", {"col": 3, "row": 2})
    plain = gc.conv(x, kernel, ("row", "col"))
    apart = gc.conv(x, kernel, ("row", "col"), stride=2, dilation=2)
    part = x.isel(row=slice(1, -1)) * 2
    whole = x.at[{"row": slice(1, -1)}].set(part)
    outputs = [plain, apart, *gc.grad((apart**2).sum(), [x, kernel]), whole * 3, part + whole.sum()]
    given = [np.random.default_rng(0).normal(size=size) for size in ((7, 2, 9), (3, 2))]
    found, wanted = (
        gc.compile([x, kernel], outputs, target=target)(*given) for target in ("jax", "numpy")
    )
    for ours, value in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, value, rtol=1e-13, atol=1e-13)
