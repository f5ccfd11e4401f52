"""Calls that do not fit the signature of a function, with errors worded as for other arguments.

Arguments of the wrong kind are refused as well, if the annotation names a kind that can be tested:
a flag, a real number, a word.

`frontend/__init__.py` wraps every public function, so none is forgotten, and most calls within the
library cost nothing more.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, wraps
from numbers import Real
from types import ModuleType
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from graphcore.ir import Graph
from graphcore.ir.errors import GraphError
from graphcore.ir.help_text import as_written, written_out

from .base import Base, brief, type_refusal
from .public_calls import call_of, path_of

P = ParamSpec("P")
R = TypeVar("R")
K = TypeVar("K")

ELSEWHERE = {
    "a_min": "min",
    "a_max": "max",
    "correction": "ddof",
    "indices": "index",
}
"""Arguments of other libraries that have another name here."""

WITHOUT = {
    **dict.fromkeys(
        ("keepdims", "keepdim", "keep_attrs"),
        "leave it out: operands align by name, so no dim needs to be kept",
    ),
    "out": "leave it out, and give it to the compiled program",
    "dtype": "leave it out, and cast: x.astype(dtype)",
    "casting": "leave it out, and cast: x.astype(dtype)",
    **dict.fromkeys(
        ("static_argnums", "static_argnames"),
        "leave it out: parameters of gc.function that are not declared are static",
    ),
    **dict.fromkeys(
        ("donate", "donate_argnums", "donate_argnames"),
        "leave it out: a program keeps its buffers and uses them again; arguments stay as they are",
    ),
}
"""Cures for arguments of NumPy and xarray that have no counterpart here."""


DERIVATIVES = {
    **dict.fromkeys(("grad", "value_and_grad", "jacobian", "hessian"), "f(x), x"),
    "pullback": "f(x), x, ct",
    "pushforward": "f(x), x, tangent",
    "hvp": "f(x), x, v",
}
"""The functions that differentiate, and how each is called for the result of a function `f`."""


class ArgumentKind(NamedTuple):
    """A kind of argument: its test, its name in errors, and the cure ("" shows the signature)."""

    holds: Callable[[Any], bool]
    said: str
    cure: str


FLAG = ArgumentKind(
    lambda x: isinstance(x, (bool, np.bool_)), "True or False", "write True or False"
)
REAL = ArgumentKind(
    lambda x: isinstance(x, Real) and not isinstance(x, bool),
    "a real number",
    "give a number of Python or NumPy",
)
WORD = ArgumentKind(lambda x: isinstance(x, str), "a string", "")
STREAM = ArgumentKind(
    lambda x: hasattr(x, "write"), "an open text file", "open one, or leave it out"
)
ARGUMENT_KINDS = {
    "bool": FLAG,
    "float": REAL,
    "str": WORD,
    "TextIO": STREAM,
}
"""The kinds of arguments, by the first word of their annotation."""

Checked = tuple[int, str, ArgumentKind, object]
"""The position, name, kind and default of an argument."""


_worded: dict[Callable[..., Any], Callable[..., Any]] = {}


def reword_errors(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, except that a call that does not fit its signature raises a GraphTypeError.

    The error names the arguments and what to write instead. An error from inside the function
    passes through unchanged; the signature is inspected only after a call that does not fit.
    """
    if function in _worded:
        return _worded[function]
    function.__annotations__ = as_written(function.__annotations__)
    if function.__doc__ is not None:  # python -OO drops it
        function.__doc__ = written_out(function.__doc__)
    checked: list[Checked] | None = None  # until the first call, which spares the import

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        nonlocal checked
        if checked is None:
            checked = kinds(function)
        for place, name, kind, default in checked:
            value = (
                options[name] if name in options else args[place] if place < len(args) else default
            )
            if value is not default and not kind.holds(value):
                raise unkind(function, name, kind, args, options)
        try:
            return function(*args, **options)
        except TypeError as error:
            if was_entered(error):
                raise
        raise misfit(function, args, options)

    _worded[function] = _worded[call] = call
    return call


def kinds(function: Callable[..., Any]) -> list[Checked]:
    """The arguments whose annotation names a kind."""
    found = []
    for at, (name, p) in enumerate(inspect.signature(function).parameters.items()):
        if name == "dim":  # functions of one dim have an error of their own, which lists the dims
            continue
        word, *others = ["self"] if p.annotation is p.empty else words(p.annotation)
        if word in ARGUMENT_KINDS and others in ([], ["None"]):
            place = sys.maxsize if p.kind is p.KEYWORD_ONLY else at
            found.append((place, name, ARGUMENT_KINDS[word], None if others else p.default))
    return found


