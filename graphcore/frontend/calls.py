"""Calls that do not fit the signature of a function, refused in words as other arguments are.

`frontend/__init__.py` wraps every public function, so that none is forgotten and most calls within
the library cost nothing more.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from graphcore.ir.errors import GraphError, GraphTypeError

from .base import Base, refusal

P = ParamSpec("P")
R = TypeVar("R")
K = TypeVar("K")

SPACES = ("fft", "linalg", "signal", "special")
"""Modules whose functions are called by the name of the module as well."""

ELSEWHERE = {
    "a_min": "min",
    "a_max": "max",
    "correction": "ddof",
    "indices": "index",
}
"""Arguments that are called otherwise here."""

WITHOUT = {
    **dict.fromkeys(
        ("keepdims", "keepdim", "keep_attrs"),
        "leave it out: operands align by name, so that no dim needs to be kept",
    ),
    "out": "leave it out: results are always new",
    "dtype": "leave it out, and cast: x.astype(dtype)",
    "casting": "leave it out, and cast: x.astype(dtype)",
}
"""What to do about arguments of NumPy that have no like here."""

_worded: dict[Callable[..., Any], Callable[..., Any]] = {}


def worded(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, but a call that does not fit its signature is refused by a GraphTypeError.

    The refusal names the arguments and what to write instead. An error from inside of the function
    passes through unchanged, so the signature is looked at only after a call that does not fit.
    """
    if function in _worded:
        return _worded[function]

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        try:
            return function(*args, **options)
        except TypeError as error:
            if entered(error):
                raise
        raise misfit(function, args, options)

    _worded[function] = _worded[call] = call
    return call


def entered(error: TypeError) -> bool:
    """Whether an error that the caller caught comes from inside of what it called.

    Python finds that arguments do not fit before it enters a function, so that the traceback ends
    with the caller.
    """
    return error.__traceback__ is not None and error.__traceback__.tb_next is not None


def word_functions(module: ModuleType) -> None:
    """Replace the public functions of a module by their `worded` forms."""
    for name in getattr(module, "__all__", ()):
        if inspect.isfunction(value := getattr(module, name)):
            setattr(module, name, worded(value))


def worded_methods(kind: type[K]) -> type[K]:
    """A class whose public methods are `worded`."""
    for name, value in list(vars(kind).items()):
        if inspect.isfunction(value) and not name.startswith("_"):
            setattr(kind, name, worded(value))
    return kind


def misfit(
    function: Callable[..., Any], args: Sequence[object], options: Mapping[str, object]
) -> GraphError:
    """The refusal of arguments that do not fit the signature of `function`."""
    parameters = inspect.signature(function).parameters
    places = [
        key
        for key, p in parameters.items()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    operands = [x for x in (*args, *options.values()) if isinstance(x, Base)]
    given = dict.fromkeys([*places[: len(args)], *options])
    missing = [
        key
        for key, p in parameters.items()
        if p.default is p.empty
        and key not in given
        and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    cure = f"write {form(function)}"
    if unknown := [key for key in options if key not in parameters]:
        reason = f"takes no {', '.join(unknown)}"
        known = [key for key in parameters if key not in given]
        name = unknown[0]
        cure = keyword_cure(name, options[name], known, operands) or cure
    elif twice := [key for key in places[: len(args)] if key in options]:
        reason, cure = f"{twice[0]} is given by position and by name", "give it once"
    elif missing:
        reason = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    else:
        listed = f": {', '.join(places)}" if places else ""
        reason = f"{len(args)} arguments are given by position, but it takes {len(places)}{listed}"
    return refusal(function.__name__, reason, *operands, cure=cure, kind=GraphTypeError)


def form(function: Callable[..., Any]) -> str:
    """How a function is called: its name and its arguments with their defaults."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    method = "." in function.__qualname__
    shown = signature.replace(parameters=bare[method:], return_annotation=signature.empty)
    space = next((f"{word}." for word in SPACES if word in function.__module__.split(".")), "")
    return f"{'.' if method else f'gc.{space}'}{function.__name__}{shown}"


def keyword_cure(name: str, value: object, known: Sequence[str], operands: list[Base]) -> str:
    """What to write instead of a keyword; "" if it is like none of those `known` and not given."""
    if name in ("axis", "axes"):
        ours = next((key for key in known if key in ("dim", "dims")), None)
        if ours is None:
            return "leave it out: axes have names here"
        dims = operands[0].dims if operands else ()
        axes = value if isinstance(value, (tuple, list)) else (value,)
        named = tuple(dims[x] for x in axes if isinstance(x, int) and -len(dims) <= x < len(dims))
        if ours == "dims" and len(named) < 2:
            named = dims[-2:] if len(dims) > 1 else ("row", "col")
        named = named or ("row",)
        return f"axes have names here: {ours}={named if len(named) > 1 else named[0]!r}"
    if name in WITHOUT:
        return WITHOUT[name]
    near = [ELSEWHERE[name]] if ELSEWHERE.get(name) in known else get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else ""
