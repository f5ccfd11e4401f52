"""Makers of functions that are one op each; the documentation is that of the op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from graphcore.frontend.core.base import Tensor
from graphcore.frontend.core.lift import Operand, apply
from graphcore.ir import Op
from graphcore.ops import elementwise as ops


class Unary(Protocol):
    """A function of one tensor or number."""

    __name__: str

    def __call__(self, x: Operand) -> Tensor:
        """The function of each value."""

    def __get__(self, instance: Any, owner: type) -> Callable[[], Tensor]:
        """The method of a class."""


class Binary(Protocol):
    """A function of two tensors or numbers."""

    __name__: str

    def __call__(self, x: Operand, y: Operand) -> Tensor:
        """The function of each pair of values."""

    def __get__(self, instance: Any, owner: type) -> Callable[[Operand], Tensor]:
        """The method of a class."""


DOC = """{doc}, elementwise{like}.

{dims}
{dtypes} Other dtypes are refused.
{unknown}
>>> {operands} = {inputs}
>>> gc.{path}{name}({operands})
<Tensor: {result}[{sizes}]>
"""
DTYPES = {
    "float64": "Integers become floats where the result needs them.",
    "int64": "Operands are integers, or bool where NumPy allows it.",
    "bool": "Numbers count as true where they are not 0.",
}
ONE = "The dims are those of `x`."
SEVERAL = """Operands align by name: the dims of `x` first, then the new ones of `y`; a dim of size
1 is never stretched. Python numbers take the dtype of the other operand, as in NumPy 2."""
OPERANDS = {"x": ("row", 2), "y": ("col", 3), "z": ("batch", 4), "w": ("time", 5)}


def unary(op: Op, result: str = "f64", of: str = "float64", path: str = "") -> Unary:
    """The function of one operand that `op` computes.

    `result` is the dtype of the documented example, whose operand has dtype `of`; `path` is the
    module of `gc` that holds the function, with a point.
    """

    def function(x: Operand) -> Tensor:
        return apply(op, x)

    document(function, op, "x", result, of, path)
    return function


def binary(op: Op, result: str = "f64", of: str = "float64", path: str = "") -> Binary:
    """The function of two operands that `op` computes; see `unary`."""

    def function(x: Operand, y: Operand) -> Tensor:
        return apply(op, x, y)

    document(function, op, "xy", result, of, path)
    return function


def reflect(function: Binary) -> Binary:
    """The function of the same operands in the other order, as `__radd__` is that of `__add__`."""
    return lambda x, y: function(y, x)


class Ternary(Protocol):
    """A function of three tensors or numbers."""

    __name__: str

    def __call__(self, x: Operand, y: Operand, z: Operand) -> Tensor:
        """The function of each three values."""


class Quaternary(Protocol):
    """A function of four tensors or numbers."""

    __name__: str

    def __call__(self, x: Operand, y: Operand, z: Operand, w: Operand) -> Tensor:
        """The function of each four values."""


def ternary(op: Op) -> Ternary:
    """The function of three operands that `op` computes; see `unary`."""

    def function(x: Operand, y: Operand, z: Operand) -> Tensor:
        return apply(op, x, y, z)

    document(function, op, "xyz", path="special.")
    return function


def quaternary(op: Op) -> Quaternary:
    """The function of four operands that `op` computes; see `unary`."""

    def function(x: Operand, y: Operand, z: Operand, w: Operand) -> Tensor:
        return apply(op, x, y, z, w)

    document(function, op, "xyzw", path="special.")
    return function


def document(
    function: Any, op: Op, operands: str, result: str = "f64", of: str = "float64", path: str = ""
) -> None:
    """Names and documents the function of `op`, whose operands have one letter each."""
    function.__name__ = function.__qualname__ = op.name
    dims = [OPERANDS[x] for x in operands]
    unknown = [f"`{operands[place]}`" for place in ops.UNKNOWN.get(op, ())]
    function.__doc__ = DOC.format(
        doc=op.doc,
        like=numpy_namesake(op),
        dims=ONE if len(operands) == 1 else SEVERAL,
        dtypes=DTYPES[of],
        unknown=f"There is no derivative with respect to {', '.join(unknown)}.\n"
        if unknown
        else "",
        operands=", ".join(operands),
        inputs=", ".join(
            f"gc.tensor({x!r}, {{{dim!r}: {size}}}, dtype={of!r})"
            for x, (dim, size) in zip(operands, dims, strict=True)
        ),
        path=path,
        name=op.name,
        result=result,
        sizes=", ".join(f"{dim}={size}" for dim, size in dims),
    )


def numpy_namesake(op: Op) -> str:
    """The NumPy function of the same name, if there is one."""
    return "" if isinstance(ops.UFUNC[op], str) else f", as `numpy.{op.name}`"
