"""Results in arrays of the caller's: `f(..., out=y)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from graphcore.ir import Array, Graph
from graphcore.ir.errors import GraphError, GraphTypeError, GraphValueError
from graphcore.ir.node import describe_operand
from graphcore.ir.sizes import evaluate
from graphcore.ir.structures import leaves, levels

from .argument_checks import brief, refusal
from .arguments import enter
from .boundary import Boundary
from .python_code import python_code
from .target import Program

USUAL = 0x501
"""NumPy's flags of a row-major, aligned and writeable array."""
MOST_WORK: Any = 10**6
"""The most work of finding out whether two arrays have an element in common."""


class GivenResults:
    """Writes the results of calls into arrays that stand in a structure like that of the results.

    Machine code writes into arrays that are row-major and share no memory with arguments; into
    others results are copied.
    """

    def __init__(self, form: Any, named: Graph, boundary: Boundary, program: Program) -> None:
        self._form, self._outputs = levels(form), named.outputs
        self._dtypes = [np.dtype(y.type.dtype) for y in named.outputs]
        self._paths = {number: path for path, number in leaves(form, "out")}
        self._boundary, self._make = boundary, program.prepare()
        self._write = program.writer()
        self._last: tuple[Any, list[Any]] = None, []

    def fill(self, out: Any, args: Sequence[Any]) -> list[Array]:
        """The arrays in `out`, which hold the results for these arguments now."""
        given = [out] if self._form == 0 else self._parts(out)
        arrays, sizes = self._boundary.bind(args)
        last, shapes = self._last
        if last != sizes:
            shapes = self._shapes(sizes)
        row_major = self._are_usual(given, shapes) and are_alone(given)
        if not row_major:
            given = [self._checked(number, x) for number, x in enumerate(given)]
            for number, shape in enumerate(shapes):
                if shape is not None:
                    self._require_shape(number, given[number], shape)
            self._require_apart(given)
            row_major = all(map(is_row_major, given))
        if self._write is not None and row_major and are_apart(given, arrays):
            self._write(*sizes, *arrays, *given)
            return given
        made = self._make(*args)
        for number, result in enumerate(made):
            self._require_shape(number, given[number], result.shape)
        for x, result in zip(given, made, strict=True):
            x[...] = result
        return given

    def _parts(self, out: Any) -> list[Any]:
        """The arrays in a structure, in the order of the results."""
        found: dict[int, Any] = {}
        enter(self._form, out, "out", found, self._refuse_form)
        return [found[number] for number in range(len(found))]

    def _shapes(self, sizes: tuple[int, ...]) -> list[tuple[int, ...] | None]:
        """The shapes of the results, by the unknown sizes; None for those found in the call."""
        known, shapes = dict(zip(self._boundary.unknowns, sizes, strict=True)), []
        for type in [y.type for y in self._outputs]:
            is_known = type.unknowns <= known.keys()
            shapes.append(tuple([evaluate(n, known) for n in type.shape]) if is_known else None)
        self._last = sizes, shapes
        return shapes

    @cached_property
    def _are_usual(self) -> Callable[[Sequence[Any], Sequence[Any]], bool]:
        """Whether arrays are row-major ones of these shapes, for all results: at little cost."""
        numbers = range(len(self._dtypes))
        scope: dict[str, Any] = {"ndarray": np.ndarray}
        other = " or ".join(
            f"type(y{i}) is not ndarray or y{i}.dtype is not d{i} or y{i}.shape != s{i}"
            f" or y{i}.flags.num & {USUAL} != {USUAL}"
            for i in numbers
        )
        given, shapes = [", ".join(f"{x}{i}" for i in numbers) for x in "ys"]
        lines = f"[{given}] = given", f"[{shapes}] = shapes", f"return not ({other or False})"
        scope |= {f"d{i}": dtype for i, dtype in enumerate(self._dtypes)}
        exec(python_code("\n    ".join(["def are_usual(given, shapes):", *lines])).code, scope)
        made: Callable[[Sequence[Any], Sequence[Any]], bool] = scope["are_usual"]
        return made

    def _checked(self, number: int, x: Any) -> Array:
        """An array that may be written into, of the dtype of its result."""
        dtype, shown = np.dtype(self._outputs[number].type.dtype), self._paths[number]
        new = f"give a new array: np.empty(shape, {dtype.name!r})"
        if type(x) is not np.ndarray and not isinstance(x, np.memmap):
            cure = "give its memory: np.asarray(value)" if hasattr(x, "__array__") else new
            reason = f"{shown} must be an array of NumPy, but is {brief(x)}"
            raise self._refusal(reason, number, cure, GraphTypeError)
        if x.dtype != dtype:
            reason = f"{shown} is {x.dtype}, but its result is {dtype}"
            raise self._refusal(reason, number, new, GraphTypeError)
        if not x.flags.writeable:
            raise self._refusal(f"{shown} is read-only", number, "give a copy: value.copy()")
        if may_overlap_itself(x):
            reason = f"{shown} has elements that may lie in the same memory"
            raise self._refusal(reason, number, new)
        return np.asarray(x)

    def _require_shape(self, number: int, x: Array, shape: Sequence[int]) -> None:
        if x.shape != tuple(shape):
            reason = f"{self._paths[number]} has shape {x.shape}, but its result has {tuple(shape)}"
            cure = f"give np.empty({tuple(shape)}, {x.dtype.name!r})"
            raise self._refusal(reason, number, cure)

    def _require_apart(self, given: Sequence[Array]) -> None:
        """Refuse two arrays with an element in common."""
        bounds = [byte_bounds(x) for x in given] if len(given) > 1 else []
        order = sorted(range(len(bounds)), key=lambda number: bounds[number])
        for n, first in enumerate(order):
            for second in order[n + 1 :]:
                if bounds[second][0] >= bounds[first][1]:
                    break
                if share_memory(given[first], given[second]):
                    one, other = sorted([first, second])
                    reason = f"{self._paths[one]} and {self._paths[other]} share memory"
                    raise self._refusal(reason, other, "give each result memory of its own")

    def _refuse_form(self, reason: str, numbers: Sequence[int]) -> GraphError:
        cure = "give arrays in the form of the results"
        return self._refusal(reason, numbers[0], cure, GraphTypeError)

    def _refusal(
        self, reason: str, number: int, cure: str, kind: type[GraphError] = GraphValueError
    ) -> GraphError:
        result = self._outputs[number]
        return refusal(reason, describe_operand(result).lstrip(), cure=cure, kind=kind)


