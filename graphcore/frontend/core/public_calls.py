"""How users write calls of our functions: `gc.special.erf(x)`, `x.isel(...)`.

Cures take the path of a function from here, so that what they say to write can be written.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

from . import contents
from .base import Base
from .contents import SPACES

MAKERS = {
    "Rolling": "x.rolling(...)",
    "Coarsen": "x.coarsen(...)",
    "GroupBy": "x.groupby(...)",
    "Weighted": "x.weighted(...)",
    "Region": "x.at[...]",
    "Windowed": "x.rolling(...)",
    "Questions": "f",
}
"""How users write an object that has methods, by the name of its class."""


def module_of(space: str) -> ModuleType:
    """`gc`, or one of the modules whose functions are called by its name as well."""
    root = __name__.partition(".")[0]
    return sys.modules[f"{root}.frontend.{space}" if space else root]


@cache
def public(space: str = "") -> Mapping[str, Callable[..., Any]]:
    """The public functions of `gc`, or of one of its modules, by name."""
    module = module_of(space)
    found = {name: getattr(module, name) for name in contents.names(space)}
    return {name: value for name, value in found.items() if inspect.isfunction(value)}


def public_path(space: str, name: str) -> str:
    """How a user writes a name of a module: `gc.special.erf`."""
    return f"gc.{space}.{name}" if space else f"gc.{name}"


def path_of(function: Callable[..., Any]) -> str:
    """How a user writes a function: `gc.special.erf`, `x.where`, `x.rolling(...).sum`."""
    function = inspect.unwrap(function)
    names = [
        (space, name)
        for space in ("", *SPACES)
        for name, ours in public(space).items()
        if inspect.unwrap(ours) is function
    ]
    if names:  # of several, its own name
        return public_path(*next((x for x in names if x[1] == function.__name__), names[0]))
    for name, method in vars(Base._complete).items():
        if inspect.isfunction(method) and inspect.unwrap(method) is function:
            return f"x.{name}"
    owner = function.__qualname__.rpartition(".")[0]
    return f"{MAKERS.get(owner, '')}.{function.__name__}"


def call_of(function: Callable[..., Any]) -> str:
    """A call of a function, with all its parameters and their defaults."""
    path = path_of(function)
    parameters = list(inspect.signature(function).parameters.values())
    if not path.startswith("gc.") and parameters[:1]:
        del parameters[0]  # x itself, or self
    return f"{path}({', '.join(map(argument, parameters))})"


def argument(p: inspect.Parameter) -> str:
    """A parameter as an argument that is given to it."""
    if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
        return f"{'*' if p.kind is p.VAR_POSITIONAL else '**'}{p.name}"
    if p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY:
        return f"{p.name}={p.default!r}"
    return f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name


def call_with(name: str, arguments: str) -> str:
    """A call of the method of tensors, or the function, of this name, whose first operand is x."""
    if inspect.isfunction(vars(Base._complete).get(name)):
        return f"x.{name}({arguments})"
    spaces = [space for space in ("", *SPACES) if name in public(space)]
    return f"{public_path(spaces[0], name)}(x, {arguments})" if spaces else f".{name}({arguments})"
