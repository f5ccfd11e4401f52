"""Products of matrices and vectors by routines, beside NumPy's and exact ones."""

from __future__ import annotations

import ctypes
from itertools import product

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels import functions, machine, matvecs
from graphcore.backends.llvm_kernels.planning import best_plan
from graphcore.backends.llvm_kernels.rows import Pair
from graphcore.ir.graph import Graph
from graphcore.ops import control
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from .native import Both, M, N, given, needs_machine_code, some

pytestmark = needs_machine_code
IN_REGISTERS = (
    (13, 4),
    (11, 5),
    (6, 12),
    (9, 15),
    (405, 20),
    (30, 24),
    (30, 25),
    (18, 44),
    (6, 49),
)
"""Matrices whose rows fit into registers, and others with a few columns more."""
SIZES = ((0, 3), (3, 0), (1, 40), (7, 9), (8, 1), (9, 6), (17, 16), (200, 33), (9, 1030))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_matrices_are_read_as_they_lie(dtype: str) -> None:
    """With each row, with each column, of a batch, of one that repeats, and of a part of axes."""
    x, y = given("x", N, M, dtype=dtype), given("y", 3, M, N, dtype=dtype)
    v, u = given("v", M, dtype=dtype), given("u", N, dtype=dtype)
    repeated = t.expand(u, axes=(0,), sizes=(3,))
    odd = t.transpose(y, perm=(1, 0, 2))
    made = [
        t.matvec(x, v),
        t.matvec(t.transpose(x, perm=(1, 0)), u),
        t.matvec(t.transpose(x, perm=(1, 0)), e.add(u, u)),
        t.matvec(y, repeated),
        t.matvec(t.transpose(y, perm=(0, 2, 1)), t.expand(v, axes=(0,), sizes=(3,))),
        t.matvec(odd, t.expand(u, axes=(0,), sizes=(M,))),
        t.matvec(t.expand(x, axes=(0,), sizes=(2,)), t.expand(v, axes=(0,), sizes=(2,))),
    ]
    both, rng = Both(made), np.random.default_rng(3)
    for n, m in SIZES:
        shapes = (n,), (m,), (n, m), (3, m, n)
        both.agree([some(rng, shape, dtype) for shape in shapes], (n, m), 400.0, cancels=True)


def test_results_in_registers_and_matrices_that_are_computed() -> None:
    x, u = given("x", N, 5), given("u", N)
    turned = t.transpose(x, perm=(1, 0))
    made = [e.square(t.matvec(turned, u)), t.matvec(e.exp(turned), u), t.matvec(turned, u)]
    both, rng = Both(made), np.random.default_rng(4)
    for n in (0, 1, 8, 500):
        both.agree([some(rng, (n,)), some(rng, (n, 5))], (n, 0), 400.0, cancels=True)


def test_memory_of_values_before_the_matrix_has_been_given_back() -> None:
    x = gc.tensor("x", {"time": None, "item": 2, "kind": 3, "new": 2})
    kernel = gc.constant([[0.3, 0.5, -0.3, 0.3]], ("item", "time"))
    y = gc.conv(gc.exp(x), kernel, {"item": "item"})
    given = np.random.default_rng(6).random((4, 2, 3, 2))
    wanted = gc.compile([x], y, native=False)(given)
    np.testing.assert_allclose(gc.compile([x], y, native=True)(given), wanted, 1e-14)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums_of_products_are_compensated(dtype: str) -> None:
    """Within ten units of rounding of the sum of magnitudes, in both directions."""
    x = gc.tensor("x", {"row": None, "col": None}, dtype=dtype)
    ones = [gc.tensor(dim, {dim: None}, dtype=dtype) for dim in x.dims]
    sums = [gc.dot(x, one, dim=one.dims) for one in ones]
    f, eps = gc.compile([x, *ones], sums, native=True), float(np.finfo(dtype).eps)
    for value in (0.1, 1.8823876941811584):
        for n, m in ((1030, 9), (9, 1030), (5000, 3), (3, 5000)):
            table = np.full((n, m), value, dtype)
            factors = [np.ones(size, dtype) for size in (n, m)]
            for found, many in zip(f(table, *factors), (n, m), strict=True):
                wanted = many * float(table[0, 0])
                np.testing.assert_allclose(found.astype(float), wanted, 10 * eps)


