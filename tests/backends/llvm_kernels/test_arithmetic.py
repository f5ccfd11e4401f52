"""Elementwise ops as machine code, against NumPy: every op and dtype, edges and random bits."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from graphcore.backends.llvm_kernels import machine
from graphcore.backends.llvm_kernels.arithmetic import KINDS, RULES, SCALAR, emits, literal
from graphcore.backends.llvm_kernels.builder import Builder, Value
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.literal import Literal
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ops import elementwise, leaf, tensor
from graphcore.ops.elementwise import UFUNC

from .kernels import Array, run, run_node

pytestmark = pytest.mark.skipif(
    machine.unavailable() is not None, reason=str(machine.unavailable())
)

DTYPES = [np.dtype(name) for name in KINDS]
FLOATS = (
    0.0,
    -0.0,
    0.5,
    1.0,
    -1.0,
    1.5,
    2.5,
    -2.5,
    3.0,
    7.0,
    -7.25,
    100.0,
    np.inf,
    -np.inf,
    np.nan,
)
LIMITS = (1e-310, -5e-324, 1e300, -1e308, 1e-45, 1e-300, 3e38, 6e-8, 65504.0, 2.0**31, 2.0**63)


def edges(dtype: np.dtype) -> Array:
    """Values at which something happens."""
    with np.errstate(all="ignore"):
        if dtype.kind == "b":
            return np.array([False, True])
        if dtype.kind in "iu":
            info, bits = np.iinfo(dtype), 8 * dtype.itemsize
            near = [0, 1, 2, 3, 5, 7, -1, -2, -3, -7, bits - 1, bits, bits + 1, 100]
            ends = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2]
            return np.array([n for n in [*near, *ends] if info.min <= n <= info.max], dtype)
        if dtype.kind == "c":
            few = (0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan)
            return np.array([complex(a, b) for a in few for b in few], dtype)
        return np.array([*FLOATS, *LIMITS], dtype)


def random(dtype: np.dtype, rng: np.random.Generator, size: int) -> Array:
    """Random bits, or numbers of a moderate size."""
    if dtype.kind == "b":
        return rng.integers(0, 2, size).astype(bool)
    if dtype.kind == "c":
        return (rng.normal(size=size) + 1j * rng.normal(size=size)).astype(dtype)
    bits = rng.integers(0, 256, (size, dtype.itemsize), np.uint8).view(dtype)[:, 0]
    if dtype.kind == "f":
        return np.where(rng.integers(0, 2, size) == 1, bits, rng.normal(size=size).astype(dtype))
    small = rng.integers(0, 100, size).astype(dtype)
    return np.where(rng.integers(0, 2, size) == 1, bits, small)


def operands(dtypes: tuple[np.dtype, ...]) -> list[Array]:
    """All edges with each other, and random values."""
    rng = np.random.default_rng(7)
    sides = [edges(dtype) for dtype in dtypes]
    grids = [g.ravel() for g in np.meshgrid(*sides, indexing="ij")]
    return [
        np.concatenate([grid, random(dtype, rng, 203)])
        for grid, dtype in zip(grids, dtypes, strict=True)
    ]


def given(name: str, dtype: np.dtype) -> Node:
    return leaf.input_(name=name, dtype=dtype, shape=(), dims=None)


def node_of(op: Op, dtypes: tuple[np.dtype, ...]) -> Node | None:
    """A node of an op, if it has a type for these operands and an emission."""
    try:
        node = op(*[given(f"x{i}", dtype) for i, dtype in enumerate(dtypes)])
    except GraphTypeError:
        return None
    return node if emits(node) else None


def arity(op: Op) -> int:
    ufunc = UFUNC.get(op)
    if ufunc is None or isinstance(ufunc, str):
        return 1
    return ufunc.nin


MIXED = [
    tuple(map(np.dtype, pair))
    for pair in (
        *(("int64", "uint64"), ("uint64", "int64"), ("int8", "uint8"), ("bool", "int32")),
        *(("int64", "float32"), ("float16", "float32"), ("float64", "complex64")),
        *(("float64", "int64"), ("float32", "int32"), ("float16", "int8")),
    )
]


CANCELLING = frozenset({elementwise.logaddexp, elementwise.logaddexp2})
"""Sums that lose digits where they are near 0, in NumPy as here; so does log1p of complex ones."""
COMMON = [{np.dtype(name)} for name in ("bool", "int64", "float64", "complex128")]
"""Operands of the quick tests."""


def cases() -> Iterator[object]:
    for op in RULES:
        n = arity(op)
        mixed = MIXED if n == 2 else []
        for dtypes in (*[(dtype,) * n for dtype in DTYPES], *mixed):
            if isinstance(UFUNC.get(op, ""), np.ufunc) and node_of(op, dtypes) is not None:
                marks = () if set(dtypes) in COMMON else pytest.mark.slow
                shown = "-".join([op.name, *map(str, dtypes)])
                yield pytest.param(op, dtypes, marks=marks, id=shown)


INEXACT = {"f": 4, "c": 4}
"""How many units in the last place results may differ where NumPy's need not be exact."""
UNSIGNED_ZERO = frozenset(
    {elementwise.maximum, elementwise.minimum, elementwise.fmax, elementwise.fmin}
)
"""Ops of which NumPy may return either zero, depending on the instructions that it finds."""


