"""Integers at the extremes of their dtypes: results that are floats never wrap around.

Every public function is swept. What it gives for integers is what it gives for the same numbers as
floats, and so are its slopes by the operands that stay floats. Sums and differences are compared
with exact rational arithmetic besides. `test_ops.py` and the page on dtypes have the results that
are integers, which wrap around as NumPy's do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir.sizes import evaluate
from tests.campaign.calls import good_calls
from tests.operations import CASES
from tests.operations.case import DEFAULT

DTYPES = ("int8", "uint64", "bool", "int16", "int32", "int64", "uint8", "uint16", "uint32")
SIZES = DEFAULT | {"lag": 2, "time": 4}

NO_VALUES = {"evaluate", "eval", "compile", "function", "check_grads", "custom_pullback",
             "checkpoint", "callback", "vectorize", "why"}  # fmt: skip
"""Functions that need tensors of their own."""

EXCEPTIONS = {
    "graphcore.spacing": "the distance to the next number of the dtype, float16 for int8",
    "graphcore.piecewise": "the user's function squares integers",
}


def extremes(shape: Any, dtype: str, seed: int) -> Any:
    """Numbers of an integer dtype, most at its ends; those of 64 bits have 52, as floats hold."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    ends = np.iinfo(dtype)
    inside = random.integers(ends.min, ends.max, shape, dtype, endpoint=True)
    choices = [inside, np.full_like(inside, ends.max), np.full_like(inside, ends.min)]
    spare = max(ends.bits - 52, 0)
    return np.choose(random.integers(0, 3, shape), choices) >> spare << spare


