"""The entrance of a compiled function: arguments become arrays of the declared dtype and dims."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphcore.ir.errors import GraphError, GraphTypeError, GraphValueError
from graphcore.ir.graph import Graph
from graphcore.ir.names import ValueOf
from graphcore.ir.node import Need, Node, describe_operand
from graphcore.ir.provenance import Origin, user_line
from graphcore.ir.size_text import show_dim
from graphcore.ir.sizes import Expression, code, evaluate, unknown, unknowns
from graphcore.ir.types import TensorType
from graphcore.ops.leaf import input_

Array = npt.NDArray[Any]


def refusal(
    reason: str, *details: str, cure: str, kind: type[GraphError] = GraphValueError
) -> GraphError:
    """The error for a call with arguments that do not fit, worded as those of the build are."""
    lines = [f"call: {reason}", *[f"  {line}" for line in details], f"  called at {user_line()}"]
    return kind("\n".join([*lines, f"  cure: {cure}"]))


def quoted(name: object) -> str:
    """A name given by a user, on one line."""
    return f"'{show_dim(str(name))}'"


def listed(names: Iterable[object]) -> str:
    """Names separated by commas; if there are many, only the first."""
    shown = [quoted(name) for name in names]
    return ", ".join(shown if len(shown) <= 20 else [*shown[:20], f"… {len(shown) - 20} more"])


class Requirement(NamedTuple):
    """A size the user's graph needs to hold, and the operation that needs it."""

    need: Need
    op: str
    origin: Origin


def requirements(graph: Graph) -> tuple[Requirement, ...]:
    """The requirements that the type rules of the user's graph left to the call."""
    return tuple(
        dict.fromkeys(
            Requirement(need, node.said, node.origin)
            for node in graph.every_node()
            for need in node.needs
        )
    )


HOLDS = {"==": operator.eq, "<": operator.lt, "<=": operator.le}


def unknown_in(value: Any) -> Iterator[str]:
    """The unknown sizes in an attr, or in several."""
    if isinstance(value, Expression):
        yield from value.unknowns
    elif isinstance(value, tuple):
        for part in value:
            yield from unknown_in(part)