def distance(found: Array, wanted: Array) -> Array:
    """How many units in the last place apart, of the larger part; equal edges are 0 apart."""
    if wanted.dtype.kind == "c":
        size = np.maximum(np.abs(wanted.real), np.abs(wanted.imag))
        apart = np.maximum(np.abs(found.real - wanted.real), np.abs(found.imag - wanted.imag))
    else:
        size, apart = np.abs(wanted), np.abs(found - wanted)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    return np.where(same, 0, apart / np.spacing(np.where(np.isfinite(size), size, 1)))


@pytest.mark.parametrize(("op", "dtypes"), list(cases()))
def test_ops_agree_with_numpy(op: Op, dtypes: tuple[np.dtype, ...]) -> None:
    node, arrays = node_of(op, dtypes), operands(dtypes)
    assert node is not None
    with np.errstate(all="ignore"):
        wanted = UFUNC[op](*arrays)
        found = run_node(node, *arrays)
        assert found.dtype == wanted.dtype == node.type.dtype
        if wanted.dtype.kind in "fc":
            worst = distance(found, wanted)
            if op in CANCELLING:
                worst[np.abs(wanted) < 0.2 * np.abs(np.maximum(*arrays))] = 0
            at = int(np.nanargmax(np.where(np.isnan(worst), np.inf, worst)))
            shown = [x[at] for x in arrays], found[at], wanted[at]
            loose = op in CANCELLING or (op is elementwise.log1p and wanted.dtype.kind == "c")
            bound = 16 if loose else INEXACT[wanted.dtype.kind]
            assert worst[at] <= bound, shown
            if op not in UNSIGNED_ZERO and wanted.dtype.kind == "f":
                wrong = np.flatnonzero((wanted == 0) & (np.signbit(wanted) != np.signbit(found)))
                assert wrong.size == 0, [
                    (found[i], wanted[i], *[x[i] for x in arrays]) for i in wrong
                ]
        else:
            wrong = np.flatnonzero(found != wanted)
            assert wrong.size == 0, [(found[i], wanted[i], *[x[i] for x in arrays]) for i in wrong]
        np.testing.assert_array_equal(found, run_node(node, *arrays, wide=False))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_logarithms_of_one_and_a_power(dtype: str) -> None:
    """The shorter form is for e^-|x|, not for other powers, which may be above 1."""
    x = given("x", np.dtype(dtype))
    values = np.array([*FLOATS, *np.linspace(-9, 9, 99)], dtype)
    powers = {-elementwise.absolute(x): -abs(values), -x: -values, elementwise.absolute(x): values}
    for power, exponent in powers.items():
        node = elementwise.log1p(elementwise.exp(power))
        with np.errstate(all="ignore"):
            e = np.exp(exponent)
            assert (distance(run_node(node, e), np.log1p(e)) <= 2).all()


@pytest.mark.parametrize("start", DTYPES, ids=str)
def test_casts(start: np.dtype) -> None:
    """NumPy's own casts of arrays and of single numbers differ in what no uint32 holds."""
    (values,) = operands((start,))
    for target in DTYPES:
        if target == "uint32" and start.kind in "fc":
            numbers = values.real.astype(np.float64)
            x = values[(numbers > -(2.0**31)) & (numbers < 2.0**63)]
        else:
            x = values
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            wanted = x.astype(target)
        found = run_node(elementwise.cast(given("x", start), dtype=target), x)
        np.testing.assert_array_equal(found, wanted, err_msg=str(target))
        if target.kind == "f":
            number = ~np.isnan(wanted)
            signs = np.signbit(found), np.signbit(wanted)
            np.testing.assert_array_equal(signs[0][number], signs[1][number])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128", "int64"])
def test_where(dtype: str) -> None:
    (x,) = operands((np.dtype(dtype),))
    condition = np.arange(len(x)) % 3 == 0
    names = [given("c", np.dtype(bool)), given("x", x.dtype), given("y", np.dtype("float32"))]
    other = np.arange(len(x), dtype=np.float32)
    found = run_node(elementwise.where(*names), condition, x, other)
    np.testing.assert_array_equal(found, np.where(condition, x, other))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128"])
