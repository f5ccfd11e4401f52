"""Good calls of every public function and method, with one argument in turn replaced."""

from __future__ import annotations

import inspect
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray

import graphcore as gc
from tests.operations import CASES
from tests.ops.test_ops import declare

MODULES = (gc, gc.fft, gc.linalg, gc.nn, gc.optimize, gc.signal, gc.special, gc.tree)
X = gc.tensor("x", {"row": 3, "col": 4})
N = gc.tensor("n", {"row": 3}, dtype="int64")
CHUNKED = xarray.DataArray(np.ones((3, 4)), dims=("row", "col")).chunk()
ONE = gc.Mesh({"data": 1})
SQUARE = gc.tensor("square", {"row": 3, "col": 3})


def slope(operands: tuple[gc.Tensor], y: gc.Tensor, moving: Any) -> gc.Tensor:
    return gc.cos(operands[0])


def saved() -> str:
    """A file with a program."""
    path = str(Path(tempfile.mkdtemp(), "program.gc"))
    gc.save(gc.compile([X], X), path)
    return path


KINDS = (
    gc.Tensor,
    gc.Compiled,
    type(X.at),
    type(X.at[{"row": 0}]),
    *(type(X.rolling(row=2)), type(X.coarsen(row=2)), type(X.weighted(X))),
)
OPERATORS = ("__getitem__", "__round__", "__call__")


class Registered:
    """A class of a user."""


