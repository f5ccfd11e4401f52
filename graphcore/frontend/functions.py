"""Functions with a say in how they are differentiated."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from graphcore.ir.dtypes import differentiable
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.graph import Graph
from graphcore.ir.node import recording
from graphcore.ir.types import fits
from graphcore.ops import control

from .base import refusal, wrap
from .callbacks import callback, numbered
from .carries import aligned
from .instances import Instances, Mixed
from .tracing import close, constants, given, placeholder
from .trees import flatten, paths

__all__ = ["checkpoint", "custom_pullback"]

Tree = Any
"""A tensor or number, or nested lists, tuples and dicts of them."""


def checkpoint(function: Callable[..., Tree]) -> Callable[..., Tree]:
    """The same function, of which a pullback remembers the operands only.

    What it needs from inside it computes again: memory for time.

    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": 3})
    >>> gc.grad(gc.checkpoint(lambda x: gc.sin(gc.exp(x)))(x).sum(), x)
    <Tensor: f64[row=3]>
    """

    @wraps(function)
    def called(*operands: Tree) -> Tree:
        nodes, names, params, state = given(operands)
        run = callback("checkpoint", "function", function, *numbered(operands))
        with recording() as built:
            ys, mirrored = flatten(run(*state), "result")
        closed = close(names, params, [y.node for y in ys], made=built)
        (body,) = closed.graphs
        node = control.call(*nodes, *closed.captured, body=body)
        return mirrored([wrap(node[i]) for i in range(len(ys))])

    return called


def custom_pullback(
    function: Callable[..., Tree], pullback: Callable[[tuple[Tree, ...], Tree, Tree], Any]
) -> Callable[..., Tree]:
    """`function` with a pullback of its own, for instance by the implicit function theorem.

    Parameters
    ----------
    function
        Of tensors or structures of them. Constants may be used freely; other tensors from outside
        are refused.
    pullback
        `(operands, result, ct) -> cts`: the cotangent of each operand, as a tuple in their order
        and structures; `ct` has the structure of the result. It must be linear in `ct`: then
        forward mode and higher orders follow from it. Where its graph does not show that, as a
        loop in it ends by the size of a residual, forward mode runs it once for each element of
        the result (once for all that it treats apart, such as the members of a batch).

    Raises
    ------
    GraphError
        If the function or its pullback uses a tensor from outside, if the cotangents do not have
        the types of the operands; and at the compilation of a derivative, if one is not linear in
        `ct`.

    Notes
    -----
    Second derivatives by the operands differentiate the steps of a loop in `pullback`. Where few
    steps find a solution but not its derivative, as conjugate gradients may, let `pullback` call
    another function with a pullback of its own.

    Examples
    --------
    The fixed point z = cos(a z), whose inside is never differentiated:

    >>> import graphcore as gc
    >>> def solve(a):
    ...     step = lambda z: gc.cos(a * z)
    ...     return gc.while_loop(lambda z: abs(step(z) - z) > 1e-12, step, 0.5)
    >>> def implicit(operands, z, ct):
    ...     (a,) = operands
    ...     slope = -gc.sin(a * z)
    ...     return (ct * slope * z / (1 - slope * a),)
    >>> a = gc.tensor("a", {})
    >>> z = gc.custom_pullback(solve, implicit)(a)
    >>> [v.round(6) for v in gc.compile([a], [z, gc.grad(z, a)])(1.0)]
    [np.float64(0.739085), np.float64(-0.297474)]
    """

    @wraps(function)
    def called(*operands: Tree) -> Tree:
        nodes, names, params, state = given(operands)
        run = callback("custom_pullback", "function", function, *numbered(operands))
        rule_of = callback("custom_pullback", "pullback", pullback, "operands", "result", "ct")
        result = run(*state)
        ys, mirrored = flatten(result, "result")
        labels = [name for name, _ in paths(result, "result")]
        shown = [placeholder(name, y.node.type) for name, y in zip(labels, ys, strict=True)]
        cts = [placeholder(f"ct of {n}", y.node.type) for n, y in zip(labels, ys, strict=True)]
        shares = rule_of(
            state, mirrored([wrap(y) for y in shown]), mirrored([wrap(c) for c in cts])
        )
        found, _ = flatten(shares if isinstance(shares, tuple) else (shares,), "cotangents")
        wanted = [x.type for x in nodes]
        matched = [aligned(share, type) for share, type in zip(found, wanted)]
        alike = [fits(share.type, type) for share, type in zip(matched, wanted)]
        if len(found) != len(nodes) or not all(alike):
            reason = f"the pullback returns {[str(s.node.type) for s in found]}"
            cure = f"return cotangents of {[str(type) for type in wanted]}, one for each operand"
            raise refusal("custom_pullback", reason, *nodes, cure=cure, kind=GraphTypeError)
        results = [y.node for y in ys]
        body = close(names, params, results, made=constants(results))
        rule = close([*names, *labels, *[f"ct of {n}" for n in labels]],
                     [*params, *shown, *cts], matched, made=constants(matched))  # fmt: skip
        if extra := (*body.captured, *rule.captured):
            reason = "the function or its pullback captures a tensor"
            raise refusal("custom_pullback", reason, *extra, cure="pass it as an operand")
        graph = rule.graphs[0]
        dims = lying_apart(graph)
        apart = [tuple(x.type.dims.index(dim) for dim in dims) for x in graph.params[: -len(ys)]]
        node = control.custom(*nodes, body=body.graphs[0], rule=graph, apart=tuple(apart))
        return mirrored([wrap(node[i]) for i in range(len(ys))])

    return called


def lying_apart(rule: Graph) -> list[str]:
    """The dims along which a rule works place by place: they tell instances of it apart."""
    floats = [x for x in rule.params if differentiable(x.type.dtype)]
    shared = [
        dim
        for dim in (rule.params[0].type.dims if rule.params else ())
        if all(dim in x.type.sizes for x in rule.params)
    ]
    found = []
    for dim in shared:
        size = rule.params[0].type.size(dim)
        try:
            made = Instances({dim: size}).follow(rule.outputs, {x: {dim: (dim,)} for x in floats})
        except Mixed:
            continue
        if all(made.get(share, [{}])[0].keys() <= {dim} for share in rule.outputs):
            found.append(dim)
    return found
