"""Programs that give a log density and its gradient, for nutpie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
import pandas as pd

import graphcore as gc
from graphcore.backends.argument_checks import quote
from graphcore.compile.compiled import Compiled
from graphcore.frontend.core.base import Tensor, brief
from graphcore.ir.structures import leaves

from .sampled import SampledModel, labels, refuse, sampled

PARAMETER = "unconstrained_parameter"
"""The dim that nutpie has for the elements of the vector."""


def of_program(f: Compiled[Any], keep: Any, start: Any, coords: Any) -> SampledModel:
    """A program as a model of nutpie."""
    graph = f.stages["named"]
    inputs = [Tensor(x) for x in graph.params]
    outputs = [Tensor(graph.outputs[k]) for _, k in leaves(f._results)]
    check_inputs(inputs)
    check_outputs(inputs, outputs)
    kept = kept_of(inputs, keep)
    vector, unravel = gc.ravel(inputs)
    x = gc.tensor("x", vector.sizes)
    found = dict(zip(inputs, unravel(x), strict=True))
    value, *slopes = gc.vectorize(outputs, found)
    ordered = [y.transpose(*like.dims) for y, like in zip(slopes, inputs, strict=True)]
    shapes = {like.name or "": like.shape for like in inputs}
    return sampled(
        (x, value, gc.ravel(ordered)[0]),
        gc.vectorize(kept, found),
        start_of(start, vector.shape[0]),
        without_data,
        f._own.rules,
        dims={name: tuple(map(str, y.dims)) for name, y in kept.items()},
        _coords={**coords_of(kept, coords or {}), PARAMETER: labels(shapes)},
    )


def check_inputs(inputs: list[Tensor]) -> None:
    """Refuse inputs that no vector of floats has."""
    if not inputs:
        raise refuse("the program has no inputs to sample", cure="give it some")
    for x in inputs:
        name = quote(x.name)
        if x.dtype != np.float64:
            cure = "declare it as float64: nutpie moves in real numbers only"
            raise refuse(f"the input {name} is {x.dtype}", x, cure=cure)
        if not all(isinstance(n, int) for n in x.shape):
            cure = f"declare its sizes: gc.tensor({name}, {dict.fromkeys(x.dims, 10)})"
            raise refuse(f"the sizes of the input {name} are open", x, cure=cure)


def check_outputs(inputs: list[Tensor], outputs: list[Tensor]) -> None:
    """Refuse results that are no log density with its gradient."""
    value, *slopes = outputs
    cure = "compile [*inputs] to gc.value_and_grad(log_density, [*inputs])"
    if value.dims or value.dtype.kind != "f":
        reason = f"the first result is {value.node.type}, and no log density"
        raise refuse(reason, value, cure=cure)
    fit = [{**y.sizes} == {**x.sizes} for x, y in zip(inputs, slopes, strict=False)]
    if len(slopes) != len(inputs) or not all(fit):
        many = f"{len(slopes)} results" if len(slopes) != 1 else "1 result"
        reason = f"the {many} behind the log density are not its gradient for each input"
        raise refuse(reason, *inputs, cure=cure)


def kept_of(inputs: list[Tensor], keep: Any) -> dict[str, Tensor]:
    """What the trace has, by names."""
    if keep is None:
        return {x.name or "": x for x in inputs}
    cure = "give tensors by name: {'tau': gc.exp(log_tau)}, or unravel(theta)"
    if not isinstance(keep, Mapping) or not keep:
        raise refuse(f"keep={brief(keep)} names no tensors", cure=cure)
    for name, y in keep.items():
        if not isinstance(name, str) or not isinstance(y, Tensor):
            reason = f"keep has {brief(y)} under {brief(name)}"
            raise refuse(f"{reason}, which is no tensor by name", cure=cure)
        if y.dtype.kind == "c" or not all(isinstance(n, int) for n in y.shape):
            reason = f"keep has {y.node.type} under {brief(name)}"
            cure = "keep real numbers, of known sizes"
            raise refuse(reason, y, cure=cure)
    return dict(keep)


def coords_of(kept: Mapping[str, Tensor], coords: Mapping[str, Any]) -> dict[str, Any]:
    """The labels of all dims; positions where none are given."""
    sizes: dict[str, Any] = {}
    for name, y in kept.items():
        for dim, n in y.sizes.items():
            if sizes.setdefault(str(dim), n) != n:
                reason = f"dim {quote(dim)} of {name!r} has size {n}, and elsewhere {sizes[dim]}"
                raise refuse(reason, y, cure="rename one of them")
    for dim, given in coords.items():
        if dim not in sizes or len(given) != sizes[dim]:
            has = f"size {sizes[dim]}" if dim in sizes else "no part in what the trace has"
            cure = f"give labels for {sizes}"
            reason = f"coords has {len(given)} labels for dim {quote(dim)}, which has {has}"
            raise refuse(reason, cure=cure)
    return {dim: pd.Index(coords.get(dim, range(n))) for dim, n in sizes.items()}


def start_of(start: Any, n: int) -> Callable[[int], Any]:
    """A function from seeds to vectors of n numbers."""

    def function(seed: int) -> Any:
        if start is None:
            return np.random.default_rng(seed).uniform(-2, 2, n)
        return vector(start(seed) if callable(start) else start, n)

    if start is not None and not callable(start):
        vector(start, n)
    return function


def vector(x: Any, n: int) -> Any:
    """A start as nutpie takes it."""
    found = np.ascontiguousarray(x, "float64")
    if found.shape != (n,):
        reason = f"the start has shape {found.shape}, but the vector {(n,)}"
        cure = "give all inputs one behind the other: gc.ravel(values)[0]"
        raise refuse(reason, cure=cure)
    return found


def without_data(updates: Mapping[str, Any]) -> NoReturn:
    """A program has no shared variables."""
    cure = "compile a program with the new data, and give it to to_nutpie"
    raise refuse(f"a program has no data named {[*updates]}", cure=cure)
