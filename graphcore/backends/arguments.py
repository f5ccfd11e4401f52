"""The arguments of a call: by position or by name, in the form of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

from graphcore.ir.errors import GraphTypeError
from graphcore.ir.structures import Branch, branch, leaves, levels

from .argument_checks import CURE_BY_NAME, Parameter, by_name, join_names, quote, refusal

Tree = Any
"""A structure of arrays or, in a form, of the numbers of inputs."""


Place: TypeAlias = "str | tuple[Place, Branch, int]"
"""Where an argument stands: as text, or as the part of this number of another."""


class Arguments:
    """Finds the array of each input among the arguments of a call."""

    def __init__(self, forms: list[Tree], params: Sequence[Parameter]) -> None:
        self._forms, self._params = [levels(form) for form in forms], params
        self._names = {param.name: param for param in params}
        self._order = list(self._names)

    def arrange(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """One argument for each input."""
        if not args and [*kwargs] == self._order:  # the usual call, for speed
            return tuple(kwargs.values())
        if not args and kwargs.keys() == self._names.keys():
            return tuple([kwargs[name] for name in self._names])
        if len(args) > len(self._forms):
            reason = f"{len(args)} arguments for {len(self._forms)} inputs"
            raise self._refusal(reason, self._params, "pass one for each input")
        found: dict[int, Any] = {}
        for place, form in enumerate(self._forms[: len(args)]):
            enter(form, args[place], f"argument {place}", found, self._refuse_form)
        for name, value in kwargs.items():
            param = self._names.get(name)
            if param is None:
                near = get_close_matches(name[:60], [known[:60] for known in self._names], 1)
                cure = f"did you mean {quote(near[0])}?" if near else "pass inputs by their names"
                if not args and kwargs.keys() > self._names.keys():
                    cure = without(name, value, self._order)
                raise self._refusal(f"there is no input {quote(name)}", self._params, cure)
            if param.number in found:
                reason = f"input {param.shown} is given twice"
                raise self._refusal(reason, [param], "pass it by position or by name")
            found[param.number] = value
        missing = [param for param in self._params if param.number not in found]
        if missing:
            reason = f"no argument for input {', '.join(param.shown for param in missing[:20])}"
            cure = "pass one array for each input, in order or by name"
            if any(map(by_name, args)):
                cure = CURE_BY_NAME
            raise self._refusal(reason, missing, cure)
        return tuple(found[number] for number in range(len(found)))

    def _refuse_form(self, reason: str, numbers: Sequence[int]) -> Exception:
        cure = "pass arguments in the form of the inputs"
        return self._refusal(reason, [self._params[number] for number in numbers], cure)

    def _refusal(self, reason: str, params: Sequence[Parameter], cure: str) -> Exception:
        declared = [f"input {param.shown}, {param.declared}" for param in params[:20]]
        return refusal(reason, *declared, cure=cure, kind=GraphTypeError)


def enter(
    form: Branch | int,
    value: Any,
    path: Place,
    found: dict[int, Any],
    refuse: Callable[[str, Sequence[int]], Exception],
) -> None:
    """Enter into `found` the parts of `value` that stand where `form` has numbers.

    `refuse` makes the error where it is built otherwise, for the numbers of a part.
    """
    if isinstance(form, int):
        found[form] = value
        return
    if (parts := parts_like(form, value)) is None:
        what = describe_argument(value)
        reason = f"{path_text(path)} must be {describe_form(form)}, but is {what}"
        raise refuse(reason, [number for _, number in leaves(form)])
    for at, part in enumerate(form.parts):
        enter(part, parts[at], (path, form, at), found, refuse)


def without(name: str, value: Any, inputs: Sequence[str]) -> str:
    """The cure for an argument in addition to all inputs."""
    leave = f"leave {quote(name)} out"
    return f"{leave}: f(**dataset[{[*inputs]}])" if hasattr(value, "dims") else leave


def describe_form(form: Branch) -> str:
    """One level of a form in words."""
    kind = form.kind.__name__
    if form.has_fields:
        static = [f" with {name}={value!r:.60}" for name, value in form.rest]
        return f"a {kind} of fields {join_names(form.keys)}{' and'.join(static)}"
    what = f"keys {join_names(form.keys)}" if form.kind is dict else f"{len(form.parts)} parts"
    return f"a {kind} of {what}"


def describe_argument(value: Any) -> str:
    """A short description of an argument."""
    if (level := branch(value)) is not None and level.has_fields:
        return describe_form(level)
    match value:
        case Mapping():
            return f"a {type(value).__name__} of keys {join_names(value)}"
        case list() | tuple():
            return f"a {type(value).__name__} of {len(value)} parts"
    if hasattr(value, "shape"):
        return f"an array of shape {value.shape}"
    return f"{type(value).__name__} {value!r:.60}"


def path_text(path: Place) -> str:
    """A path as text."""
    if isinstance(path, str):
        return path
    above, level, at = path
    return path_text(above) + [key for key, _ in level][at]


def parts_like(level: Branch, value: Any) -> Sequence[Any] | None:
    """The parts of an argument in the order of one level of a form; None if it is built otherwise.

    Mappings of the same keys are like dicts, lists and tuples like each other, and so are
    dataclasses of the same fields and the same values of static ones.
    """
    if level.kind is dict:
        alike = isinstance(value, Mapping) and value.keys() == set(level.keys)
        return [value[key] for key in level.keys] if alike else None
    if issubclass(level.kind, list | tuple):
        alike = isinstance(value, list | tuple) and len(value) == len(level.parts)
        return value if alike else None
    own = branch(value)
    if own is None or own.has_fields != level.has_fields:
        return None
    alike = level.has_fields or own.kind is level.kind
    return own.parts if alike and own.outline[1:] == level.outline[1:] else None
