"""C functions give the bits of calls from Python, in memory of the caller's alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from benchmarks.programs import FURTHER, NAMES
from benchmarks.programs import Program as Benchmark
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import c_entry
from graphcore.backends.llvm_kernels.entrance import Kernel, Scratch
from graphcore.backends.targets import NATIVE
from graphcore.ir.errors import GraphError
from graphcore.ir.sizes import evaluate
from tests.backends.cfunction.calling import ZONE, Call, agree
from tests.backends.llvm_kernels.native import needs_machine_code, slowly
from tests.backends.llvm_kernels.rules import RULES
from tests.guards import GUARD, with_guard

pytestmark = needs_machine_code

x = gc.tensor("x", {"row": None})
A = gc.tensor("A", {"i": None, "j": "i"})
b = gc.tensor("b", {"i": None})
M = gc.tensor("M", {"row": None, "col": None})
s, t = gc.tensor("s", {}), gc.tensor("t", {})
single = gc.tensor("single", {"row": None}, dtype="float32")
count = gc.tensor("count", {}, dtype="int64")
small = gc.tensor("small", {}, dtype="int8")
yes = gc.tensor("yes", {}, dtype="bool")
whole = gc.tensor("whole", {"row": None}, dtype="int32")
marked = gc.tensor("marked", {"row": None}, dtype="bool")
wave = gc.tensor("wave", {"row": None}, dtype="complex128")
phase = gc.tensor("phase", {}, dtype="complex64")
half = gc.tensor("half", {}, dtype="float16")

RNG = np.random.default_rng(0)
VECTORS = [(RNG.normal(size=n),) for n in (7, 0, 1, 1000, 3)]
MATRICES = [(RNG.normal(size=shape),) for shape in ((3, 5), (0, 4), (4, 0), (1, 1), (40, 33))]


def definite(n: int) -> np.ndarray:
    a = RNG.normal(size=(n, n))
    return a @ a.T + n * np.eye(n)


def with_gradient(y: gc.Tensor, *of: gc.Tensor) -> dict[str, Any]:
    return {"value": y, "grad": gc.grad(y, of[0] if len(of) == 1 else list(of))}


def converging(y: gc.Tensor) -> gc.Tensor:
    """A loop whose number of steps the values decide, and which remembers them for its gradient."""
    step = lambda c: (gc.sin(c[0]) + 1, c[1] + 1)
    return gc.while_loop(lambda c: c[1] < count, step, (y, count * 0))[0]


def steps(h: gc.Tensor, u: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
    h = gc.tanh(h * 0.9 + u)
    return h, h * h


L = gc.linalg.cholesky(A, dims=("i", "j"))
density = -gc.log1p(x**2).sum() - (x**2).sum() / 2
PROGRAMS: dict[str, tuple[Any, Any, Sequence[Any]]] = {
    "numbers": ([s, t], {"sum": s + t, "slope": gc.grad(gc.sin(s) * t, s)}, [(0.5, 2.0)]),
    "of nothing": ([], gc.constant([1.0, 2.0], "k") * 2, [()]),
    "as they are": ([x, s], [x, s, x], [(v, 0.5) for (v,) in VECTORS]),
    "unused": ([b, M], b * 2, [(VECTORS[0][0], m) for (m,) in MATRICES]),
    "density": ([x], with_gradient(density, x), VECTORS),
    "matrix": ([M], [M.sum("row"), M.mean("col"), M.transpose("col", "row")], MATRICES),
    "product": ([M], gc.dot(M, M.rename(row="other"), dim="col"), MATRICES),
    "softmax": ([M], with_gradient((gc.special.softmax(M, "col") ** 2).sum(), M), MATRICES),
    "loop": (
        [x, s],
        with_gradient(gc.scan(steps, s, x, dim="row")[1].sum(), x, s),
        [(v, 0.3) for (v,) in VECTORS],
    ),
    "while": (
        [s, count],
        [converging(s), gc.grad(converging(s), s)],
        [(0.3, n) for n in (3, 500, 0)],
    ),
    "branches": (
        [x, yes],
        gc.cond(yes, lambda: x * 2, lambda: x - 1),
        [(VECTORS[0][0], q) for q in (0 > 1, 1 > 0)],
    ),
    "cholesky": (
        [A, b],
        {"L": L, "z": gc.linalg.solve_triangular(L, b, dims=("i", "j"), lower=True)},
        [(definite(n), RNG.normal(size=n)) for n in (5, 1, 0, 60)],
    ),
    "solve": (
        [A, b],
        with_gradient(gc.linalg.solve(A, b, dims=("i", "j")).sum(), A, b),
        [(definite(n), RNG.normal(size=n)) for n in (4, 1, 70)],
    ),
    "sorted": (
        [x],
        [gc.sort(x, dim="row"), gc.argsort(x, dim="row"), gc.cumsum(x, "row")],
        VECTORS,
    ),
    "float32": (
        [single],
        with_gradient((gc.exp(single) * single).sum(), single),
        [(v.astype("f4"),) for (v,) in VECTORS],
    ),
    "integers": (
        [whole, small],
        [whole * 2, whole.sum(), small + 1],
        [(np.arange(n, dtype="i4"), -3) for n in (0, 5, 99)],
    ),
    "bools": (
        [marked, yes],
        [~marked, marked.any(), yes & True],
        [(np.arange(n) % 3 == 0, True) for n in (0, 5, 99)],
    ),
    "complex": (
        [wave, phase],
        [wave * 2j, abs(wave), phase * 1j],
        [(np.exp(1j * np.arange(n)), 1j) for n in (0, 5, 40)],
    ),
    "float16": ([half], half * 2, [(0.5,)]),
    "parts": ([x], [x[1:], x[:3], x[::2]], VECTORS[:1] + VECTORS[3:]),
    "scatter": (
        [x, whole],
        gc.zeros({"bin": 9}).at[{"bin": whole}].add(x),
        [(RNG.normal(size=n), RNG.integers(0, 9, n).astype("i4")) for n in (0, 5, 400)],
    ),
    "prefix": ([x, count], x[:count], [(VECTORS[0][0], n) for n in (0, 3, 7)]),
    "sizes": ([count], gc.arange(count, dim="k") * 2, [(n,) for n in (0, 3, 700)]),
}


BUFFERS = "while", "solve"
"""Programs with buffers and records that grow."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits(name: str) -> None:
    inputs, outputs, several = PROGRAMS[name]
    agree(gc.compile(inputs, outputs, native=True), *several)