@cache
def words(annotation: object) -> list[str]:
    """The types of an annotation that are joined by `|`, without their parts in brackets."""
    parts = [ast.parse(str(annotation), mode="eval").body]
    while isinstance(parts[0], ast.BinOp):
        parts[:1] = [parts[0].left, parts[0].right]
    return [ast.unparse(part.value if isinstance(part, ast.Subscript) else part) for part in parts]


def unkind(
    function: Callable[..., Any],
    name: str,
    kind: ArgumentKind,
    args: Sequence[object],
    options: Mapping[str, object],
) -> GraphError:
    """The error for the argument called `name`, which is not of its kind."""
    signature = inspect.signature(function)
    try:
        value = signature.bind(*args, **options).arguments[name]
    except TypeError:
        return misfit(function, args, options)
    reason = f"{name}={brief(value)} is not {kind.said}"
    if kind is WORD and name == "name":
        reason = f"{brief(value)} is not a name"
    operands = tensors((*args, *options.values()))
    cure = cure_for(name_of(function), args) or kind.cure or f"write {call_of(function)}"
    return type_refusal(reason, *operands, cure=cure)


def tensors(values: Iterable[object]) -> Iterator[Base]:
    """The tensors among arguments, also those in lists."""
    for value in values:
        if isinstance(value, Base):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors(value)


def was_entered(error: TypeError) -> bool:
    """Whether an error that the caller caught was raised inside the function called.

    Python finds that arguments do not fit before it enters a function, so the traceback then ends
    with the caller.
    """
    return error.__traceback__ is not None and error.__traceback__.tb_next is not None


def word_functions(module: ModuleType, names: Iterable[str]) -> None:
    """Puts `reword_errors` around the public functions of a module, which has these names."""
    for name in names:
        if inspect.isfunction(value := getattr(module, name)):
            setattr(module, name, reword_errors(value))


def worded_methods(kind: type[K]) -> type[K]:
    """A class whose public methods have `reword_errors` around them."""
    for name, value in list(vars(kind).items()):
        if inspect.isfunction(value) and not name.startswith("_"):
            setattr(kind, name, reword_errors(value))
    return kind


def misfit(
    function: Callable[..., Any], args: Sequence[object], options: Mapping[str, object]
) -> GraphError:
    """The error for arguments that do not fit the signature of `function`."""
    parameters = inspect.signature(function).parameters
    positional = [
        key
        for key, p in parameters.items()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    bound = args[:1] and positional[:1] == ["self"]
    if bound:
        positional, args = positional[1:], args[1:]
    operands = list(tensors((*args, *options.values())))
    given = dict.fromkeys([*positional[: len(args)], *options])
    missing = [
        key
        for key, p in parameters.items()
        if p.default is p.empty
        and key not in given
        and not (bound and key == "self")
        and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    cure = f"write {call_of(function)}"
    if unknown := [key for key in options if key not in parameters]:
        reason = f"takes no {', '.join(unknown)}"
        known = [key for key in parameters if key not in given]
        name = unknown[0]
        cure = keyword_cure(name, options[name], known, operands) or cure
    elif twice := [key for key in positional[: len(args)] if key in options]:
        reason = f"{twice[0]} is given by position and by name"
    elif missing:
        reason = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        cure = cure_for(name_of(function), args) or cure
    else:
        listed = f": {', '.join(positional)}" if positional else ""
        reason = (
            f"{len(args)} arguments are given by position, but it takes {len(positional)}{listed}"
        )
    return type_refusal(reason, *operands, cure=cure)


def name_of(function: Callable[..., Any]) -> str:
    """The name that a user writes for a function."""
    return path_of(function).rpartition(".")[2]


def cure_for(function: str, args: Sequence[object]) -> str:
    """The cure for arguments with which another function or another value is meant, or ""."""
    first = args[0] if args else None
    if function == "tensor" and (isinstance(first, list) or hasattr(first, "__array__")):
        return "an array is a constant: gc.constant(array, dims); an input: gc.tensor('x', dims)"
    if function == "compile" and isinstance(first, Graph):
        return (
            "give tensors of the nodes of the stage 'named', gc.Tensor(node), those of its params "
            "as inputs and those of its outputs as outputs"
        )
    if first is not None and function in DERIVATIVES and inspect.isroutine(first):
        return for_function(function)
    return ""


def for_function(derivative: str) -> str:
    """The cure for the derivative of a Python function, in place of a tensor that it returns."""
    call = f"gc.{derivative}({DERIVATIVES.get(derivative, 'f(x), x')})"
    return (
        f"call it first: {call}; for a function of arrays, return that from one: "
        f"@gc.function(x=dims) def df(x): return {call}"
    )


def keyword_cure(name: str, value: object, known: Sequence[str], operands: list[Base]) -> str:
    """The keyword to write instead of one; "" if none of those `known` is similar."""
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
