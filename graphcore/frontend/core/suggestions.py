"""Suggestions for names that graphcore, one of its modules, or a tensor does not have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from graphcore.ir.errors import GraphAttributeError, GraphError

from . import contents
from .base import Base, refusal
from .contents import SPACES
from .other_names import ELSEWHERE, INSTEAD, VALUES
from .public_calls import public, public_path

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
CUTOFF = 0.75
"""The least similarity at which one name is suggested for another of the same letters."""

NEAR = 0.81
"""The similarity above which a name is suggested for one of other letters: `dt` is not `dot`."""


def instead(name: str, space: str = "", dims: tuple[str, ...] = (), axis: int | None = None) -> str:
    """The replacement for `name` of NumPy or another library, or the most similar name, or "".

    A name that NumPy or SciPy has is no misspelling of one of ours. Functions of the module `space`
    come before others. `dims` are the dims of the tensor in question, `axis` is the position that
    was given for one of them.
    """
    return exactly(name, space, dims, axis) or elsewhere(name, space) or nearly(name, space)


def exactly(name: str, space: str = "", dims: tuple[str, ...] = (), axis: int | None = None) -> str:
    """The replacement for `name` from the table or among our functions, or ""."""
    given = axis is not None and -len(dims) <= axis < len(dims)
    dim, *_ = dims[axis:] if given else dims or ("row",)
    if name in ELSEWHERE and name not in public(space):
        return ELSEWHERE[name].format(dim, name)
    if name in INSTEAD:
        return f"use {INSTEAD[name].format(dim, name)}"
    for candidate in sorted(("", *SPACES), key=lambda candidate: candidate != space):
        ours = public(candidate)
        if name in ours or (name.startswith("nan") and name[3:] in ours):
            more = [] if name in ours else ["skipna=True"]
            key = name if name in ours else name[3:]
            over = (dim,) if given else dims
            arguments = [*argument_texts(ours[key], dim, over), *more]
            return f"use {public_path(candidate, key)}({', '.join(arguments)})"
    return ""


def elsewhere(name: str, space: str = "") -> str:
    """How a function of NumPy or SciPy is called that has no counterpart here, or ""."""
    places = [f"scipy.{x}" for x in SPACES if x not in ("nn", "tree") and space in ("", x)]
    for path in (["numpy"] if not space else []) + places:
        function = getattr(import_module(path), name, None)
        if path == "scipy.optimize" and callable(function):
            return f"SciPy has it: {path}.{name} takes compiled functions"
        if callable(function) and not isinstance(function, type):
            return of_arrays(f"{'np' if path == 'numpy' else path}.{name}")
    return ""


def of_arrays(path: str) -> str:
    """How a program calls a function of arrays."""
    return (
        f"there is no counterpart: give arrays to {path}, outside or by "
        f"gc.callback({path}, result)(x)"
    )


def similar(name: str, known: Iterable[str]) -> list[str]:
    """The one name, or none, that `name` may be misspelled for."""
    return [
        near
        for near in get_close_matches(name, known, 1, CUTOFF)
        if SequenceMatcher(None, near, name).ratio() > NEAR or sorted(near) == sorted(name)
    ]


def nearly(name: str, space: str = "") -> str:
    """A suggestion of the most similar public name, preferably in `space`, or ""."""
    spaces: dict[str, str] = {}
    for candidate in sorted(("", *SPACES), key=lambda candidate: candidate != space):
        for key in contents.names(candidate):
            spaces.setdefault(key, candidate)
    near = [name.lower()] if name.lower() in spaces else similar(name, spaces)
    return f"did you mean {public_path(spaces[near[0]], near[0])}?" if near else ""


def argument_texts(function: Callable[..., Any], dim: str, over: Sequence[str]) -> list[str]:
    """The required arguments of `function`, as text, with `dim`, or the dims it is `over`."""
    parameters = inspect.signature(function).parameters
    needed = [key for key, p in parameters.items() if p.default is p.empty and p.kind in POSITIONAL]
    shown = [key for key in needed if key not in ("dim", "dims")]
    if "dim" in parameters:
        return [*shown, f"dim={dim!r}"]
    if "dims" not in parameters:
        return shown
    if len(over) > 1:
        return [*shown, f"dims={tuple(over[-2:])!r}"]
    return [*shown, f"dims={dim!r}"] if "str |" in str(parameters["dims"].annotation) else shown


def absent(space: str = "") -> Callable[[str], NoReturn]:
    """The `__getattr__` of graphcore, or of one of its modules, for names that it lacks."""

    def refuse(name: str) -> NoReturn:
        if name.startswith("_"):  # a protocol that Python or a library looks for
            raise AttributeError(name)
        listed = f"dir(gc.{space})" if space else "dir(gc)"
        cure = instead(name, space) or f"{listed} lists all names"
        whole = f"graphcore.{space}" if space else "graphcore"
        raise refusal(f"has no {name!r}", cure=cure, kind=GraphAttributeError, name=whole)

    return refuse


def attribute(x: Base, name: str) -> GraphError:
    """The error for `x.name`, an attribute that tensors do not have."""
    known = [word for word in dir(x) if not word.startswith("_")]
    if name in VALUES:
        cure = x._way_to_evaluate()
    elif name in x.dims:
        cure = dim_cure(name)
    elif found := exactly(name, "", x.dims):
        cure = found
    elif near := get_close_matches(name, x.dims, 1, CUTOFF):
        cure = dim_cure(near[0])
    elif near := similar(name, known):
        cure = f"did you mean {near[0]!r}?"
    elif name.startswith("to_"):
        cure = "call it on the result: f = gc.compile(inputs, outputs, returns='xarray')"
    elif name.endswith("_"):
        cure = "tensors never change: write x = x + y, or x.at[...].set(y)"
    elif (suggestion := nearly(name)) or hasattr(np, name):
        cure = elsewhere(name) or suggestion
    else:  # of any other name SciPy is not asked: libraries look for many, and its import is slow
        cure = "dir(x) lists the methods; the functions are in dir(gc)"
    reason = f"has no attribute {name!r}"
    return refusal(reason, x, cure=cure, kind=GraphAttributeError, name="Tensor")


class Listing:
    """An object whose error for an unknown attribute names those that it has."""

    __slots__ = ()

    if not TYPE_CHECKING:  # as in Tensor

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            known = [word for word in dir(self) if not word.startswith("_")]
            near = similar(name, known)
            cure = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
            reason = f"has no attribute {name!r}"
            owner = type(self).__name__
            raise refusal(reason, cure=cure, kind=GraphAttributeError, name=owner)


def dim_cure(dim: str) -> str:
    """The replacement for `x.dim`."""
    return f"{dim!r} is a dim: x.sizes[{dim!r}] is its size, x.isel({dim}=0) a part"