def test_multiply_no_nan_and_where_greater(dtype: str) -> None:
    x, y = operands((np.dtype(dtype),) * 2)
    z = operands((np.dtype(dtype),))[0][: len(x)]
    z = np.concatenate([z, np.ones(len(x) - len(z), dtype)])
    names = [given(name, x.dtype) for name in "zxy"]
    with np.errstate(all="ignore"):
        kept = (x == 0) & ~np.isfinite(y)
        wanted = np.where(kept, x, x * y)
        found = run_node(tensor.multiply_no_nan(*names[1:]), x, y)
        assert np.nanmax(np.where(np.isfinite(wanted), distance(found, wanted), 0)) <= 4
        np.testing.assert_array_equal(found[kept], x[kept])
        wanted = np.where(x > y, z, np.where(x == y, z * z.dtype.type(0.5), z.dtype.type(0)))
        np.testing.assert_array_equal(run_node(tensor.where_greater(*names), z, x, y), wanted)


HOST = {
    "complex128": {
        *("power", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"),
        *("fmax", "fmin"),
    },
    "float16": {"nextafter", "spacing"},
    "int64": {"power"},  # a negative power of an integer is an error, which only NumPy raises
    "bool": {"power", "nextafter", "spacing"},  # of int8, and of float16
    **{name: set() for name in ("float64", "float32", "uint64")},
}
"""The ops with a ufunc that have no machine code for a dtype."""


@pytest.mark.parametrize("dtype", HOST)
def test_what_stays_on_the_host(dtype: str) -> None:
    found = set()
    for op, ufunc in UFUNC.items():
        if isinstance(ufunc, np.ufunc):
            operands = [given(f"x{i}", np.dtype(dtype)) for i in range(ufunc.nin)]
            with contextlib.suppress(GraphTypeError):
                if not emits(op(*operands)):
                    found.add(op.name)
    assert found == HOST[dtype]


def test_what_has_no_rule_is_not_emitted() -> None:
    x = given("x", np.dtype(np.int64))
    assert not emits(elementwise.power(x, x))
    assert not emits(elementwise.arctan(given("z", np.dtype(np.complex128))))
    assert emits(elementwise.power(*[given("x", np.dtype(np.uint64))] * 2))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 64, 1000])
def test_known_power_of_integers(exponent: int) -> None:
    x = operands((np.dtype(np.int64),))[0]
    n = leaf.full(value=Literal(exponent), shape=(), dims=None)
    node = elementwise.power(given("x", x.dtype), n)
    assert emits(node)
    found = run_node(node, x, np.full(len(x), exponent))
    np.testing.assert_array_equal(found, x**exponent)
    negative = leaf.full(value=Literal(-1), shape=(), dims=None)
    assert not emits(elementwise.power(given("x", x.dtype), negative))


@pytest.mark.parametrize("divisor", [0, 1, -1, 3, -7, -(2**63)])
def test_division_by_a_constant(divisor: int) -> None:
    x = edges(np.dtype(np.int64))
    names = [given("x", x.dtype)] * 2
    for op in (elementwise.floor_divide, elementwise.remainder, elementwise.fmod):
        node = op(*names)
        write = lambda b, xs, node=node: SCALAR[node.op](b, node, [xs[0], literal(divisor, "i64")])
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(run(write, ["i64"], x.dtype, x), UFUNC[op](x, divisor))


def test_levels_agree_bit_by_bit() -> None:
    """AVX2 and AVX-512 give the same bits."""
    if len(machine.levels()) < 2:
        pytest.skip("this CPU has no AVX-512")
    for op, name in (*[(op, "float64") for op in RULES], (elementwise.multiply, "complex128")):
        dtype = np.dtype(name)
        n = arity(op) if not isinstance(UFUNC.get(op), str) else None
        node = node_of(op, (dtype,) * n) if n else None
        if node is not None:
            arrays = operands((dtype,) * n)
            found = [run_node(node, *arrays, level=level).tobytes() for level in machine.levels()]
            assert found[0] == found[1], op


@pytest.mark.parametrize("level", [None, "x86-64-v3"])
def test_float16_needs_no_library(level: str | None) -> None:
    """What is emitted in float16 itself, as reductions do."""

    def write(b: Builder, xs: list[Value]) -> Value:
        total = b.plus(b.multiply(*xs), xs[0])
        total = b.op("fsub", total, b.multiply(total, xs[1]))
        total = b.call("maximum", b.call("sqrt", b.call("fabs", total)), xs[0])
        return b.select(b.op("fcmp oeq", total, xs[1]), xs[0], b.op("fdiv", total, xs[1]))

    x, y = np.linspace(1, 2, 16, dtype=np.float16), np.linspace(2, 3, 16, dtype=np.float16)
    total = x * y + x
    total = np.maximum(np.sqrt(np.abs(total - total * y)), x)
    found = run(write, ["f16", "f16"], x.dtype, x, y, level=level)
    np.testing.assert_array_equal(found, np.where(total == y, x, total / y))
