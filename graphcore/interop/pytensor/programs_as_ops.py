"""Programs of ours as ops of PyTensor, with derivatives of any order in both modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor import as_tensor_variable, cast, maximum, minimum, tensor, zeros_like
from pytensor.tensor.shape import Shape_i

import graphcore as gc
from graphcore.compile.compiled import Compiled
from graphcore.frontend.core.base import Tensor, refusal, type_refusal
from graphcore.ir.name_text import show_dim
from graphcore.ir.names import apart
from graphcore.ir.sizes import Size, code, unknown, unknowns

from .rules import rule
from .values import Value, axis, full, renamed


def to_pytensor(f: Compiled[Any]) -> Callable[..., Any]:
    """A compiled program as a function of PyTensor's variables, for graphs and PyMC's models.

    It takes what `f` takes, by position or by name, and returns variables in the form of the
    results. PyTensor differentiates it, by our pullback and pushforward. In mode "GRAPHCORE" the
    program becomes part of the one that is compiled; other modes call it.

    GraphError if an argument has another number of axes, or a dtype that would lose values.

    Examples
    --------
    >>> import graphcore as gc, pytensor, pytensor.tensor as pt
    >>> from graphcore.interop.pytensor import to_pytensor
    >>> x = gc.tensor("x", {"row": None})
    >>> energy = to_pytensor(gc.compile([x], (x**2).sum() / 2))
    >>> v = pt.vector("v")
    >>> slope = pytensor.grad(energy(pt.exp(v)), v)
    >>> pytensor.function([v], slope, mode="GRAPHCORE")([0.0, 1.0]).round(6)
    array([1.      , 7.389056])
    """
    if not isinstance(f, Compiled):
        cure = "compile it: to_pytensor(gc.compile(inputs, outputs))"
        raise type_refusal(f"{type(f).__name__} is not a compiled program", cure=cure)
    graph = f.stages["named"]
    op = ProgramOp(
        [Tensor(x) for x in graph.params], [Tensor(y) for y in graph.outputs], f.target.name
    )

    def call(*args: Any, **named: Any) -> Any:
        arranged = f._given.arrange(args, named)
        return f._result(op(*arranged, return_list=True))

    return call


class ProgramOp(Op):  # type: ignore[misc]  # PyTensor is typed where it is installed
    """A program: its inputs, its outputs, and the target that runs it in other modes than ours."""

    def __init__(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], target: str) -> None:
        self.inputs, self.results, self.target = list(inputs), list(outputs), target
        self.program = gc.compile(self.inputs, self.results, target=target)

    def make_node(self, *given: Any) -> Any:
        """The application to variables."""
        variables = [self.fitted(x, like) for x, like in zip(given, self.inputs, strict=True)]
        results = [
            tensor(dtype=y.dtype.name, shape=[n if isinstance(n, int) else None for n in y.shape])
            for y in self.results
        ]
        return Apply(self, variables, results)

    def fitted(self, x: Any, like: Tensor) -> Any:
        """A variable with the axes and the dtype of an input."""
        variable, name = as_tensor_variable(x), show_dim(like.name or "")
        if variable.type.ndim != like.ndim:
            reason = f"{variable} has {variable.type.ndim} axes, {name} has {like.ndim}"
            raise refusal(
                reason, like, cure=f"give one for each dim: {like.dims}", name="to_pytensor"
            )
        if np.can_cast(variable.dtype, like.dtype, "same_kind"):
            return cast(variable, like.dtype.name)
        reason = f"{variable} is {variable.dtype}, {name} is {like.dtype}"
        raise type_refusal(reason, like, cure=f"cast it to {like.dtype}", name="to_pytensor")

    def perform(self, node: Any, inputs: Sequence[Any], outputs: Any) -> None:
        """The results for arrays."""
        for cell, y in zip(outputs, self.program(*inputs), strict=True):
            cell[0] = y

    def infer_shape(self, *given: Any) -> list[tuple[Any, ...]]:
        """The shapes of the results by those of the inputs, so that no shape needs the results.

        PyTensor 3.0 gives the graph before the node and the shapes.
        """
        node, shapes = given[-2:]
        known = {
            name: n
            for like, shape in zip(self.inputs, shapes, strict=True)
            for size, n in zip(like.shape, shape, strict=True)
            for name in unknowns(size)
            if unknown(name) is size
        }
        return [
            tuple(
                computed(size, known) if unknowns(size) <= known.keys() else Shape_i(i)(v)
                for i, size in enumerate(y.shape)
            )
            for y, v in zip(self.results, node.outputs, strict=True)
        ]

    @property
    def places(self) -> list[int]:
        """The numbers of the inputs that have derivatives."""
        return [k for k, x in enumerate(self.inputs) if x.dtype.kind in "fc"]

    def beside(self, what: str, likes: Sequence[Tensor]) -> list[Tensor]:
        """An input like each of some tensors, of a name that no input has."""
        names = [x.name or "" for x in self.inputs]
        found = []
        for k, like in enumerate(likes):
            names.append(apart(f"{what} {k}", names))
            found.append(gc.tensor(names[-1], like.sizes, dtype=like.dtype))
        return found

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """The cotangents of the inputs; integers have 0."""
        wrt = [self.inputs[k] for k in self.places]
        ys = [y for y in self.results if y.dtype.kind in "fc"]
        given = [
            zeros_like(v) if isinstance(ct.type, DisconnectedType) else ct
            for v, ct, y in zip(outputs, cotangents, self.results)
            if y.dtype.kind in "fc"
        ]
        cts = self.beside("cotangent", ys)
        slopes = gc.pullback(ys, wrt, cts, disconnected="zero")
        op = ProgramOp([*self.inputs, *cts], slopes, self.target)
        made = dict(zip(self.places, op(*inputs, *given, return_list=True)))
        return [
            made[k] if k in made else zeros_like(x, dtype="float64") for k, x in enumerate(inputs)
        ]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        """The tangents of the results; integers have 0."""
        wrt = [self.inputs[k] for k in self.places]
        ys = {k: y for k, y in enumerate(self.results) if y.dtype.kind in "fc"}
        given = [
            zeros_like(inputs[k]) if isinstance(tangents[k].type, DisconnectedType) else tangents[k]
            for k in self.places
        ]
        vs = self.beside("tangent", wrt)
        slopes = gc.pushforward([*ys.values()], wrt, vs, disconnected="zero")
        op = ProgramOp([*self.inputs, *vs], slopes, self.target)
        made = dict(zip(ys, op(*inputs, *given, return_list=True)))
        return [
            made[k] if k in made else zeros_like(y, dtype="float64") for k, y in enumerate(outputs)
        ]


def computed(size: Size, known: Mapping[str, Any]) -> Any:
    """A size as arithmetic of PyTensor's variables in place of its unknowns."""
    names = {name: f"size_{k}" for k, name in enumerate(known)}
    values = {name: known[old] for old, name in names.items()}
    return as_tensor_variable(
        eval(code(size, names), {"min": minimum, "max": maximum, **values}), dtype="int64"
    )


@rule("ProgramOp")
def program(node: Any, *operands: Value) -> list[Value]:
    """The program itself, on tensors in place of its inputs."""
    op, found = node.op, {}
    for x, v, like in zip(operands, node.inputs, op.inputs, strict=True):
        found[like] = renamed(full(x, v.type), {axis(i): d for i, d in enumerate(like.dims)})
    made = gc.vectorize(op.results, found)
    return [
        renamed(y, {dim: axis(i) for i, dim in enumerate(like.dims)})
        for y, like in zip(made, op.results, strict=True)
    ]