@pytest.mark.skipif(len(machine.levels()) < 2, reason="needs AVX-512")
def test_both_levels_give_the_same_bits() -> None:
    rng, pointer = np.random.default_rng(5), lambda x: ctypes.c_void_p(x.ctypes.data)
    for kind, (n, m) in product(matvecs.LANES, ((203, 37), (5, 700))):
        x = rng.standard_normal((n, m)).astype({"f64": "float64", "f32": "float32"}[kind])
        found = []
        for level in machine.levels():
            results = [np.zeros(2 * (m + 32), x.dtype), np.zeros(n, x.dtype), np.zeros(m, x.dtype)]
            scratch, down, y = results[0], x[:, 0].copy(), results[1]
            given = {
                "across": [x, x[0], y, n, m, m],
                "down": [x, down, scratch, n, m, m],
                "join": [scratch, results[2], m, False],
            }
            for name, arguments in [*given.items(), ("join", [scratch, results[2], m, True])]:
                made = functions.compiled(matvecs.WRITTEN[name](kind), name, level=level)
                called = [
                    pointer(a) if isinstance(a, np.ndarray) else ctypes.c_int64(a)
                    for a in arguments
                ]
                ctypes.CFUNCTYPE(None, *map(type, called))(made[name])(*called)
            found.append([each.tobytes() for each in results])
        assert found[0] == found[1]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_product_and_that_of_the_transpose_with_it_are_one_walk(dtype: str) -> None:
    """The bits are those of two walks, whether the first product is a result as well or not."""
    x, v = given("x", N, M, dtype=dtype), given("v", M, dtype=dtype)
    y, w = given("y", 3, N, M, dtype=dtype), given("w", 3, M, dtype=dtype)
    turned = t.transpose(x, perm=(1, 0))
    single = [t.matvec(x, v), t.matvec(turned, t.matvec(x, v))]
    several = t.matvec(t.transpose(y, perm=(0, 2, 1)), t.matvec(y, w))
    graph = Graph((v, x), (single[1],))
    assert [type(step) for step in best_plan(graph, {v, x}).steps] == [Pair]
    both, apart = Both([*single, several]), Both([t.matvec(turned, given("z", N, dtype=dtype))])
    rng, last = np.random.default_rng(7), Both(single[1:])
    for n, m in (*SIZES, *IN_REGISTERS, (500, 50)):
        values = [some(rng, shape, dtype) for shape in ((m,), (3, m), (n, m), (3, n, m))]
        first, second, _ = both.agree(values, (n, m), 4000.0, cancels=True)
        np.testing.assert_array_equal(apart.native([values[2], first], (n, m))[0], second)
        np.testing.assert_array_equal(last.native(values[::2], (n, m))[0], second)


def test_matrices_that_loops_turn_are_not_copied() -> None:
    """Only where nothing but products with vectors reads them."""
    x, v = gc.tensor("x", {"row": None, "col": None}), gc.tensor("v", {"col": None})

    def step(v: gc.Tensor, _: None) -> tuple[gc.Tensor, gc.Tensor]:
        new = gc.dot(x, gc.dot(x, v, dim="col"), dim="row")
        return new / (new * new).sum() ** 0.5, new.sum()

    last, sums = gc.scan(step, v, length=4, dim="step")
    results = [last, sums, gc.grad(sums.sum(), x)]
    f, g = [gc.compile([x, v], results, native=tier) for tier in (True, False)]
    (loop, *_) = [y for y in f.stages["kernels"].every_node() if y.op is control.scan]
    assert not any(y.op is t.transpose for y in loop.inputs)
    body = loop.attrs["body"]
    assert isinstance(best_plan(body, {*body.params}).steps[0], Pair)
    given = np.random.default_rng(8).standard_normal((40, 7)), np.ones(7)
    for found, wanted in zip(f(*given), g(*given), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-12, 1e-12)
