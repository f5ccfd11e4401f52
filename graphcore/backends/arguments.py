"""The arguments of a call: by position or by name, in the form of the inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from graphcore.ir.errors import GraphTypeError

from .boundary import Parameter, listed, quoted, refusal

Tree = Any
"""Nested lists, tuples and dicts of arrays or, in a form, of the numbers of inputs."""


class Arguments:
    """Finds the array of each input among the arguments of a call."""

    def __init__(self, forms: list[Tree], params: Sequence[Parameter]) -> None:
        self._forms, self._params = forms, params
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
            raise self._refused(reason, self._params, "pass one for each input")
        found: dict[int, Any] = {}
        for place, form in enumerate(self._forms[: len(args)]):
            self._match(form, args[place], f"argument {place}", found)
        for name, value in kwargs.items():
            param = self._names.get(name)
            if param is None:
                near = get_close_matches(name[:60], [known[:60] for known in self._names], 1)
                cure = f"did you mean {quoted(near[0])}?" if near else "pass inputs by their names"
                raise self._refused(f"there is no input {quoted(name)}", self._params, cure)
            if param.number in found:
                reason = f"input {param.shown} is given twice"
                raise self._refused(reason, [param], "pass it by position or by name")
            found[param.number] = value
        missing = [param for param in self._params if param.number not in found]
        if missing:
            reason = f"no argument for input {', '.join(param.shown for param in missing[:20])}"
            cure = "pass one array for each input, in order or by name"
            raise self._refused(reason, missing, cure)
        return tuple(found[number] for number in range(len(found)))

    def _match(self, form: Tree, value: Any, path: str, found: dict[int, Any]) -> None:
        """Enter into `found` the parts of `value` that stand where `form` has numbers."""
        if isinstance(form, int):
            found[form] = value
            return
        if isinstance(form, Mapping):
            keys: Sequence[Any] = list(form)
            fits = isinstance(value, Mapping) and value.keys() == form.keys()
        else:
            keys = range(len(form))
            fits = isinstance(value, list | tuple) and len(value) == len(form)
        if not fits:
            kind = type(form).__name__
            parts = f"keys {listed(keys)}" if isinstance(form, Mapping) else f"{len(form)} parts"
            reason = f"{path} must be a {kind} of {parts}, but is {shown(value)}"
            params = [self._params[number] for number in leaves(form)]
            raise self._refused(reason, params, "pass arguments in the form of the inputs")
        for key in keys:
            self._match(form[key], value[key], f"{path}[{key!r}]", found)

    def _refused(self, reason: str, params: Sequence[Parameter], cure: str) -> Exception:
        declared = [f"input {param.shown}, {param.declared}" for param in params[:20]]
        return refusal(reason, *declared, cure=cure, kind=GraphTypeError)


def shown(value: Any) -> str:
    """A short description of an argument."""
    match value:
        case Mapping():
            return f"a {type(value).__name__} of keys {listed(value)}"
        case list() | tuple():
            return f"a {type(value).__name__} of {len(value)} parts"
    if hasattr(value, "shape"):
        return f"an array of shape {value.shape}"
    return f"{type(value).__name__} {value!r:.60}"


def leaves(form: Tree) -> Iterable[int]:
    """The numbers of inputs in a form."""
    if isinstance(form, int):
        yield form
    else:
        for part in form.values() if isinstance(form, Mapping) else form:
            yield from leaves(part)
