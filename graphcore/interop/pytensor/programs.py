"""Graphs of PyTensor as programs of ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytensor.compile.mode import optdb
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.graph.traversal import graph_inputs

import graphcore as gc
from graphcore.frontend.core.base import Tensor

from .rules import refuse_input, translate
from .values import Value, axes, fit, full, lift

REWRITES = ("canonicalize", "stabilize")
"""What PyTensor does before: the raw graph may lose digits, as in cholesky(L Lᵀ)."""

LEFT_OUT = ("psd_solve_to_chol_solve", "local_add_of_sparse_write")
"""Rewrites that are wrong: one transposes complex factors without conjugating them (PyTensor 3.3),
one adds what overwrites elements once for each write, and does not broadcast (3.0)."""


def from_pytensor(
    inputs: Sequence[Any], outputs: Any, *, rewrite: bool = True
) -> tuple[list[Tensor], Any]:
    """The inputs and outputs of a graph of PyTensor as tensors, for `compile` and `grad`.

    Parameters
    ----------
    inputs
        Variables of PyTensor. Each is an input of its name, or "x0", "x1", ... by its place.
    outputs
        A variable, or a list of them.
    rewrite
        Whether PyTensor's rewrites "canonicalize" and "stabilize" come first.

    Axis i is the dim "d<i>". A variable with named dims keeps its names. Shared variables that are
    no inputs are constants, with the values that they have now.

    Examples
    --------
    >>> import graphcore as gc, pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> inputs, y = gc.interop.from_pytensor([x], pt.exp(x).sum())
    >>> gc.compile(inputs, gc.grad(y, inputs[0]))([0.0])
    array([1.])
    """
    several = isinstance(outputs, list | tuple)
    fgraph, frozen = graph_of(list(inputs), list(outputs) if several else [outputs])
    if rewrite:
        rewritten(fgraph)
    tensors = inputs_like(inputs)
    values: list[Value] = [*parts(tensors, inputs), *[x.get_value(borrow=True) for x in frozen]]
    found = results(fgraph, values)
    return tensors, found if several else found[0]


def graph_of(inputs: list[Any], outputs: list[Any]) -> tuple[Any, list[Any]]:
    """A graph that may be rewritten, and the shared variables that are its last inputs."""
    shared = [
        v
        for v in graph_inputs(outputs, inputs)
        if isinstance(v, SharedVariable) and v not in inputs
    ]
    return FunctionGraph([*inputs, *shared], outputs, clone=True), shared


def rewritten(fgraph: Any) -> None:
    """Rewrites a graph by PyTensor's rules that make it stable."""
    optdb.query(RewriteDatabaseQuery(include=REWRITES, exclude=LEFT_OUT)).rewrite(fgraph)


def inputs_like(inputs: Sequence[Any]) -> list[Tensor]:
    """An input for each of PyTensor's; axes have open sizes of their own, named dims one."""
    made: list[Tensor] = []
    for k, v in enumerate(inputs):
        refuse_input(v)
        name = v.name or f"x{k}"
        while any(x.name == name for x in made):
            name += "'"
        if hasattr(v.type, "dims"):
            sizes = dict(zip(v.type.dims, v.type.shape, strict=True))
        else:
            shape = zip(axes(v.type.ndim), getattr(v.type, "shape", ()), strict=True)
            sizes = {dim: f"{name} {dim}" if n is None else n for dim, n in shape}
        made.append(gc.tensor(name, sizes, dtype=v.type.dtype))
    return made


def parts(tensors: Sequence[Tensor], inputs: Sequence[Any]) -> list[Value]:
    """Inputs without the dims that their types say have size 1."""
    return [fit(x, v.type) for x, v in zip(tensors, inputs, strict=True)]


def results(fgraph: Any, values: Sequence[Value]) -> list[Tensor]:
    """The results of a graph, with a dim for each axis, in order."""
    found = []
    for y, v in zip(translate(fgraph, values), fgraph.outputs, strict=True):
        if hasattr(v.type, "dims"):
            found.append(lift(y, v.type).transpose(*v.type.dims))
            continue
        n = v.type.ndim
        made = fit(full(y, v.type), v.type) if n == 0 else full(y, v.type)
        found.append(made.transpose(*axes(n)) if n else made)
    return found