def tensors(value: Any) -> Iterator[gc.Tensor]:
    """The tensors in nested lists, tuples and dicts."""
    if isinstance(value, gc.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors(part)


def put(value: Any, new: dict[gc.Tensor, gc.Tensor]) -> Any:
    """The same with other tensors."""
    if isinstance(value, gc.Tensor):
        return new[value]
    if isinstance(value, dict):
        return {key: put(part, new) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [put(part, new) for part in value]
        return type(value)(parts) if type(value) in (list, tuple) else type(value)(*parts)
    return value


class Program(NamedTuple):
    """A function of tensors, and the sizes and dtypes of these."""

    name: str
    function: Callable[..., Any]
    operands: list[tuple[dict[str, int], np.dtype[Any]]]

    def plain(self) -> list[int]:
        """The places of operands that may be integers."""
        return [i for i, (_, dtype) in enumerate(self.operands) if dtype == np.float64]

    def inputs(self, dtype: str, places: list[int]) -> list[gc.Tensor]:
        return [
            gc.tensor(f"x{i}", sizes, dtype=dtype if i in places else own)
            for i, (sizes, own) in enumerate(self.operands)
        ]

    def values(self, dtype: str, places: list[int]) -> list[Any]:
        random = np.random.default_rng(1)
        found = []
        for i, (sizes, own) in enumerate(self.operands):
            shape = list(sizes.values())
            if i in places:
                found.append(extremes(shape, dtype, i))
            elif own.kind == "f":
                found.append(random.uniform(-2, 2, shape))
            else:
                found.append(random.integers(0, 2, shape).astype(own))
        return found


def programs() -> Iterator[Program]:
    """All calls of functions, and the methods of windows, groups and weighted tensors."""

    def size(of: Any) -> int:
        try:
            return evaluate(of, SIZES)
        except KeyError:
            return 3

    for call in good_calls():
        if call.name.rpartition(".")[2] not in NO_VALUES and not call.name.startswith("Compiled"):
            given = list(dict.fromkeys(tensors((call.args, call.options))))

            def function(*xs: gc.Tensor, call: Any = call, given: Any = given) -> Any:
                new = dict(zip(given, xs, strict=True))
                return call.function(*put(call.args, new), **put(call.options, new))

            operands = [({d: size(s) for d, s in x.sizes.items()}, x.dtype) for x in given]
            yield Program(call.name, function, operands)
    for name, case in CASES.items():
        if name.split()[0] in ("weighted", "rolling", "coarsen", "groupby"):
            operands = [
                ({d: DEFAULT[d] for d in x.dims.split()}, np.dtype(x.dtype)) for x in case.inputs
            ]
            yield Program(name, case.ours, operands)


def results(program: Program, dtype: str, places: list[int]) -> list[tuple[gc.Tensor, gc.Tensor]]:
    """Each float result of integers beside that of floats, and the slopes by the other operands."""
    xs, floats = program.inputs(dtype, places), program.inputs(dtype, [])
    try:
        found = [list(tensors(program.function(*given))) for given in (xs, floats)]
    except gc.GraphError:  # integers are refused
        return []
    pairs = [pair for pair in zip(*found, strict=True) if pair[0].dtype.kind in "fc"]
    slopes = []
    for y, z in pairs if pairs and places != program.plain() else []:
        for i in program.plain():
            if i not in places and y.dtype.kind == "f":
                try:
                    slopes.append(tuple(gc.grad(v.sum(), x[i], disconnected="zero")
                                        for v, x in ((y, xs), (z, floats))))  # fmt: skip
                except gc.GraphError:  # has no derivative
                    continue
    return pairs + slopes


def disagreement(program: Program, dtype: str, places: list[int], native: bool) -> str | None:
    """How the results of integers differ from those of floats, "", or None if there are none."""
    pairs = results(program, dtype, places)
    if not pairs:
        return None
    values = program.values(dtype, places)
    floats = [v.astype(float) if i in places else v for i, v in enumerate(values)]
    runs: list[Any] = []
    for xs, ys, given in (
        (program.inputs(dtype, places), [y for y, _ in pairs], values),
        (program.inputs(dtype, []), [z for _, z in pairs], floats),
    ):
        try:
            runs.append(gc.compile(xs, ys, native=native)(*given))
        except gc.GraphError as error:  # such as a singular matrix
            runs.append(type(error))
    if not all(isinstance(run, list) for run in runs):
        return "" if runs[0] == runs[1] else f"{runs[0]} against {runs[1]}"
    for y, z in zip(*runs, strict=True):
        with np.errstate(over="ignore"):
            z = z.astype(y.dtype)
        digits = {2: 1e-2, 4: 1e-4}.get(y.real.dtype.itemsize, 1e-9)
        most = np.max(np.abs(z[np.isfinite(z)]), initial=0)
        if not np.allclose(y, z, rtol=digits, atol=digits * most, equal_nan=True):
            return f"{np.ravel(y)[:4]} against {np.ravel(z)[:4]}"
    return ""


def sweep(some: Iterable[Program], dtype: str, each: bool, native: bool = False) -> int:
    """How many programs agree; with all operands of integers, or also `each` alone."""
    number, wrong = 0, {}
    for program in some:
        plain = [] if program.name in EXCEPTIONS else program.plain()
        for places in [plain, *([i] for i in plain if each and len(plain) > 1)] if plain else []:
            said = disagreement(program, dtype, places, native)
            number += said is not None
            if said:
                wrong[f"{program.name} {dtype} {places}"] = said
    assert not wrong
    return number


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64"])
def test_floats_of_integers_of_every_dtype(dtype: str) -> None:
    assert sweep(programs(), dtype, each=True) > 300


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_floats_of_integers_in_machine_code() -> None:
    assert sweep(programs(), "int8", each=False, native=True) > 200


Row = list[Fraction]


def mean(x: Row) -> Fraction:
    return sum(x, Fraction(0)) / len(x)


def weighted_mean(x: Row, w: Row) -> Fraction:
    return sum(a * b for a, b in zip(x, w, strict=True)) / (sum(w) or 1)


def weighted_cov(x: Row, y: Row, w: Row) -> Fraction:
    a, b = weighted_mean(x, w), weighted_mean(y, w)
    return weighted_mean([(u - a) * (v - b) for u, v in zip(x, y, strict=True)], w)


def ones(x: Row) -> Row:
    return [Fraction(1)] * len(x)


def trapezoid(y: Row, x: Row) -> Fraction:
    return sum(
        (a + b) * (t - s) / 2 for (a, b), (s, t) in zip(pairwise(y), pairwise(x), strict=True)
    )


def range_of(x: gc.Tensor) -> gc.Tensor:
    """The smallest and the largest element."""
    return gc.concat([x.min("t"), x.max("t")], "t")


EXACT: dict[str, tuple[Callable[..., gc.Tensor], Callable[..., Any]]] = {
    "mean": (lambda x, w: x.mean("t"), lambda x, w: mean(x)),
    "mean where": (
        lambda x, w: x.mean("t", where=w == w), lambda x, w: mean(x)),
    "var": (lambda x, w: x.var("t"), lambda x, w: weighted_cov(x, x, ones(x))),
    "std squared": (
        lambda x, w: x.std("t") ** 2, lambda x, w: weighted_cov(x, x, ones(x))),
    "sum min_count": (
        lambda x, w: x.sum("t", where=w == w, min_count=1), lambda x, w: sum(x)),
    "average": (lambda x, w: gc.average(x, "t", weights=w), weighted_mean),
    "weighted mean": (lambda x, w: x.weighted(w).mean("t"), weighted_mean),
    "weighted sum": (
        lambda x, w: x.weighted(w).sum("t"), lambda x, w: weighted_mean(x, w) * (sum(w) or 1)),
    "weighted var": (
        lambda x, w: x.weighted(w).var("t"), lambda x, w: weighted_cov(x, x, w)),
    "weighted sum_of_squares": (
        lambda x, w: x.weighted(w).sum_of_squares("t"),
        lambda x, w: weighted_cov(x, x, w) * (sum(w) or 1)),
    "weighted sum_of_weights": (
        lambda x, w: x.weighted(w).sum_of_weights("t"), lambda x, w: sum(w)),
    "cov": (lambda x, w: gc.cov(x, w, "t", 0), lambda x, w: weighted_cov(x, w, ones(x))),
    "cov weights": (
        lambda x, w: gc.cov(x, x, "t", 0, w), lambda x, w: weighted_cov(x, x, w)),
    "median": (lambda x, w: x.median("t"), lambda x, w: sum(sorted(x)[2:4]) / 2),
    "quantile": (
        lambda x, w: x.quantile(0.5, "t", method="midpoint"), lambda x, w: sum(sorted(x)[2:4]) / 2),
    "trapezoid": (
        lambda x, w: gc.trapezoid(x, dim="t"),
        lambda x, w: trapezoid(x, [Fraction(i) for i in range(len(x))])),
    "trapezoid of points": (lambda x, w: gc.trapezoid(x, w, dim="t"), trapezoid),
    "cumulative_trapezoid": (
        lambda x, w: gc.cumulative_trapezoid(x, w, dim="t").isel(t=-1), trapezoid),
    "gradient": (
        lambda x, w: gc.gradient(x, "t").isel(t=1), lambda x, w: (x[2] - x[0]) / 2),
    "interp": (
        lambda x, w: gc.interp(0.25, [0, 1], range_of(x), "t"),
        lambda x, w: min(x) + (max(x) - min(x)) / 4),
    "interp at integers": (
        lambda x, w: gc.interp(x.isel(t=0), range_of(x), [0, 1], "t"),
        lambda x, w: (x[0] - min(x)) / (max(x) - min(x))),
    "linspace": (
        lambda x, w: gc.linspace(x.min("t"), x.max("t"), 3, dim="l").isel(l=1),
        lambda x, w: (min(x) + max(x)) / 2),
    "rolling mean": (
        lambda x, w: x.rolling(t=3).mean().isel(t=2), lambda x, w: mean(x[:3])),
    "rolling sum": (lambda x, w: x.rolling(t=3).sum().isel(t=2), lambda x, w: sum(x[:3])),
    "coarsen mean": (lambda x, w: x.coarsen(t=3).mean().isel(t=1), lambda x, w: mean(x[3:])),
    "groupby mean": (
        lambda x, w: x.groupby([0, 0, 1, 1, 1, 1], 2, "t").mean().isel(t=1),
        lambda x, w: mean(x[2:])),
    "groupby var": (
        lambda x, w: x.groupby([0, 0, 1, 1, 1, 1], 2, "t").var().isel(t=1),
        lambda x, w: weighted_cov(x[2:], x[2:], ones(x[2:]))),
    "segment_mean": (
        lambda x, w: gc.segment_mean(x, [0, 0, 1, 1, 1, 1], 2, "t").isel(t=1),
        lambda x, w: mean(x[2:])),
    "mean_pool": (
        lambda x, w: gc.mean_pool(x, {"t": 3}).isel(t=0), lambda x, w: mean(x[:3])),
    "norm squared": (
        lambda x, w: gc.norm(x, "t") ** 2, lambda x, w: sum(v * v for v in x)),
    "norm 1": (lambda x, w: gc.norm(x, "t", 1), lambda x, w: sum(map(abs, x))),
    "linalg norm 1": (
        lambda x, w: gc.linalg.norm(x.expand_dims("one"), ("t", "one"), 1),
        lambda x, w: sum(map(abs, x))),
    "global_norm squared": (
        lambda x, w: gc.optimize.global_norm([x.isel(t=0)]) ** 2, lambda x, w: x[0] * x[0]),
    "huber": (
        lambda x, w: gc.special.huber(w.max("t"), x.isel(t=0)),
        lambda x, w: x[0] ** 2 / 2 if abs(x[0]) <= max(w)
        else max(w) * (abs(x[0]) - max(w) / 2)),
}  # fmt: skip
"""What functions of integers give, of two rows of six, and the same in rational arithmetic."""


@pytest.mark.parametrize(
    ("dtype", "native"),
    [
        pytest.param(dtype, native, marks=pytest.mark.slow if native and dtype != "int8" else ())
        for dtype in DTYPES
        for native in (False, True)
    ],
)
def test_sums_and_differences_are_exact(dtype: str, native: bool) -> None:
    """Up to 1e-12 of the largest result."""
    inputs = [gc.tensor(name, {"t": 6}, dtype=dtype) for name in "xw"]
    f = gc.compile(inputs, [ours(*inputs) for ours, _ in EXACT.values()], native=native)
    rows = [(extremes(6, dtype, 2 * n), extremes(6, dtype, 2 * n + 1)) for n in range(8)]
    rows = [
        (x, np.maximum(w, w.dtype.type(0)))
        for x, w in rows
        if np.max(x) > np.min(x) and np.max(w) > 0
    ]
    found = [f(*pair) for pair in rows]
    exact = [[[Fraction(int(v)) for v in row] for row in pair] for pair in rows]
    for at, (name, (_, exactly)) in enumerate(EXACT.items()):
        right = [exactly(*pair) for pair in exact]
        most = max(map(abs, right))
        for values, wanted in zip(found, right, strict=True):
            assert abs(Fraction(float(values[at])) - wanted) <= 1e-12 * most, name


@pytest.mark.parametrize("dtype", DTYPES)
def test_slopes_beside_integers_are_exact(dtype: str) -> None:
    """d mean / dx = w / sum(w), d interp / dy = share, d trapezoid / dy = (t[i+1] - t[i-1]) / 2"""
    x, w = gc.tensor("x", {"t": 6}), gc.tensor("w", {"t": 6}, dtype=dtype)
    weights = np.sort(extremes(6, dtype, 5))
    weights = np.maximum(weights, weights.dtype.type(0))
    mean_slopes = [gc.grad(y, x) for y in (gc.average(x, weights=w), x.weighted(w).mean())]
    more = gc.grad(gc.trapezoid(x, w, dim="t"), x), gc.grad(gc.cov(x, x, ddof=0, weights=w), x)
    f = gc.compile([x, w], [*mean_slopes, *more])
    values = np.arange(6.0)
    *by_mean, by_trapezoid, by_cov = f(values, weights)
    exact = [Fraction(int(v)) for v in weights]
    shares = [v / sum(exact) for v in exact]
    for found in by_mean:
        np.testing.assert_allclose(found, np.array(shares, float), rtol=1e-12)
    around = [exact[0], *exact, exact[-1]]
    ends = [(c - a) / 2 for a, c in zip(around, around[2:])]
    np.testing.assert_allclose(by_trapezoid, np.array(ends, float), rtol=1e-12)
    middle = sum(i * share for i, share in enumerate(shares))
    right = [2 * share * (i - middle) for i, share in enumerate(shares)]
    np.testing.assert_allclose(by_cov, np.array(right, float), rtol=1e-9, atol=1e-12)


NAMESAKES = (
    *(
        "angle",
        "sinc",
        "trunc",
        "around",
        "deg2rad",
        "fabs",
        "real",
        "imag",
        "conj",
        "sign",
        "sqrt",
    ),
    *("exp", "ptp", "mean", "var", "cumsum", "sum"),
)
DTYPES_OF: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    **{name: (getattr(gc, name), getattr(np, name)) for name in NAMESAKES},
    "fix": (gc.fix, np.trunc),  # NumPy 2.5 deprecates its own fix
    "clip": (lambda x: gc.clip(x, 0, 1), lambda x: np.clip(x, 0, 1)),
    "clip by float32": (
        lambda x: gc.clip(x, 0, np.float32(1)), lambda x: np.clip(x, 0, np.float32(1))),
    **{f"** {n!r}": (lambda x, n=n: x**n,) * 2 for n in (2, 3, 2.0, np.int8(2))},
    "2 **": (lambda x: 2**x,) * 2,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "float32", "float64", "complex64"])
