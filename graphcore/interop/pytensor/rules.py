"""The table of rules, by the names of PyTensor's op classes, and the walk that applies them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, NoReturn, TypeAlias

import numpy as np

from graphcore.frontend.core.base import Tensor, refusal
from graphcore.ir.errors import GraphError, GraphTypeError
from graphcore.ir.provenance import Origin, inheriting, is_installed

from .refused import CURES, REFUSED, Unsaid
from .values import Array, Value, fit, is_known, known, lift

Apply: TypeAlias = Any
"""A node of PyTensor: `op`, `inputs` and `outputs`."""

Rule: TypeAlias = Callable[..., "Value | Sequence[Value]"]
"""The value of the results of a node, given the node and the values of its operands."""

RULES: dict[str, Rule] = {}
"""The rule for each class of ops, by name: PyTensor moves its modules, and keeps the names."""


class UntranslatedError(GraphTypeError, NotImplementedError):
    """An op of PyTensor that has no counterpart here."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a function `(node, *operands) -> results` as the rule of ops, by class name.

    It serves the classes that derive from these as well, where they have no rule of their own.
    "xtensor.Dot" is the class in PyTensor's `xtensor`.

    >>> from graphcore.interop.pytensor.rules import RULES, rule
    >>> @rule("Twice")
    ... def twice(node, x):
    ...     return 2 * x
    >>> RULES.pop("Twice") is twice
    True
    """

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def names_of(op: object) -> list[str]:
    """The names of the classes of an op, the most special first."""
    return [kind.__name__ for kind in type(op).__mro__]


def space_of(x: object) -> str:
    """The part of PyTensor whose values have no counterpart, where an op or a type is of it."""
    return next((k for k in ("sparse", "typed_list") if f".{k}." in type(x).__module__), "")


def rule_of(op: object) -> Rule | None:
    """The rule of an op; None if it has none, or another kind of values."""
    if space_of(op):
        return None
    keys = [
        f"xtensor.{k.__name__}" if ".xtensor." in k.__module__ else k.__name__
        for k in type(op).__mro__
    ]
    return next((RULES[key] for key in keys if key in RULES), None)


def translate(fgraph: Any, operands: Sequence[Value]) -> list[Value]:
    """The values of the outputs of a graph of PyTensor, given those of its inputs."""
    values = dict(zip(fgraph.inputs, operands, strict=True))
    for node in fgraph.toposort():
        with inheriting(made_at(node)), refusing(node):
            values.update(zip(node.outputs, apply(node, [of(v, values) for v in node.inputs])))
    return [of(v, values) for v in fgraph.outputs]


def of(variable: Any, values: dict[Any, Value]) -> Value:
    """The value of a variable: a constant has its own."""
    if variable in values:
        return values[variable]
    data = variable.data
    if isinstance(data, slice):
        ends = data.start, data.stop, data.step
        return slice(*[None if end is None else known(end) for end in ends])
    return None if data is None else known(data)


def apply(node: Apply, operands: Sequence[Value]) -> list[Value]:
    """The values of the results of a node."""
    folded = fold(node, operands)
    if folded is not None:
        return folded
    found = rule_of(node.op)
    if found is None:
        refuse(node)
    results = found(node, *operands)
    some = list(results) if isinstance(results, Sequence) else [results]
    return [fit(y, v.type) if isinstance(y, Tensor) else y for y, v in zip(some, node.outputs)]


FOLDED = 20_000
"""Positions, masks and sizes of so many elements are computed now, and of any number from data."""

INNER = ("OpFromGraph", "Scan", "IfElse", "CheckAndRaise", "ScalarLoop", "RNGConsumerOp")
"""Ops that hold graphs of their own or have effects, which are not run now."""


def fold(node: Apply, operands: Sequence[Value]) -> list[Value] | None:
    """Results that are integers or bool and known now, by PyTensor's own function; or None."""
    if space_of(node.op):
        return None
    kinds = [np.dtype(getattr(v.type, "dtype", object)).kind for v in node.outputs]
    arrays = [x for x in operands if is_known(x)]
    if len(arrays) < len(operands) or any(kind not in "iub" for kind in kinds):
        return None
    names = names_of(node.op)
    if any(x.dtype == object for x in arrays) or not set(INNER).isdisjoint(names):
        return None
    most = max([FOLDED, *[x.size for x in arrays]])
    if "Alloc" in names and prod(int(n) for n in arrays[1:]) > most:
        return None
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    with np.errstate(all="ignore"):
        node.op.perform(node, arrays, storage)
    found: list[Array] = [np.asarray(cell[0]) for cell in storage]
    return [*found] if all(y.size <= most for y in found) else None


def lifted(function: Callable[..., Value | Sequence[Value]]) -> Rule:
    """A rule from a function of tensors `(node, *tensors)`."""

    def made(node: Apply, *operands: Value) -> Value | Sequence[Value]:
        return function(node, *[lift(x, v.type) for x, v in zip(operands, node.inputs)])

    return made


# ---- where a node was made, and refusals


def made_at(node: Apply) -> Origin | None:
    """The user's line that made a node; None where PyTensor does not know it."""
    for holder in (node, *node.outputs):
        for trace in getattr(holder.tag, "trace", ()) or ():
            lines = [frame for frame in reversed(trace) if not is_installed(frame[0])]
            if lines:
                file, line = lines[0][:2]
                return Origin(file, line)
    return None


def refuse(node: Apply, reason: str = "", cure: str = "") -> NoReturn:
    """Refuses a node: without a reason, as its op has no counterpart."""
    name = type(node.op).__name__
    kind = space_of(node.op) or next((k for k in names_of(node.op) if k in REFUSED), "")
    reason = reason or REFUSED.get(kind, "it has no rule")
    cure = cure or CURES.get(kind, CURES["rule"].format(name=name))
    raise untranslated(f"{name} of PyTensor: {reason}", cure)


def refuse_input(variable: Any) -> None:
    """Refuses an input that is no tensor."""
    kind = space_of(variable.type)
    if kind:
        raise untranslated(f"the input {variable}: {REFUSED[kind]}", CURES[kind])


def untranslated(reason: str, cure: str) -> GraphError:
    """The error of a node or an input."""
    return refusal(reason, cure=cure, kind=UntranslatedError, where="made", name="from_pytensor")


@contextmanager
def refusing(node: Apply) -> Iterator[None]:
    """Rules raise `Unsaid` in this block, and the user is told which node it is about."""
    try:
        yield
    except Unsaid as error:
        refuse(node, *error.args)
