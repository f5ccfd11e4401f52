"""Reductions: every op, over each axis, in all dtypes; sums as accurate as NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from math import fsum

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels.planning import best_plan
from graphcore.ir.graph import Graph
from graphcore.ir.literal import Literal
from graphcore.ir.node import Node
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from .native import SIZES, Both, M, N, given, needs_machine_code, slowly, some

pytestmark = needs_machine_code

OPS: dict[str, Callable[[Node, int], Node]] = {
    "sum": lambda x, axis: t.sum_(x, axes=(axis,)),
    "prod": lambda x, axis: t.prod(x, axis=axis),
    "max": lambda x, axis: t.max_(x, axes=(axis,)),
    "min": lambda x, axis: t.min_(x, axes=(axis,)),
    "any": lambda x, axis: t.any_(x, axes=(axis,)),
    "all": lambda x, axis: t.all_(x, axes=(axis,)),
}
DTYPES = "float64", "float32", *slowly("int32", "bool", "int64", "uint8")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_over_each_axis(name: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    table, cube = given("x", N, M, dtype=dtype), given("y", N, 3, M, dtype=dtype)
    make = OPS[name]
    made = [make(table, 0), make(table, 1), make(cube, 0), make(cube, 1), make(cube, 2)]
    if name in ("sum", "max", "min", "any", "all"):
        op = getattr(t, f"{name}_")
        made += [op(cube, axes=axes) for axes in ((0, 1), (0, 2), (1, 2), (0, 1, 2))]
    both = Both(made)
    for n in SIZES[:-1]:
        for m in (0, 1, 5, 9, 40):
            x, y = some(rng, (n, m), dtype), some(rng, (n, 3, m), dtype)
            both.agree([x, y], (n, m), 400.0, cancels=True)
    x, y = some(rng, (3, 1030), dtype), some(rng, (3, 3, 1030), dtype)
    both.agree([x, y], (3, 1030), 4000.0, cancels=True)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_special_values(dtype: str) -> None:
    values = [0.0, -0.0, 1.5, -np.inf, np.inf, np.nan]
    x = given("x", N, 2, dtype=dtype)
    initial = Literal(np.asarray(0.0, dtype))
    made = [op(x, axes=axes) for op in (t.sum_, t.max_, t.min_) for axes in ((0,), (1,), (0, 1))]
    made += [op(x, axes=(0,), initial=initial) for op in (t.max_, t.min_)]
    made += [op(x, axes=(1,), initial=initial) for op in (t.max_, t.min_)]
    made += [op(x, axis=0) for op in (t.argmax, t.argmin)]
    both = Both(made[:-2])
    positions = Both(made[-2:])
    rng = np.random.default_rng(4)
    for n in (0, 1, 2, 7, 9, 30):
        for _ in range(5):
            few = rng.choice(values[: rng.integers(1, 7)], (n, 2)).astype(dtype)
            few[few == 0] = -0.0 if rng.integers(2) else 0.0  # max of both zeros may be either
            both.agree([few], (n, 0), 1.0)
            if n:
                positions.agree([few], (n, 0))


@pytest.mark.parametrize("dtype", ["int32", "uint16", "float64", "bool"])
def test_positions_of_extremes(dtype: str) -> None:
    rng = np.random.default_rng(5)
    x = given("x", N, M, dtype=dtype)
    ops = (t.argmax, t.argmin)
    both = Both([op(x, axis=axis) for op in ops for axis in (0, 1)])
    for n in SIZES[1:-1]:
        for m in (1, 3, 9):
            both.agree([some(rng, (n, m), dtype)], (n, m))


LIMITS = ["float64", "float32", "float16", "int64", "int8", "uint8", "uint64", "bool"]


@pytest.mark.parametrize("dtype", LIMITS)
def test_extremes_of_values_at_the_limits(dtype: str) -> None:
    """Along the last axis, of whole vectors and of parts: of equal values the first one."""
    rng, kind = np.random.default_rng(6), np.dtype(dtype).kind
    if kind == "f":
        values = [0.0, -0.0, 1.5, -np.inf, np.inf, np.nan, -np.nan, -1.5]
    else:
        limits = np.iinfo(np.uint8 if kind == "b" else dtype)
        values = [limits.min, limits.max, limits.max // 2]
    x = given("x", N, M, dtype=dtype)
    ops = (t.argmax, t.argmin)
    both = Both([op(x, axis=1) for op in ops] + [op(x, axes=(1,)) for op in (t.max_, t.min_)])
    for m in (1, 7, 8, 9, 31, 64, 257):
        for _ in range(8):
            few = np.array(values, dtype)[: rng.integers(1, 9)]
            some_values = few[rng.integers(0, len(few), (3, m))]
            found = both.native([some_values], (3, m))
            for op, y in zip((np.argmax, np.argmin, np.max, np.min), found, strict=True):
                np.testing.assert_array_equal(y, op(some_values, 1))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128"])
def test_products(dtype: str) -> None:
    rng = np.random.default_rng(6)
    a, b = given("a", N, M, dtype=dtype), given("b", M, dtype=dtype)
    c, d = given("c", 2, N, M, dtype=dtype), given("d", 2, M, dtype=dtype)
    turned = t.transpose(a, perm=(1, 0))
    e3, f3 = given("e", N, 2, 3, dtype=dtype), given("f", N, 3, 2, dtype=dtype)
    both = Both(
        [
            t.matvec(a, b),
            t.vecdot(b, b) if dtype != "complex128" else b,  # NumPy's conjugates
            t.matvec(c, d),
            t.vecdot(d, d) if dtype != "complex128" else d,
            t.matvec(turned, t.matvec(a, b)),
            t.matmul(e3, f3),
        ]
    )
    for n in SIZES[:-1]:
        for m in (0, 1, 9, 40):
            arrays = [some(rng, shape, dtype) for shape in ((n, m), (m,), (2, n, m), (2, m))]
            arrays += [some(rng, (n, 2, 3), dtype), some(rng, (n, 3, 2), dtype)]
            both.agree(arrays, (n, m), 100.0, cancels=True)


def test_lanes_are_combined_once() -> None:
    """A sum beside comparisons: where all lanes were turned around, LLVM 22 lost one of them."""
    x = gc.tensor("x", {"row": 3, "col": 4}, dtype="complex128")
    v = gc.tensor("v", {"row": 3, "col": 4}, dtype="complex128")
    mean = gc.mean(x.where(x < 0.5), ["row", "col"], skipna=True)
    both = Both.of(gc.compile([x, v], gc.pushforward(mean, x, v)))
    rng = np.random.default_rng(0)
    both.agree([some(rng, (3, 4), "complex128") for _ in range(2)], (), 10.0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_norm_is_scaled(dtype: str) -> None:
    rng = np.random.default_rng(7)
    x = given("x", N, M, dtype=dtype)
    both = Both([t.norm(x, axes=axes) for axes in ((0,), (1,), (0, 1))])
    limits = np.finfo(dtype)
    for n in (0, 1, 7, 9, 17):
        for m in (1, 3, 9):
            one = some(rng, (n, m), dtype)
            for scale in (1.0, limits.max / 100, limits.tiny, limits.smallest_subnormal * 4, 0.0):
                both.agree([(one * np.asarray(scale, dtype)).astype(dtype)], (n, m), 8.0)
            mixed = one.copy()
            mixed[n // 2 :, :1] = limits.max / 30
            both.agree([mixed], (n, m), 8.0)
            for value in (np.inf, np.nan):
                mixed[n // 2 :, :1] = value
                both.agree([mixed], (n, m), 8.0)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64"])
def test_sums_of_many_values(dtype: str) -> None:
    """Equal values, whose rounding errors add up, and random ones: within 4 eps of the true sum."""
    x = gc.tensor("x", {"row": None, "col": 4}, dtype=dtype)
    y = gc.tensor("y", {"col": 4, "row": None}, dtype=dtype)
    both = gc.concat([x, gc.exp(0 * x) * x], "both")
    made = {
        "col": [x.sum("row"), y.sum("row"), both.sum(["row", "both"]) / 2],
        "": [x.sum(), y.sum(["row", "col"]), (x * y).sum() * 10, x.max() * 0 + x.sum()],
    }
    sums = gc.compile([x, y], made, native=True)
    eps = float(np.finfo(dtype).eps)
    for n in (1, 31, 32, 33, 65, 257, 1030, 250_000):
        for values in (np.full((n, 4), 0.1), np.random.default_rng(8).random((n, 4))):
            table = values.astype(dtype)
            found = sums(table, np.ascontiguousarray(table.T))
            exact = table.real.astype(float)
            columns, whole = [fsum(column) for column in exact.T], fsum(exact.ravel())
            wanted = [whole, whole, 10 * fsum((exact * exact).ravel()), whole]
            for y in found["col"]:
                np.testing.assert_allclose(y.real, columns, 4 * eps)
            np.testing.assert_allclose(np.real(found[""]), wanted, 4 * eps)


def test_sums_that_round_in_one_direction() -> None:
    """Equal numbers of the largest error, and small ones that are lost beside a large one."""
    x = gc.tensor("x", {"row": None, "col": None})
    y = gc.tensor("y", {"col": None, "row": None})
    sums = gc.compile([x, y], [x.sum("row"), y.sum("row"), x.sum(), y.sum()], native=True)
    n, eps = 1030, float(np.finfo(float).eps)
    place, most = np.arange(4 * n), {}
    for kind, values in {
        "equal": np.full(4 * n, 1.8823876941811584),
        "lost along columns": np.where(place // 4 % 32 == 0, 1.0, eps / 2),
        "lost along lanes": np.where(place // 8 % 32 == 0, 1.0, eps / 2),
    }.items():
        table = values.reshape(n, 4)
        found = sums(table, np.ascontiguousarray(table.T))
        columns, whole = np.array([fsum(column) for column in table.T]), fsum(values)
        wanted = [columns, columns, whole, whole]
        most[kind] = max(np.abs(a / b - 1).max() / eps for a, b in zip(found, wanted, strict=True))
    assert most["equal"] < 4.3
    assert max(most.values()) < 20


@pytest.mark.parametrize(
    "sizes", [(3, 5, 7), (40, 12, 3), (300, 3, 50), (2, 3, 900), (400, 20, 16)]
)
def test_sums_of_known_sizes(sizes: tuple[int, ...]) -> None:
    """Of axes that are short, or cut into blocks, one inside of the other."""
    x = gc.tensor("x", dict(zip("ijk", sizes, strict=True)))
    several = ("ijk", "ij", "ik", "jk", "i", "k")
    sums = gc.compile([x], [gc.sum(x, [*dims]) for dims in several], native=True)
    for dims, y in zip(several, sums(np.full(sizes, 0.1)), strict=True):
        many = np.prod([sizes["ijk".index(dim)] for dim in dims])
        np.testing.assert_allclose(y, fsum([0.1] * int(many)), 4 * np.finfo(float).eps)


def test_sums_of_special_values() -> None:
    """Zeros keep their sign; values that are not finite, or overflow, are added up plainly."""
    x = gc.tensor("x", {"i": None})
    f = gc.compile([x], x.sum(), native=True)
    assert np.signbit(f(np.full(1000, -0.0)))
    assert not np.signbit(f(np.append(np.full(1000, -0.0), 0.0)))
    huge, values = np.finfo(float).max, np.zeros(1000)
    for pair in ([np.inf, 1.0], [np.nan, 1.0], [np.inf, -np.inf], [huge, huge], [huge, -huge]):
        values[[0, 600]] = pair
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(f(values), values[0] + values[600])
    for several in ([huge, -(2.0**970), 2.0**969, -(2.0**969)], [1.0, 1e-17, -1.0, 0.0]):
        values[[0, 300, 600, 900]] = several
        assert f(values) == fsum(several)


def test_several_in_one_walk() -> None:
    """Of one table, and of values computed from it: each agrees, and all share their loops."""
    x, w = given("x", N, M), given("w", M)
    column = t.expand(w, axes=(0,), sizes=(N,))
    made = [
        t.sum_(x, axes=(1,)),
        t.max_(x, axes=(1,)),
        t.sum_(e.multiply(x, column), axes=(1,)),
        t.matvec(x, w),
    ]
    graph = Graph((w, x), tuple(made))
    (nest,) = best_plan(graph, {w, x}).steps
    assert nest.roots == made
    rng, both = np.random.default_rng(8), Both(made)
    for n in (0, 1, 2, 3, 4, 5, 9):
        for m in (0, 1, 7, 8, 9, 17, 1030):
            both.agree([some(rng, (m,)), some(rng, (n, m))], (n, m), 4000.0, cancels=True)


def test_reductions_of_other_sizes_or_of_other_values_have_walks_of_their_own() -> None:
    x, y, z = given("x", N, M), given("y", N, M), given("z", N, M, 4)
    one, other = t.sum_(x, axes=(1,)), t.sum_(y, axes=(1,))
    longer, later = t.sum_(z, axes=(1, 2)), t.max_(e.multiply(x, expanded(one)), axes=(1,))
    made = (one, other, longer, later)
    steps = best_plan(Graph((x, y, z), made[:3]), {x, y, z}).steps
    assert [[*step.roots] for step in steps] == [[y] for y in made[:3]]
    (rows,) = best_plan(Graph((x, y, z), made), {x, y, z}).steps
    assert rows.nests == [[y] for y in made]


def expanded(x: Node) -> Node:
    return t.expand(x, axes=(1,), sizes=(M,))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_that_are_added_up_at_once(dtype: str) -> None:
    """A row has the same sum alone as among others, whatever their number."""
    x, y = given("x", N, M, dtype=dtype), given("y", M, dtype=dtype)
    both, rng = Both([t.matvec(x, y), t.sum_(x, axes=(1,))]), np.random.default_rng(9)
    for m in (1, 30, 1100):
        table, column = rng.standard_normal((9, m)).astype(dtype), np.ones(m, dtype)
        wanted = [both.native([row[None], column], (1, m)) for row in table]
        for n in range(1, 10):
            for k, found in enumerate(both.native([table[:n], column], (n, m))):
                np.testing.assert_array_equal(found, [each[k][0] for each in wanted[:n]])


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 15, 16, 17, 24, 263, 1032])
def test_whole_vectors_and_the_rest(n: int, known: bool) -> None:
    """Values that cost much have one total: it takes whole vectors, and then the lanes left."""
    x = gc.tensor("x", {"a": 3, "b": n} if known else {"a": None, "b": None})
    total = gc.sum(gc.exp(x) / (1 + gc.exp(-x) + x**2), "b")
    data = np.random.default_rng(n).normal(size=(3, n))
    wanted = (np.exp(data) / (1 + np.exp(-data) + data**2)).sum(1)
    np.testing.assert_allclose(gc.compile([x], total, native=True)(data), wanted, rtol=1e-13)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_windows_are_not_written_out_for_each_place(size: int) -> None:
    """The slope of a convolution had 64 copies of its windows, which took LLVM seconds."""
    x = gc.tensor("x", {"batch": 8, "row": 12, "col": 12, "in": 8})
    w = gc.tensor("w", {"krow": size, "kcol": size, "in": 8, "out": 2})
    y = gc.conv(x, w, {"row": "krow", "col": "kcol"}, contract="in")
    f = gc.compile([x, w], gc.grad((y**2).sum(), x), native=True)
    assert len(f.llvm.splitlines()) < 8_000


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_nan_signs_of_zero_and_first_positions(dtype: str) -> None:
    """Over each axis and both: 0.0 is larger than -0.0, and a position is the first of equals."""
    x = gc.tensor("x", {"a": None, "b": None}, dtype=dtype)
    ends = [op(dims) for op in (x.max, x.min) for dims in ("a", "b", ["a", "b"])]
    places = [op(dim) for op in (x.argmax, x.argmin) for dim in ("a", "b")]
    f = gc.compile([x], (ends, places), native=True)
    rng, axes = np.random.default_rng(10), (0, 1, (0, 1))
    choices = [[0.0, -0.0], [-0.0], [-0.0, -1], [0.0, 1, -0.0], [np.nan, 1, 2], [-np.inf, np.inf]]
    for shape in ((1, 1), (7, 3), (33, 17), (70, 260)):
        for values in choices:
            for table in (rng.choice(values, shape), np.full(shape, float(values[-1]))):
                table[tuple(rng.integers(shape))] = values[0]
                table = table.astype(dtype)
                wholes = [op(axis) for op in (table.max, table.min) for axis in axes]
                signs = [np.signbit(table).all(axis) for axis in axes]
                signs += [np.signbit(table).any(axis) for axis in axes]
                found, at = f(table)
                for y, wanted, sign in zip(found, wholes, signs, strict=True):
                    np.testing.assert_array_equal(y, wanted)
                    zero = np.asarray(wanted) == 0
                    np.testing.assert_array_equal(np.signbit(y)[zero], np.asarray(sign)[zero])
                where = [op(table, axis) for op in (np.argmax, np.argmin) for axis in (0, 1)]
                for y, wanted in zip(at, where, strict=True):
                    np.testing.assert_array_equal(y, wanted)
