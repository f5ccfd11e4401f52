"""The interface of a C function: which of its parameters is which input, result or size.

Parameters have the names of inputs, results and dims. Inputs without dims may be given by value;
others, and all results, are pointers to row-major arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple, Protocol

import numpy as np

from graphcore.ir import Expression, Graph, Hidden, Size, TensorType
from graphcore.ir.errors import GraphError, GraphValueError
from graphcore.ir.help_text import attributes
from graphcore.ir.names import ValueOf
from graphcore.ir.node import divisors
from graphcore.ir.provenance import described_by, user_line
from graphcore.ir.sizes import evaluate, lower_bound, unknown, unknowns

from .argument_checks import LARGEST_VALUE, join_names, quote
from .boundary import Boundary, Requirement, requirements
from .c_declarations import WRITTEN, CParameter, Declaration, c_name, parse, refuse

FAILED, NAN, MEMORY, SIZES, OVERLAP = 1, 2, -1, -2, -3
"""What a call returns that failed: samplers take a positive number for a step to reject."""
RELATIONS = {"==": operator.eq, "<": operator.lt, "<=": operator.le}


class SizeCheck(NamedTuple):
    """Two sizes that each call compares; `words` says of both how they are not related so."""

    left: Size
    relation: str
    right: Size
    words: Callable[[int, int], str]
    cure: str

    @property
    def unknowns(self) -> frozenset[str]:
        """The sizes that decide it."""
        return unknowns(self.left) | unknowns(self.right)

    def error(self, known: Mapping[str, int]) -> GraphError | None:
        """The error for sizes that are not related so; None if they are."""
        left, right = evaluate(self.left, known), evaluate(self.right, known)
        if RELATIONS[self.relation](left, right):
            return None
        lines = [f"call: {self.words(left, right)}", f"  called at {user_line()}"]
        return GraphValueError("\n".join([*lines, f"  cure: {self.cure}"]))


def equal(said: str, own: str, size: Size, cure: str) -> SizeCheck:
    """The check that a size which is given equals another one."""
    words = f" = {size}" if isinstance(size, Expression) else ""
    say: Callable[[int, int], str] = lambda x, y: f"{said} is {x}, but must be {y}{words}"
    return SizeCheck(unknown(own), "==", size, say, cure)


def at_least(said: str, least: int, size: Size) -> SizeCheck:
    """The check that a size is at least a number."""
    say: Callable[[int, int], str] = lambda x, y: f"{said} is {y}, but must be {x} or more"
    return SizeCheck(least, "<=", size, say, "pass sizes that fit")


def at_most(said: str, size: Size) -> SizeCheck:
    """The check that a size is no larger than any memory."""
    say: Callable[[int, int], str] = lambda x, y: f"{said} is {x}, but must be {y} or less"
    return SizeCheck(size, "<=", LARGEST_VALUE, say, "pass sizes that fit")


def needed(required: Requirement) -> SizeCheck:
    """The check of what an operation of the program needs."""
    need, op, origin = required
    left, relation, right = need.left, need.relation, need.right
    said = f"{op} at {origin} needs {left} {relation} {right} for dim {quote(need.dim)}"
    say: Callable[[int, int], str] = lambda x, y: f"{said}, but they are {x} and {y}"
    return SizeCheck(left, relation, right, say, need.cure or "pass arrays whose sizes agree")


class Failure(NamedTuple):
    """A call that failed: its status, the sizes that were known, and the error of its program.

    `pair` are the numbers of two arrays that overlap, among inputs and results; or the number of a
    result, and the place of its first float that is nan.
    """

    status: int
    sizes: Mapping[str, int]
    pair: tuple[int, int]
    error: GraphError | None


class Entry(Protocol):
    """A C function in memory."""

    address: int

    def failure(self) -> Failure | None:
        """The last call that failed since this was asked before."""

    def capsule(self, name: str) -> Any:
        """A capsule of this name with the address, which keeps the function in memory."""


@attributes(
    inputs="The parameter of each input, by numbers.",
    results="The parameter of each result.",
    sizes="The parameter of each size that a call gives.",
    values="The input whose value is a size.",
    known="The sizes that are the same in all calls.",
    checks="What calls check of sizes.",
    returned="The result that is returned; None where the status is.",
    success="The status of a call that did not fail; if it is not 0, all others have that.",
    finds_nan="Whether a result that has nan is a failure too.",
)
@dataclass
class Interface:
    """A C function as a target makes it."""

    declaration: Declaration
    types: Sequence[TensorType]
    inputs: dict[int, int] = field(default_factory=dict)
    results: dict[int, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    checks: list[SizeCheck] = field(default_factory=list)
    returned: int | None = None
    success: int = 0
    finds_nan: bool = False


class Names:
    """The names of C for the inputs, results and sizes of a graph with dims.

    `paths` are where results stand among the outputs.
    """

    def __init__(self, boundary: Boundary, graph: Graph, paths: Sequence[str]) -> None:
        self.boundary, self.graph = boundary, graph
        taken: dict[str, None] = {}

        def new(path: str, otherwise: str) -> str:
            name = c_name(path, taken, otherwise)
            taken[name] = None
            return name

        self.inputs = [new(param.name, "x") for param in boundary.params]
        self.results = [new(path, "result") for path in paths]
        self.types = [*boundary.types, *[y.type for y in graph.outputs]]
        self.sizes: dict[str, Size] = {}
        self.own: dict[str, str] = {}
        for name, size in self._every_size():
            self.sizes.setdefault(name, size)
            if size is unknown(name) and name not in self.own:
                self.own[name] = new(name, "n")
                self.sizes.setdefault(self.own[name], size)

    def _every_size(self) -> Iterator[tuple[str, Size]]:
        """Unknown sizes by name, then the sizes of the dims of inputs and results."""
        for name in self.boundary.unknowns:
            if not isinstance(name, ValueOf):
                yield name, unknown(name)
        for type in self.types:
            yield from zip(type.dims or (), type.shape, strict=False)

    def declaration(self, known: Mapping[str, int]) -> Declaration:
        """A declaration with all names: sizes, inputs, and pointers for the results."""
        parts = [f"size_t {own}" for name, own in self.own.items() if name not in known]
        parts += map(self.parameter, range(len(self.types)))
        return parse(f"int program({', '.join(parts)})")

    def parameter(self, at: int) -> str:
        """The parameter that we write for an input or, behind these, a result."""
        type, name = self.types[at], [*self.inputs, *self.results][at]
        written = WRITTEN[type.dtype.name]
        if at >= len(self.inputs):
            return f"{written} *{name}"
        if not type.shape and is_by_value(type):
            return f"{written} {name}"
        return f"const {written} *{name}"

    def all(self) -> str:
        """All names that parameters may have, in words."""
        kinds = {"inputs": self.inputs, "results": self.results, "sizes": [*self.sizes]}
        return "; ".join(f"{kind}: {join_names(names) or 'none'}" for kind, names in kinds.items())


def is_by_value(type: TensorType) -> bool:
    """Whether a C function takes one value of a type as it is."""
    return type.dtype.kind != "c" and type.dtype.name != "float16"


def interface_of(
    names: Names, declaration: str | None, success: int, finds_nan: bool, sizes: Mapping[str, Any]
) -> Interface:
    """The interface of a program that a declaration asks for, or one of our own."""
    if not isinstance(success, int) or isinstance(success, bool) or abs(success) >= 2**31:
        raise refuse(f"success={success!r:.60} is no status", cure="give an integer, such as 1")
    fixed, checks = fixed_sizes(names, sizes)
    asked = names.declaration(fixed) if declaration is None else parse(declaration)
    made = Interface(asked, names.types, known=fixed, checks=checks, success=success)
    for number, parameter in enumerate(asked.parameters):
        place(made, names, number, parameter)
    choose_return(made, names)
    made.finds_nan = finds_nan and made.returned is None
    missing = [x for i, x in enumerate(names.inputs) if i not in made.inputs]
    if missing:
        reason = f"{asked} does not take the input {quote(missing[0])}"
        cure = f"add the parameter '{names.parameter(names.inputs.index(missing[0]))}'"
        raise refuse(reason, cure=cure)
    know_sizes(made, names)
    return made


def fixed_sizes(names: Names, sizes: Mapping[str, Any]) -> tuple[dict[str, int], list[SizeCheck]]:
    """The unknown sizes that are given once for all calls, with the checks they must pass."""
    known: dict[str, int] = {}
    checks = []
    for name, value in sizes.items():
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
            reason = f"{name}={value!r:.60} is no size"
            raise refuse(reason, cure="give an integer from 0 on")
        if name not in names.sizes:
            near = get_close_matches(name, [*names.sizes], 1)
            listed = f"its sizes are {join_names(names.sizes)}" if names.sizes else "it has none"
            cure = f"did you mean {near[0]}=?" if near else f"leave it out: {listed}"
            raise refuse(f"no size of the program is named {quote(name)}", cure=cure)
        size, own = names.sizes[name], Hidden(name)
        if alone := only_unknown(size):
            known.setdefault(alone, int(value))
        known[own] = int(value)
        checks.append(equal(f"the size {quote(name)}", own, size, "give one size for each dim"))
    return known, checks


def only_unknown(size: Size) -> str | None:
    """The name of the unknown size that a size is; None if it is a number, or computed of some."""
    names = unknowns(size)
    return next((name for name in names if size is unknown(name)), None)


def place(made: Interface, names: Names, number: int, parameter: CParameter) -> None:
    """Enter what a parameter is."""
    type, name = parameter.type, parameter.name
    if type.name == "void":
        if not type.pointer:
            raise refuse(f"the parameter {parameter} is void", cure="write void *user")
    elif not name:
        cure = "give it the name of an input, a result or a dim"
        raise refuse(f"a parameter {type} has no name", names.all(), cure=cure)
    elif type.pointer:
        place_array(made, names, number, parameter)
    else:
        place_value(made, names, number, parameter)


def place_array(made: Interface, names: Names, number: int, parameter: CParameter) -> None:
    """Enter a pointer: to an input, or to a result; a single result may have any name."""
    name, single = parameter.name, len(names.results) == 1 and not made.results
    if name in names.inputs:
        own = names.types[at := names.inputs.index(name)]
        made.inputs[at] = number
    elif name in names.results or (single and name not in names.sizes):
        at = names.results.index(name) if name in names.results else 0
        own = names.types[len(names.inputs) + at]
        made.results[at] = number
        if parameter.constant:
            reason = f"{quote(name)} is a result, which is written, but {parameter} is constant"
            raise refuse(reason, names.all(), cure=f"write {parameter._replace(constant=False)}")
    else:
        raise stranger(names, parameter)
    if parameter.type.dtype != own.dtype.name:
        cure = f"write {WRITTEN[own.dtype.name]} *{name}, or cast it in the program"
        raise refuse(f"{quote(name)} is {own}, but the parameter {parameter}", cure=cure)


def place_value(made: Interface, names: Names, number: int, parameter: CParameter) -> None:
    """Enter a value: an input without dims, or a size."""
    type, name = parameter.type, parameter.name
    numbers = [i for i, x in enumerate(names.inputs) if x == name and not names.types[i].shape]
    if numbers:
        own = names.types[at := numbers[0]]
        if not is_by_value(own) or not np.can_cast(type.dtype, own.dtype):
            cure = f"write '{names.parameter(at)}'"
            raise refuse(f"{quote(name)} is {own}, but the parameter {parameter}", cure=cure)
        made.inputs[at] = number
    elif name in names.sizes:
        if np.dtype(type.dtype).kind not in "iu":
            reason = f"{quote(name)} is a size, but the parameter {parameter}"
            raise refuse(reason, cure=f"write size_t {name}")
        give_size(made, names.sizes[name], number, name)
    elif name in (*names.inputs, *names.results):
        cure = f"write {type} *{name}"
        raise refuse(f"the parameter {parameter} is no pointer", names.all(), cure=cure)
    else:
        raise stranger(names, parameter)


def stranger(names: Names, parameter: CParameter) -> GraphError:
    """The error for a parameter that is nothing of the program."""
    several = [*names.inputs, *names.results, *names.sizes]
    near = get_close_matches(parameter.name, several, 1)
    cure = f"did you mean {near[0]}?" if near else "take one of these names; void *user is ignored"
    return refuse(f"the parameter {parameter} is nothing of the program", names.all(), cure=cure)


def give_size(made: Interface, size: Size, number: int, name: str) -> None:
    """Enter a parameter that gives a size, or has to be the one that is known already."""
    alone = only_unknown(size)
    if alone is not None and alone not in (*made.known, *made.sizes):
        made.sizes[alone] = number
        return
    own = Hidden(name)
    while own in made.known or own in made.sizes:
        own = Hidden(f"{own}'")
    made.sizes[own] = number
    made.checks.append(equal(f"the parameter {name}", own, size, "pass the size that it has"))


def choose_return(made: Interface, names: Names) -> None:
    """Enter which result is returned; all others have to be parameters."""
    returns, name = made.declaration.returns, made.declaration.name
    left = [i for i in range(len(names.results)) if i not in made.results]
    kind = np.dtype(returns.dtype).kind if returns.dtype else ""
    if kind == "i":
        if left:
            own = names.types[len(names.inputs) + left[0]]
            cure = f"add the parameter '{WRITTEN[own.dtype.name]} *{names.results[left[0]]}'"
            reason = f"{name} has nowhere to put the result {quote(names.results[left[0]])}"
            raise refuse(f"{reason}: it returns the status of the call", cure=cure)
        if made.success != np.array(made.success).astype(returns.dtype):
            reason = f"{name} returns {returns}, which does not hold success={made.success}"
            raise refuse(reason, cure="give a small number, such as 1")
        return
    if kind != "f" or not is_by_value(TensorType(np.dtype(returns.dtype), (), ())):
        cure = "return int, the status, and let results be pointers"
        raise refuse(f"{name} returns {returns}, which cannot say that a call failed", cure=cure)
    if made.success:
        reason = f"{name} returns {returns}, and no status that success={made.success} could be"
        raise refuse(reason, cure="leave success= out: the result of a call that fails is nan")
    if len(left) != 1:
        which = join_names(names.results[i] for i in left) or "none"
        reason = f"{name} returns one {returns}, but {which} of the results are no parameters"
        raise refuse(reason, names.all(), cure="let all results but one be pointers")
    own = names.types[len(names.inputs) + left[0]]
    if own.shape or own.dtype.name != returns.dtype:
        cure = f"return int, and add '{WRITTEN[own.dtype.name]} *{names.results[left[0]]}'"
        raise refuse(f"the result is {own}, but {name} returns {returns}", cure=cure)
    made.returned = left[0]


def know_sizes(made: Interface, names: Names) -> None:
    """Enter where all unknown sizes come from, and what each call has to check."""
    for name in names.boundary.unknowns:
        if isinstance(name, ValueOf):
            made.values[name] = names.boundary.giver[name].parameter
        elif name not in made.known and name not in made.sizes:
            own = names.own[name]
            cure = f"give {own}=100 once, or add the parameter 'size_t {own}'"
            raise refuse(f"the size {quote(name)} is not given", names.all(), cure=cure)
    every = [*checks_of(made, names), *made.checks]
    for check in every:
        if check.unknowns <= made.known.keys() and (error := check.error(made.known)):
            raise error
    made.checks = [x for x in every if not x.unknowns <= made.known.keys()]


def checks_of(made: Interface, names: Names) -> Iterator[SizeCheck]:
    """What all sizes have to be, divisors first; then what operations need of them."""
    unknown_sizes = names.boundary.unknowns
    for name in (*made.sizes, *made.values):
        if name in unknown_sizes:
            said = f"the size {quote(name)}"
            yield at_least(said, 0, unknown(name))
            yield at_most(said, unknown(name))
    for param, type in zip(names.boundary.params, names.types, strict=False):
        for dim, size in zip(type.dims or (), type.shape, strict=True):
            said = f"dim {quote(dim)} of input {param.shown} has size {size}"
            for divisor in divisors(size):
                yield at_least(f"{said}, where {divisor}", 1, divisor)
            if (lower_bound(size) or 0) < 0:
                yield at_least(f"{said}, which", 0, size)
    with described_by(names.graph.trace):
        for required in requirements(names.graph):
            check = needed(required)
            if check.unknowns <= {*unknown_sizes}:
                yield check