class Boundary:
    """Checks and converts the arguments of a call, and finds the unknown sizes in them."""

    def __init__(self, graph: Graph) -> None:
        self.params = [Parameter(node, number) for number, node in enumerate(graph.params)]
        self.requirements = requirements(graph)
        self.giver: dict[str, tuple[Parameter, int | None]] = {}  # None: by its value
        for param in self.params:
            for axis, size in enumerate(param.type.shape):
                for name in unknowns(size):
                    if size is unknown(name) and not isinstance(name, ValueOf):
                        self.giver.setdefault(name, (param, axis))
        self._find_values(graph)
        self.unknowns = tuple(self.giver)
        self._refuse_unbound(graph)
        self.bind = self._generate()

    def _find_values(self, graph: Graph) -> None:
        """Enter the inputs whose values are sizes."""
        found = {ValueOf(param.name): param for param in self.params if param.integer}
        if found:
            for node in (*graph.params, *graph.every_node()):
                for name in unknown_in(tuple(node.attrs.values())):
                    if isinstance(name, ValueOf) and name in found:
                        self.giver.setdefault(name, (found[name], None))

    def _generate(self) -> Callable[[Sequence[Any]], tuple[list[Array], tuple[int, ...]]]:
        """The function from arguments to arrays and unknown sizes, in straight lines for speed."""
        xs = [f"x{param.number}" for param in self.params]
        sizes = {name: f"n{i}" for i, name in enumerate(self.unknowns)}
        scope: dict[str, Any] = {"ndarray": np.ndarray, "refuse": self._refuse_call}
        lines = ["def bind(values):", f"    [{', '.join(xs)}] = values"]
        for x, param in zip(xs, self.params, strict=True):
            i = param.number
            scope |= {f"d{i}": param.dtype, f"s{i}": param.fixed, f"convert{i}": param.convert}
            fits = f"ndim == {param.ndim}" if param.fixed is None else f"shape == s{i}"
            lines += [
                f"    if type({x}) is not ndarray or {x}.dtype is not d{i} or not {x}.{fits}:",
                f"        {x} = convert{i}({x})",
            ]
        whole = []
        for x, param in zip(xs, self.params, strict=True):
            names = [
                sizes[name]
                for name, (giver, axis) in self.giver.items()
                if giver is param and axis is not None
            ]
            if names and len(names) == param.ndim:  # this input gives all its sizes: none to check
                lines.append(f"    {', '.join(names)}, = {x}.shape")
                whole.append(param)
        lines += [
            f"    {sizes[name]} = x{param.number}.{'item()' if axis is None else f'shape[{axis}]'}"
            for name, (param, axis) in self.giver.items()
            if param not in whole
        ]
        checks = (
            [
                f"0 <= {sizes[name]} <= {LARGEST_VALUE}"
                for name in sizes
                if isinstance(name, ValueOf)
            ]
            + [
                f"{x}.shape == ({', '.join(code(size, sizes) for size in param.type.shape)},)"
                for x, param in zip(xs, self.params, strict=True)
                if param.fixed is None and param not in whole
            ]
            + [
                f"{code(need.left, sizes)} {need.relation} {code(need.right, sizes)}"
                for need, _, _ in self.requirements
            ]
        )
        arrays, found = f"[{', '.join(xs)}]", f"({''.join(f'{n}, ' for n in sizes.values())})"
        if checks:
            lines += [f"    if not ({' and '.join(checks)}):", f"        refuse({arrays}, {found})"]
        source = "\n".join([*lines, f"    return {arrays}, {found}"])
        exec(compile(source, "<graphcore bind>", "exec"), scope)
        bind: Callable[[Sequence[Any]], tuple[list[Array], tuple[int, ...]]] = scope["bind"]
        return bind

    def _refuse_unbound(self, graph: Graph) -> None:
        for node in (*graph.params, *graph.every_node()):
            for name in sorted(set(unknown_in(tuple(node.attrs.values()))) - self.giver.keys()):
                what, instead = f"{node.said} at {node.origin}", ""
                if node.op is input_:
                    what = f"input '{show_dim(node.attrs['name'])}'"
                    instead = " or, if no expression is meant, as a name without any of +-*/%()"
                shown = show_dim(name)
                if isinstance(name, ValueOf):
                    raise GraphValueError(
                        f"compile: {what} needs the value of the input '{shown}' as a size\n"
                        f"{describe_operand(node)}\n  cure: add it to the list of inputs"
                    )
                raise GraphValueError(
                    f"compile: {what} needs the unknown size '{shown}', which no input has on its "
                    f"own\n{describe_operand(node)}\n  cure: give the size as a number{instead}, "
                    "let it be the value of an integer input without dims, or add an input that "
                    f"has it, such as gc.tensor('like', {{'{shown}': None}})"
                )

    def _refuse_call(self, arrays: list[Array], sizes: tuple[int, ...]) -> None:
        """Say which of the checks failed."""
        known = dict(zip(self.unknowns, sizes, strict=True))
        for name, (param, axis) in self.giver.items():
            if axis is None and not 0 <= known[name] <= LARGEST_VALUE:
                cure = f"pass a number from 0 to {LARGEST_VALUE}"
                reason = f"input {param.shown} is {known[name]}, but is the size of a dim"
                raise refusal(reason, param.declared, cure=cure)
        for param, array in zip(self.params, arrays, strict=True):
            self._check_sizes(param, array, known)
        for requirement in self.requirements:
            left, right = (evaluate(size, known) for size in requirement.need[1::2])
            if not HOLDS[requirement.need.relation](left, right):
                self._refuse(requirement, known)

    def _check_sizes(self, param: Parameter, array: Array, known: dict[str, int]) -> None:
        for dim, size, got in zip(param.dims, param.type.shape, array.shape, strict=True):
            want = size if isinstance(size, int) else evaluate(size, known)
            if want != got:
                others = [
                    f"input {self.giver[name][0].shown} has {show_dim(name)} = {known[name]} "
                    f"({self.giver[name][0].declared})"
                    for name in sorted(unknowns(size))
                ]
                shown = f"{size} = {want}: {'; '.join(others)}" if others else f"{want}"
                cure = "pass arrays of matching sizes, or give the dim a size of its own where it "
                cure += f"is declared, such as {{{quoted(dim)}: 'n_other'}}"
                raise param.of_another_size(dim, got, shown, cure if others else param.unsized(dim))

    def _refuse(self, requirement: Requirement, known: dict[str, int]) -> None:
        need, op, origin = requirement
        left, right = evaluate(need.left, known), evaluate(need.right, known)
        names = sorted(unknowns(need.left) | unknowns(need.right))
        how = [
            f"{show_dim(name)} = {known[name]}, {giver.place(axis)} input {giver.shown} "
            f"({giver.declared})"
            for name, (giver, axis) in ((name, self.giver[name]) for name in names)
        ]
        cure = "whose sizes agree" if need.relation == "==" else "of sufficient size"
        raise refusal(
            f"{op} at {origin} needs {need.left} {need.relation} {need.right} for dim "
            f"{quoted(need.dim)}, but they are {left} and {right}",
            *how,
            cure=f"pass arrays {cure}",
            kind=need.kind,
        )


LARGEST_VALUE = 2**40
"""The largest value of an input that is a size: more elements than any memory holds."""

RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
"""The rank of each kind of dtypes: a kind holds the numbers of all kinds of lower rank."""


