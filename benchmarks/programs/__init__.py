"""Programs that others wrote for work of their own, written by name; each is an example as well.

A program is a file with SIZES ("tiny" and "small"), `inputs(size)`, `program()`, the compiled
function of these inputs, and `reference(**inputs)`, the same by hand in NumPy; both return dicts.
TOLERANCE, where there is one, says how far they may be apart, with the reason. Where `program`
takes a dtype, it is checked in single precision as well. peers/ holds it in other libraries.

Those of further/ were written after the compiler, to see how it does on programs that nobody had in
mind while making it: nothing may be tuned for them.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import graphcore as gc

Function = Callable[..., Mapping[str, Any]]
Inputs = dict[str, np.ndarray]

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
FURTHER = sorted(f"further.{path.stem}" for path in Path(__file__).parent.glob("further/[a-z]*.py"))
OURS = "graphcore", "native"
"""NumPy calls and machine code."""
PEERS = "numpy", "jax", "torch", "pytensor"
TOLERANCE = {"float64": 1e-9, "float32": 1e-4}


class Program(NamedTuple):
    """One of the programs."""

    name: str

    @property
    def module(self) -> Any:
        """The file it is in."""
        return importlib.import_module(f"{__name__}.{self.name}")

    def make(self, who: str) -> Function | None:
        """The function as one of the libraries has it, or None where it does not."""
        if who in OURS:
            return self.native() if who == "native" else self.compiled(native=False)
        if who == "numpy":
            return self.module.reference
        file = (Path(__file__).parent / "peers" / who).joinpath(*self.name.split("."))
        if importlib.util.find_spec(who) is None or not file.with_suffix(".py").exists():
            return None
        return importlib.import_module(f"{__name__}.peers.{who}.{self.name}").program()

    def compiled(self, **options: Any) -> gc.Compiled:
        """The program, compiled with some options."""
        with mock.patch.object(gc, "compile", partial(gc.compile, **options)):
            made: gc.Compiled = self.module.program()
        return made

    def native(self) -> gc.Compiled | None:
        """The program in machine code, or None where this machine runs none."""
        try:
            return self.compiled(native=True)
        except gc.GraphError:
            return None

    def functions(self) -> Iterator[tuple[str, Function]]:
        """Ours and those of all peers there are."""
        for who in (*OURS, *PEERS):
            function = self.make(who)
            if function is not None:
                yield who, function

    @property
    def dtypes(self) -> list[str]:
        """In which precisions it can be had."""
        takes_dtype = "dtype" in inspect.signature(self.module.program).parameters
        return ["float64", "float32"] if takes_dtype else ["float64"]

    @property
    def tolerance(self) -> float:
        """How far results may be from the reference's in double precision."""
        return getattr(self.module, "TOLERANCE", TOLERANCE["float64"])

    def check(self, size: str, dtype: str = "float64") -> Agreement:
        """Our results, and those of the reference, which computes in double precision."""
        given = in_dtype(self.module.inputs(size), dtype)
        options = {} if dtype == "float64" else {"dtype": dtype}
        found = self.module.program(**options)(**given)
        expected = self.module.reference(**in_dtype(given, "float64"))
        for name, value in found.items():
            if value.dtype.kind == "f" and value.dtype != dtype:
                raise TypeError(f"{self.name}: {name} is {value.dtype}, not {dtype}")
        tolerance = self.tolerance if dtype == "float64" else TOLERANCE[dtype]
        return Agreement(compared(found, expected), tolerance)


class Agreement(NamedTuple):
    """How far each result is from the reference's, and how far it may be."""

    errors: dict[str, float]
    tolerance: float

    @property
    def passed(self) -> bool:
        return all(error <= self.tolerance for error in self.errors.values())

    @property
    def worst(self) -> tuple[str, float]:
        """The result that is furthest off."""
        return max(self.errors.items(), key=lambda item: item[1])


def in_dtype(arrays: Inputs, dtype: str) -> Inputs:
    """The floats among some arrays in another precision."""
    return {
        name: array.astype(dtype) if array.dtype.kind == "f" else array.copy()
        for name, array in arrays.items()
    }


def compared(found: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, float]:
    """The relative error of each result; infinite where names, shapes or infinities differ."""
    names = dict.fromkeys([*expected, *found])
    return {
        name: error(np.asarray(found[name]), np.asarray(expected[name]))
        if name in found and name in expected
        else np.inf
        for name in names
    }


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, in units of the largest value expected."""
    finite = np.isfinite(expected)
    if found.shape != expected.shape or not np.array_equal(
        found[~finite], expected[~finite], equal_nan=True
    ):
        return np.inf
    if not finite.any():
        return 0.0
    off = np.abs(found - expected, where=finite, out=np.zeros(found.shape)).max()
    if not np.isfinite(off):
        return np.inf
    return float(off / max(np.abs(expected[finite]).max(), 1e-30))
