"""NumPy's functions, called with tensors: our function runs, or the call by axes is refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from graphcore.ir.errors import GraphError
from graphcore.ir.provenance import calling_library

from .core.base import Base, type_refusal
from .core.contents import SPACES
from .core.public_calls import public
from .core.suggestions import exactly, of_arrays
from .core.wrong_calls import tensors

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

METHODS = {
    "reduce": {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"},
    "accumulate": {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax"},
}
"""The functions that do the same as methods of ufuncs."""


def call_function(
    function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """The result of a NumPy function that was called with a tensor."""
    path = f"{function.__module__}.{function.__name__}"
    found = list(tensors((*args, *options.values())))
    name = SAME.get(function.__name__, function.__name__)
    if name not in AXISLESS or function.__module__ != "numpy":
        raise numpy_refusal(path, name, found, axis=axis_of(function, args, options))
    ours = public()[name]
    try:
        required, changed = non_default_arguments(function, args, options)
        axis = changed.pop("axis", None)
        inspect.signature(ours).bind(*required, **changed)
    except TypeError as error:
        raise numpy_refusal(path, name, found, f"of a tensor: {error}") from None
    if axis is not None:
        raise numpy_refusal(path, name, found, "takes no axis by position", axis)
    return ours(*required, **changed)


def non_default_arguments(
    function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The required arguments, and by our names those that differ from their defaults."""
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


def axis_of(function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The axis given in a call, or None."""
    try:
        return non_default_arguments(function, args, options)[1].get("axis")
    except TypeError:
        return options.get("axis")


def call_ufunc(function: np.ufunc, method: str, xs: Sequence[Any], options: Iterable[str]) -> Any:
    """The result of a NumPy ufunc that was called with a tensor."""
    name = function.__name__
    ours = public().get(name)
    if method == "__call__" and ours is not None and not options:
        return ours(*xs)
    found = list(tensors(xs))
    if method != "__call__":
        namesake = METHODS.get(method, {}).get(name, name)
        raise numpy_refusal(f"numpy.{name}.{method}", namesake, found, "takes axes by position")
    reason = f"takes no {', '.join(options)} with tensors" if options else ""
    raise numpy_refusal(f"numpy.{name}", name, found, reason)


def numpy_refusal(
    path: str, name: str, found: Sequence[Base], reason: str = "", axis: Any = None
) -> GraphError:
    """The error for a NumPy function, with what to write instead of `name`."""
    dims: tuple[str, ...] = max((x.dims for x in found), key=len, default=())
    space = path.split(".")[1]
    axis = axis if isinstance(axis, int) else None
    space = space if space in SPACES else ""
    cure = exactly(name, space, dims, axis) or of_arrays(path.replace("numpy", "np", 1))
    if calling_library() == "xarray":
        cure = "functions of xarray take arrays: write gc.where(c, x, y), and others of gc"
    return type_refusal(reason or "does not take tensors", *found, cure=cure, name=path)