def are_apart(some: Sequence[Array], others: Sequence[Array]) -> bool:
    """Whether the memory of no array reaches into that of one of the others."""
    for x in some:
        for y in others:
            if np.may_share_memory(x, y):
                return False
    return True


def are_alone(given: Sequence[Array]) -> bool:
    """Whether the memory of no array reaches into that of another one."""
    if len(given) == 1:
        return True
    return all(are_apart(given[:n], given[n : n + 1]) for n in range(1, len(given)))


def is_row_major(x: Array) -> bool:
    """Whether machine code writes into an array as it is."""
    return x.flags.c_contiguous and x.flags.aligned


def may_overlap_itself(x: Array) -> bool:
    """Whether elements of an array may lie in the same memory, as those of a broadcast one do."""
    if x.flags.c_contiguous or 0 in x.shape:
        return False
    end = x.itemsize
    for stride, size in sorted((abs(s), n) for s, n in zip(x.strides, x.shape, strict=True)):
        if size > 1 and stride < end:
            return True
        end += stride * (size - 1)
    return False


def share_memory(x: Array, y: Array) -> bool:
    """Whether two arrays have an element in common, as far as that is found out in time."""
    try:
        return np.shares_memory(x, y, MOST_WORK)
    except np.exceptions.TooHardError:
        return True
