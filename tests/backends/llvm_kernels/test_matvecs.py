"""Products of matrices and vectors by routines, beside NumPy's and exact ones."""

from __future__ import annotations

import ctypes
from itertools import product

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels import elementary, machine, matvecs
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from .native import Both, M, N, given, needs_machine_code, some

pytestmark = needs_machine_code
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
            lost, total = scratch[m + 32 :], results[2]
            given = {
                "across": [x, x[0], y, n, m, m],
                "down": [x, down, scratch, n, m, m],
                "join": [scratch, lost, total, m, False],
            }
            for name, arguments in [*given.items(), ("join", [scratch, lost, total, m, True])]:
                made = elementary.compiled(matvecs.WRITTEN[name](kind), name, level=level)
                called = [
                    pointer(a) if isinstance(a, np.ndarray) else ctypes.c_int64(a)
                    for a in arguments
                ]
                ctypes.CFUNCTYPE(None, *map(type, called))(made[name])(*called)
            found.append([each.tobytes() for each in results])
        assert found[0] == found[1]