class Parameter:
    """One declared input."""

    def __init__(self, node: Node, number: int) -> None:
        self.number = number
        self.type: TensorType = node.type
        self.name: str = node.attrs["name"]
        self.dims = self.type.dims or ()
        self.ndim = len(self.dims)
        self.dtype = np.dtype(self.type.dtype)
        self.shown = repr(self.name if len(self.name) <= 60 else f"{self.name[:59]}…")
        self.declared = f"declared as {self.type} at {node.origin}"
        self.fixed: tuple[int, ...] | None = None
        if all(isinstance(size, int) for size in self.type.shape):
            self.fixed = tuple(size for size in self.type.shape if isinstance(size, int))

    @property
    def integer(self) -> bool:
        """Whether it is one integer, which may be the size of a dim."""
        return not self.dims and self.dtype.kind in "iu"

    def place(self, axis: int | None) -> str:
        """Where a size comes from: a dim, or the value."""
        return "the value of" if axis is None else f"from dim {quoted(self.dims[axis])} of"

    def convert(self, value: Any) -> Array:
        """`value` as an array of the declared dtype and dims."""
        array = self._cast(self._ordered(value) if hasattr(value, "dims") else value)
        if array.ndim != len(self.dims):
            raise refusal(
                f"input {self.shown} has {len(self.dims)} dims ({listed(self.dims)}), but got an "
                f"array of shape {array.shape}",
                self.declared,
                cure="pass an array with these dims in this order",
            )
        if self.fixed is not None and array.shape != self.fixed:
            for dim, want, got in zip(self.dims, self.fixed, array.shape, strict=True):
                if want != got:
                    raise self.of_another_size(dim, got, want, self.unsized(dim))
        return array

    def of_another_size(self, dim: str, got: int, want: object, cure: str) -> GraphError:
        """The refusal of an array, for one of its dims."""
        reason = f"dim {quoted(dim)} of input {self.shown} has size {got}, but must have {want}"
        return refusal(reason, self.declared, cure=cure)

    def unsized(self, dim: str) -> str:
        """The cure for a size that was declared as a number."""
        return (
            "pass an array of the declared size, or declare the dim with an unknown size, "
            f"{{{quoted(dim)}: None}}"
        )

    def _ordered(self, value: Any) -> Any:
        given = tuple(value.dims)
        if sorted(given, key=str) != sorted(self.dims):
            raise refusal(
                f"input {self.shown} has dims {listed(self.dims)}, but got dims {listed(given)}",
                self.declared,
                cure="rename or index the argument to these dims",
            )
        values = getattr(value, "values", getattr(value, "data", None))
        if values is None or callable(values):  # a Dataset has a method of that name
            raise refusal(
                f"input {self.shown} takes an array, but got {value!r:.60}",
                self.declared,
                cure="pass values; expressions of tensors are built before they are compiled",
                kind=GraphTypeError,
            )
        return np.asarray(values).transpose([given.index(dim) for dim in self.dims])

    def _cast(self, value: Any) -> Array:
        try:
            array = np.asarray(value)
        except ValueError as error:
            cure = "pass an array, or nested lists whose rows have one length"
            raise refusal(f"input {self.shown}: {error}", self.declared, cure=cure) from error
        have = array.dtype
        if np.ma.is_masked(value):
            cure = "fill them, value.filled(np.nan), and skip nan: x.mean(skipna=True)"
            raise refusal(f"input {self.shown} has masked values", self.declared, cure=cure)
        if have == self.dtype:
            return array if have.isnative else array.astype(self.dtype)
        if have.kind not in "biufc":
            reason = f"input {self.shown} takes numbers, but got {value!r:.60} of dtype {have}"
            cure = f"pass an array of numbers that {self.dtype} holds"
            raise refusal(reason, self.declared, cure=cure, kind=GraphTypeError)
        weak = not hasattr(value, "dtype")
        smaller_kind = RANK[have.kind] <= RANK[self.dtype.kind]
        if not (smaller_kind if weak else np.can_cast(have, self.dtype)):
            cure = f"convert it with .astype({str(self.dtype)!r})"
            if RANK[have.kind] > RANK[self.dtype.kind] == RANK["f"]:
                cure = "pass its real part, value.real"
            elif smaller_kind and array.ndim == 0:
                number = type(array.item()).__name__
                cure = f"pass a Python number, which takes the dtype of the input: {number}(value)"
            raise refusal(
                f"input {self.shown} is {self.dtype}, but got {have}, which would lose values",
                self.declared,
                cure=f"{cure}, or declare the input with dtype={str(have)!r}",
                kind=GraphTypeError,
            )
        try:
            return np.asarray(value, dtype=self.dtype)
        except OverflowError as error:
            cure = "pass numbers that the dtype holds, or declare another"
            reason = f"input {self.shown}: {error}"
            raise refusal(reason, self.declared, cure=cure, kind=GraphTypeError) from error
