"""NumPy's functions of symbolic tensors: ours where no axis is meant by position, else refused."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, NoReturn

import numpy as np

from graphcore.ir.errors import GraphAttributeError, GraphError, GraphTypeError

from .base import Base, refusal

AXISLESS = frozenset(
    {
        *(
            "real",
            "imag",
            "angle",
            "isreal",
            "iscomplex",
            "isposinf",
            "isneginf",
            "isclose",
            "isin",
        ),
        *("where", "select", "clip", "fix", "sinc", "round", "nan_to_num"),
        *("zeros_like", "ones_like", "full_like", "transpose", "squeeze", "flip"),
        *("sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "ptp"),
        *("argmax", "argmin", "median", "quantile"),
    }
)
"""Functions that mean the same here where no axis is named."""

SAME = {"amax": "max", "amin": "min", "around": "round", "a_min": "min", "a_max": "max"}
"""Other names NumPy has for functions and keywords."""

INSTEAD = {
    **dict.fromkeys(("concatenate", "append", "hstack", "vstack"), "gc.concat(xs, dim={0!r})"),
    **dict.fromkeys(("stack", "dstack", "column_stack", "block"), "gc.concat(xs, dim='new')"),
    **dict.fromkeys(("moveaxis", "swapaxes", "rollaxis"), "x.transpose({0!r}, ...)"),
    **dict.fromkeys(("transpose", "permute_dims"), "x.transpose({0!r}, ...)"),
    **dict.fromkeys(("reshape", "ravel"), "x.stack(new=({0!r}, ...)), and x.unstack to split"),
    **dict.fromkeys(("dot", "matmul", "matvec", "vecmat", "vecdot"), "gc.dot(x, y, dim={0!r})"),
    **dict.fromkeys(("inner", "tensordot", "vdot", "multi_dot"), "gc.dot(x, y, dim={0!r})"),
    "outer": "gc.linalg.outer(x, y, dims), or x * y, where dims of other names multiply out",
    "kron": "gc.linalg.kron(x, y, dims)",
    **dict.fromkeys(("broadcast_to", "broadcast_arrays", "meshgrid"), "gc.broadcast(x, y)"),
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), "x.expand_dims('new')"),
    **dict.fromkeys(("array_split", "hsplit", "vsplit", "dsplit"), "gc.split(x, 2, dim={0!r})"),
    **dict.fromkeys(("fliplr", "flipud", "rot90"), "gc.flip(x, dim={0!r})"),
    **dict.fromkeys(("compress", "extract", "delete"), "x.isel({{{0!r}: positions}})"),
    **dict.fromkeys(("put", "place", "putmask", "copyto"), "x.at[{{{0!r}: positions}}].set(y)"),
    **dict.fromkeys(("array_equal", "array_equiv"), "(x == y).all()"),
    **dict.fromkeys(("partition", "argpartition"), "gc.top_k(x, k, dim={0!r})"),
    **dict.fromkeys(("argwhere", "flatnonzero"), "gc.nonzero(x, size, dim={0!r})"),
    "allclose": "gc.isclose(x, y).all()",
    "copy": "x itself: tensors never change",
    "corrcoef": "gc.corr(x, y, dim={0!r})",
    "count_nonzero": "(x != 0).sum({0!r})",
    "einsum": "gc.einsum('row col, col -> row', x, y)",
    "iscomplexobj": "x.dtype.kind == 'c'",
    "isrealobj": "x.dtype.kind != 'c'",
    "ndim": "x.ndim",
    "percentile": "gc.quantile(x, percent / 100, dim={0!r})",
    "put_along_axis": "x.at[{{{0!r}: index}}].set(y)",
    "result_type": "np.result_type(x.dtype, y.dtype)",
    "shape": "x.sizes",
    "size": "x.size",
    "take_along_axis": "gc.take_along(x, index, dim={0!r})",
    "unstack": "gc.unbind(x, dim={0!r})",
    **dict.fromkeys(("array", "asarray"), "gc.constant(array, ({0!r}, ...))"),
    **dict.fromkeys(("function", "jit"), "gc.compile(inputs, outputs)"),
    "vmap": "gc.vectorize(outputs, {{x: x_with_more_dims}})",
    "vjp": "gc.pullback(y, x, ct)",
    "jvp": "gc.pushforward(y, x, tangent)",
    "relu": "gc.maximum(x, 0)",
}
"""What to write for functions of NumPy, JAX and others without a namesake; {0!r} is a dim."""

METHODS = {
    "reduce": {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"},
    "accumulate": {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax"},
}
"""The functions that methods of ufuncs are."""

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
SPACES = ("fft", "linalg", "signal", "special")
"""Modules whose functions are called by the name of the module as well."""


def call(function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """What a function of NumPy, one of whose arguments is a tensor, means here."""
    path = f"{function.__module__}.{function.__name__}"
    found = list(tensors((*args, *options.values())))
    name = SAME.get(function.__name__, function.__name__)
    if name not in AXISLESS or function.__module__ != "numpy":
        raise refused(path, name, found)
    ours = public()[name]
    try:
        required, changed = told(function, args, options)
        axis = changed.pop("axis", None)
        inspect.signature(ours).bind(*required, **changed)
    except TypeError as error:
        raise refused(path, name, found, f"of a symbolic tensor: {error}") from None
    if axis is not None:
        raise refused(path, name, found, "takes no axis by position", axis)
    return ours(*required, **changed)


def told(
    function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments without a default, and by our names those that differ from theirs."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # functions written in C have none before NumPy 2.4
        return list(args), dict(options)
    required, changed = [], {}
    for name, value in signature.bind(*args, **options).arguments.items():
        default = signature.parameters[name].default
        if default is inspect.Parameter.empty:
            required.append(value)
        elif value is not default:
            changed[SAME.get(name, name)] = value
    return required, changed


def call_ufunc(function: np.ufunc, method: str, xs: Sequence[Any], options: Iterable[str]) -> Any:
    """What a ufunc of NumPy, one of whose operands is a tensor, means here."""
    name = function.__name__
    ours = public().get(name)
    if method == "__call__" and ours is not None and not options:
        return ours(*xs)
    found = list(tensors(xs))
    if method != "__call__":
        namesake = METHODS.get(method, {}).get(name, name)
        raise refused(f"numpy.{name}.{method}", namesake, found, "speaks of axes by position")
    reason = f"takes no {', '.join(options)} with symbolic tensors" if options else ""
    raise refused(f"numpy.{name}", name, found, reason)


def refused(
    path: str, name: str, found: Sequence[Base], reason: str = "", axis: Any = 0
) -> GraphError:
    """The refusal of a function of NumPy, with what to write instead of `name`."""
    dims: tuple[str, ...] = max((x.dims for x in found), key=len, default=())
    if isinstance(axis, int) and -len(dims) <= axis < len(dims):
        dims = (dims[axis], *dims)
    space = path.split(".")[1]
    cure = instead(name, space if space in SPACES else "", dims or ("row",))
    reason = reason or "does not take symbolic tensors"
    return refusal(path, reason, *found, cure=cure, kind=GraphTypeError)


def instead(name: str, space: str, dims: tuple[str, ...]) -> str:
    """What to write for a function of NumPy; `dims` starts with the one that is meant."""
    if name in INSTEAD:
        return "use " + INSTEAD[name].format(dims[0])
    space = space if public(space) else ""
    ours, more = public(space), []
    if name.startswith("nan") and name[3:] in ours:
        name, more = name[3:], ["skipna=True"]
    if name not in ours:
        near = get_close_matches(name, ours, 1, cutoff=0.75)
        meant = f"did you mean gc.{near[0]}? " if near else ""
        return f"{meant}functions of graphcore take names: gc.sum(x, dim={dims[0]!r})"
    parameters = inspect.signature(ours[name]).parameters
    needed = [key for key, p in parameters.items() if p.default is p.empty and p.kind in POSITIONAL]
    shown = [key for key in needed if key not in ("dim", "dims")]
    if "dim" in parameters:
        shown.append(f"dim={dims[0]!r}")
    elif "dims" in parameters and len(dims) > 1:
        shown.append(f"dims={dims[-2:]!r}")
    return f"use gc.{space}{'.' * bool(space)}{name}({', '.join([*shown, *more])})"


def absent(name: str) -> NoReturn:
    """Refuse `gc.name`, where there is none."""
    if name.startswith("_"):  # what Python or a library looks for
        raise AttributeError(name)
    homes = [space for space in SPACES if name in public(space)]
    cure = f"use gc.{homes[0]}.{name}" if homes else instead(name, "", ("row",))
    raise refusal("graphcore", f"has no {name!r}", cure=cure, kind=GraphAttributeError)


@cache
def public(space: str = "") -> Mapping[str, Callable[..., Any]]:
    """The public functions of `gc`, or of one of its modules, by name."""
    package = __name__.rpartition(".")[0]
    found = {}
    for path, module in list(sys.modules.items()):
        parent, _, name = path.rpartition(".")
        if parent == package and (name == space or not (space or name in SPACES)):
            found.update({key: vars(module)[key] for key in getattr(module, "__all__", ())})
    return {name: value for name, value in found.items() if inspect.isfunction(value)}


def tensors(values: Iterable[Any]) -> Iterator[Base]:
    """The tensors among arguments, which may stand in lists."""
    for value in values:
        if isinstance(value, Base):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors(value)