@pytest.mark.parametrize(
    "name", [*BUFFERS, *slowly(*[name for name in PROGRAMS if name not in BUFFERS])]
)
def test_nothing_is_written_behind_a_buffer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zones behind the buffers of a workspace stay as they are, for sizes of both kinds."""
    made = c_entry.NativeEntry.__init__

    def guarded(self: Any, kernel: Kernel, *rest: Any) -> None:
        made(self, kernel._replace(slots=tuple(map(with_guard, kernel.slots))), *rest)

    monkeypatch.setattr(c_entry.NativeEntry, "__init__", guarded)
    inputs, outputs, several = PROGRAMS[name]
    f = gc.compile(inputs, outputs, native=True)
    for args in several:
        _, sizes = f._boundary.bind_named(args)
        for given in ({}, {name: n for name, n in sizes.items() if type(name) is str}):
            call = Call(f, f.cfunc(**given), *args)
            call.run()
            ends = [*ends_of_buffers(call.c._entry, sizes)]
            for end in ends:
                ctypes.memset(end, ZONE, GUARD)
            call.run()
            assert all(ctypes.string_at(end, GUARD) == bytes([ZONE]) * GUARD for end in ends)


def ends_of_buffers(entry: c_entry.NativeEntry, sizes: dict[str, int]) -> Iterator[int]:
    """Where the buffers of the workspaces end that have been made, before their zones."""
    first = entry.layout.table + entry.layout.args
    for words in entry.pool[c_entry.FIRST_SLOT + 1 : c_entry.FAILED_SIZES : 8].tolist():
        for at, slot in enumerate(entry.kernel.slots, first) if words else ():
            if isinstance(slot, Scratch):
                begin = ctypes.c_int64.from_address(words + 8 * at).value
                yield begin + evaluate(slot.bytes, sizes) - GUARD


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, *FURTHER])
def test_programs_of_others(name: str) -> None:
    program = Benchmark(name)
    f, given = program.make("graphcore")._for(NATIVE), program.module.inputs("tiny")
    if llvm_kernels.single_kernel(f._program.graph) is None:
        with pytest.raises(GraphError, match="is a NumPy call"):
            f.cfunc()
        return
    agree(f, tuple(given[param.name] for param in f._boundary.params))


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_programs_of_rules(rule: str) -> None:
    for program in {**RULES[rule].programs, **RULES[rule].others}.values():
        dtype = program.dtypes[-1]
        f = program.compiled(dtype)._for(NATIVE)
        agree(f, *[program.arguments(sizes, dtype) for sizes in program.sizes[-3:]])


def test_sizes_may_change_back_and_forth() -> None:
    """A workspace for some sizes serves smaller ones, and larger ones get another."""
    f = gc.compile([M], with_gradient(gc.linalg.norm(gc.cumsum(M, "row")), M), native=True)
    c = f.cfunc()
    for shape in ((3, 4), (2, 5), (300, 40), (1, 1), (300, 40), (3, 4), (0, 0), (4, 3)):
        m = RNG.normal(size=shape) + 3
        for y, z in zip(Call(f, c, m).run(), f._values(m), strict=True):
            np.testing.assert_array_equal(y, z)


DECLARATIONS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "double f(double s, void *user)": lambda: ([s], s * 2),
    "double f(double *s)": lambda: ([s], s * 2),
    "double f(float s)": lambda: ([s], s * 2),
    "double f(int s)": lambda: ([s], s * 2),
    "double f(bool s)": lambda: ([s], s * 2),
    "double f(unsigned long s)": lambda: ([s], s * 2),
    "int f(double s, double *anything)": lambda: ([s], s * 2),
    "int64_t f(const double *const s, double result[1]);": lambda: ([s], s * 2),
    "signed char f(double s, double *restrict result)": lambda: ([s], s * 2),
}


@pytest.mark.parametrize("declaration", DECLARATIONS)
def test_one_number_in_many_forms(declaration: str) -> None:
    f = gc.compile(*DECLARATIONS[declaration](), native=True)
    c = f.cfunc(declaration)
    assert Call(f, c, 1.0).run() == [2.0]


def test_numbers_of_all_kinds_by_value() -> None:
    """Narrow ones, whose registers may hold anything beside them."""
    for dtype, values in {
        "int8": (-128, 127),
        "uint8": (0, 255),
        "int16": (-(2**15), 2**15 - 1),
        "uint16": (0, 2**16 - 1),
        "int32": (-(2**31), 2**31 - 1),
        "uint32": (0, 2**32 - 1),
        "int64": (-(2**63), 2**63 - 1),
        "uint64": (0, 2**64 - 1),
        "bool": (False, True),
        "float32": (1.5, -np.inf),
        "float64": (np.pi, 5e-324),
    }.items():
        z = gc.tensor("z", {}, dtype=dtype)
        f = gc.compile([z], [z, gc.stack([z, z], "k")], native=True)
        for c in (
            f.cfunc(),
            f.cfunc("int f(const {0} *z, {0} *result0, {0} *result1)".format(c_type(dtype))),
        ):
            for value in values:
                first, both = Call(f, c, value).run()
                assert first == value
                assert (both == value).all()


def c_type(dtype: str) -> str:
    return {"float32": "float", "float64": "double", "bool": "bool"}.get(dtype, f"{dtype}_t")


def test_several_results_of_which_one_is_returned() -> None:
    f = gc.compile([x], with_gradient(density, x), native=True)
    c = f.cfunc("double value(const double *x, size_t row, double *grad)")
    for y, z in zip(Call(f, c, VECTORS[0][0]).run(), f(*VECTORS[0]).values(), strict=True):
        np.testing.assert_array_equal(y, z)


def test_dims_by_other_names_than_sizes() -> None:
    """A dim whose size has a name of its own, one with a number, and one that is computed."""
    z = gc.tensor("z", {"row": "n", "col": 3, "last": "n + 1"})
    f = gc.compile([z], z.sum(), native=True)
    m = RNG.normal(size=(2, 3, 3))
    for head in (
        "size_t n",
        "int row, int col",
        "size_t row, size_t col, size_t last",
        "int n, int last",
    ):
        c = f.cfunc(f"double f({head}, const double *z)")
        given = [3 if name.endswith(("col", "last")) else 2 for name in head.split(", ")]
        assert c.ctypes(*given, m.ctypes.data_as(ctypes.POINTER(ctypes.c_double))) == f(m)
        if len(given) > 1:
            given[-1] += 1
            assert np.isnan(c.ctypes(*given, m.ctypes.data_as(ctypes.POINTER(ctypes.c_double))))
    assert Call(f, f.cfunc("double f(double *z)", row=2), m).run()[0] == f(m)
    assert Call(f, f.cfunc("double f(double *z)", n=2, col=3, last=3), m).run()[0] == f(m)


def test_names_that_c_cannot_have() -> None:
    inputs = {
        "double": gc.tensor("double", {"my dim": None}),
        "w": [gc.tensor("w[0]", {}), gc.tensor("2", {})],
    }
    f = gc.compile(
        [inputs],
        {"if": {"a": inputs["double"] * 2}, "b": inputs["w"][0] + inputs["w"][1]},
        native=True,
    )
    c = f.cfunc()
    assert c.declaration == (
        "int program(size_t my_dim, const double *double_, double w_0, double x2, "
        "double *if_a, double *b);"
    )
    assert Call(f, c, np.arange(2.0), 1.0, 2.0).run()[1] == 3.0
    assert "my_dim: a size, my dim" in c.header


def test_inner_tensors_as_inputs() -> None:
    h = gc.exp(x)
    f = gc.compile([h], gc.grad((h * h).sum(), h), native=True)
    agree(f, *VECTORS)


def test_of_a_gc_function() -> None:
    @gc.function(x={"row": None}, native=True)
    def total(x: gc.Tensor) -> gc.Tensor:
        return (x * x).sum()

    c = total.compiled(np.ones(3)).cfunc("double f(int row, double *x)")
    assert c.ctypes(3, np.arange(3.0).ctypes.data_as(ctypes.POINTER(ctypes.c_double))) == 5.0


def test_results_that_calls_label() -> None:
    """C functions of programs that return DataArrays write the values."""
    f = gc.compile([x], x * 2, returns="xarray", native=True)
    assert Call(f, f.cfunc(), np.arange(3.0)).run()[0].tolist() == [0, 2, 4]
