"""The entrance of a compiled function: arguments become arrays of the declared dtype and dims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphcore.ir import Array, Expression, Graph, Node, Size, TensorType
from graphcore.ir.errors import GraphValueError
from graphcore.ir.name_text import show_dim
from graphcore.ir.names import ValueOf
from graphcore.ir.node import Need, describe_operand, divisors
from graphcore.ir.provenance import Origin, public_call
from graphcore.ir.sizes import code, unknown, unknowns
from graphcore.ops.leaf import input_
from graphcore.schedule.order import finders

from .argument_checks import Checks, Needed, Parameter, Sized, Term, Unknown
from .chunked import convert_in_memory
from .label_checks import Along, LabelChecks
from .python_code import python_code

Bind: TypeAlias = "Callable[[Sequence[Any]], tuple[list[Array], tuple[int, ...]]]"
"""From the arguments of a call to arrays of the declared dtypes and dims, and the unknown sizes."""


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


def unknown_in(values: Iterable[Any]) -> set[str]:
    """The unknown sizes in attrs, which may be tuples of sizes."""
    found: set[str] = set()
    for value in values:
        if isinstance(value, Expression):
            found |= value.unknowns
        elif isinstance(value, tuple):
            found |= unknown_in(value)
    return found


class Boundary:
    """Checks and converts the arguments of a call, and finds the unknown sizes in them.

    `bind` does so for a call, and raises InChunks if one is in chunks, which `convert` loads.
    Labels of arguments along the dims of `labelled` must be equal.
    """

    def __init__(self, graph: Graph, labelled: Sequence[Along] = ()) -> None:
        self.params = [parameter(node, number) for number, node in enumerate(graph.params)]
        self.types: list[TensorType] = [node.type for node in graph.params]
        self.results: list[TensorType] = [node.type for node in graph.outputs]
        self.giver: dict[str, Unknown] = {}
        for param, type in zip(self.params, self.types, strict=True):
            for axis, size in enumerate(type.shape):
                for name in unknowns(size):
                    if size is unknown(name) and not isinstance(name, ValueOf):
                        self.giver.setdefault(name, Unknown(name, param.number, axis))
        self._find_values(graph)
        self.unknowns = tuple(self.giver)
        self._refuse_unbound(graph)
        self.needs = requirements(graph)
        self.labels = LabelChecks(self.params, labelled) if labelled else None
        self.checks = self._checks()
        self.source = self._source(["ndarray"])
        self.convert = self.binding()
        self.bind = self.binding(convert=convert_in_memory)

    def _find_values(self, graph: Graph) -> None:
        """Enter the inputs whose values are sizes."""
        found = {ValueOf(param.name): param for param in self.params if param.integer}
        if found:
            for node in (*graph.params, *graph.every_node()):
                for name in unknown_in(node.attrs.values()):
                    if isinstance(name, ValueOf) and name in found:
                        self.giver.setdefault(name, Unknown(name, found[name].number, None))

    def binding(
        self,
        classes: Mapping[str, type] = {"ndarray": np.ndarray},
        convert: Callable[[Parameter, Any], Any] = Parameter.convert,
    ) -> Bind:
        """The function from arguments to arrays and unknown sizes.

        Arrays of the classes stay as they are where they fit; all else is converted.
        """
        scope: dict[str, Any] = {"refuse": self.checks.refuse, **classes}
        if self.labels is not None:
            scope["agree"] = self.labels.agree
        for i, param in enumerate(self.params):
            scope |= {f"d{i}": param.dtype, f"s{i}": param.fixed}
            scope[f"convert{i}"] = partial(convert, param)
        exec(python_code(self._source(classes)).code, scope)
        bind: Bind = scope["bind"]
        return bind

    def _source(self, classes: Iterable[str]) -> str:
        """That function as straight lines, for speed."""
        arrays = f"[{', '.join(f'x{i}' for i in range(len(self.params)))}]"
        lines = [f"{arrays} = values"]
        noted = set()
        if self.labels is not None:
            noted = {number for along in self.labels.dims for number in along.parameters}
            lines.append("labelled = False")
        for i, param in enumerate(self.params):
            other = " and ".join(f"type(x{i}) is not {each}" for each in classes)
            fits = f"ndim == {param.ndim}" if param.fixed is None else f"shape == s{i}"
            lines += [
                f"if {other} or x{i}.dtype is not d{i} or not x{i}.{fits}:",
                f"    x{i} = convert{i}(x{i})",
                *["    labelled = True"] * (i in noted),
            ]
        lines += self.checks.lines()
        if noted:
            lines += ["if labelled:", "    agree(values)"]
        lines.append(f"return {arrays}, ({''.join(f'n{i}, ' for i in range(len(self.unknowns)))})")
        return "\n    ".join(["def bind(values):", *lines])

    def bind_named(self, args: Sequence[Any]) -> tuple[list[Array], dict[str, int]]:
        """The arrays for the arguments of a call, and the unknown sizes by name."""
        arrays, sizes = self.convert(args)
        return arrays, dict(zip(self.unknowns, sizes, strict=True))

    def _refuse_unbound(self, graph: Graph) -> None:
        computed, asked = finders(graph.nodes()).keys(), public_call("compile")
        for node in dict.fromkeys((*graph.params, *graph.every_node())):
            for name in sorted(unknown_in(node.attrs.values()) - self.giver.keys() - computed):
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

    def _checks(self) -> Checks:
        """The checks of sizes: divisors of declared sizes, these sizes, and those that ops need."""
        numbers = {name: number for number, name in enumerate(self.unknowns)}
        names = {name: f"n{number}" for name, number in numbers.items()}

        @cache
        def term(size: Size) -> Term:
            of = tuple([numbers[name] for name in sorted(unknowns(size))])
            return Term(str(size), of, code(size, names))

        def needed(by: str, need: Need) -> Needed:
            sides = term(need.left), term(need.right)
            return Needed(by, need.dim, need.relation, *sides, need.kind, need.cure)

        given = {(x.parameter, x.axis) for x in self.giver.values()}
        sizes: list[Sized | Needed] = []
        for param, type in zip(self.params, self.types, strict=True):
            for axis, (dim, size) in enumerate(zip(param.dims, type.shape, strict=True)):
                if param.fixed is None and (param.number, axis) not in given:
                    by = f"input {param.shown}"
                    sizes += [needed(by, Need(dim, 1, "<=", x)) for x in divisors(size)]
                    sizes.append(Sized(param.number, axis, term(size)))
        for need, op, origin in self.needs:
            if numbers.keys() >= unknowns(need.left) | unknowns(need.right):
                sizes.append(needed(f"{op} at {origin}", need))
        return Checks(self.params, [*self.giver.values()], sizes)


def parameter(node: Node, number: int) -> Parameter:
    """An input as it is declared."""
    type, shape = node.type, node.type.shape
    fixed = tuple(size for size in shape if isinstance(size, int))
    declared = f"declared as {type} at {node.origin}"
    known = fixed if len(fixed) == len(shape) else None
    dtype = np.dtype(type.dtype)
    return Parameter(number, node.attrs["name"], type.dims or (), dtype, known, declared)