def test_dtypes_are_those_of_numpy(dtype: str) -> None:
    x = gc.tensor("x", {"t": 3}, dtype=dtype)
    for name, (ours, theirs) in DTYPES_OF.items():
        try:
            wanted = np.asarray(theirs(np.array([1, 0, 1], dtype))).dtype
        except TypeError:
            continue
        assert ours(x).dtype == wanted, name


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("native", [False, True])
def test_sign_and_round_of_complex_infinities(native: bool) -> None:
    """The slope of the sign is 0 where a part is infinite."""
    z = gc.tensor("z", {"t": None}, dtype="complex128")
    slope = gc.grad(abs(gc.sign(z) + 1).sum(), z)
    f = gc.compile([z], [gc.sign(z), gc.round(z, 1), slope], native=native)
    inf, nan = np.inf, np.nan
    values = np.array([inf + 0j, -inf + 1j, complex(0, -inf), complex(inf, inf), complex(2, nan),
                       complex(inf, nan), 0, 3 - 4j])  # fmt: skip
    sign, rounded, slopes = f(values)
    np.testing.assert_allclose(sign, np.sign(values), rtol=1e-15)
    np.testing.assert_array_equal(rounded, np.round(values, 1))
    np.testing.assert_array_equal(slopes[:4], 0)
