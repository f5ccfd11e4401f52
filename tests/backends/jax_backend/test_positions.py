"""Positions on JAX: counted from the end, outside, repeated, and along with batch axes."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.jax_backend import windows
from graphcore.backends.jax_backend.table import TABLE
from graphcore.ir import Node, TensorType
from graphcore.ops import leaf, meaning, tensor
from tests.backends.jax_backend.single_ops import Emission, compute
from tests.reference import close

slow = pytest.mark.slow
RANDOM = np.random.default_rng(0)


def params(*xs: np.ndarray) -> list[Node]:
    return [leaf.param(f"x{i}", TensorType(x.dtype, x.shape)) for i, x in enumerate(xs)]


def agree(*cases: tuple[Node, list[np.ndarray]], meshed: bool = False) -> None:
    for (node, xs), found in zip(cases, compute(cases, meshed=meshed), strict=True):
        (wanted,) = meaning.compute(node, xs, {})
        close(found[0], wanted)
        assert not any(flag.any() for flag in found.failures.values())


@slow
def test_positions_of_every_dtype_count_from_the_end_or_not() -> None:
    x, cases = RANDOM.normal(size=(300, 2)), []
    for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        low = 0 if dtype[0] == "u" else -128
        at = RANDOM.integers(low, 127, size=7).astype(dtype)
        cases.append((tensor.gather(*params(x, at), axes=(0,)), [x, at]))
    agree(*cases)


@pytest.mark.parametrize(
    ("dtype", "at", "wrong"),
    [
        ("i8", [0, -3, 2], False),
        *[pytest.param("i8", [0, at, 2], True, marks=slow) for at in (-4, 3, 2**62, -(2**62))],
        *[pytest.param("u8", [0, at, 2], True, marks=slow) for at in (3, 2**64 - 1)],
        pytest.param("u8", [0, 2, 2], False, marks=slow),
    ],
)
def test_a_position_outside_is_a_failure_and_reads_nothing_else(
    dtype: str, at: list[int], wrong: bool
) -> None:
    x, positions = RANDOM.normal(size=(2, 3)), np.array(at, dtype)
    updates = RANDOM.normal(size=(3, 2))
    nodes = params(x, positions, updates)
    cases = [
        (tensor.gather(nodes[0], nodes[1], axes=(1,)), [x, positions]),
        (tensor.put(nodes[0], nodes[2], nodes[1], axes=(1,)), [x, updates, positions]),
    ]
    for found in compute(cases):
        assert [bool(flag) for flag in found.failures.values()] == [wrong]


def walk(size: int, shape: tuple[int, ...], axis: int) -> Node:
    """Positions that count along one axis of others."""
    axes = tuple(i for i in range(len(shape)) if i != axis)
    count = leaf.iota(size=size, dtype=np.dtype("i8"), dims=None)
    sizes = tuple(shape[i] for i in axes)
    return tensor.expand(count, axes=axes, sizes=sizes) if axes else count


def walking(op: Any, *data: np.ndarray, **attrs: Any) -> tuple[Node, list[np.ndarray]]:
    """Positions (5, 3) along axis 2, and those that count along axis 0 of size 3."""
    at = RANDOM.integers(-4, 4, size=(5, 3))
    given = params(*data, at)
    node = op(*given[:-1], walk(3, (5, 3), 1), given[-1], axes=(0, 2), **attrs)
    return node, [*data, np.broadcast_to(np.arange(3), (5, 3)), at]


def walks() -> list[tuple[Node, list[np.ndarray]]]:
    x, updates = RANDOM.normal(size=(3, 2, 4)), RANDOM.normal(size=(5, 3, 2))
    receivers = (tensor.put, tensor.scatter_add, tensor.scatter_max, tensor.scatter_min)
    return [
        walking(tensor.gather, x),
        walking(tensor.scatter, updates, shape=(3, 2, 4)),
        walking(tensor.scatter_prod, updates, shape=(3, 2, 4)),
        *[walking(op, x, updates) for op in receivers],
    ]


@slow
def test_an_axis_of_positions_that_count_is_one_of_a_batch() -> None:
    cases = walks()
    agree(*cases)
    for node, xs in cases:
        with jax.enable_x64(True):
            text = str(jax.make_jaxpr(partial(TABLE[node.op], Emission({}), node))(*xs))
        assert "operand_batching_dims=(0,)" in text, node


@slow
def test_positions_that_only_count() -> None:
    """XLA wants one axis of positions at least that is no batch."""
    x = RANDOM.normal(size=(3, 3, 2))
    for axes in ((0, 1), (1, 0)):
        node = tensor.gather(params(x)[0], *[walk(3, (3,), 0)] * 2, axes=axes)
        agree((node, [x, np.arange(3), np.arange(3)]))


@slow
def test_the_last_of_several_updates_stays() -> None:
    cases = []
    for dtype in ("f8", "i4", "?", "c16"):
        x, u = (RANDOM.normal(size=shape).astype(dtype) for shape in ((4, 3, 5), (50, 3)))
        at, to = RANDOM.integers(-4, 4, size=50), RANDOM.integers(0, 5, size=50)
        node = tensor.put(*params(x, u, at, to), axes=(0, 2))
        cases.append((node, [x, u, at, to]))
    agree(*cases)


@slow
@pytest.mark.parametrize("few", [0, 64])
def test_windows_of_few_and_of_many_places(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "FEW_PLACES", few)
    x, cases = RANDOM.normal(size=(3, 11, 2, 9)), []
    for attrs in (
        {"axes": (1,), "sizes": (3,), "strides": (2,), "dilations": (1,)},
        {"axes": (1, 3), "sizes": (3, 2), "strides": (1, 2), "dilations": (3, 2)},
        {"axes": (0, 1, 3), "sizes": (2, 2, 3), "strides": (1, 2, 3), "dilations": (1, 1, 1)},
    ):
        node = tensor.windows(*params(x), **attrs)
        seen = RANDOM.normal(size=node.type.shape)
        sizes = tuple(x.shape[axis] for axis in attrs["axes"])
        back = tensor.overlap_add(*params(seen), **attrs | {"sizes": sizes})
        cases += [(node, [x]), (back, [seen])]
    agree(*cases)


@slow
@pytest.mark.parametrize("meshed", [False, True])
def test_parts_are_overwritten_on_one_device_and_on_a_mesh(meshed: bool) -> None:
    x, cases = RANDOM.normal(size=(5, 6)), []
    for starts, steps, shape in (
        ((1, 2), (1, 1), (3, 2)),
        ((4, 1), (-2, 3), (3, 2)),
        ((0, 0), (1, 1), (5, 6)),
        ((4, 5), (-1, -1), (5, 6)),
        ((2, 0), (1, 1), (0, 6)),
    ):
        part = RANDOM.normal(size=shape)
        cases.append((tensor.overwrite(*params(x, part), starts=starts, steps=steps), [x, part]))
    agree(*cases, meshed=meshed)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_many_updates_at_one_place_keep_their_digits(dtype: str) -> None:
    """Added one by one, 2,049 ones are 2,048 in float16."""
    x = gc.tensor("x", {"row": None}, dtype=dtype)
    f = gc.compile([x], gc.segment_sum(x, gc.zeros_like(x, "int64"), 1), target="jax")
    given = np.random.default_rng(0).uniform(0.5, 1.5, 30_000).astype(dtype)
    np.testing.assert_allclose(f(given), given.astype(float).sum(), 2 * np.finfo(dtype).eps)
