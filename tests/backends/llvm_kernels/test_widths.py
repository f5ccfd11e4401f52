"""Eight places side by side, or as many as fill 64 bytes where all values are smaller."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import elementary, machine
from tests.machine_code import build

from .native import needs_machine_code

pytestmark = needs_machine_code

Program = Callable[[str], gc.Compiled]
SIZES = (0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 1030)


def rows(dtype: str) -> gc.Tensor:
    return gc.tensor("x", {"row": None, "column": None}, dtype=dtype)


def of_rows(function: Callable[[gc.Tensor], gc.Tensor]) -> Program:
    def program(dtype: str) -> gc.Compiled:
        x = rows(dtype)
        return gc.compile([x], [function(x)])

    return program


def layer_norm(x: gc.Tensor) -> gc.Tensor:
    away = x - x.mean("column")
    return away / gc.sqrt((away * away).mean("column") + 1e-3)


def stencil(x: gc.Tensor) -> gc.Tensor:
    left, right = x.shift(column=1, fill_value=0), x.shift(column=-1, fill_value=0)
    return x + 0.1 * (left - 2 * x + right)


def stepped(x: gc.Tensor) -> gc.Tensor:
    """A loop whose carry is written at one place, and read in lanes."""
    first = gc.tanh(x.isel(row=slice(0, 1)).sum("row"))
    step = lambda h, x: (gc.tanh(h + gc.exp(-gc.abs(x))), h.sum("column"))
    return gc.scan(step, first, x, dim="row")[0]


PROGRAMS: dict[str, Program] = {
    "chain": of_rows(lambda x: gc.where(x > 0, x * x + 1, gc.exp(x)) - gc.maximum(x, 0.5)),
    "functions": of_rows(lambda x: gc.tanh(x) + gc.sin(x) * gc.log1p(x * x)),
    "sum": of_rows(lambda x: gc.abs(x).sum()),  # of values that do not cancel
    "sums of rows": of_rows(lambda x: x.sum("column")),
    "sums of columns": of_rows(lambda x: x.sum("row")),
    "largest": of_rows(lambda x: x.max("column", initial=-5.0)),
    "where it is largest": of_rows(lambda x: x.where(x > 0, 0).argmax("row")),
    "softmax": of_rows(lambda x: gc.special.softmax(x, dim="column")),
    "layer norm": of_rows(layer_norm),
    "stencil": of_rows(stencil),
    "turned": of_rows(lambda x: x.transpose("column", "row") + 1),
    "joined": of_rows(lambda x: gc.concat([x, -x], dim="column")),
    "running": of_rows(lambda x: x.cumsum("row") + x.cumsum("column")),
    "norm": of_rows(lambda x: gc.linalg.norm(x, dims="column")),
    "complex": of_rows(lambda x: gc.abs(gc.exp((x + 1j * x).astype("complex64")))),
    "reversed": of_rows(lambda x: x.isel(column=slice(None, None, -1)) * 2),
    "in a loop": of_rows(stepped),
}


def text(x: gc.Tensor | list[gc.Tensor], y: gc.Tensor) -> str:
    llvm = gc.compile(x if isinstance(x, list) else [x], y, native=True).llvm
    assert llvm is not None
    return llvm


@pytest.mark.parametrize("name", PROGRAMS)
def test_float32_at_all_sizes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As NumPy's target to rounding, and the same bits with AVX2 and AVX-512."""
    program = PROGRAMS[name]("float32")
    calls = []
    for level in machine.levels():
        monkeypatch.setattr(llvm_kernels, "compiled", partial(elementary.compiled, level=level))
        monkeypatch.setattr(llvm_kernels, "MADE", {})
        monkeypatch.setattr(llvm_kernels, "RECENT", machine.Recent())
        calls.append(build(program))
    rng = np.random.default_rng(1)
    for size in SIZES:
        x = rng.standard_normal((3, size)).astype("float32")
        wanted = np.asarray(program(x)[0])
        found, *others = [np.asarray(call(x)[0]) for call in calls]
        assert found.dtype == wanted.dtype
        scale = 8 * np.finfo("float32").eps * max(1, np.abs(wanted).max(initial=0.0))
        np.testing.assert_allclose(found, wanted, scale, scale)
        for other in others:
            assert found.tobytes() == other.tobytes()


WIDTHS = {
    **dict.fromkeys(("float32", "float16", "int32", "complex64"), 16),
    **dict.fromkeys(("int16", "uint16"), 32),
    **dict.fromkeys(("int8", "uint8", "bool"), 64),
}


@pytest.mark.parametrize("dtype", WIDTHS)
def test_small_values(dtype: str) -> None:
    x = gc.tensor("x", {"n": None}, dtype=dtype)
    assert f"<{WIDTHS[dtype]} x " in text(x, gc.where(x == x, x, x * x))
    assert "<64 x " not in text(x, x.isel(n=slice(None, None, -1)) * x)


NARROW: dict[str, Program] = {
    "chain": of_rows(lambda x: gc.where(x > 1, x * x + x, gc.maximum(x, x[{"row": 0}]))),
    "compared": of_rows(lambda x: gc.logical_or(x == x.isel(column=0), x > 2)),
    "turned": of_rows(lambda x: (x * x).transpose("column", "row")),
    "reversed": of_rows(lambda x: x.isel(column=slice(None, None, -1)) * x),
    "rows of a table": of_rows(
        lambda x: x + x.isel(row=gc.constant(np.array([2, 0, 1]), ("row",)))
    ),
    "counted": of_rows(lambda x: (x > 1).sum("column")),
    "flat": of_rows(lambda x: x.stack(place=("row", "column")) * x.max(initial=1)),
}


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16"])
@pytest.mark.parametrize("name", NARROW)
def test_narrow_values_at_all_sizes(name: str, dtype: str) -> None:
    """As NumPy's target, on both sides of a register and of two of them."""
    if dtype == "bool" and name == "flat":
        dtype = "uint8"
    program = NARROW[name](dtype)
    call = build(program)
    rng = np.random.default_rng(1)
    for size in (1, 2, 31, 32, 33, 63, 64, 65, 127, 129, 200):
        x = rng.integers(0, 5, (3, size)).astype(dtype)
        wanted, found = np.asarray(program(x)[0]), np.asarray(call(x)[0])
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_large_values(dtype: str) -> None:
    x = gc.tensor("x", {"n": None}, dtype=dtype)
    assert "<16 x " not in text(x, x + x)
    assert "<16 x " not in text(x, x.astype("complex64"))


def test_one_position_for_a_row() -> None:
    """Positions of eight bytes are no reason for fewer lanes where they select whole rows."""
    table, i = rows("float32"), gc.tensor("i", {"n": None}, dtype="int64")
    y = table.isel(row=i) * 2
    assert "masked.load.v16f32" in text([table, i], y)
    x = np.arange(68, dtype="float32").reshape(4, 17)
    f = gc.compile([table, i], y, native=True)
    np.testing.assert_array_equal(f(x, np.array([2, 0])), 2 * x[[2, 0]])


def test_nests_of_both_widths() -> None:
    x = gc.tensor("x", {"n": None})
    f = gc.compile([x], [(x > 0).cumsum("n"), ~(x > 0), x * 2], native=True)
    given = np.linspace(-1, 1, 37)
    for found, wanted in zip(f(given), [np.cumsum(given > 0), given <= 0, given * 2], strict=True):
        np.testing.assert_array_equal(found, wanted)
