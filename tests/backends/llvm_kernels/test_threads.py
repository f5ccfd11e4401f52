"""Loops that threads share: equal bits for any number of threads, whatever else happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from benchmarks.programs import NAMES, Program
from graphcore.backends.llvm_kernels import entrance, receiving, sharing, threads
from graphcore.backends.llvm_kernels.flops import COSTS
from tests.machine_code import build
from tests.random_programs.running import arguments, built
from tests.targets.drawing import KINDS

from .native import needs_machine_code

pytestmark = needs_machine_code

QUICK = "softmax", "sums", "slopes"
"""Some of `PROGRAMS`; the others are slow tests."""

NUMBERS = 1, 2, 3, 7
"""The last two are more than there are cores, mostly."""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every loop is shared, however short."""
    monkeypatch.setattr(entrance, "HUGE_NEST", 1)
    monkeypatch.setattr(sharing, "LEAST", 1)
    monkeypatch.setattr(sharing, "FEW", 1)
    with gc.threads(3):
        yield


def named(*dims: str, dtype: str = "float64") -> Callable[[str], gc.Tensor]:
    return lambda name: gc.tensor(name, dict.fromkeys(dims), dtype=dtype)


def drawn(inputs: list[gc.Tensor], sizes: dict[str, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    found = []
    for x in inputs:
        shape = [sizes.get(d, n) for d, n in x.sizes.items()]
        values = rng.normal(size=shape)
        found.append(np.abs(4 * values).astype(x.dtype) if x.dtype.kind in "iu"
                     else values.astype(x.dtype))  # fmt: skip
    return found


X, Y, V, P = named("i", "j")("x"), named("j", "k")("y"), named("i")("v"), named("m")("p")
C = named("i", dtype="complex128")("c")
AT = named("m", dtype="int64")("at")
Q, K = named("h", "i", "d")("q"), named("h", "j", "d")("k")
W, B = named("j")("w"), named("h", "i", "j")("b")
CA = named("k", "h", "d", dtype="complex128")("ca")
CB = named("k", "d", "m", dtype="complex128")("cb")
A = gc.tensor("a", {"i": None, "p": 5, "q": 5})
R = gc.tensor("r", {"i": None, "p": 5, "k": None})
FEW = gc.tensor("few", {"i": None, "c": 3}, dtype="float32")
SCORES = gc.special.softmax(gc.dot(Q, K, dim="d"), dim="j")


def solved(a: gc.Tensor, right: gc.Tensor) -> list[gc.Tensor]:
    """Of batches of small matrices, side by side and one by one, and of larger ones."""
    square = gc.dot(a, a.rename(p="s"), dim="q") + 9 * gc.eye({"p": 5, "s": 5})
    wide = a.pad({"p": (0, 13), "q": (0, 13)}, constant_values=0) + gc.eye({"p": 18, "q": 18})
    complexes = gc.astype(a, "complex128")
    lower = gc.linalg.cholesky(square, ("p", "s"))
    return [
        gc.linalg.solve(a, right, ("p", "q")),
        *gc.linalg.slogdet(a, ("p", "q")),
        *(gc.linalg.inv(wide, ("p", "q")), gc.linalg.det(complexes, ("p", "q"))),
        gc.linalg.solve_triangular(lower, right, ("p", "s"), lower=True),
    ]


def mapped(xs: list[gc.Tensor]) -> gc.Tensor:
    """Steps with a loop each, whose number of steps is found."""
    x, start = xs
    end = gc.while_loop(lambda v: v < 3.0, lambda v: v * v + 1.0, start)
    return (x.cumsum("j") * end).sort("j")


def slopes_of(y: gc.Tensor, x: gc.Tensor) -> list[gc.Tensor]:
    """A result of a loop over members, and its gradient, which reads what the loop records."""
    return [y, gc.grad(gc.exp(-y).sum(), x)]


def overwritten(x: gc.Tensor, b: gc.Tensor) -> list[gc.Tensor]:
    """Parts of carries that steps write over, by what they read there and beside it."""
    inner, even = {"i": slice(1, -1), "j": slice(1, -1)}, {"i": slice(None, None, 2)}

    def relaxed(_: gc.Tensor, x: gc.Tensor) -> gc.Tensor:
        beside = x[{"i": slice(2, None), "j": slice(1, -1)}] + x[{"i": slice(-2), "j": inner["j"]}]
        return x.at[inner].set(0.4 * beside + 0.1 * x[inner])

    def scaled(_: gc.Tensor, b: gc.Tensor) -> gc.Tensor:
        return b.at[even].set(0.9 * b[even] + b.mean("i"))

    def crossed(_: gc.Tensor, pair: tuple[gc.Tensor, gc.Tensor]) -> tuple[gc.Tensor, gc.Tensor]:
        x, y = pair
        y = y.at[inner].set(0.5 * (x[inner] + x[{"i": slice(2, None), "j": slice(-2)}]))
        return x.at[inner].set(y[{"i": slice(-2), "j": slice(2, None)}]), y

    return [
        gc.fori_loop(0, 4, relaxed, x),
        gc.fori_loop(0, 4, scaled, b),
        *gc.fori_loop(0, 4, crossed, (x, 2 * x)),
    ]


def stepped(h: gc.Tensor, x: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
    new = gc.tanh(h + x * X)
    return new, new.sum("j")


PROGRAMS: dict[str, tuple[list[gc.Tensor], Any]] = {
    "elementwise": ([X], [2 * X + 1, gc.exp(X) * X]),
    "softmax": ([X], gc.special.softmax(X, dim="j")),
    "layer norm": ([X], (X - X.mean("j")) / gc.sqrt(X.var("j") + 1e-5)),
    "sums": (
        [X],
        [
            X.sum(),
            (X * X).sum(),
            X.max(),
            X.sum("i"),
            X.sum("j"),
            X.var("i"),
            X.max("i"),
            X.argmin("i"),
            gc.any(X > 2, dim="i"),
            (X * X).sum("i"),
        ],
    ),
    "extremes": (
        [X, AT],
        [
            X.max(),
            X.min(),
            X.argmax("i"),
            (X > 2).any(),
            AT.max(),
            AT.sum(),
            X.prod(),
            (X > 2).all(),
            X.max("j"),
        ],
    ),
    "sum of pairs": ([V, P], gc.exp(-((V - P) ** 2)).sum()),
    "few columns": ([FEW], [FEW.sum("i"), FEW.mean(), FEW + 1]),
    "complex": ([C], [C.sum(), gc.exp(C)]),
    "product": ([X, Y], gc.dot(X, Y, dim="j")),
    "complex products": ([CA, CB], [gc.dot(CA, CB, dim="d"), gc.dot(CA, CA, dim=("h", "d"))]),
    "slopes": ([X, Y], gc.grad((gc.tanh(gc.dot(X, Y, dim="j")) ** 2).sum(), [X, Y])),
    "turned products": (
        [X, B],
        [
            gc.dot(X, X.rename(j="l"), dim="i"),
            gc.dot(X, X.rename(i="l"), dim="j"),
            gc.dot(B, B.rename(j="l"), dim="i"),
            gc.dot(B, X.rename(j="l"), dim="i"),
        ],
    ),
    "matrix and vector": (
        [X, V, W, B],
        [
            gc.dot(X, W, dim="j"),
            gc.dot(X, V, dim="i"),
            gc.dot(X, gc.dot(X, W, dim="j"), dim="i"),
            gc.dot(B, W, dim="j"),
            gc.dot(B, V, dim="i"),
        ],
    ),
    "running": (
        [X, B],
        [
            *(X.cumsum("i"), X.cumsum("j"), B.cumsum("i"), B.cumprod("j"), B.cumsum("h")),
            *(gc.special.logcumsumexp(X, dim="j"), gc.cummax(X, dim="j")),
        ],
    ),
    "sorted": ([X, V], [X.sort("j"), X.argsort("i"), gc.searchsorted(V.sort("i"), X, dim="i")]),
    "solved": ([A, R], solved(A, R)),
    "scattered": (
        [V, AT, P, X, W],
        [
            *(V.at[{"i": AT}].add(P), V.at[{"i": AT.sort("m")}].add(P), V.at[{"i": AT}].max(P)),
            *(V.at[{"i": AT}].set(P), X.at[{"i": AT}].add(P * W), X.at[{"i": AT}].set(P * W)),
            *(X.at[{"i": AT, "j": AT}].add(P), (X * 2).at[{"j": AT}].multiply(P * V)),
        ],
    ),
    "members": ([V], slopes_of(gc.while_loop(lambda v: v < 9.0, lambda v: v * v + 1.3, V), V)),
    "mapped": ([X, V], gc.map(mapped, [X, V], dim="i")),
    "attention": ([Q, K], gc.dot(SCORES, K, dim="j")),
    "transposed": ([X], gc.exp(X).transpose("j", "i")),
    "taken": ([V, AT], V.isel(i=AT) * 2),
    "overwritten": ([X, B], overwritten(X, B)),
    "loop": ([X, P], gc.scan(stepped, gc.zeros_like(X), P, dim="m")),
}
SIZES = {"i": 470, "j": 41, "k": 35, "m": 29, "h": 3, "d": 5}
"""More rows than a strip of those that a product of a matrix and a vector reads."""


SLOWLY = [pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS if name not in QUICK]


def same_bits(call: Callable[[], Any]) -> Any:
    """The results of a call, which are equal for each number of threads."""
    wanted: Any = None
    for n in NUMBERS:
        with gc.threads(n):
            found = gc.tree.leaves(call())
        wanted = wanted or found
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
    return wanted


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", [*QUICK, *SLOWLY])
def test_bits_do_not_depend_on_the_number_of_threads(name: str) -> None:
    inputs, outputs = PROGRAMS[name]
    f = gc.compile(inputs, outputs, native=True)
    given, before = drawn(inputs, SIZES), threads.shared()
    wanted = same_bits(lambda: f(*given))
    assert threads.shared() > before
    assert "shared by threads" in f.source
    usual = gc.tree.leaves(gc.compile(inputs, outputs, native=False)(*given))
    for a, b in zip(wanted, usual, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4 if a.dtype == "f" else 1e-9, atol=1e-9)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("sizes", [(5, 300, 1000), (40, 30, 900), (100, 700, 385)], ids=str)
def test_products_of_few_rows_are_shared_by_columns(sizes: tuple[int, int, int]) -> None:
    rng, columns = np.random.default_rng(0), named("k", "j")("y")
    x, y = rng.normal(size=sizes[:2]), rng.normal(size=sizes[1:])
    f = gc.compile([X, Y], gc.dot(X, Y, dim="j"), native=True)
    g = gc.compile([X, columns], gc.dot(X, columns, dim="j"), native=True)
    before = threads.shared()
    for (found,) in (same_bits(lambda: f(x, y)), same_bits(lambda: g(x, y.T.copy()))):
        np.testing.assert_allclose(found, x @ y, rtol=1e-9, atol=1e-9)
    assert threads.shared() > before


@pytest.mark.usefixtures("short")
def test_products_of_long_columns_are_shared_along_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of chunks join in order, as where nothing is shared."""
    rng, right = np.random.default_rng(0), named("i", "k")("y")
    y = [gc.dot(X, right, dim="i"), gc.dot(X, X.rename(j="l"), dim="i")]
    given = [rng.normal(size=(40_000, columns)) for columns in (5, 18)]
    f, before = gc.compile([X, right], y, native=True), threads.shared()
    wanted = same_bits(lambda: f(*given))
    assert threads.shared() >= before + 6
    monkeypatch.setattr(entrance, "HUGE_NEST", 2**40)
    for a, b in zip(gc.compile([X, right], y, native=True)(*given), wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(wanted[0], given[0].T @ given[1], rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("short")
def test_updates_are_shared_where_positions_mostly_ascend(random: np.random.Generator) -> None:
    f = gc.compile([V, AT, P], V.at[{"i": AT}].add(P), target="native")
    v, p, at = random.normal(size=40), random.normal(size=900), random.integers(0, 40, 900)
    counts = []
    for positions in (at, np.sort(at)):
        before = threads.shared()
        found = f(v, positions, p)
        counts.append(threads.shared() - before)
        np.testing.assert_allclose(found, v + np.bincount(positions, p, 40), rtol=1e-12)
    assert counts[0] < counts[1]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("columns", [1, 256])
def test_updates_of_rows_are_shared(
    columns: int, monkeypatch: pytest.MonkeyPatch, random: np.random.Generator
) -> None:
    """By columns, or by ranges of rows; positions in any order, some along a second axis."""
    monkeypatch.setattr(receiving, "SOME_COLUMNS", columns)
    right = named("m", "j")("right")
    at = named("m", "h", dtype="int64")("into")
    y = [X.at[{"i": AT}].add(right), gc.segment_sum(right * P, at, 9, dim=("m", "h"), name="to")]
    given = random.normal(size=(9, 40)), random.integers(0, 9, 70), random.normal(size=(70, 40))
    given = *given, random.normal(size=70), random.integers(0, 9, (70, 3))
    f, before = gc.compile([X, AT, right, P, at], y, target="native"), threads.shared()
    same_bits(lambda: f(*given))
    assert threads.shared() > before
    expected = given[0].copy()
    np.add.at(expected, given[1], given[2])
    np.testing.assert_allclose(f(*given)[0], expected, rtol=1e-12)


@pytest.mark.usefixtures("short")
def test_updates_that_gather_are_shared_twice(
    monkeypatch: pytest.MonkeyPatch, random: np.random.Generator
) -> None:
    """Threads share their computation, and then the updates where positions ascend."""
    monkeypatch.setattr(receiving, "COSTS", replace(COSTS, updates_stored=500))
    f = gc.compile([V, AT, P], V.at[{"i": AT}].add(P * V[{"i": AT}]), target="native")
    v, p, at = random.normal(size=40), random.normal(size=900), random.integers(0, 40, 900)
    for positions in (at, np.sort(at), at[:499]):
        found = []
        for number in NUMBERS:
            with gc.threads(number):
                found.append(f(v, positions, p[: len(positions)]))
            np.testing.assert_array_equal(found[-1], found[0])
        added = np.bincount(positions, p[: len(positions)] * v[positions], 40)
        np.testing.assert_allclose(found[0], v + added, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", ["eos", "gmm", "hmm", "jacobi2d", "kmeans", "lstm", "mlp", "spmv"])
def test_bits_of_programs_of_others(name: str) -> None:
    assert name in NAMES
    program, size = Program(name), "small" if name == "spmv" else "tiny"
    compiled, given = program.make("graphcore"), program.module.inputs(size)
    native, before = build(compiled), threads.shared()
    same_bits(lambda: native(*[given[x.name] for x in compiled._boundary.params]))
    assert threads.shared() > before


@pytest.mark.slow
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("kind", KINDS)
def test_bits_of_random_programs(kind: str) -> None:
    before = threads.shared()
    for seed in range(2 if kind == "loops" else 12):
        program = KINDS[kind](seed).in_double()
        ((f,), _), (given, _) = built(program, [True]), arguments(program)
        same_bits(lambda f=f, given=given: f(**given))
    assert threads.shared() > before


@pytest.mark.slow
def test_bits_are_those_of_loops_that_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of long axes: their blocks are added up by threads, and joined in order."""
    f, x = gc.compile([X], PROGRAMS["sums"][1], native=True), np.random.default_rng(1)
    given = x.normal(size=(700, 400))
    assert given.size > entrance.HUGE_NEST
    before = threads.shared()
    with gc.threads(2):
        shared = f(given)
    assert threads.shared() > before
    monkeypatch.setattr(entrance, "HUGE_NEST", 2**40)
    alone = gc.compile([X], PROGRAMS["sums"][1], native=True)(given)
    for a, b in zip(shared, alone, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("short")
def test_the_failure_with_the_least_position_is_reported() -> None:
    f, x = gc.compile([V, AT], V.isel(i=AT) * 2, native=True), np.ones(50)
    rng = np.random.default_rng(2)
    for _ in range(200):
        at = rng.integers(0, 50, 3000)
        wrong = rng.choice(3000, 3)
        at[wrong] = 50 + wrong
        with pytest.raises(IndexError, match=f"position {50 + min(wrong)} "):
            f(x, at)
    np.testing.assert_array_equal(f(x, at % 50), np.full(3000, 2.0))


@pytest.mark.usefixtures("short")
def test_the_first_matrix_without_a_result_is_reported() -> None:
    f, rng = gc.compile([A], gc.linalg.inv(A, ("p", "q")), native=True), np.random.default_rng(3)
    for _ in range(20):
        given = rng.normal(size=(90, 5, 5))
        wrong = rng.choice(90, 3)
        given[wrong] = 0.0
        with pytest.raises(gc.GraphValueError, match=f"for i={min(wrong)}\\b"):
            f(given)


@pytest.mark.slow
def test_calls_from_several_threads_share_in_turn() -> None:
    f = gc.compile([X], [gc.special.softmax(X, dim="j"), X.sum()], native=True)
    given = [np.random.default_rng(n).normal(size=(600, 500)) for n in range(4)]
    with gc.threads(3):
        wanted = [f(x) for x in given]
        with ThreadPoolExecutor(4) as pool:
            for found, expected in zip(pool.map(f, given * 10), wanted * 10, strict=True):
                for a, b in zip(found, expected, strict=True):
                    np.testing.assert_array_equal(a, b)