MORE: tuple[Callable[[], Any], ...] = (
    lambda: gc.tensor("y", {"row": 3}),
    lambda: gc.tensor("y", ("row", "col"), shape=(3, 4), dtype="float32"),
    lambda: gc.constant(np.ones((2, 3)), ("row", "col"), "float32"),
    lambda: gc.constant(2.0),
    lambda: gc.zeros({"row": 3}, "float32"),
    lambda: gc.ones({"row": 3}, "float32"),
    lambda: gc.full({"row": 3}, 1.5, "float32"),
    lambda: gc.full_like(X, 1.5, "float32"),
    lambda: gc.zeros_like(X, "float32"),
    lambda: gc.ones_like(X, "float32"),
    *(
        lambda name=name: getattr(gc, f"segment_{name}")(X, N, 3, dim="row", name="group")
        for name in ("sum", "prod", "mean", "max", "min")
    ),
    *(
        lambda name=name: getattr(gc.linalg, name)(X, ("row", "col"))
        for name in ("pinv", "svdvals", "matrix_rank")
    ),
    *(
        lambda name=name: getattr(gc.linalg, name)(SQUARE, ("row", "col"))
        for name in ("det", "inv", "logm", "sqrtm")
    ),
    lambda: gc.linalg.lstsq(X, N, ("row", "col"), rtol=1e-3),
    lambda: gc.evaluate(X, {X: np.ones((3, 4))}),
    lambda: gc.default_dtype("float32"),
    lambda: gc.threads(2).__exit__(),
    lambda: gc.Mesh({"data": 8}, devices=None),
    lambda: gc.compile([X], X, target="jax", mesh=ONE, shard={}).messages(np.ones((3, 4))),
    lambda: gc.compile([X], X, target="jax", mesh=ONE, shard={}).place(np.ones((3, 4))),
    lambda: X.eval({X: np.ones((3, 4))}),
    lambda: X.eval(x=np.ones((3, 4))),
    lambda: gc.function(x=("row",))(lambda x: x),
    lambda: gc.function(returns="numpy", native=False)(lambda: 0),
    lambda: gc.ravel([X], "parameter"),
    lambda: gc.tree.map(lambda x, y: x, X, X),
    lambda: gc.tree.flatten([X]),
    lambda: gc.tree.leaves([X]),
    lambda: gc.tree.unflatten(gc.tree.flatten([X])[1], [X]),
    lambda: gc.tree.register(Registered, lambda x: ((), None), lambda rest, parts: Registered()),
    lambda: gc.optimize.sgd(0.1, 0.9, nesterov=True),
    lambda: gc.optimize.adam(0.1, 0.9, 0.99, 1e-8),
    lambda: gc.optimize.adamw(0.1, 0.9, 0.99, 1e-8, 0.1, True),
    lambda: gc.optimize.rmsprop(0.1, 0.9, 1e-8),
    lambda: gc.optimize.lion(0.1, 0.9, 0.99, 0.1, True),
    lambda: gc.inputs_like([X], "state"),
    lambda: gc.optimize.global_norm([X]),
    lambda: gc.optimize.clip_by_global_norm([X], 1.0),
    lambda: gc.optimize.exponential_decay(0.1, 10, 0.5),
    lambda: gc.optimize.cosine_decay(0.1, 10, 0.01),
    lambda: gc.optimize.linear_warmup(10, 0.1),
    lambda: gc.callback(np.sin, X, dims="row", pullback=slope, pushforward=slope),
    lambda: gc.check_grads(gc.sin(X), X, {X: np.ones((3, 4))}, rtol=0.1, most=1),
    lambda: gc.load(saved()),
    lambda: gc.compile([X], X, returns="numpy"),
    lambda: gc.compile([X, N], X.sum("col") * N),
    lambda: gc.compile([X], X)(np.ones((3, 4))),
    lambda: gc.compile([X], X)(x=np.ones((3, 4))),
    lambda: gc.compile([X], X)(np.ones((3, 4)), out=np.zeros((3, 4))),
    lambda: gc.over_blocks(gc.compile([X], X), CHUNKED),
    lambda: gc.compile([X], X).diff("named", "lowered", limit=5, width=80),
    lambda: gc.compile([X], X).why(X, stage="lowered"),
    lambda: gc.compile([X], X).check(np.ones((3, 4)), any=True),
    lambda: gc.compile([X], X).trace(np.ones((3, 4)), step=None),
    lambda: gc.compile([X], X).profile(np.ones((3, 4))),
    lambda: gc.compile([X], X).debug_print("named", file=io.StringIO()),
    lambda: gc.compile([X], X).to_html(os.devnull),
    lambda: gc.compile([X], X).export(os.devnull),
    lambda: gc.compile([X], gc.sin(X), native=True).cfunc(None, success=1, row=3),
    lambda: gc.debug_print(gc.compile([X], X), "named", limit=5, width=80, file=io.StringIO()),
    lambda: X[{"row": 0}],
    lambda: X.at[{"row": 0}].get(),
    lambda: round(X, 2),
    lambda: X.pipe(gc.sum, "row"),
    lambda: X.pipe((gc.sum, "x"), dim="row"),
    lambda: X.rolling(row=2).sum(skipna=True),
    lambda: X.rolling(row=2).reduce(gc.sum),
    lambda: X.rolling(row=2).construct(row="lag", stride=1, fill_value=0.0),
    lambda: X.coarsen(row=3).mean(),
    lambda: X.coarsen(row=3).reduce(gc.sum),
    lambda: X.coarsen(row=3).construct(row=("a", "b")),
)
"""Calls of what the table of tests does not call, or not with every argument."""


