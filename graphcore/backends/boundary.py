"""The entrance of a compiled function: arguments become arrays of the declared dtype and dims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphcore.ir.errors import GraphValueError
from graphcore.ir.graph import Graph
from graphcore.ir.name_text import show_dim
from graphcore.ir.names import ValueOf
from graphcore.ir.node import Need, Node, describe_operand
from graphcore.ir.provenance import Origin, public_call
from graphcore.ir.sizes import Expression, Size, code, evaluate, unknown, unknowns
from graphcore.ir.types import TensorType
from graphcore.ops.leaf import input_
from graphcore.schedule.order import finders

from .argument_checks import LARGEST_VALUE, Checks, Needed, Parameter, Sized, Unknown
from .label_checks import Along, LabelChecks
from .python_code import python_code

Array = npt.NDArray[Any]


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


def unknown_in(value: Any) -> Iterator[str]:
    """The unknown sizes in an attr, or in several."""
    if isinstance(value, Expression):
        yield from value.unknowns
    elif isinstance(value, tuple):
        for part in value:
            yield from unknown_in(part)


class Boundary:
    """Checks and converts the arguments of a call, and finds the unknown sizes in them.

    Labels of arguments along the dims of `labelled` must be equal.
    """

    def __init__(self, graph: Graph, labelled: Sequence[Along] = ()) -> None:
        self.params = [parameter(node, number) for number, node in enumerate(graph.params)]
        self.types: list[TensorType] = [node.type for node in graph.params]
        self.giver: dict[str, tuple[Parameter, int | None]] = {}  # None: by its value
        for param, type in zip(self.params, self.types, strict=True):
            for axis, size in enumerate(type.shape):
                for name in unknowns(size):
                    if size is unknown(name) and not isinstance(name, ValueOf):
                        self.giver.setdefault(name, (param, axis))
        self._find_values(graph)
        self.unknowns = tuple(self.giver)
        self.requirements = tuple(
            required
            for required in requirements(graph)
            if self.giver.keys() >= unknowns(required.need.left) | unknowns(required.need.right)
        )
        self._refuse_unbound(graph)
        self.labels = LabelChecks(self.params, labelled) if labelled else None
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
        noted = set()
        if self.labels is not None:
            scope["agree"] = self.labels.agree
            noted = {number for along in self.labels.dims for number in along.parameters}
            lines.append("    labelled = False")
        for x, param in zip(xs, self.params, strict=True):
            i = param.number
            scope |= {f"d{i}": param.dtype, f"s{i}": param.fixed, f"convert{i}": param.convert}
            fits = f"ndim == {param.ndim}" if param.fixed is None else f"shape == s{i}"
            lines += [
                f"    if type({x}) is not ndarray or {x}.dtype is not d{i} or not {x}.{fits}:",
                f"        {x} = convert{i}({x})",
                *["        labelled = True"] * (i in noted),
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
                f"{x}.shape == ({', '.join(code(size, sizes) for size in type.shape)},)"
                for x, param, type in zip(xs, self.params, self.types, strict=True)
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
        if noted:
            lines += ["    if labelled:", "        agree(values)"]
        self.source = "\n".join([*lines, f"    return {arrays}, {found}"])
        exec(python_code(self.source).code, scope)
        bind: Callable[[Sequence[Any]], tuple[list[Array], tuple[int, ...]]] = scope["bind"]
        return bind

    def bind_named(self, args: Sequence[Any]) -> tuple[list[Array], dict[str, int]]:
        """The arrays for the arguments of a call, and the unknown sizes by name."""
        arrays, sizes = self.bind(args)
        return arrays, dict(zip(self.unknowns, sizes, strict=True))

    def _refuse_unbound(self, graph: Graph) -> None:
        computed, asked = finders(graph.nodes()).keys(), public_call("compile")
        for node in (*graph.params, *graph.every_node()):
            found = set(unknown_in(tuple(node.attrs.values()))) if node.attrs else set[str]()
            for name in sorted(found - self.giver.keys() - computed):
                what, instead = f"{node.said} at {node.origin}", ""
                if node.op is input_:
                    what = f"input '{show_dim(node.attrs['name'])}'"
                    instead = " or, if no expression is meant, as a name without any of +-*/%()"
                shown = show_dim(name)
                if isinstance(name, ValueOf):
                    raise GraphValueError(
                        f"{asked}: {what} needs the value of the input '{shown}' as a size\n"
                        f"{describe_operand(node)}\n  cure: add it to the list of inputs"
                    )
                raise GraphValueError(
                    f"{asked}: {what} needs the unknown size '{shown}', which no input has on its "
                    f"own\n{describe_operand(node)}\n  cure: give the size as a number{instead}, "
                    "let it be the value of an integer input without dims, or add an input that "
                    f"has it, such as gc.tensor('like', {{'{shown}': None}})"
                )

    def _refuse_call(self, arrays: list[Array], sizes: tuple[int, ...]) -> None:
        """Say which of the checks failed."""
        self.checks(self._size_function).refuse(arrays, sizes)

    def _size_function(self, size: Size) -> Callable[..., int]:
        """The function that computes a size from the unknown ones."""
        return lambda *known: evaluate(size, dict(zip(self.unknowns, known, strict=True)))

    def checks(self, function: Callable[[Size], Callable[..., int]]) -> Checks:
        """The checks of sizes, these as functions of the unknown ones."""
        numbers = {name: number for number, name in enumerate(self.unknowns)}

        def size_entry(size: Size, parameter: int = 0, axis: int = 0) -> Sized:
            of = tuple(numbers[name] for name in sorted(unknowns(size)))
            return Sized(parameter, axis, str(size), of, function(size))

        found = [
            size_entry(size, param.number, axis)
            for param, type in zip(self.params, self.types, strict=True)
            for axis, size in enumerate(type.shape)
        ]
        needed = [
            Needed(
                f"{op} at {origin}",
                need.dim,
                need.relation,
                size_entry(need.left),
                size_entry(need.right),
                need.kind,
                need.cure,
            )
            for need, op, origin in self.requirements
        ]
        givers = [(name, *self.giver[name]) for name in self.unknowns]
        unknown = [Unknown(name, param.number, axis) for name, param, axis in givers]
        return Checks(self.params, unknown, found, needed)


def parameter(node: Node, number: int) -> Parameter:
    """An input as it is declared."""
    type, shape = node.type, node.type.shape
    fixed = tuple(size for size in shape if isinstance(size, int))
    declared = f"declared as {type} at {node.origin}"
    known = fixed if len(fixed) == len(shape) else None
    dtype = np.dtype(type.dtype)
    return Parameter(number, node.attrs["name"], type.dims or (), dtype, known, declared)
