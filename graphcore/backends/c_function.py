"""`CFunction`: a compiled program as a C function, called without Python and without the GIL."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from graphcore.inspection.check import show_place
from graphcore.ir import Graph, Hidden, TensorType
from graphcore.ir.errors import GraphError, GraphValueError
from graphcore.ir.help_text import attributes
from graphcore.ir.name_text import escape
from graphcore.ir.provenance import user_line
from graphcore.ir.sizes import evaluate, unknown
from graphcore.ir.types import show_tensor

from .argument_checks import quote
from .c_declarations import CParameter, CType, refuse
from .c_interface import (
    FAILED,
    MEMORY,
    NAN,
    OVERLAP,
    SIZES,
    Entry,
    Failure,
    Interface,
    Names,
    interface_of,
)
from .target import Program


@attributes(
    address="Where the function is in the memory of this process.",
    declaration="Its declaration in C.",
    ctypes="The function for `ctypes`, and so for `scipy.LowLevelCallable` and numba.",
    signature="Its types alone, as SciPy compares them: `double (double, void *)`.",
)
class CFunction:
    """A compiled program as a C function, made by `Compiled.cfunc`.

    It is called by its address, without Python and without the GIL, from any number of threads at
    once. It stays in memory as long as this object, its `ctypes` or its `capsule`. Nothing stops a
    call before its end: not Ctrl-C either.
    """

    def __init__(self, interface: Interface, entry: Entry, names: Names) -> None:
        self._interface, self._entry, self._names = interface, entry, names
        declared = interface.declaration
        self.address: int = entry.address
        self.declaration, self.signature = str(declared), declared.signature
        types = [x.type.ctypes for x in declared.parameters]
        function: Any = ctypes.CFUNCTYPE(declared.returns.ctypes, *types)(entry.address)
        function.entry = entry  # which lives as long as what calls it
        self.ctypes = function

    @property
    def capsule(self) -> Any:
        """A new capsule of the function for `scipy.LowLevelCallable`, named by its signature."""
        return self._entry.capsule(self.signature)

    def failure(self) -> GraphError | None:
        """The error of the last call that failed since this was asked before; None if none did.

        It is not raised. Calls of all threads are counted together.

        Examples
        --------
        >>> import graphcore as gc, numpy as np
        >>> i = gc.tensor("i", {}, dtype="int64")
        >>> f = gc.compile([i], gc.constant([1.0, 2.0], "row")[{"row": i}], native=True)
        >>> c = f.cfunc("double f(int64_t i)")
        >>> c.ctypes(1), c.ctypes(5)
        (2.0, nan)
        >>> print(str(c.failure()).partition(",")[0])
        call: isel at ... position 5 is outside dim 'row'
        """
        found = self._entry.failure()
        return None if found is None else self._worded(found)

    def _worded(self, found: Failure) -> GraphError | None:
        """The error of a call in the user's words."""
        if found.status == OVERLAP:
            one, other = map(self._array, found.pair)
            reason = f"call: the arrays {one} and {other} share memory"
            cure = "  cure: give each result memory of its own"
            return GraphValueError("\n".join([reason, f"  called at {user_line()}", cure]))
        if found.status == NAN:
            return self._nan(found)
        if found.status == SIZES:
            return next(filter(None, [x.error(found.sizes) for x in self._interface.checks]))
        return found.error

    def _nan(self, found: Failure) -> GraphError:
        """The error for a result that has nan."""
        result, at = found.pair
        type = self._names.types[len(self._names.inputs) + result]
        shape = [evaluate(size, found.sizes) for size in type.shape]
        place = np.unravel_index(at // (2 if type.dtype.kind == "c" else 1), shape)
        where = f" at {show_place(dict(zip(type.dims or (), map(int, place))))}" if shape else ""
        name = self._array(len(self._names.inputs) + result)
        reason = f"call: the result {name} is nan{where}"
        cure = "  cure: ask where it comes from: f.check(...) of the program, with these arguments"
        return GraphValueError("\n".join([reason, f"  called at {user_line()}", cure]))

    def _array(self, number: int) -> str:
        """The parameter of an input or, behind these, a result."""
        made, inputs = self._interface, len(self._names.inputs)
        at = made.inputs[number] if number < inputs else made.results[number - inputs]
        return quote(made.declaration.parameters[at].name)

    @property
    def header(self) -> str:
        """The text of a C header that describes the function, with a type for pointers to it."""
        declared = self._interface.declaration
        written = [portable(x) for x in declared.parameters]
        text = declared._replace(parameters=tuple(written)).text(f"(*{declared.name}_function)")
        guard = f"GRAPHCORE_{declared.name.upper()}_H"
        complex_ = ["#include <complex.h>"] * ("complex" in text)
        lines = [
            f"#ifndef {guard}",
            f"#define {guard}",
            *("#include <stdbool.h>", "#include <stddef.h>", "#include <stdint.h>", *complex_),
            "",
            "/*",
            *[f" * {line}".rstrip() for line in self._description()],
            " */",
            f"typedef {text};",
            "",
            "#endif",
        ]
        return "".join(f"{line}\n" for line in lines)

    def _description(self) -> list[str]:
        """The lines of the comment: what each parameter is, and what the function returns."""
        made, names = self._interface, self._names
        lines = [f"{made.declaration.name}: a program of graphcore.", ""]
        count = len(names.inputs)
        of = {at: f"input, {shown(names.types[i])}" for i, at in made.inputs.items()}
        of |= {at: f"result, {shown(names.types[count + i])}" for i, at in made.results.items()}
        equal = {x.left: x.right for x in made.checks if x.relation == "=="}
        for name, at in made.sizes.items():
            of[at] = f"a size, {plain(str(equal.get(unknown(name), name)))}"
        for at, parameter in enumerate(made.declaration.parameters):
            lines.append(f"{plain(parameter.name) or '(unnamed)'}: {of.get(at, 'not used')}")
        fixed = [
            f"{plain(name)} = {n}" for name, n in made.known.items() if not isinstance(name, Hidden)
        ]
        lines += [f"Sizes that are fixed: {', '.join(fixed)}."] if fixed else []
        lines += ["Arrays are row-major, and no result shares memory with another array.", ""]
        if made.returned is not None:
            own = shown(names.types[count + made.returned])
            return [*lines, f"Returns the result, {own}; nan where a call fails."]
        if made.success:
            return [*lines, f"Returns {made.success}; 0 where a call fails."]
        return [
            *lines,
            f"Returns 0; {FAILED} where the program fails, as for a matrix that is not definite;",
            f"{NAN} where a result has nan; {MEMORY} without memory; {SIZES} where sizes do not",
            f"fit; {OVERLAP} where arrays that are written share memory.",
        ]

    def __reduce__(self) -> NoReturn:
        cure = "send the program, and call its cfunc where the C function is needed"
        raise refuse("a C function is at an address of this process: it has no pickle", cure=cure)

    def __repr__(self) -> str:
        return f"<CFunction {self.declaration}>"


def portable(parameter: CParameter) -> CParameter:
    """A parameter whose type needs no header of NumPy, Python or POSIX."""
    type = parameter.type
    if type.name in ("npy_intp", "Py_ssize_t", "ssize_t"):
        return parameter._replace(type=CType("ptrdiff_t", type.pointer))
    return parameter


def shown(type: TensorType) -> str:
    """A type in a comment of C."""
    return plain(show_tensor(type, type.dims))


def plain(text: str) -> str:
    """A text of the user's that ends no comment of C, on one line."""
    return escape(str(text)).replace("*/", "* /").replace("/*", "/ *")


def c_function(
    program: Program,
    graph: Graph,
    paths: Sequence[str],
    declaration: str | None,
    success: int,
    finds_nan: bool,
    sizes: Mapping[str, Any],
) -> CFunction:
    """A program as a C function; `graph` has its dims, `paths` are where its results stand."""
    make = program.c_function()
    names = Names(program.boundary, graph, paths)
    interface = interface_of(names, declaration, success, finds_nan, sizes)
    return CFunction(interface, make(interface), names)