class Call(NamedTuple):
    """A call of a public function: its name, and what it is called with."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any]


def public() -> dict[str, tuple[Any, str, Callable[..., Any]]]:
    """Every public function and method by its name, with what holds it."""
    found = {}
    for holder in (*MODULES, *KINDS):
        names = dir(holder) if inspect.ismodule(holder) else (*dir(holder), *OPERATORS)
        path = holder.__name__.rpartition(".")[2]
        for name in names:
            value = getattr(holder, name, None)
            if inspect.isfunction(value) and (not name.startswith("_") or name in OPERATORS):
                found[f"{path}.{name}"] = holder, name, value
    return found


@cache
def good_calls() -> list[Call]:
    """Calls that are right: of each function those that give arguments no earlier one gave."""
    found: list[Call] = []
    given: dict[str, set[str]] = {}
    depth = 0

    def keep(name: str, function: Callable[..., Any], args: Any, options: Any) -> None:
        bound = set(inspect.signature(function).bind(*args, **options).arguments)
        if not bound <= given.setdefault(name, {""}) or given[name] == {""}:
            given[name] |= bound
            found.append(Call(name, function, args, options))

    def recorder(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def recorded(*args: Any, **options: Any) -> Any:
            nonlocal depth
            depth += 1
            try:
                result = function(*args, **options)
            finally:
                depth -= 1
            if depth == 0:
                keep(name, function, args, options)
            return result

        return recorded

    known = public()
    names = {id(value): name for name, (_, _, value) in reversed(known.items())}
    programs = list(MORE)
    for case in CASES.values():
        xs = declare(case)
        if id(case.ours) in names:
            keep(names[id(case.ours)], case.ours, tuple(xs), {})
        else:
            programs.append(lambda case=case, xs=xs: case.ours(*xs))
    for holder, key, function in known.values():
        setattr(holder, key, recorder(names[id(function)], function))
    try:
        for program in programs:
            program()
    finally:
        for holder, key, function in known.values():
            setattr(holder, key, function)
    return found


def misfits(function: Callable[..., Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any], str]]:
    """Calls that do not fit a signature, and what their refusals say."""
    parameters = inspect.signature(function).parameters.values()
    kinds = {p.kind for p in parameters}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        yield (), {"exis": 0}, "takes no exis\n"
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        yield (X,) * 20, {}, "missing|by position"
    if any(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters):
        yield (), {}, "missing\n"


class Place(NamedTuple):
    """An argument of a good call, or a part of one: how to call with another value there."""

    call: Call
    argument: str
    annotation: str
    replaced: Callable[[Any], tuple[tuple[Any, ...], dict[str, Any]]]

    def __str__(self) -> str:
        return f"{self.call.name}({self.argument}=)"


def places() -> Iterator[Place]:
    """Every argument of every good call, each once for a function."""
    seen = set()
    for call in good_calls():
        for place in arguments(call):
            key = call.name, place.argument
            if key not in seen:
                seen.add(key)
                yield place


def arguments(call: Call) -> Iterator[Place]:
    """Every argument of a call, given or not, and the first items of lists and dicts."""
    signature = inspect.signature(call.function)
    bound = signature.bind(*call.args, **call.options)
    method = call.name.partition(".")[0] not in {m.__name__.rpartition(".")[2] for m in MODULES}

    def place(argument: str, parameter: inspect.Parameter, put: Callable[[Any], Any]) -> Place:
        def replaced(value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
            changed = inspect.BoundArguments(signature, dict(bound.arguments))
            changed.arguments[parameter.name] = put(value)
            changed.arguments = {  # in the order of the signature
                key: changed.arguments[key]
                for key in signature.parameters
                if key in changed.arguments
            }
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                return by_name(changed)
            return changed.args, changed.kwargs

        return Place(call, argument, str(parameter.annotation), replaced)

    for at, (name, parameter) in enumerate(signature.parameters.items()):
        if at == 0 and method:
            continue
        given = bound.arguments.get(name)
        if parameter.kind is parameter.VAR_POSITIONAL:
            for i in range(len(given or ())):
                yield place(
                    f"{name}[{i}]",
                    parameter,
                    lambda value, i=i, given=given: (*given[:i], value, *given[i + 1 :]),
                )
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            for key in given or ():
                yield place(
                    f"**{name}[{key!r}]",
                    parameter,
                    lambda value, key=key, given=given: {**given, key: value},
                )
            continue
        yield place(name, parameter, lambda value: value)
        if isinstance(given, (list, tuple)) and given:
            yield place(
                f"{name}[0]",
                parameter,
                lambda value, given=given: (
                    type(given)([value, *given[1:]])
                    if type(given) in (list, tuple)
                    else (value, *given[1:])
                ),
            )
        if isinstance(given, dict) and given:
            key = next(iter(given))
            yield place(
                f"{name}[{key!r}]",
                parameter,
                lambda value, key=key, given=given: {**given, key: value},
            )


def by_name(bound: inspect.BoundArguments) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, by name from where one is left out."""
    args: list[Any] = []
    options: dict[str, Any] = {}
    gap = False
    for name, parameter in bound.signature.parameters.items():
        if name not in bound.arguments:
            gap = gap or parameter.kind in (0, 1)  # what may stand in a place
            continue
        value = bound.arguments[name]
        match parameter.kind:
            case parameter.VAR_POSITIONAL:
                args += value
            case parameter.VAR_KEYWORD:
                options |= value
            case parameter.KEYWORD_ONLY:
                options[name] = value
            case _:
                if gap:
                    options[name] = value
                else:
                    args.append(value)
    return tuple(args), options
